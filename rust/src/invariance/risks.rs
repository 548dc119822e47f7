//! Objectives that weigh the risks of environments: V-REx and GroupDRO.

use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, not_negative};

/// Add the gradient of the variance of the risks, divided by E, times `factor`.
pub(super) fn add_variance(factor: f64, run: &Run, out: &mut [f64]) {
    let n = run.n_environments() as f64;
    let mean = run.risks.iter().sum::<f64>() / n;
    for (risk, gradient) in run.risks.iter().zip(run.gradients.chunks_exact(run.width())) {
        add(2.0 * factor * (risk - mean) / n, gradient, out);
    }
}

/// V-REx (Krueger et al. 2021, https://arxiv.org/abs/2003.00688): mean risk + penalty times the variance of the risks.
#[derive(Clone, Copy, Debug)]
pub struct VRex;

impl Objective for VRex {
    fn name(&self) -> &'static str {
        "v-rex"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs { risks: true, ..Needs::default() }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_mean_gradient(1.0, out);
        add_variance(run.parameter(0), run, out);
        false
    }
}

/// Group distributionally robust optimisation (Sagawa et al. 2020, https://arxiv.org/abs/1911.08731, algorithm 1, with all
/// groups at each step): weights of the environments grow with e^(eta risk), and then the weighted risk goes down.
#[derive(Clone, Copy, Debug)]
pub struct GroupDro;

impl Objective for GroupDro {
    fn name(&self) -> &'static str {
        "group-dro"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["eta"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs { risks: true, ..Needs::default() }
    }
    fn memory(&self, n_environments: usize, _width: usize) -> usize {
        n_environments
    }
    fn start(&self, _run: &Run, memory: &mut [f64]) {
        memory.fill(1.0);
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        // a common factor is divided out anyway; without the largest no power is too large
        let eta = run.parameter(0);
        let largest = run.risks.iter().fold(f64::NEG_INFINITY, |largest, risk| largest.max(*risk));
        let mut sum = 0.0;
        for (weight, risk) in memory.iter_mut().zip(run.risks) {
            *weight *= (eta * (risk - largest)).exp();
            sum += *weight;
        }
        for (weight, gradient) in memory.iter_mut().zip(run.gradients.chunks_exact(run.width())) {
            *weight /= sum;
            add(*weight, gradient, out);
        }
        false
    }
}
