//! Variances and covariances of AUCs by DeLong, DeLong & Clarke-Pearson (1988), in O(n log n) as Sun & Xu (2014).
//!
//! A placement is the share of the other class that a score beats or is beaten by, ties counting half. Doubled
//! placements are integers, and so are the sums that the covariances need.

use crate::auc::{self, PairCounts};
use crate::error::{Error, Result};
use crate::labels::Label;
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::scores::Score;
use crate::simd::{Kernel, dispatch_narrow};
use crate::sort;

/// From this many scores of all models together on threads share the work.
const LARGE: usize = 1 << 16;
/// Products that are summed between two looks for an interrupt.
const STEP: u64 = 1 << 20;

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
    let [n_neg, n_pos] = auc::check(scores, labels)?;
    interrupt.check()?;
    let mut neg = sort::filled(S::Key::default(), scores.len(), "the scores of each class", interrupt)?;
    // from both ends: which class is next cannot be guessed, so no branch may depend on it
    let (mut front, mut back) = (0, scores.len());
    for (&score, &label) in scores.iter().zip(labels) {
        let positive = usize::from(label.is_one());
        back -= positive;
        neg[if positive == 1 { back } else { front }] = score.key();
        front += 1 - positive;
    }
    let mut pos = memory::room(n_pos as usize, "the scores of each class")?;
    pos.extend_from_slice(&neg[front..]);
    neg.truncate(front);
    let [of_neg, of_pos] = placed(&sort::sorted(neg, interrupt)?, &sort::sorted(pos, interrupt)?, interrupt)?;
    let variance = of_pos.variance(n_pos, n_neg)? + of_neg.variance(n_neg, n_pos)?;
    Ok(DeLong { counts: PairCounts { doubled_u: of_pos.sum, n_pos, n_neg }, variance })
}

/// Doubled placements of a class among the other, and their squares, added up.
#[derive(Clone, Copy, Debug, Default)]
struct Placed {
    sum: u128,
    squares: u128,
}

impl Placed {
    /// `times` members of the class with the same placement.
    #[inline]
    fn add(&mut self, doubled: usize, times: usize) {
        let (doubled, times) = (doubled as u128, times as u128);
        self.sum += times * doubled;
        self.squares += times * doubled * doubled;
    }

    /// Sample variance of the placements of `m` members among `n` of the other class, over `m`.
    fn variance(self, m: u64, n: u64) -> Result<f64> {
        let (m, n) = (u128::from(m), u128::from(n));
        if m < 2 || n == 0 {
            return Ok(f64::NAN);
        }
        let scaled = self
            .squares
            .checked_mul(m)
            .zip(self.sum.checked_mul(self.sum))
            .map(|(a, b)| a - b)
            .ok_or_else(|| Error::range(format_args!("scores are too many for an exact variance")))?;
        // sum of squared deviations of the placements = scaled / (m * (2 n)^2)
        Ok(scaled as f64 / ((m * m * (m - 1)) as f64 * (4 * n * n) as f64))
    }
}

/// Placements of the sorted negatives and positives, by what lies below.
fn placed<K: Ord + Copy>(neg: &[K], pos: &[K], interrupt: &Interrupt) -> Result<[Placed; 2]> {
    let (mut of_neg, mut of_pos) = (Placed::default(), Placed::default());
    let (mut i, mut j) = (0, 0);
    while i < pos.len() && j < neg.len() {
        interrupt.check()?;
        let end = (i + j).saturating_add(STEP as usize);
        while i < pos.len() && j < neg.len() && i + j < end {
            if pos[i] == neg[j] {
                let key = pos[i];
                let (p, n) = (run(&pos[i..], key), run(&neg[j..], key));
                of_pos.add(2 * j + n, p);
                of_neg.add(2 * i + p, n);
                (i, j) = (i + p, j + n);
            } else {
                // which class is next cannot be guessed: no branch may depend on it
                let first = usize::from(pos[i] < neg[j]);
                of_pos.add(2 * j, first);
                of_neg.add(2 * i, 1 - first);
                (i, j) = (i + first, j + 1 - first);
            }
        }
    }
    of_pos.add(2 * j, pos.len() - i);
    of_neg.add(2 * i, neg.len() - j);
    Ok([of_neg, of_pos])
}

/// How many of the first keys are this one.
fn run<K: Ord + Copy>(keys: &[K], key: K) -> usize {
    keys.iter().take_while(|other| **other == key).count()
}

/// Doubled placements of one model, in the order of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placements {
    /// Pair counts behind the AUC.
    pub counts: PairCounts,
    /// For each positive the negatives below it, twice, plus those it ties with.
    pub of_pos: Vec<u32>,
    /// For each negative the positives above it, twice, plus those it ties with.
    pub of_neg: Vec<u32>,
}

/// Doubled placements of all scores.
///
/// # Errors
/// As [`crate::auc::pair_counts`]; [`Error::range`] for 2^31 scores or more.
pub fn placements<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<Placements> {
    if scores.len() >= 1 << 31 {
        return Err(Error::range(format_args!("scores has {} entries: at most 2**31 - 1 can be placed", scores.len())));
    }
    let counts = auc::pair_counts(scores, labels, interrupt)?;
    // A score goes with its number within its class, doubled, plus the class.
    let mut order: Vec<u128> = memory::room(scores.len(), "the order of the scores")?;
    let mut seen = [0u32, 1];
    for (&score, &label) in scores.iter().zip(labels) {
        let number = &mut seen[usize::from(label.is_one())];
        order.push(score.numbered(*number));
        *number += 2;
    }
    place(order, counts, interrupt)
}

/// Doubled placements of scores that go with their number within their class, doubled, plus the class.
fn place(numbered: Vec<u128>, counts: PairCounts, interrupt: &Interrupt) -> Result<Placements> {
    const WHAT: &str = "the placements of the scores";
    let order = sort::sorted(numbered, interrupt)?;
    let mut of_pos = sort::filled(0u32, counts.n_pos as usize, WHAT, interrupt)?;
    let mut of_neg = sort::filled(0u32, counts.n_neg as usize, WHAT, interrupt)?;
    let (mut neg_below, mut pos_below) = (0, 0);
    for (i, tied) in order.chunk_by(|a, b| a >> 32 == b >> 32).enumerate() {
        if i.is_multiple_of(1 << 20) {
            interrupt.check()?;
        }
        let pos: u32 = tied.iter().map(|&numbered| numbered as u32 & 1).sum();
        let neg = tied.len() as u32 - pos;
        for &numbered in tied {
            let number = numbered as u32;
            let place = number as usize / 2;
            if number & 1 == 1 {
                of_pos[place] = 2 * neg_below + neg;
            } else {
                of_neg[place] = 2 * (counts.n_pos as u32 - pos_below) - pos;
            }
        }
        neg_below += neg;
        pos_below += pos;
    }
    Ok(Placements { counts, of_pos, of_neg })
}

/// The AUC without each score in turn, in the order of the input; NaN where a class would be left without a member.
///
/// # Errors
/// As [`placements`].
pub fn jackknife<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<Vec<f64>> {
    let Placements { counts, of_pos, of_neg } = placements(scores, labels, interrupt)?;
    let (mut of_pos, mut of_neg) = (of_pos.into_iter(), of_neg.into_iter());
    let without = |label: &L| {
        let positive = label.is_one();
        let doubled = if positive { of_pos.next() } else { of_neg.next() };
        let doubled_u = counts.doubled_u - u128::from(doubled.unwrap_or(0)); // each score has its placement
        let (n_pos, n_neg) = (counts.n_pos - u64::from(positive), counts.n_neg - u64::from(!positive));
        PairCounts { doubled_u, n_pos, n_neg }.auc()
    };
    memory::collect(labels.iter().map(without), "the AUC without each score")
}

/// AUCs of several models on the same labels, and the covariance matrix of the AUCs, row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    /// Pair counts of each model.
    pub counts: Vec<PairCounts>,
    /// Covariances; NaN when a class has fewer than two members.
    pub matrix: Vec<f64>,
}

/// DeLong's covariances of the AUCs of models that scored the same labels; a row of `scores` holds those of a model.
///
/// # Errors
/// As [`placements`]; the message names the row of several.
pub fn covariance<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<Covariance> {
    let k = scores.len().checked_div(labels.len()).unwrap_or(0);
    let rows = memory::collect(0..k, "the list of models")?;
    let n = labels.len();
    let models = parallel::map(rows, scores.len() >= LARGE, interrupt, |row| {
        placements(&scores[row * n..(row + 1) * n], labels, interrupt)
            .map_err(|error| if k > 1 { auc::in_row(row, error) } else { error })
    })?;
    covariances(models, scores.len() >= LARGE, interrupt)
}

fn covariances(models: Vec<Placements>, large: bool, interrupt: &Interrupt) -> Result<Covariance> {
    let k = models.len();
    let mut pairs = memory::room(k * (k + 1) / 2, "the pairs of models")?;
    pairs.extend((0..k).flat_map(|a| (a..k).map(move |b| (a, b))));
    let entries = parallel::map(pairs, large, interrupt, |(a, b)| {
        let (a, b) = (&models[a], &models[b]);
        let n = (a.of_pos.len(), a.of_neg.len());
        Ok(cross(&a.of_pos, &b.of_pos, n.1, interrupt)? + cross(&a.of_neg, &b.of_neg, n.0, interrupt)?)
    })?;
    let mut matrix = memory::filled(0.0, k * k, "the covariances")?;
    let mut entries = entries.into_iter();
    for a in 0..k {
        for b in a..k {
            let entry = entries.next().unwrap_or(f64::NAN); // there is one for each pair
            matrix[a * k + b] = entry;
            matrix[b * k + a] = entry;
        }
    }
    Ok(Covariance { counts: models.into_iter().map(|model| model.counts).collect(), matrix })
}

/// Sample covariance of the placements of one class in two models, over the size of the class.
fn cross(a: &[u32], b: &[u32], n_other: usize, interrupt: &Interrupt) -> Result<f64> {
    let (m, n) = (a.len() as u128, n_other as u128);
    if m < 2 || n == 0 {
        return Ok(f64::NAN);
    }
    let sum = |values: &[u32]| values.iter().map(|&v| u128::from(v)).sum::<u128>();
    // So many products of two numbers up to 2n fit into 64 bits.
    let step = (u128::from(u64::MAX) / (4 * n * n)).clamp(1, u128::from(STEP)) as usize;
    let mut products = 0u128;
    for (i, (a, b)) in a.chunks(step).zip(b.chunks(step)).enumerate() {
        if i.is_multiple_of(STEP as usize / step) {
            interrupt.check()?;
        }
        products += u128::from(dispatch_narrow(Products { a, b }));
    }
    let (sum_a, sum_b) = (sum(a), sum(b));
    let scaled = products
        .checked_mul(m)
        .zip(sum_a.checked_mul(sum_b))
        .map(|(x, y)| if x < y { -((y - x) as f64) } else { (x - y) as f64 })
        .ok_or_else(|| Error::range(format_args!("scores are too many for an exact covariance")))?;
    Ok(scaled / ((m * m * (m - 1)) as f64 * (4 * n * n) as f64))
}

struct Products<'a> {
    a: &'a [u32],
    b: &'a [u32],
}

impl Kernel for Products<'_> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        self.a.iter().zip(self.b).map(|(&a, &b)| u64::from(a) * u64::from(b)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::simd::on_every_level;

    fn drawn(draw: &mut Stream, n: usize, levels: u32) -> (Vec<f64>, Vec<bool>) {
        let scores = (0..n).map(|_| f64::from(draw.below(levels))).collect();
        (scores, (0..n).map(|i| if i < 4 { i % 2 == 0 } else { draw.below(3) == 0 }).collect())
    }

    #[test]
    fn placements_are_those_of_the_double_loop() {
        let mut draw = Stream::new(4, 0, 0);
        for n in [4, 5, 30, 200] {
            for levels in [2, 9, 1_000_000] {
                let (scores, labels) = drawn(&mut draw, n, levels);
                let got = placements(&scores, &labels, &Interrupt::default()).unwrap();
                let doubled = |i: usize, sign: f64| -> u32 {
                    let others = (0..n).filter(|&j| labels[j] != labels[i]);
                    others
                        .map(|j| {
                            (1 + i32::from(scores[i] * sign > scores[j] * sign)
                                - i32::from(scores[i] * sign < scores[j] * sign)) as u32
                        })
                        .sum()
                };
                let of =
                    |class, sign| (0..n).filter(|&i| labels[i] == class).map(|i| doubled(i, sign)).collect::<Vec<_>>();
                assert_eq!(got.of_pos, of(true, 1.0));
                assert_eq!(got.of_neg, of(false, -1.0));
                assert_eq!(got.of_pos.iter().map(|&v| u128::from(v)).sum::<u128>(), got.counts.doubled_u);
            }
        }
    }

    #[test]
    fn the_diagonal_is_the_variance_and_models_may_be_swapped() {
        let mut draw = Stream::new(5, 0, 0);
        let (a, labels) = drawn(&mut draw, 300, 40);
        let (b, _) = drawn(&mut draw, 300, 7);
        let never = Interrupt::default();
        let alone = |s: &[f64]| delong(s, &labels, &never).unwrap();
        let both = covariance(&[a.clone(), b.clone()].concat(), &labels, &never).unwrap();
        assert_eq!(both.counts, [alone(&a).counts, alone(&b).counts]);
        assert!((both.matrix[0] / alone(&a).variance - 1.0).abs() < 1e-15);
        assert!((both.matrix[3] / alone(&b).variance - 1.0).abs() < 1e-15);
        let swapped = covariance(&[b, a].concat(), &labels, &never).unwrap();
        assert_eq!(swapped.matrix[1].to_bits(), both.matrix[2].to_bits());
    }

    #[test]
    fn leaving_one_out_is_to_leave_it_out() {
        let mut draw = Stream::new(6, 0, 0);
        let (scores, labels) = drawn(&mut draw, 50, 11);
        let never = Interrupt::default();
        let got = jackknife(&scores, &labels, &never).unwrap();
        for i in 0..50 {
            let (mut s, mut l) = (scores.clone(), labels.clone());
            s.remove(i);
            l.remove(i);
            assert_eq!(got[i].to_bits(), auc::pair_counts(&s, &l, &never).unwrap().auc().to_bits());
        }
        assert!(jackknife(&[1.0, 2.0], &[true, false], &never).unwrap().iter().all(|v| v.is_nan()));
    }

    #[derive(Clone)]
    struct Twice(Vec<u32>);
    impl Kernel for Twice {
        type Output = u64;
        #[inline(always)]
        fn run(self) -> u64 {
            Products { a: &self.0, b: &self.0 }.run()
        }
    }

    #[test]
    fn sums_of_products_do_not_wrap() {
        let largest = u32::MAX - 1;
        let n = 1 << 31;
        for m in [2usize, 3, 1000] {
            let mut values = vec![largest; m];
            values[0] = 0;
            let share = 1.0 / m as f64; // of placements that are 0, the others (all but) 1
            let got = cross(&values, &values, n, &Interrupt::default()).unwrap();
            assert!((got / (share * (1.0 - share) / (m - 1) as f64) - 1.0).abs() < 1e-8, "{m}: {got}");
        }
        let a: Vec<u32> = (0..1000).map(|i| i * 7919 % 10_007).collect();
        assert!(on_every_level(&Twice(a)).windows(2).all(|w| w[0] == w[1]));
    }

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
