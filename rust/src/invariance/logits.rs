//! Objectives that look at the distribution of the logit, whatever the labels: SD and CORAL.

use super::bottleneck::{add_covariance, unbiased};
use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, dot, not_negative};

/// Spectral decoupling (Pezeshki et al. 2021, https://arxiv.org/abs/2011.09468, equation 25): the pooled risk + penalty
/// times the mean squared logit. DomainBed has a logit for each class and takes the mean over them too.
#[derive(Clone, Copy, Debug)]
pub struct Sd;

impl Objective for Sd {
    fn name(&self) -> &'static str {
        "sd"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn gradient(&self, environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_pooled_gradient(1.0, out);
        let width = run.width();
        for (share, moments) in run.shares.iter().zip(environments.inputs().chunks_exact(width * width)) {
            for (row, theta) in moments.chunks_exact(width).zip(run.theta) {
                add(2.0 * run.parameter(0) * share * theta, row, out);
            }
        }
        false
    }
}

/// CORAL (Sun and Saenko 2016, https://arxiv.org/abs/1607.01719) in DomainBed's form, on the logit: the mean risk + penalty
/// times the mean over pairs of environments of squared differences of means and of unbiased variances. DomainBed looks at
/// the output of a featuriser.
#[derive(Clone, Copy, Debug)]
pub struct Coral;

impl Objective for Coral {
    fn name(&self) -> &'static str {
        "coral"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn memory(&self, n_environments: usize, width: usize) -> usize {
        n_environments * width // for C theta: there is nothing to remember
    }
    fn gradient(&self, environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_mean_gradient(1.0, out);
        let (width, n) = (run.width(), run.n_environments());
        if n < 2 {
            return false;
        }
        let inputs = environments.inputs();
        memory.fill(0.0);
        for (e, along) in memory.chunks_exact_mut(width).enumerate() {
            let moments = &inputs[e * width * width..(e + 1) * width * width];
            add_covariance(unbiased(environments, environments.weights()[e]), moments, run.theta, along);
        }
        let last = |e: usize| &inputs[(e * width + width - 1) * width..(e + 1) * width * width];
        let means = |e: usize| &last(e)[..width - 1];
        let along = |e: usize| &memory[e * width..(e + 1) * width];
        let weights = &run.theta[..width - 1];
        let factor = run.parameter(0) / (n * (n - 1) / 2) as f64;
        for i in 0..n {
            for j in 0..i {
                let mean = 2.0 * factor * (dot(means(i), weights) - dot(means(j), weights));
                let variance = 4.0 * factor * (dot(along(i), run.theta) - dot(along(j), run.theta));
                add(mean, means(i), &mut out[..width - 1]);
                add(-mean, means(j), &mut out[..width - 1]);
                add(variance, along(i), out);
                add(-variance, along(j), out);
            }
        }
        false
    }
}
