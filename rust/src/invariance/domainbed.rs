//! Learners of DomainBed (https://github.com/facebookresearch/DomainBed) where their definition is not that of the linear
//! unit tests.
//!
//! Penalties there have the weight 1 at first; after `anneal` steps they get their own, and the optimiser starts anew. Its
//! ERM, IGA, GroupDRO, SD, CORAL and Fishr are those of the same name here.

use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, dot, not_negative};
use super::risks::add_variance;

/// The weight of a penalty at this step, and whether it begins now: parameter `weight` from as many steps on as parameter
/// `anneal` says, a fraction counting as a step, and `before` until then.
pub(super) fn annealed(run: &Run, weight: usize, anneal: usize, before: f64) -> (f64, bool) {
    let begin = run.parameter(anneal).ceil() as usize;
    (if run.step < begin { before } else { run.parameter(weight) }, run.step == begin)
}

/// IRM: mean risk + penalty times the mean over environments of the squared derivative by a scale of the output; an offset
/// has no part in it, and the risk keeps its weight.
///
/// DomainBed multiplies the derivatives of two halves of a mini-batch, so that their product has the expectation of the
/// square. A step here sees all rows, or the population, and that square itself.
#[derive(Clone, Copy, Debug)]
pub struct IrmDomainBed;

impl Objective for IrmDomainBed {
    fn name(&self) -> &'static str {
        "irm-domainbed"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty", "anneal"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs { curvatures: true, ..Needs::default() }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        let (penalty, begins) = annealed(run, 0, 1, 1.0);
        run.add_mean_gradient(1.0, out);
        let (width, n) = (run.width(), run.n_environments() as f64);
        for (gradient, along) in run.gradients.chunks_exact(width).zip(run.along_theta.chunks_exact(width)) {
            let scale = 2.0 * penalty * dot(run.theta, gradient) / n;
            add(scale, gradient, out);
            add(scale, along, out);
        }
        begins
    }
}

/// V-REx with a penalty that is annealed.
#[derive(Clone, Copy, Debug)]
pub struct VRexDomainBed;

impl Objective for VRexDomainBed {
    fn name(&self) -> &'static str {
        "v-rex-domainbed"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty", "anneal"]
    }
    fn fault(&self, _parameter: usize, value: f64) -> Option<&'static str> {
        not_negative(value)
    }
    fn needs(&self) -> Needs {
        Needs { risks: true, ..Needs::default() }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        let (penalty, begins) = annealed(run, 0, 1, 1.0);
        run.add_mean_gradient(1.0, out);
        add_variance(penalty, run, out);
        begins
    }
}

/// AND-mask: the mean gradient where the mean sign reaches tau, divided by the share of parameters where it does, of the
/// weights and of the bias by themselves. Gradients keep their lengths, and Adam makes the step.
#[derive(Clone, Copy, Debug)]
pub struct AndMaskDomainBed;

impl Objective for AndMaskDomainBed {
    fn name(&self) -> &'static str {
        "and-mask-domainbed"
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
    fn memory(&self, _n_environments: usize, width: usize) -> usize {
        width // for the sums of signs: there is nothing to remember
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        let (width, n, signs) = (run.width(), run.n_environments() as f64, memory);
        signs.fill(0.0);
        run.add_mean_gradient(1.0, out);
        for gradient in run.gradients.chunks_exact(width) {
            for (sign, &g) in signs.iter_mut().zip(gradient) {
                *sign += f64::from(u8::from(g > 0.0)) - f64::from(u8::from(g < 0.0));
            }
        }
        for part in [0..width - 1, width - 1..width] {
            let (out, signs) = (&mut out[part.clone()], &signs[part.clone()]);
            let agree = |sign: f64| (sign / n).abs() >= run.parameter(0);
            let kept = signs.iter().filter(|&&sign| agree(sign)).count();
            let scale = 1.0 / (1e-10 + kept as f64 / part.len() as f64);
            for (out, &sign) in out.iter_mut().zip(signs) {
                *out *= if agree(sign) { scale } else { 0.0 };
            }
        }
        false
    }
}
