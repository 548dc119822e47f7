//! EQRM (Eastwood et al. 2022, https://arxiv.org/abs/2207.09944): the quantile of the risks that environments have.
//!
//! The distribution of the risks is that of a Gaussian kernel at each of them; its bandwidth is 1.06 s E^(-1/5), s the
//! unbiased standard deviation of the risks. For `burn_in` steps the mean risk goes down instead, then the optimiser starts
//! anew. A quantile q below 0 stands for the level 1 - e^q, and then for mean + bandwidth sqrt(-2 q), as in the authors'
//! code, which goes towards the largest risk with 1 alone.
//!
//! That code finds the quantile by bisection and leaves the derivative to automatic differentiation, which sees no more
//! than the ends the bisection began with: the smallest and the largest risk, and the bandwidth. `eqrm` follows the
//! quantile itself; `eqrm-domainbed` follows that code, with the learning rate it switches to.

use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, not_negative};
use super::quadrature::{SIDE, normal, normal_tail, normals};

/// Halvings of the authors' bisection.
const HALVINGS: usize = 32;

/// Steps of the mean risk before the quantile; a fraction counts as a step.
fn burn_in(run: &Run) -> usize {
    run.parameter(1).ceil() as usize
}

fn fault(parameter: usize, value: f64) -> Option<&'static str> {
    match parameter {
        0 => (value == 0.0 || value >= 1.0).then_some("must lie between 0 and 1, or be below 0: ln(1 - level)"),
        _ => not_negative(value),
    }
}

/// The z of which Phi(z) is q.
fn inverse_normal(q: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..200 {
        let z = 0.5 * (low + high);
        if z <= low || z >= high {
            break;
        }
        if normal_tail(-z) > q { high = z } else { low = z }
    }
    0.5 * (low + high)
}

/// The kernels: at risks, with their bandwidth.
struct Kernels<'a> {
    risks: &'a [f64],
    mean: f64,
    /// Unbiased standard deviation of the risks.
    deviation: f64,
    bandwidth: f64,
}

impl<'a> Kernels<'a> {
    /// Nothing where the risks do not differ: then there is no bandwidth, and all levels are the mean.
    fn of(risks: &'a [f64]) -> Option<Self> {
        let n = risks.len() as f64;
        let mean = risks.iter().sum::<f64>() / n;
        let deviation = (risks.iter().map(|risk| (risk - mean) * (risk - mean)).sum::<f64>() / (n - 1.0)).sqrt();
        let bandwidth = 1.06 * deviation * n.powf(-0.2);
        (bandwidth > 0.0 && bandwidth.is_finite()).then_some(Self { risks, mean, deviation, bandwidth })
    }

    /// Share below v, and the density there times the bandwidth.
    fn below(&self, v: f64) -> (f64, f64) {
        let n = self.risks.len() as f64;
        let (mut share, mut density) = (0.0, 0.0);
        for risks in self.risks.chunks(SIDE) {
            let mut at = [f64::INFINITY; SIDE];
            for (at, risk) in at.iter_mut().zip(risks) {
                *at = (risk - v) / self.bandwidth;
            }
            let [tails, heights] = normals(at);
            for i in 0..risks.len() {
                share += tails[i];
                density += heights[i];
            }
        }
        (share / n, density / n)
    }

    /// Smallest and largest risk.
    fn ends(&self) -> (f64, f64) {
        self.risks.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &risk| (low.min(risk), high.max(risk)))
    }

    /// The value that a share q lies below, where Phi(z) = q.
    fn quantile(&self, q: f64, z: f64) -> f64 {
        let (low, high) = self.ends();
        let (mut low, mut high) = (low + self.bandwidth * z, high + self.bandwidth * z);
        let mut v = 0.5 * (low + high);
        for _ in 0..200 {
            let (share, density) = self.below(v);
            if share > q {
                high = v;
            } else {
                low = v;
            }
            // Newton's step where it stays between the ends, else half of what is left
            let step = (q - share) * self.bandwidth / density;
            if step.abs() <= 1e-8 * self.bandwidth {
                return v + step; // the digits have doubled to all there are
            }
            let next = if v + step > low && v + step < high { v + step } else { 0.5 * (low + high) };
            if next <= low || next >= high {
                return next;
            }
            v = next;
        }
        v
    }

    /// Add the gradient of the bandwidth times `factor`.
    fn add_bandwidth(&self, factor: f64, run: &Run, out: &mut [f64]) {
        let scale = factor * self.bandwidth / (self.deviation * self.deviation * (self.risks.len() as f64 - 1.0));
        for (risk, gradient) in self.risks.iter().zip(run.gradients.chunks_exact(run.width())) {
            add(scale * (risk - self.mean), gradient, out);
        }
    }
}

/// What both have in common: the mean risk in the beginning, and where the level is given by its logarithm.
fn simple(run: &Run, out: &mut [f64]) -> bool {
    let level = run.parameter(0);
    let kernels = if run.step < burn_in(run) { None } else { Kernels::of(run.risks) };
    let Some(kernels) = kernels else {
        run.add_mean_gradient(1.0, out);
        return true;
    };
    if level < 0.0 {
        run.add_mean_gradient(1.0, out);
        kernels.add_bandwidth((-2.0 * level).sqrt(), run, out);
    }
    level < 0.0
}

/// The gradient of the quantile.
#[derive(Clone, Copy, Debug)]
pub struct Eqrm;

impl Objective for Eqrm {
    fn name(&self) -> &'static str {
        "eqrm"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["quantile", "burn_in"]
    }
    fn fault(&self, parameter: usize, value: f64) -> Option<&'static str> {
        fault(parameter, value)
    }
    fn needs(&self) -> Needs {
        Needs { risks: true, ..Needs::default() }
    }
    fn memory(&self, _n_environments: usize, _width: usize) -> usize {
        1 // z
    }
    fn start(&self, run: &Run, memory: &mut [f64]) {
        memory[0] = inverse_normal(run.parameter(0));
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        let kernels = Kernels::of(run.risks);
        if let (false, Some(kernels)) = (simple(run, out), kernels) {
            // a share of q stays below v: the density times dv is that times the kernels' own moves
            let v = kernels.quantile(run.parameter(0), memory[0]);
            let height = |risk: f64| normal((risk - v) / kernels.bandwidth)[1];
            let heights: f64 = kernels.risks.iter().map(|&risk| height(risk)).sum();
            let mut wider = 0.0;
            for (&risk, gradient) in kernels.risks.iter().zip(run.gradients.chunks_exact(run.width())) {
                let weight = height(risk) / heights;
                add(weight, gradient, out);
                wider += weight * (v - risk) / kernels.bandwidth;
            }
            kernels.add_bandwidth(wider, run, out);
        }
        run.step == burn_in(run)
    }
}

/// What automatic differentiation makes of the authors' bisection.
#[derive(Clone, Copy, Debug)]
pub struct EqrmDomainBed;

impl Objective for EqrmDomainBed {
    fn name(&self) -> &'static str {
        "eqrm-domainbed"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["quantile", "burn_in", "late_lr"]
    }
    fn fault(&self, parameter: usize, value: f64) -> Option<&'static str> {
        fault(parameter, value)
    }
    fn needs(&self) -> Needs {
        Needs { risks: true, ..Needs::default() }
    }
    fn rate(&self, run: &Run) -> f64 {
        if run.step < burn_in(run) { run.parameters[0] } else { run.parameter(2) }
    }
    fn memory(&self, _n_environments: usize, _width: usize) -> usize {
        1 // z
    }
    fn start(&self, run: &Run, memory: &mut [f64]) {
        memory[0] = inverse_normal(run.parameter(0));
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, memory: &mut [f64], out: &mut [f64]) -> bool {
        let kernels = Kernels::of(run.risks);
        if let (false, Some(kernels)) = (simple(run, out), kernels) {
            let z = memory[0];
            let (low, high) = kernels.ends();
            let first = kernels.risks.iter().position(|&risk| risk <= low).unwrap_or(0);
            let last = kernels.risks.iter().position(|&risk| risk >= high).unwrap_or(0);
            let (low, high) = (low + kernels.bandwidth * z, high + kernels.bandwidth * z);
            let (mut ends, mut shares) = ([low, high], [0.0, 1.0]);
            let (mut v, mut share) = (0.5 * (low + high), 0.5);
            for _ in 0..HALVINGS {
                let side = usize::from(kernels.below(v).0 > run.parameter(0));
                (ends[side], shares[side]) = (v, share);
                let next = 0.5 * (ends[0] + ends[1]);
                #[allow(clippy::float_cmp)] // the end of what can be halved
                if next == v {
                    break;
                }
                (v, share) = (next, 0.5 * (shares[0] + shares[1]));
            }
            let width = run.width();
            add(1.0 - share, &run.gradients[first * width..(first + 1) * width], out);
            add(share, &run.gradients[last * width..(last + 1) * width], out);
            kernels.add_bandwidth(z, run, out);
        }
        run.step == burn_in(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_inverted() {
        for (q, z) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (1e-10, -6.361_340_902_404_056)] {
            assert!((inverse_normal(q) - z).abs() < 1e-12, "{q} {}", inverse_normal(q));
        }
    }

    #[test]
    fn a_share_lies_below_the_quantile() {
        for risks in [&[0.1, 0.7, 0.71][..], &[5.0, 1e-3], &[3.0, 3.0, 3.0 + 1e-9, 9.0, 2.0, 2.5]] {
            let kernels = Kernels::of(risks).unwrap();
            for q in [1e-6, 0.2, 0.5, 0.75, 0.99, 1.0 - 1e-9] {
                let v = kernels.quantile(q, inverse_normal(q));
                assert!((kernels.below(v).0 - q).abs() < 1e-13, "{risks:?} {q} {v}");
            }
        }
        assert!(Kernels::of(&[1.0]).is_none() && Kernels::of(&[2.0, 2.0]).is_none());
    }
}
