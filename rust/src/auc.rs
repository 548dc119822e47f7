//! Area under the ROC curve, from exact pair counts.
//!
//! AUC = (pairs with the positive above + half of the tied pairs) / all pairs. Twice the numerator is an integer, so
//! the value is one division of two integers: it depends neither on the order of the input nor on threads.

use crate::error::{Error, Result};
use crate::labels::{self, Label};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, dispatch};

/// Up to this many scores no memory is allocated.
const ON_STACK: usize = 512;
/// Up to this many pairs it is faster to compare them all than to sort.
const FEW_PAIRS: usize = 1 << 12;
/// From this many scores on the keys are first distributed into buckets, which are then counted side by side.
const DISTRIBUTE: usize = 1 << 16;
const BUCKETS: usize = 256;
const SAMPLES_PER_BUCKET: usize = 16;
/// What most memory goes into.
const KEYS: &str = "the keys of the scores";

/// A score: anything with a total order once NaN is ruled out.
pub trait Score: Copy + PartialEq + Send + Sync + std::fmt::Display {
    /// Unsigned integer of the same order; -0.0 and 0.0 share one.
    type Key: Copy + Ord + Default + Send + Sync;
    /// Key of the score.
    fn key(self) -> Self::Key;
    /// Whether the score has no place in an order.
    fn is_nan(self) -> bool;
    /// Bit of the score read as a label, to recognise swapped arguments.
    fn label_bit(self) -> u8;
}

macro_rules! float_score {
    ($float:ty, $key:ty, $signed:ty) => {
        impl Score for $float {
            type Key = $key;
            #[inline]
            fn key(self) -> $key {
                let bits = (self + 0.0).to_bits(); // -0.0 + 0.0 is 0.0
                bits ^ (((bits as $signed) >> (<$key>::BITS - 1)) as $key | (1 << (<$key>::BITS - 1)))
            }
            #[inline]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            fn label_bit(self) -> u8 {
                self.bit()
            }
        }
    };
}
float_score!(f32, u32, i32);
float_score!(f64, u64, i64);

impl Score for i64 {
    type Key = u64;
    #[inline]
    fn key(self) -> u64 {
        (self as u64) ^ (1 << 63)
    }
    #[inline]
    fn is_nan(self) -> bool {
        false
    }
    fn label_bit(self) -> u8 {
        self.bit()
    }
}

impl Score for u64 {
    type Key = u64;
    #[inline]
    fn key(self) -> u64 {
        self
    }
    #[inline]
    fn is_nan(self) -> bool {
        false
    }
    fn label_bit(self) -> u8 {
        self.bit()
    }
}

/// Twice the Mann-Whitney U statistic and the class sizes: the AUC as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// Pairs with the positive above, twice, plus tied pairs.
    pub doubled_u: u128,
    /// Number of positives.
    pub n_pos: u64,
    /// Number of negatives.
    pub n_neg: u64,
}

impl PairCounts {
    /// The AUC; NaN when a class is empty.
    #[must_use]
    pub fn auc(self) -> f64 {
        let pairs = 2 * u128::from(self.n_pos) * u128::from(self.n_neg);
        if pairs == 0 { f64::NAN } else { self.doubled_u as f64 / pairs as f64 }
    }
}

fn same_length<S, L>(scores: &[S], labels: &[L]) -> Result<()> {
    if scores.len() == labels.len() {
        Ok(())
    } else {
        Err(Error::Length { first: "scores", expected: scores.len(), second: "labels", found: labels.len() })
    }
}

/// Write positive keys from the front and negative keys from the back of `keys`; returns the number of positives.
#[inline]
fn split<S: Score, L: Label>(scores: &[S], labels: &[L], keys: &mut [S::Key]) -> Result<usize> {
    let (mut front, mut back) = (0, keys.len());
    let (mut bits, mut nan) = (0, false);
    for (&score, &label) in scores.iter().zip(labels) {
        let (key, bit) = (score.key(), label.bit());
        let positive = labels::is_positive(bit);
        bits |= bit;
        nan |= score.is_nan();
        keys[if positive { front } else { back - 1 }] = key;
        front += usize::from(positive);
        back -= usize::from(!positive);
    }
    if nan {
        return Err(not_a_number("scores", scores));
    }
    if !labels::is_binary(bits) {
        return Err(hint_swapped(labels::explain(labels), scores));
    }
    Ok(front)
}

fn not_a_number<S: Score>(argument: &str, values: &[S]) -> Error {
    let i = values.iter().position(|v| v.is_nan()).unwrap_or(0);
    Error::NotFinite { argument: argument.to_owned(), position: format!("[{i}]"), value: "NaN".to_owned() }
}

/// The error, with a hint where the scores are labels and the labels are not.
pub fn hint_swapped<S: Score>(error: Error, scores: &[S]) -> Error {
    match error {
        Error::Labels(message) if labels::is_binary(scores.iter().fold(0, |bits, s| bits | s.label_bit())) => {
            Error::Labels(format!(
                "{message}. The scores hold nothing but such labels, so the arguments look swapped: \
                 the order is (scores, labels)"
            ))
        }
        error => error,
    }
}

/// Sum over the sorted `pos` of the number of sorted `neg` below each (or, if `TIES`, not above each).
#[inline]
fn count_below<K: Ord + Copy, const TIES: bool>(pos: &[K], neg: &[K]) -> u128 {
    let (mut i, mut j, mut sum) = (0, 0, 0u128);
    while i < pos.len() && j < neg.len() {
        let step = if TIES { neg[j] <= pos[i] } else { neg[j] < pos[i] };
        sum += if step { 0 } else { j as u128 };
        j += usize::from(step);
        i += usize::from(!step);
    }
    sum + (pos.len() - i) as u128 * neg.len() as u128
}

/// Every pair, compared: no branch depends on the data.
struct AllPairs<'a, K> {
    pos: &'a [K],
    neg: &'a [K],
}

impl<K: Ord + Copy> Kernel for AllPairs<'_, K> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let (outer, inner) = (self.pos, self.neg);
        outer.iter().map(|p| inner.iter().map(|n| u64::from(n < p) + u64::from(n <= p)).sum::<u64>()).sum()
    }
}

fn doubled_u<K: Ord + Copy>(pos: &mut [K], neg: &mut [K]) -> u128 {
    if pos.len() * neg.len() <= FEW_PAIRS {
        return dispatch(AllPairs { pos, neg }).into();
    }
    pos.sort_unstable();
    neg.sort_unstable();
    count_below::<K, false>(pos, neg) + count_below::<K, true>(pos, neg)
}

/// Values that cut the keys into buckets of about equal size, ascending and distinct.
fn splitters<K: Ord + Copy>(keys: &[K]) -> Vec<K> {
    let stride = (keys.len() / (BUCKETS * SAMPLES_PER_BUCKET)).max(1);
    let mut sample: Vec<K> = keys.iter().step_by(stride).copied().collect();
    sample.sort_unstable();
    let mut cuts: Vec<K> = (1..BUCKETS).map(|b| sample[b * sample.len() / BUCKETS]).collect();
    cuts.dedup();
    cuts
}

/// The keys, bucket by bucket, and where each bucket starts, and the end.
fn distribute<K: Ord + Copy + Default>(keys: &[K], cuts: &[K]) -> Result<(Vec<K>, Vec<usize>)> {
    // Branch-free search in a table padded to a power of two; the last cut stands in for the missing ones, and the
    // index is clamped, since a key at or above the last cut would count the padding too.
    let mut table = [cuts[cuts.len() - 1]; BUCKETS - 1];
    table[..cuts.len()].copy_from_slice(cuts);
    let bucket = |key: K| {
        let (mut base, mut half) = (0, BUCKETS / 2);
        while half > 0 {
            base += if table[base + half - 1] <= key { half } else { 0 };
            half /= 2;
        }
        base.min(cuts.len())
    };
    let ids: Vec<u8> = memory::collect(keys.iter().map(|&k| bucket(k) as u8), "the buckets of the scores")?;
    let mut starts = vec![0usize; BUCKETS + 1];
    for &id in &ids {
        starts[usize::from(id) + 1] += 1;
    }
    for b in 0..BUCKETS {
        starts[b + 1] += starts[b];
    }
    let mut next = starts.clone();
    let mut sorted = memory::filled(K::default(), keys.len(), "the scores by bucket")?;
    for (&key, &id) in keys.iter().zip(&ids) {
        sorted[next[usize::from(id)]] = key;
        next[usize::from(id)] += 1;
    }
    Ok((sorted, starts))
}

fn doubled_u_large<K>(pos: &[K], neg: &[K], interrupt: &Interrupt) -> Result<u128>
where
    K: Ord + Copy + Default + Send + Sync,
{
    if pos.is_empty() || neg.is_empty() {
        return Ok(0);
    }
    let cuts = splitters(if pos.len() > neg.len() { pos } else { neg });
    interrupt.check()?;
    let (mut pos, pos_starts) = distribute(pos, &cuts)?;
    interrupt.check()?;
    let (mut neg, neg_starts) = distribute(neg, &cuts)?;
    let mut tasks = Vec::with_capacity(BUCKETS);
    let (mut pos_rest, mut neg_rest) = (&mut pos[..], &mut neg[..]);
    for b in 0..BUCKETS {
        let (p, p_tail) = pos_rest.split_at_mut(pos_starts[b + 1] - pos_starts[b]);
        let (n, n_tail) = neg_rest.split_at_mut(neg_starts[b + 1] - neg_starts[b]);
        tasks.push((p, n, neg_starts[b]));
        (pos_rest, neg_rest) = (p_tail, n_tail);
    }
    let counts = parallel::map(tasks, true, interrupt, |(p, n, below)| {
        Ok(2 * p.len() as u128 * below as u128 + doubled_u(p, n))
    })?;
    Ok(counts.into_iter().sum())
}

/// Pair counts of scores and labels: O(n log n).
///
/// # Errors
/// [`Error`] when lengths differ, a score is NaN, the labels are not two-valued or memory runs out;
/// [`Error::Interrupted`].
pub fn pair_counts<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<PairCounts> {
    same_length(scores, labels)?;
    let n = scores.len();
    let mut stack = [S::Key::default(); ON_STACK];
    let mut heap;
    let keys = if n <= ON_STACK {
        &mut stack[..n]
    } else {
        heap = memory::filled(S::Key::default(), n, KEYS)?;
        &mut heap[..]
    };
    let n_pos = split(scores, labels, keys)?;
    let (pos, neg) = keys.split_at_mut(n_pos);
    let doubled_u = if n < DISTRIBUTE { doubled_u(pos, neg) } else { doubled_u_large(pos, neg, interrupt)? };
    Ok(PairCounts { doubled_u, n_pos: n_pos as u64, n_neg: (n - n_pos) as u64 })
}

/// Pair counts from the number of positives and negatives at each distinct score, ascending.
///
/// # Errors
/// [`Error::Length`] when the lengths differ, [`Error::Range`] when a class has 2^63 members or more.
pub fn pair_counts_from_counts(pos: &[u64], neg: &[u64]) -> Result<PairCounts> {
    if pos.len() != neg.len() {
        return Err(Error::Length { first: "pos", expected: pos.len(), second: "neg", found: neg.len() });
    }
    let total = |name: &str, counts: &[u64]| -> Result<u64> {
        let sum: u128 = counts.iter().map(|&c| u128::from(c)).sum();
        if sum < 1 << 63 {
            Ok(sum as u64)
        } else {
            Err(Error::Range(format!("{name} sums to {sum}: at most 2**63 - 1 members of a class can be counted")))
        }
    };
    let (n_pos, n_neg) = (total("pos", pos)?, total("neg", neg)?);
    let (mut below, mut doubled_u) = (0u128, 0u128);
    for (&p, &n) in pos.iter().zip(neg) {
        doubled_u += u128::from(p) * (2 * below + u128::from(n));
        below += u128::from(n);
    }
    Ok(PairCounts { doubled_u, n_pos, n_neg })
}

/// Sum with a running compensation (Neumaier), exact to the last bit or so whatever the order of magnitude.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let next = self.total + x;
        self.lost += if self.total.abs() >= x.abs() { (self.total - next) + x } else { (x - next) + self.total };
        self.total = next;
    }

    fn value(self) -> f64 {
        self.total + self.lost
    }
}

/// Power of two that brings `x` near 1, so that neither products nor sums of such weights over- or underflow.
fn scale(x: f64) -> f64 {
    let exponent = x.to_bits() >> 52;
    f64::from_bits(2046u64.saturating_sub(exponent).clamp(1, 2045) << 52)
}

/// Weight of the positives and of the negatives at each distinct score, ascending; each class on a scale of its own.
fn weights_by_score<S: Score, L: Label>(
    scores: &[S],
    labels: &[L],
    weights: Option<&[f64]>,
    interrupt: &Interrupt,
) -> Result<Vec<(f64, f64)>> {
    same_length(scores, labels)?;
    let mut bits = 0;
    let mut order: Vec<(S::Key, u32, usize)> = memory::room(scores.len(), KEYS)?;
    for (i, (&score, &label)) in scores.iter().zip(labels).enumerate() {
        if score.is_nan() {
            return Err(not_a_number("scores", scores));
        }
        bits |= label.bit();
        order.push((score.key(), u32::from(labels::is_positive(label.bit())), i));
    }
    if !labels::is_binary(bits) {
        return Err(hint_swapped(labels::explain(labels), scores));
    }
    if let Some(weights) = weights {
        if weights.len() != scores.len() {
            return Err(Error::Length {
                first: "scores",
                expected: scores.len(),
                second: "sample_weight",
                found: weights.len(),
            });
        }
        if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
            return Err(Error::NotFinite {
                argument: "sample_weight".to_owned(),
                position: format!("[{i}]"),
                value: weights[i].to_string(),
            });
        }
        if let Some(i) = weights.iter().position(|&w| w < 0.0) {
            return Err(Error::Range(format!("sample_weight[{i}] is {}: weights must not be negative", weights[i])));
        }
    }
    interrupt.check()?;
    let mut largest = [0.0; 2];
    for &(_, positive, i) in &order {
        largest[positive as usize] = f64::max(largest[positive as usize], weights.map_or(1.0, |w| w[i]));
    }
    let scales = largest.map(scale);
    interrupt.check()?;
    order.sort_unstable();
    interrupt.check()?;
    let by_score = || order.chunk_by(|a, b| a.0 == b.0);
    let mut groups = memory::room(by_score().count(), "the weights at each score")?;
    for group in by_score() {
        let (mut pos, mut neg) = (Sum::default(), Sum::default());
        for &(_, positive, i) in group {
            let class = if positive == 1 { &mut pos } else { &mut neg };
            class.add(weights.map_or(1.0, |w| w[i] * scales[positive as usize]));
        }
        groups.push((pos.value(), neg.value()));
    }
    interrupt.check()?;
    Ok(groups)
}

/// AUC with a weight per score; NaN when a class has no weight.
///
/// # Errors
/// As [`pair_counts`], and when a weight is negative or not finite.
pub fn weighted<S: Score, L: Label>(scores: &[S], labels: &[L], weights: &[f64], interrupt: &Interrupt) -> Result<f64> {
    let groups = weights_by_score(scores, labels, Some(weights), interrupt)?;
    let (mut area, mut below, mut n_pos) = (Sum::default(), Sum::default(), Sum::default());
    for &(pos, neg) in &groups {
        area.add(pos * (below.value() + neg / 2.0));
        below.add(neg);
        n_pos.add(pos);
    }
    let pairs = n_pos.value() * below.value();
    Ok(if pairs > 0.0 { (area.value() / pairs).clamp(0.0, 1.0) } else { f64::NAN })
}

/// Area under the ROC curve up to the false positive rate `max_fpr`, with linear interpolation there.
///
/// Standardised (McClish 1989) it is 0.5 for a chance ranking and 1 for a perfect one.
///
/// # Errors
/// As [`weighted`], and when `max_fpr` is outside (0, 1].
pub fn partial<S: Score, L: Label>(
    scores: &[S],
    labels: &[L],
    weights: Option<&[f64]>,
    max_fpr: f64,
    standardize: bool,
    interrupt: &Interrupt,
) -> Result<f64> {
    if !(max_fpr > 0.0 && max_fpr <= 1.0) {
        return Err(Error::Range(format!("max_fpr must lie in (0, 1]; got {max_fpr}")));
    }
    let groups = weights_by_score(scores, labels, weights, interrupt)?;
    let (mut n_pos, mut n_neg) = (Sum::default(), Sum::default());
    for &(pos, neg) in &groups {
        n_pos.add(pos);
        n_neg.add(neg);
    }
    let (n_pos, n_neg) = (n_pos.value(), n_neg.value());
    if n_pos <= 0.0 || n_neg <= 0.0 {
        return Ok(f64::NAN);
    }
    let limit = max_fpr * n_neg;
    let (mut area, mut tp, mut fp) = (Sum::default(), Sum::default(), Sum::default());
    for &(pos, neg) in groups.iter().rev() {
        let width = neg.min(limit - fp.value());
        if neg > 0.0 && width > 0.0 {
            area.add(width * (tp.value() + pos * (width / neg) / 2.0));
        }
        tp.add(pos);
        fp.add(neg);
        if fp.value() >= limit {
            break;
        }
    }
    let raw = (area.value() / (n_pos * n_neg)).clamp(0.0, max_fpr);
    if standardize {
        let chance = max_fpr * max_fpr / 2.0;
        Ok(0.5 * (1.0 + (raw - chance) / (max_fpr - chance)))
    } else {
        Ok(raw)
    }
}

/// Labels of a batch of rows.
#[derive(Clone, Copy, Debug)]
pub enum RowLabels<'a, L> {
    /// The same labels for every row.
    Shared(&'a [L]),
    /// One row of labels for each row of scores.
    PerRow(&'a [L]),
}

/// AUC of every row of a row-major matrix with `width` columns.
///
/// # Errors
/// As [`pair_counts`]; the message names the row.
pub fn many<S: Score, L: Label>(
    scores: &[S],
    width: usize,
    labels: RowLabels<'_, L>,
    interrupt: &Interrupt,
) -> Result<Vec<f64>> {
    let n_rows = scores.len().checked_div(width).unwrap_or(0);
    let block = (4096 / width.max(1)).max(1);
    let cuts = parallel::cuts(n_rows, block, |row| row)?;
    let mut aucs = memory::filled(f64::NAN, n_rows, "the AUC of each row")?;
    parallel::fill(&mut aucs, &cuts, scores.len() >= DISTRIBUTE, interrupt, |i, aucs| {
        for (row, auc) in (i * block..).zip(aucs) {
            let cells = row * width..(row + 1) * width;
            let labels = match labels {
                RowLabels::Shared(labels) => labels,
                RowLabels::PerRow(labels) => &labels[cells.clone()],
            };
            *auc = row_auc(&scores[cells], labels, interrupt).map_err(|error| in_row(row, error))?;
        }
        Ok(())
    })?;
    Ok(aucs)
}

/// Inside a task of the pool the large path, which would use the pool itself, is left out.
fn row_auc<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<f64> {
    same_length(scores, labels)?;
    if scores.len() <= ON_STACK {
        return Ok(pair_counts(scores, labels, interrupt)?.auc());
    }
    let mut keys = memory::filled(S::Key::default(), scores.len(), KEYS)?;
    let n_pos = split(scores, labels, &mut keys)?;
    interrupt.check()?;
    let (pos, neg) = keys.split_at_mut(n_pos);
    let (n_pos, n_neg) = (pos.len() as u64, neg.len() as u64);
    Ok(PairCounts { doubled_u: doubled_u(pos, neg), n_pos, n_neg }.auc())
}

fn in_row(row: usize, error: Error) -> Error {
    match error {
        Error::NotFinite { argument, position, value } => {
            Error::NotFinite { argument, position: position.replacen('[', &format!("[{row}, "), 1), value }
        }
        Error::Labels(message) => Error::Labels(format!("row {row}: {message}")),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn brute<S: Score>(scores: &[S], labels: &[bool]) -> (u128, u64, u64) {
        let mut doubled = 0;
        let n_pos = labels.iter().filter(|&&l| l).count();
        for (i, a) in scores.iter().enumerate().filter(|&(i, _)| labels[i]) {
            for (j, b) in scores.iter().enumerate().filter(|&(j, _)| !labels[j]) {
                assert_ne!(i, j);
                doubled += match a.key().cmp(&b.key()) {
                    std::cmp::Ordering::Greater => 2,
                    std::cmp::Ordering::Equal => 1,
                    std::cmp::Ordering::Less => 0,
                };
            }
        }
        (doubled, n_pos as u64, (labels.len() - n_pos) as u64)
    }

    fn check<S: Score>(scores: &[S], labels: &[bool]) {
        let got = pair_counts(scores, labels, &Interrupt::default()).unwrap();
        assert_eq!((got.doubled_u, got.n_pos, got.n_neg), brute(scores, labels));
    }

    #[test]
    fn counts_equal_the_double_loop() {
        let mut draw = Stream::new(7, 0, 0);
        for n in [0, 1, 2, 3, 10, 100, 511, 512, 513, 1500] {
            for levels in [2, 7, 1_000_000] {
                let scores: Vec<f64> = (0..n).map(|_| f64::from(draw.below(levels)) - 0.5).collect();
                let labels: Vec<bool> = (0..n).map(|_| draw.below(3) == 0).collect();
                check(&scores, &labels);
                check(&scores.iter().map(|&s| s as f32).collect::<Vec<_>>(), &labels);
                check(&scores.iter().map(|&s| s as i64).collect::<Vec<_>>(), &labels);
            }
        }
    }

    #[test]
    fn distributing_first_changes_nothing() {
        let mut draw = Stream::new(8, 0, 0);
        for levels in [1, 2, 300, u32::MAX] {
            let n = DISTRIBUTE + 17;
            let scores: Vec<f64> = (0..n).map(|_| (f64::from(draw.below(levels)) / 9.0).exp().min(1e300)).collect();
            let labels: Vec<bool> = (0..n).map(|_| draw.below(4) == 0).collect();
            let mut keys = vec![0u64; n];
            let n_pos = split(&scores, &labels, &mut keys).unwrap();
            let (pos, neg) = keys.split_at_mut(n_pos);
            let got = pair_counts(&scores, &labels, &Interrupt::default()).unwrap();
            assert_eq!(got.doubled_u, doubled_u(pos, neg));
        }
    }

    #[test]
    fn long_work_can_be_interrupted() {
        let stop = Interrupt::default();
        stop.raise();
        let scores: Vec<f32> = (0..=DISTRIBUTE).map(|i| i as f32).collect();
        let labels: Vec<bool> = (0..=DISTRIBUTE).map(|i| i % 3 == 0).collect();
        assert_eq!(pair_counts(&scores, &labels, &stop), Err(Error::Interrupted));
        assert_eq!(many(&scores, 1, RowLabels::PerRow(&labels), &stop), Err(Error::Interrupted));
        assert_eq!(weighted(&scores[..2], &labels[..2], &[1.0, 2.0], &stop), Err(Error::Interrupted));
        assert_eq!(partial(&scores[..2], &labels[..2], None, 0.5, true, &stop), Err(Error::Interrupted));
        assert_eq!(crate::delong::delong(&scores[..9], &labels[..9], &stop), Err(Error::Interrupted));
    }

    #[test]
    fn keys_follow_the_order_of_the_scores() {
        let ascending = [f64::NEG_INFINITY, -1e308, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e308, f64::INFINITY];
        assert!(ascending.windows(2).all(|w| w[0].key() < w[1].key()));
        assert_eq!((-0.0f64).key(), 0.0f64.key());
        assert!(i64::MIN.key() < (-1i64).key() && (-1i64).key() < 0i64.key() && 0i64.key() < i64::MAX.key());
    }

    #[test]
    fn counts_beyond_64_bits() {
        let big = 1u64 << 62;
        let counts = pair_counts_from_counts(&[1, big], &[big, 1]).unwrap();
        assert!((counts.auc() - 1.0).abs() < 1e-15);
        assert!(pair_counts_from_counts(&[big, big], &[1, 1]).is_err());
    }

    #[test]
    fn the_size_of_the_weights_does_not_matter() {
        let (scores, labels) = ([0.1, 0.4, 0.35, 0.8], [false, false, true, true]);
        let never = Interrupt::default();
        for size in [1.0, 3.0, 5e-324, 1e-200, 1e200, f64::MAX] {
            let whole = weighted(&scores, &labels, &[size; 4], &never).unwrap();
            let half = partial(&scores, &labels, Some(&[size; 4]), 0.5, false, &never).unwrap();
            assert!((whole - 0.75).abs() < 1e-15 && (half - 0.25).abs() < 1e-15, "{size}: {whole}, {half}");
        }
    }

    #[test]
    fn errors_name_the_position() {
        let never = Interrupt::default();
        let error = pair_counts(&[0.1, f64::NAN], &[true, false], &never).unwrap_err();
        assert_eq!(error.to_string(), "scores[1] is NaN: drop or impute it first");
        let error = pair_counts(&[0.0, 1.0, 1.0], &[0.3, 0.2, 0.9], &never).unwrap_err();
        assert!(error.to_string().contains("swapped"), "{error}");
        let error = many(&[0.1, 0.2, 0.3, f64::NAN], 2, RowLabels::Shared(&[true, false]), &never).unwrap_err();
        assert!(error.to_string().starts_with("scores[1, 1]"), "{error}");
    }
}
