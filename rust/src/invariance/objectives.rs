//! Objectives: what a learner makes of risks and gradients. Those of the linear unit tests, in their exact variants.

use super::environments::{Environments, Needs};
use super::optimiser::Rule;
use super::{bottleneck, domainbed, fishr, logits, quantile, risks};
use crate::error::{Error, Result};

/// What an objective sees of one run. Arrays as in [`super::Batch`], without the axis of runs.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Values of the parameters: the learning rate, the weight decay, and those of the objective.
    pub parameters: &'a [f64],
    /// The weights and the bias, which is the last.
    pub theta: &'a [f64],
    /// Steps that were made before.
    pub step: usize,
    /// (E,): shares of the environments in the pooled data.
    pub shares: &'a [f64],
    /// (E,)
    pub risks: &'a [f64],
    /// (E, p)
    pub gradients: &'a [f64],
    /// (E, p)
    pub along_theta: &'a [f64],
    /// (E, p)
    pub along_bias: &'a [f64],
    /// (E, p)
    pub squares: &'a [f64],
    /// (E, p), after the second pass.
    pub products: &'a [f64],
    /// (E, p), after the second pass.
    pub square_products: &'a [f64],
}

impl Run<'_> {
    /// p.
    #[must_use]
    pub fn width(&self) -> usize {
        self.theta.len()
    }

    /// E.
    #[must_use]
    pub fn n_environments(&self) -> usize {
        self.shares.len()
    }

    /// Parameter `i` of the objective itself.
    #[must_use]
    pub fn parameter(&self, i: usize) -> f64 {
        self.parameters[2 + i]
    }

    /// Add the mean gradient over environments, each of the same weight, times `factor`.
    pub fn add_mean_gradient(&self, factor: f64, out: &mut [f64]) {
        let factor = factor / self.n_environments() as f64;
        for gradient in self.gradients.chunks_exact(self.width()) {
            add(factor, gradient, out);
        }
    }

    /// Add the gradient of the pooled risk times `factor`.
    pub fn add_pooled_gradient(&self, factor: f64, out: &mut [f64]) {
        for (share, gradient) in self.shares.iter().zip(self.gradients.chunks_exact(self.width())) {
            add(factor * share, gradient, out);
        }
    }
}

/// out += factor x.
pub fn add(factor: f64, x: &[f64], out: &mut [f64]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += factor * x;
    }
}

/// x . y, in order.
#[must_use]
pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A learner's objective.
pub trait Objective: Send + Sync + std::fmt::Debug {
    /// The name it is called by.
    fn name(&self) -> &'static str;
    /// Names of its own parameters, which come after the learning rate and the weight decay.
    fn parameters(&self) -> &'static [&'static str];
    /// What is wrong with the value of a parameter of its own; all are finite.
    fn fault(&self, parameter: usize, value: f64) -> Option<&'static str>;
    /// Quantities it needs beside gradients.
    fn needs(&self) -> Needs;
    /// How it steps.
    fn rule(&self) -> Rule {
        Rule::Adam
    }
    /// The learning rate of this step.
    fn rate(&self, run: &Run) -> f64 {
        run.parameters[0]
    }
    /// Numbers it remembers of a run from step to step.
    fn memory(&self, _n_environments: usize, _width: usize) -> usize {
        0
    }
    /// Fill what it remembers before the first step; it is 0.
    fn start(&self, _run: &Run, _memory: &mut [f64]) {}
    /// Between the passes: directions (E, p) and weights (E, p) of the second, as far as needed.
    fn between(
        &self,
        _environments: &dyn Environments,
        _run: &Run,
        _memory: &mut [f64],
        _directions: &mut [f64],
        _weights: &mut [f64],
    ) {
    }
    /// Write the direction of the step, without weight decay, to `out`, which is 0. Whether the optimiser is to forget
    /// what it saw before.
    fn gradient(&self, environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool;
}

/// All learners.
#[must_use]
pub fn learners() -> &'static [&'static dyn Objective] {
    &[
        &Erm,
        &Irmv1,
        &Iga,
        &AndMask,
        &risks::VRex,
        &risks::GroupDro,
        &quantile::Eqrm,
        &bottleneck::IbErm,
        &bottleneck::IbIrm,
        &logits::Sd,
        &logits::Coral,
        &fishr::Fishr,
        &domainbed::IrmDomainBed,
        &domainbed::VRexDomainBed,
        &domainbed::AndMaskDomainBed,
        &quantile::EqrmDomainBed,
    ]
}

/// The learner of a name.
///
/// # Errors
/// [`Error::range`] that names those there are.
pub fn learner(name: &str) -> Result<&'static dyn Objective> {
    learners().iter().copied().find(|learner| learner.name() == name).ok_or_else(|| {
        let names: Vec<_> = learners().iter().map(|learner| learner.name()).collect();
        Error::range(format_args!("learner must be one of {}; got {name:?}", names.join(", ")))
    })
}

/// For parameters that must not be negative.
#[must_use]
pub fn not_negative(value: f64) -> Option<&'static str> {
    (value < 0.0).then_some("must not be negative")
}

/// Empirical risk minimisation: the risk of the pooled rows.
#[derive(Clone, Copy, Debug)]
pub struct Erm;

impl Objective for Erm {
    fn name(&self) -> &'static str {
        "erm"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &[]
    }
    fn fault(&self, _parameter: usize, _value: f64) -> Option<&'static str> {
        None
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_pooled_gradient(1.0, out);
        false
    }
}

/// Add the gradient of sum_e (dR_e/da)^2 + (dR_e/ds)^2 at a = 1, s = 0, times `factor`, where the predictor is a f + s.
pub fn add_dummy_penalty(factor: f64, run: &Run, out: &mut [f64]) {
    let width = run.width();
    let curvatures = run.along_theta.chunks_exact(width).zip(run.along_bias.chunks_exact(width));
    for (gradient, (along_theta, along_bias)) in run.gradients.chunks_exact(width).zip(curvatures) {
        let scale = 2.0 * factor * dot(run.theta, gradient);
        add(scale, gradient, out);
        add(scale, along_theta, out);
        add(2.0 * factor * gradient[width - 1], along_bias, out);
    }
}

/// Invariant risk minimisation, version 1: (1 - lambda) mean risk + lambda times the sum over environments of squared
/// derivatives by a scale and an offset of the output.
#[derive(Clone, Copy, Debug)]
pub struct Irmv1;

impl Objective for Irmv1 {
    fn name(&self) -> &'static str {
        "irmv1"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty_weight"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        (!(0.0..=1.0).contains(&value)).then_some("must lie in [0, 1]")
    }
    fn needs(&self) -> Needs {
        Needs { curvatures: true, ..Needs::default() }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        let lambda = run.parameter(0);
        run.add_mean_gradient(1.0 - lambda, out);
        add_dummy_penalty(lambda, run, out);
        false
    }
}

/// Inter-environmental gradient alignment: mean risk + penalty times the sum over environments of the squared distance of
/// their gradient from the mean one.
#[derive(Clone, Copy, Debug)]
pub struct Iga;

impl Objective for Iga {
    fn name(&self) -> &'static str {
        "iga"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs { products: true, ..Needs::default() }
    }
    fn between(
        &self,
        _environments: &dyn Environments,
        run: &Run,
        _memory: &mut [f64],
        directions: &mut [f64],
        _weights: &mut [f64],
    ) {
        // the distance from the mean; the Hessian of the mean itself meets distances that sum up to 0
        let (width, n) = (run.width(), run.n_environments() as f64);
        for j in 0..width {
            let mean = run.gradients.iter().skip(j).step_by(width).sum::<f64>() / n;
            for (direction, gradient) in
                directions.iter_mut().skip(j).step_by(width).zip(run.gradients.iter().skip(j).step_by(width))
            {
                *direction = gradient - mean;
            }
        }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        run.add_mean_gradient(1.0, out);
        for product in run.products.chunks_exact(run.width()) {
            add(2.0 * run.parameter(0), product, out);
        }
        false
    }
}

/// AND-mask: the mean of the environments' gradients, each with its weights (not its bias) at unit length, where enough
/// environments agree on the sign. A gradient that is 0 stays 0: it has no direction and agrees with none.
#[derive(Clone, Copy, Debug)]
pub struct AndMask;

impl Objective for AndMask {
    fn name(&self) -> &'static str {
        "and-mask"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["tau"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        (!(0.0..=1.0).contains(&value)).then_some("must lie in [0, 1]")
    }
    fn needs(&self) -> Needs {
        Needs::default()
    }
    fn rule(&self) -> Rule {
        Rule::Plain
    }
    fn memory(&self, _n_environments: usize, width: usize) -> usize {
        width // for the sums of signs: there is nothing to remember
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        let (width, n) = (run.width(), run.n_environments() as f64);
        let signs = memory;
        signs.fill(0.0);
        for gradient in run.gradients.chunks_exact(width) {
            let weights = &gradient[..width - 1];
            // by the largest first: squares of small numbers are 0 too early
            let largest = weights.iter().fold(0.0f64, |largest, g| largest.max(g.abs()));
            let norm = largest * weights.iter().map(|g| (g / largest) * (g / largest)).sum::<f64>().sqrt();
            let scale = if largest > 0.0 { 1.0 / norm } else { 1.0 };
            for (j, &g) in gradient.iter().enumerate() {
                out[j] += if j + 1 < width && largest > 0.0 { g * scale } else { g };
                signs[j] += if g > 0.0 {
                    1.0
                } else if g < 0.0 {
                    -1.0
                } else {
                    g // 0, or NaN
                };
            }
        }
        for (out, signs) in out.iter_mut().zip(signs) {
            *out = if signs.abs() > run.parameter(0) * n { *out / n } else { 0.0 * *out };
        }
        false
    }
}
