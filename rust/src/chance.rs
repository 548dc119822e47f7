//! Chance levels of error consistency: the mean of a measure over all ways to place two sets of given sizes.
//!
//! How many samples are in both sets is hypergeometric then. Probabilities are made from that of the likeliest number by
//! their ratios, outwards, until a float64 cannot tell them from nothing: none overflows, and no logarithm of a factorial
//! takes their digits.

use crate::consistency::{Measure, agreement, dice, double_fault, jaccard, kappa, phi, yule_q};
use crate::each::each;
use crate::error::Result;
use crate::parallel::{self, Interrupt};
use crate::simd::{RealKernel, Vectors, dispatch_reals};

/// Pairs of sizes side by side.
const LANES: usize = 8;
/// Share of the largest probability that counts as nothing.
const NEGLIGIBLE: f64 = 1e-21;
/// Pairs of one task.
const STEP: usize = 16 * LANES;
/// Pairs times roots of the samples from which threads pay.
const LARGE: f64 = 5e4;

/// Mean of a measure for each pair of sizes `a` and `b`, which must not exceed `n`; NaN where it is 0 / 0.
///
/// # Errors
/// [`Error::memory`](crate::error::Error::memory) or [`Error::interrupted`](crate::error::Error::interrupted).
pub fn levels(measure: Measure, n: u64, a: &[u64], b: &[u64], out: &mut [f64], interrupt: &Interrupt) -> Result<()> {
    let cuts = parallel::cuts(out.len(), STEP, |pair| pair)?;
    let large = out.len() as f64 * (n as f64).sqrt() > LARGE;
    parallel::fill(out, &cuts, large, interrupt, |task, out| {
        let pairs = task * STEP..task * STEP + out.len();
        for ((a, b), out) in a[pairs.clone()].chunks(LANES).zip(b[pairs].chunks(LANES)).zip(out.chunks_mut(LANES)) {
            interrupt.check()?;
            let levels = dispatch_reals(Levels { measure, n: n as f64, a, b });
            out.copy_from_slice(&levels[..out.len()]);
        }
        Ok(())
    })
}

/// Up to `LANES` pairs of sizes.
#[derive(Clone)]
struct Levels<'a> {
    measure: Measure,
    n: f64,
    a: &'a [u64],
    b: &'a [u64],
}

impl RealKernel<f64> for Levels<'_> {
    type Output = [f64; LANES];
    #[inline(always)]
    fn run<S: Vectors<f64>>(self, simd: S) -> [f64; LANES] {
        let (measure, n, mut a, mut b) = (self.measure, self.n, [0.0; LANES], [0.0; LANES]);
        for (lane, (&first, &second)) in self.a.iter().zip(self.b).enumerate() {
            (a[lane], b[lane]) = (first as f64, second as f64);
        }
        let mut mode = [0.0; LANES];
        for lane in 0..LANES {
            let (a, b) = (a[lane], b[lane]);
            mode[lane] = ((a + 1.0) * (b + 1.0) / (n + 2.0)).floor().min(a.min(b)).max((a + b - n).max(0.0));
        }
        let mut steps = Steps { both: [mode; STEPS], weights: [[1.0; LANES]; STEPS] };
        let (mut mean, mut total) = ([0.0; LANES], [1.0; LANES]);
        // Upwards, and then downwards: what is in the first set but not in the second is distributed likewise, with those
        // that are not in the second in their place, and goes up.
        for down in [false, true] {
            let (mut chosen, mut others, mut outside, mut weight) = (mode, b, b, [1.0; LANES]);
            if down {
                for lane in 0..LANES {
                    (chosen[lane], others[lane]) = (a[lane] - mode[lane], n - b[lane]);
                }
            }
            for lane in 0..LANES {
                outside[lane] = n - a[lane] - others[lane];
            }
            let (one, zero, negligible) = (simd.splat(1.0), simd.splat(0.0), simd.splat(NEGLIGIBLE));
            let mut first = usize::from(!down); // the likeliest number itself, on the way up
            loop {
                for step in first..STEPS {
                    for lane in (0..LANES).step_by(S::WIDTH) {
                        let (a, i) = (simd.load(&a[lane..]), simd.load(&chosen[lane..]));
                        // 0 at the end of what is possible, and a weight that is 0 stays so
                        let up = simd.add(i, one);
                        let ways = simd.mul(simd.sub(a, i), simd.sub(simd.load(&others[lane..]), i));
                        let ratio = simd.div(ways, simd.mul(up, simd.add(simd.load(&outside[lane..]), up)));
                        let next = simd.mul(simd.load(&weight[lane..]), ratio);
                        let next = simd.select(negligible, next, next, zero);
                        simd.store(simd.add(simd.load(&total[lane..]), next), &mut total[lane..]);
                        simd.store(next, &mut weight[lane..]);
                        simd.store(up, &mut chosen[lane..]);
                        simd.store(next, &mut steps.weights[step][lane..]);
                        simd.store(if down { simd.sub(a, up) } else { up }, &mut steps.both[step][lane..]);
                    }
                }
                steps.add(simd, measure, n, (&a, &b), &mut mean);
                first = 0;
                if weight.iter().all(|&weight| weight <= 0.0) {
                    break;
                }
            }
        }
        for lane in 0..LANES {
            mean[lane] /= total[lane];
        }
        mean
    }
}

/// Steps whose weights are known before measures are computed for them: code for each measure is short then.
const STEPS: usize = 8;

/// The sizes of the intersections at some steps, and their weights.
struct Steps {
    both: [[f64; LANES]; STEPS],
    weights: [[f64; LANES]; STEPS],
}

impl Steps {
    /// Add the measure at the steps, times their weights.
    #[inline(always)]
    fn add<S: Vectors<f64>>(&self, simd: S, measure: Measure, n: f64, sets: Sets<'_>, mean: &mut [f64; LANES]) {
        let mut terms = [[0.0; LANES]; STEPS];
        match measure {
            Measure::Jaccard => self.fill(n, sets, &mut terms, jaccard),
            Measure::Dice => self.fill(n, sets, &mut terms, dice),
            Measure::Kappa => self.fill(n, sets, &mut terms, kappa),
            Measure::DoubleFault => self.fill(n, sets, &mut terms, double_fault),
            Measure::Phi => self.fill(n, sets, &mut terms, phi),
            Measure::YuleQ => self.fill(n, sets, &mut terms, yule_q),
            Measure::Agreement => self.fill(n, sets, &mut terms, agreement),
        }
        for lane in (0..LANES).step_by(S::WIDTH) {
            let mut sum = simd.load(&mean[lane..]);
            each!(S: step < STEPS => { sum = simd.add(sum, simd.load(&terms[step][lane..])) });
            simd.store(sum, &mut mean[lane..]);
        }
    }

    /// `value` must be a function and no closure, which would not be sure to be inlined.
    #[inline(always)]
    fn fill(
        &self,
        n: f64,
        (a, b): Sets<'_>,
        terms: &mut [[f64; LANES]; STEPS],
        value: impl Fn(f64, f64, f64, f64) -> f64,
    ) {
        for ((terms, both), weights) in terms.iter_mut().zip(&self.both).zip(&self.weights) {
            for lane in 0..LANES {
                let value = weights[lane] * value(n, a[lane], b[lane], both[lane]);
                terms[lane] = if weights[lane] > 0.0 { value } else { 0.0 }; // that of an impossible size may be anything
            }
        }
    }
}

/// Sizes of the first and of the second sets.
type Sets<'a> = (&'a [f64; LANES], &'a [f64; LANES]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::simd::reals_on_every_level;

    /// Binomial coefficients up to those of `n`; exact below 2^128.
    fn choose(n: u64, k: u64) -> f64 {
        (0..k).fold(1u128, |c, i| c * u128::from(n - i) / u128::from(i + 1)) as f64
    }

    fn level(measure: Measure, n: u64, a: u64, b: u64) -> f64 {
        let mut out = [0.0];
        levels(measure, n, &[a], &[b], &mut out, &Interrupt::default()).unwrap();
        out[0]
    }

    #[test]
    fn levels_are_means_over_all_placements() {
        for n in [0u64, 1, 2, 9, 40] {
            for (a, b) in (0..=n).flat_map(|a| (0..=n).map(move |b| (a, b))) {
                let all = |value: fn(f64, f64, f64, f64) -> f64| -> f64 {
                    let shared = (a + b).saturating_sub(n)..=a.min(b);
                    let weight = |i| choose(a, i) * choose(n - a, b - i) / choose(n, b);
                    shared.map(|i| weight(i) * value(n as f64, a as f64, b as f64, i as f64)).sum()
                };
                for (measure, want) in [
                    (Measure::Jaccard, all(jaccard)),
                    (Measure::Dice, all(dice)),
                    (Measure::Kappa, all(kappa)),
                    (Measure::DoubleFault, all(double_fault)),
                    (Measure::Phi, all(phi)),
                    (Measure::YuleQ, all(yule_q)),
                    (Measure::Agreement, all(agreement)),
                ] {
                    let got = level(measure, n, a, b);
                    assert!((got - want).abs() < 1e-13 || (got.is_nan() && want.is_nan()), "{measure:?} {n} {a} {b}");
                }
            }
        }
    }

    #[test]
    fn what_is_shared_has_its_mean_for_any_number_of_samples() {
        for (n, a, b) in [(768, 230, 77), (100_000, 20_000, 99_000), (1 << 40, 1 << 30, 1 << 22), (1 << 40, 3, 1 << 40)]
        {
            let want = a as f64 / n as f64 * (b as f64 / n as f64);
            let got = level(Measure::DoubleFault, n, a, b);
            assert!((got / want - 1.0).abs() < 1e-11, "{n} {a} {b}: {got} {want}");
            assert!(level(Measure::Kappa, n, a, b).abs() < 1e-11);
        }
    }

    #[test]
    fn every_path_and_every_place_gives_the_same_bits() {
        let (a, b): (Vec<u64>, Vec<u64>) = (0..300).map(|i| (i * 7 % 701, i * i % 501)).unzip();
        let mut all = vec![0.0; 300];
        levels(Measure::Jaccard, 1000, &a, &b, &mut all, &Interrupt::default()).unwrap();
        for (i, &got) in all.iter().enumerate() {
            assert_eq!(got.to_bits(), level(Measure::Jaccard, 1000, a[i], b[i]).to_bits());
        }
        for first in [0, 96, 296] {
            let (a, b) = (&a[first..300.min(first + LANES)], &b[first..300.min(first + LANES)]);
            let paths = reals_on_every_level(&Levels { measure: Measure::Jaccard, n: 1000.0, a, b });
            for path in paths {
                assert!(path.iter().zip(&all[first..]).all(|(x, y)| x.to_bits() == y.to_bits()));
            }
        }
    }

    #[test]
    fn work_can_be_interrupted() {
        let stop = Interrupt::default();
        stop.raise();
        let stopped = levels(Measure::Jaccard, 9, &[1, 2], &[3, 4], &mut [0.0; 2], &stop);
        assert_eq!(stopped.err(), Some(Error::interrupted()));
    }
}
