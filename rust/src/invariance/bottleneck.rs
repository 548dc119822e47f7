//! Information bottleneck on the logit (Ahuja et al. 2021, https://arxiv.org/abs/2106.06607), as in the authors' code for
//! the linear unit tests: the unbiased variance of the output is a penalty.
//!
//! DomainBed's IB learners take the variance of a featuriser's output instead, which does not depend on the parameters of a
//! linear predictor.

use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, add_dummy_penalty, dot, not_negative};

/// n / (n - 1), what makes a variance of n rows unbiased. Weights up to 1 are those of a population, where it is 1.
pub(super) fn unbiased(environments: &dyn Environments, n: f64) -> f64 {
    if environments.weights().iter().all(|&weight| weight <= 1.0) { 1.0 } else { n / (n - 1.0) }
}

/// Second moments of (x, 1) of an environment, times theta, without those of the mean: C theta, C the covariance and 0 for
/// the bias, times `factor`.
pub(super) fn add_covariance(factor: f64, moments: &[f64], theta: &[f64], out: &mut [f64]) {
    let width = theta.len();
    let means = &moments[(width - 1) * width..];
    let mean = dot(means, theta);
    for (j, out) in out[..width - 1].iter_mut().enumerate() {
        *out += factor * (dot(&moments[j * width..(j + 1) * width], theta) - means[j] * mean);
    }
}

/// IB-ERM: the pooled risk + bottleneck times the variance of the logit over all rows.
#[derive(Clone, Copy, Debug)]
pub struct IbErm;

impl Objective for IbErm {
    fn name(&self) -> &'static str {
        "ib-erm"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["bottleneck"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn gradient(&self, environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_pooled_gradient(1.0, out);
        // variances within environments and the variance of their means: nothing cancels
        let (width, inputs) = (run.width(), environments.inputs());
        let last = |e: usize| &inputs[(e * width + width - 1) * width..(e + 1) * width * width];
        let factor = 2.0 * run.parameter(0) * unbiased(environments, environments.weights().iter().sum());
        let mean: f64 = run.shares.iter().enumerate().map(|(e, share)| share * dot(last(e), run.theta)).sum();
        for (e, share) in run.shares.iter().enumerate() {
            let moments = &inputs[e * width * width..(e + 1) * width * width];
            add_covariance(factor * share, moments, run.theta, out);
            let distance = dot(last(e), run.theta) - mean;
            add(factor * share * distance, &last(e)[..width - 1], &mut out[..width - 1]);
        }
        false
    }
}

/// IB-IRM: IRMv1 of the linear unit tests + bottleneck times the mean over environments of the variance of the logit.
#[derive(Clone, Copy, Debug)]
pub struct IbIrm;

impl Objective for IbIrm {
    fn name(&self) -> &'static str {
        "ib-irm"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty_weight", "bottleneck"]
    }
    fn fault(&self, parameter: usize, value: f64) -> Option<&'static str> {
        match parameter {
            0 => (!(0.0..=1.0).contains(&value)).then_some("must lie in [0, 1]"),
            _ => not_negative(value),
        }
    }
    fn needs(&self) -> Needs {
        Needs { curvatures: true, ..Needs::default() }
    }
    fn gradient(&self, environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        let (lambda, width) = (run.parameter(0), run.width());
        run.add_mean_gradient(1.0 - lambda, out);
        add_dummy_penalty(lambda, run, out);
        let factor = 2.0 * run.parameter(1) / run.n_environments() as f64;
        for (moments, &n) in environments.inputs().chunks_exact(width * width).zip(environments.weights()) {
            add_covariance(factor * unbiased(environments, n), moments, run.theta, out);
        }
        false
    }
}
