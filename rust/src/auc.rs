//! Area under the ROC curve, from exact pair counts.
//!
//! AUC = (pairs with the positive above + half of the tied pairs) / all pairs. Twice the numerator is an integer, so
//! the value is one division of two integers: it depends neither on the order of the input nor on threads.

use crate::error::{Error, Kind, Result};
use crate::labels::{self, Label};
use crate::memory;
use crate::pairs::{self, Outcome};
use crate::parallel::{self, Interrupt};
use crate::scores::{LANES, Number, Score};
use crate::sort;

/// Up to this many scores no memory is allocated, if there are few pairs.
const ON_STACK: usize = 256;
/// From this many scores on the rows of a batch are shared among threads.
const LARGE: usize = 1 << 16;
/// Scores, or groups of them, between two looks for an interrupt.
const STEP: usize = 1 << 18;
/// What most memory goes into.
const KEYS: &str = "the keys of the scores";

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
        Err(Error::length("scores", scores.len(), "labels", labels.len()))
    }
}

/// The numbers of negatives and positives, if scores and labels can be used.
pub(crate) fn check<S: Number, L: Label>(scores: &[S], labels: &[L]) -> Result<[u64; 2]> {
    same_length(scores, labels)?;
    if scores.iter().fold(false, |nan, score| nan | score.is_nan()) {
        return Err(not_a_number("scores", scores));
    }
    let (bits, n_pos) =
        labels.iter().fold((0, 0), |(bits, n), label| (bits | label.bit(), n + u64::from(label.is_one())));
    if !labels::is_binary(bits) {
        return Err(hint_swapped(labels::explain(labels), scores));
    }
    Ok([labels.len() as u64 - n_pos, n_pos])
}

fn not_a_number<S: Number>(argument: &str, values: &[S]) -> Error {
    let i = values.iter().position(|v| v.is_nan()).unwrap_or(0);
    Error::not_finite(argument, format_args!("[{i}]"), f64::NAN)
}

/// The error, with a hint where the scores are labels and the labels are not.
pub fn hint_swapped<S: Number>(error: Error, scores: &[S]) -> Error {
    match error.kind() {
        Kind::Labels(message) if labels::is_binary(scores.iter().fold(0, |bits, s| bits | s.label_bit())) => {
            Error::labels(format_args!(
                "{message}. The scores hold nothing but such labels, so the arguments look swapped: \
                 the order is (scores, labels)"
            ))
        }
        _ => error,
    }
}

/// Pair counts of scores and labels: O(n log n).
///
/// # Errors
/// [`Error`] when lengths differ, a score is NaN, the labels are not two-valued or memory runs out;
/// [`Error::interrupted`].
pub fn pair_counts<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<PairCounts> {
    same_length(scores, labels)?;
    let few = if scores.len() <= ON_STACK { pairs::few::<S, L, { ON_STACK + LANES }>(scores, labels) } else { None };
    let outcome = match few {
        Some(outcome) => outcome,
        None => pairs::doubled_u(scores, labels, interrupt)?,
    };
    match outcome {
        Outcome::Counted(doubled_u, n_pos) => {
            Ok(PairCounts { doubled_u, n_pos: n_pos as u64, n_neg: (scores.len() - n_pos) as u64 })
        }
        Outcome::NotANumber => Err(not_a_number("scores", scores)),
        Outcome::NotLabels => Err(hint_swapped(labels::explain(labels), scores)),
    }
}

/// Pair counts from the number of positives and negatives at each distinct score, ascending.
///
/// # Errors
/// [`Error::length`] when the lengths differ, [`Error::range`] when a class has 2^63 members or more.
pub fn pair_counts_from_counts(pos: &[u64], neg: &[u64]) -> Result<PairCounts> {
    if pos.len() != neg.len() {
        return Err(Error::length("pos", pos.len(), "neg", neg.len()));
    }
    let total = |name: &str, counts: &[u64]| -> Result<u64> {
        let sum: u128 = counts.iter().map(|&c| u128::from(c)).sum();
        if sum < 1 << 63 {
            Ok(sum as u64)
        } else {
            Err(Error::range(format_args!("{name} sums to {sum}: at most 2**63 - 1 members of a class can be counted")))
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
    // key, class and place in one number: of such there is a sort already
    let mut order: Vec<u128> = memory::room(scores.len(), KEYS)?;
    let unpacked = |packed: u128| ((packed >> 63) as usize & 1, packed as usize & (usize::MAX >> 1));
    for (i, (&score, &label)) in scores.iter().zip(labels).enumerate() {
        if i.is_multiple_of(STEP) {
            interrupt.check()?;
        }
        if score.is_nan() {
            return Err(not_a_number("scores", scores));
        }
        bits |= label.bit();
        order.push(score.key().into() << 64 | u128::from(labels::is_positive(label.bit())) << 63 | i as u128);
    }
    if !labels::is_binary(bits) {
        return Err(hint_swapped(labels::explain(labels), scores));
    }
    if let Some(weights) = weights {
        if weights.len() != scores.len() {
            return Err(Error::length("scores", scores.len(), "sample_weight", weights.len()));
        }
        if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
            return Err(Error::not_finite("sample_weight", format_args!("[{i}]"), weights[i]));
        }
        if let Some(i) = weights.iter().position(|&w| w < 0.0) {
            return Err(Error::range(format_args!(
                "sample_weight[{i}] is {}: weights must not be negative",
                weights[i]
            )));
        }
    }
    interrupt.check()?;
    let mut largest = [0.0; 2];
    for (positive, i) in order.iter().copied().map(unpacked) {
        if i.is_multiple_of(STEP) {
            interrupt.check()?;
        }
        largest[positive] = f64::max(largest[positive], weights.map_or(1.0, |w| w[i]));
    }
    let scales = largest.map(scale);
    let order = sort::sorted(order, interrupt)?;
    let by_score = || order.chunk_by(|a, b| a >> 64 == b >> 64);
    let mut groups = memory::room(by_score().count(), "the weights at each score")?;
    for (i, group) in by_score().enumerate() {
        if i.is_multiple_of(STEP) {
            interrupt.check()?;
        }
        let (mut pos, mut neg) = (Sum::default(), Sum::default());
        for (positive, i) in group.iter().copied().map(unpacked) {
            let class = if positive == 1 { &mut pos } else { &mut neg };
            class.add(weights.map_or(1.0, |w| w[i] * scales[positive]));
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
        return Err(Error::range(format_args!("max_fpr must lie in (0, 1]; got {max_fpr}")));
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
    let shared = if let RowLabels::Shared(labels) = labels {
        let mut places = pairs::Places::new();
        places.find(labels).then_some(places)
    } else {
        None
    };
    parallel::fill(&mut aucs, &cuts, scores.len() >= LARGE, interrupt, |i, aucs| {
        let (mut narrow, mut own) = (None, pairs::Places::new());
        for (row, auc) in (i * block..).zip(aucs) {
            let cells = row * width..(row + 1) * width;
            let places = match labels {
                RowLabels::Shared(_) => shared.as_ref(),
                RowLabels::PerRow(labels) => own.find(&labels[cells.clone()]).then_some(&own),
            };
            if let Some(places) = places
                && let narrow = narrow.get_or_insert_with(pairs::Narrow::new)
                && let Some(Outcome::Counted(doubled_u, n_pos)) = narrow.row(&scores[cells.clone()], places)
            {
                *auc = PairCounts { doubled_u, n_pos: n_pos as u64, n_neg: (width - n_pos) as u64 }.auc();
                continue;
            }
            let labels = match labels {
                RowLabels::Shared(labels) => labels,
                RowLabels::PerRow(labels) => &labels[cells.clone()],
            };
            *auc = pair_counts(&scores[cells], labels, interrupt).map_err(|error| in_row(row, error))?.auc();
        }
        Ok(())
    })?;
    Ok(aucs)
}

/// The error, naming the row of a matrix.
pub(crate) fn in_row(row: usize, error: Error) -> Error {
    match error.into_kind() {
        Kind::NotFinite { argument, position, value } => {
            Kind::NotFinite { argument, position: position.replacen('[', &format!("[{row}, "), 1), value }.into()
        }
        Kind::Labels(message) => Error::labels(format_args!("row {row}: {message}")),
        other => other.into(),
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
            }
        }
    }

    #[test]
    fn short_rows_equal_the_double_loop() {
        fn same<S: Score>(rows: &[Vec<S>], labels: &[bool]) {
            let never = Interrupt::default();
            let all = rows.concat();
            let got = many(&all, labels.len(), RowLabels::Shared(labels), &never).unwrap();
            let same = many(&all, labels.len(), RowLabels::PerRow(&labels.repeat(rows.len())), &never).unwrap();
            assert!(got.iter().zip(same).all(|(a, b)| a.to_bits() == b.to_bits()));
            for (row, auc) in rows.iter().zip(got) {
                let (doubled, n_pos, n_neg) = brute(row, labels);
                let want = PairCounts { doubled_u: doubled, n_pos, n_neg }.auc();
                assert_eq!(auc.to_bits(), want.to_bits());
            }
        }
        let mut draw = Stream::new(3, 0, 0);
        for n in [1, 2, 63, 64, 65, 200, 511, 512, 513] {
            let labels: Vec<bool> = (0..n).map(|_| draw.below(3) == 0).collect();
            // no ties, few, many, nothing but ties, one score far off, infinities
            let rows: Vec<Vec<f64>> = (0..24)
                .map(|row| {
                    let levels = [u32::MAX, 40_000, 9, 1][row % 4];
                    let mut scores: Vec<f64> = (0..n).map(|_| f64::from(draw.below(levels)) - 0.5).collect();
                    scores[0] = [scores[0], 1e300, f64::INFINITY][row % 3];
                    scores
                })
                .collect();
            same(&rows, &labels);
            let other = |f: fn(f64) -> f32| -> Vec<Vec<f32>> {
                rows.iter().map(|row| row.iter().map(|&score| f(score)).collect()).collect()
            };
            same(&other(|score| score as f32), &labels);
        }
    }

    #[test]
    fn long_work_can_be_interrupted() {
        let stop = Interrupt::default();
        stop.raise();
        let scores: Vec<f32> = (0..=LARGE).map(|i| i as f32).collect();
        let labels: Vec<bool> = (0..=LARGE).map(|i| i % 3 == 0).collect();
        assert_eq!(pair_counts(&scores, &labels, &stop), Err(Error::interrupted()));
        assert_eq!(many(&scores, 1, RowLabels::PerRow(&labels), &stop), Err(Error::interrupted()));
        assert_eq!(weighted(&scores[..2], &labels[..2], &[1.0, 2.0], &stop), Err(Error::interrupted()));
        assert_eq!(partial(&scores[..2], &labels[..2], None, 0.5, true, &stop), Err(Error::interrupted()));
        assert_eq!(crate::delong::delong(&scores[..9], &labels[..9], &stop), Err(Error::interrupted()));
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
