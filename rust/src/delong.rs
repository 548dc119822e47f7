//! Variance of the AUC by DeLong, DeLong & Clarke-Pearson (1988), in O(n log n) as Sun & Xu (2014).
//!
//! A placement is the share of the other class that a score beats, ties counting half. Doubled placements are integers,
//! and so are the sums that their variance needs.

use crate::auc::PairCounts;
use crate::error::{Error, Result};
use crate::labels::{self, Label};
use crate::memory;
use crate::parallel::Interrupt;
use crate::scores::Score;

/// AUC and its variance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeLong {
    /// Pair counts behind the AUC.
    pub counts: PairCounts,
    /// Variance of the AUC; NaN when a class has fewer than two members.
    pub variance: f64,
}

/// DeLong's variance of the AUC.
///
/// # Errors
/// As [`crate::auc::pair_counts`].
pub fn delong<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<DeLong> {
    // Checks the input, and for large input costs little beside the sort below.
    let counts = crate::auc::pair_counts(scores, labels, interrupt)?;
    interrupt.check()?;
    let room = |n: u64| memory::room::<S::Key>(n as usize, "the scores of each class");
    let mut sorted = [room(counts.n_neg)?, room(counts.n_pos)?];
    for (&score, &label) in scores.iter().zip(labels) {
        sorted[usize::from(labels::is_positive(label.bit()))].push(score.key());
    }
    for class in &mut sorted {
        interrupt.check()?;
        class.sort_unstable();
    }
    let [neg, pos] = sorted;
    interrupt.check()?;
    let of_pos = spread(&pos, &neg)?;
    interrupt.check()?;
    let variance = of_pos + spread(&neg, &pos)?;
    Ok(DeLong { counts, variance })
}

/// Sample variance of the placements of `own` among `other`, over the size of `own`.
fn spread<K: Ord>(own: &[K], other: &[K]) -> Result<f64> {
    let (m, n) = (own.len() as u128, other.len() as u128);
    if m < 2 || n == 0 {
        return Ok(f64::NAN);
    }
    let (mut below, mut not_above) = (0, 0);
    let (mut sum, mut squares) = (0u128, 0u128);
    for key in own {
        while below < other.len() && other[below] < *key {
            below += 1;
        }
        while not_above < other.len() && other[not_above] <= *key {
            not_above += 1;
        }
        let doubled = (below + not_above) as u128;
        sum += doubled;
        squares += doubled * doubled;
    }
    let scaled = squares
        .checked_mul(m)
        .zip(sum.checked_mul(sum))
        .map(|(a, b)| a - b)
        .ok_or_else(|| Error::Range("scores are too many for an exact variance".to_owned()))?;
    // sum of squared deviations of the placements = scaled / (m * (2 n)^2)
    Ok(scaled as f64 / ((m * m * (m - 1)) as f64 * (4 * n * n) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn equals_the_definition() {
        let mut draw = Stream::new(3, 0, 0);
        for _ in 0..20 {
            let n = 4 + draw.below(60) as usize;
            let scores: Vec<f64> = (0..n).map(|_| f64::from(draw.below(12))).collect();
            let labels: Vec<bool> = (0..n).map(|i| if i < 4 { i % 2 == 0 } else { draw.below(3) == 0 }).collect();
            let win = |a: f64, b: f64| if a > b { 1.0 } else { f64::from(u8::from((a - b).abs() < 0.5)) / 2.0 };
            let class = |wanted| -> Vec<f64> {
                scores.iter().zip(&labels).filter(|&(_, &l)| l == wanted).map(|(&s, _)| s).collect()
            };
            let (pos, neg) = (class(true), class(false));
            let v10: Vec<f64> =
                pos.iter().map(|&p| neg.iter().map(|&q| win(p, q)).sum::<f64>() / neg.len() as f64).collect();
            let v01: Vec<f64> =
                neg.iter().map(|&q| pos.iter().map(|&p| win(p, q)).sum::<f64>() / pos.len() as f64).collect();
            let variance = |v: &[f64]| {
                let mean = v.iter().sum::<f64>() / v.len() as f64;
                v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (v.len() - 1) as f64 / v.len() as f64
            };
            let got = delong(&scores, &labels, &Interrupt::default()).unwrap();
            assert!((got.variance - variance(&v10) - variance(&v01)).abs() < 1e-14);
        }
    }

    #[test]
    fn one_member_of_a_class_has_no_variance() {
        let got = delong(&[0.1, 0.35, 0.4], &[false, true, false], &Interrupt::default()).unwrap();
        assert!(got.variance.is_nan());
        assert!((got.counts.auc() - 0.5).abs() < 1e-15);
    }
}
