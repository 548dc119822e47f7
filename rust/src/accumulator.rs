//! AUC of more scores than memory holds: counts in bins that are the same everywhere, so that parts can be merged.
//!
//! Bins are cut from the bits of a float64 in its order: sign, exponent and the first bits of the mantissa. They do not
//! depend on the data, so counts of any two parts add up. Of pairs in different bins the order is known, and of those
//! in a bin that has held one value only; the others bound the AUC from both sides.

use crate::auc::{self, PairCounts};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::Interrupt;
use crate::scores::{Number, Score};

const WHAT: &str = "the counts of the accumulator";
/// Bits of sign and exponent: there is a page of bins for each of their values.
const PAGES: usize = 1 << 12;
/// Most bins between a power of two and the next.
pub const MOST_BINS: usize = 1 << 16;
/// Key of a bin that has held several values: that of a NaN, which no score has.
pub const SEVERAL: u64 = u64::MAX;
/// From this many scores on they are counted apart and then merged, so that an interrupt leaves nothing half done.
const LARGE: usize = 1 << 22;
/// Scores between two looks for an interrupt.
const STEP: usize = 1 << 16;

/// The score that has a key; -0.0 and 0.0 share one.
#[must_use]
pub fn score_of(key: u64) -> f64 {
    f64::from_bits(if key >> 63 == 1 { key ^ (1 << 63) } else { !key })
}

/// What is known of one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Key of the only value so far; 0 for an empty bin, [`SEVERAL`] for several values.
    pub key: u64,
    /// Number of negatives and of positives.
    pub counts: [u64; 2],
}

impl Bin {
    fn add(&mut self, key: u64, counts: [u64; 2]) {
        self.key = if self.key == 0 || self.key == key { key } else { SEVERAL };
        self.counts[0] += counts[0];
        self.counts[1] += counts[1];
    }
}

/// What an accumulator knows of the AUC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// All pairs of unknown order lost.
    pub low: PairCounts,
    /// All pairs of unknown order tied.
    pub middle: PairCounts,
    /// All pairs of unknown order won.
    pub high: PairCounts,
}

/// Counts of positives and negatives by bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Mantissa bits that tell bins apart.
    bits: u32,
    /// Bins of one sign and exponent; empty where there are no scores.
    pages: Vec<Vec<Bin>>,
    totals: [u64; 2],
}

fn too_many() -> Error {
    Error::range(format_args!("at most 2**63 - 1 members of a class can be counted"))
}

impl Bins {
    /// No scores yet; `per_octave` bins between a power of two and the next.
    ///
    /// # Errors
    /// [`Error::range`] unless `per_octave` is a power of two up to [`MOST_BINS`]; [`Error::memory`].
    pub fn new(per_octave: usize) -> Result<Self> {
        if !per_octave.is_power_of_two() || per_octave > MOST_BINS {
            return Err(Error::range(format_args!(
                "bins must be a power of two from 1 to {MOST_BINS}; got {per_octave}"
            )));
        }
        Ok(Self { bits: per_octave.ilog2(), pages: memory::filled(Vec::new(), PAGES, WHAT)?, totals: [0; 2] })
    }

    /// Bins between a power of two and the next.
    #[must_use]
    pub fn per_octave(&self) -> usize {
        1 << self.bits
    }

    fn page(key: u64) -> usize {
        (key >> 52) as usize
    }

    fn place(&self, key: u64) -> usize {
        (key >> (52 - self.bits)) as usize & ((1 << self.bits) - 1)
    }

    /// Number of the bin of a key among all bins.
    fn number(&self, key: u64) -> u64 {
        key >> (52 - self.bits)
    }

    #[inline]
    fn open(&mut self, page: usize) -> Result<()> {
        if self.pages[page].is_empty() { self.make(page) } else { Ok(()) }
    }

    #[cold]
    fn make(&mut self, page: usize) -> Result<()> {
        self.pages[page] = memory::filled(Bin::default(), self.per_octave(), WHAT)?;
        Ok(())
    }

    /// The sums of the class sizes, if they can be counted.
    fn sums(&self, more: [u64; 2]) -> Result<[u64; 2]> {
        let sum = |class: usize| self.totals[class].checked_add(more[class]).filter(|&sum| sum < 1 << 63);
        sum(0).zip(sum(1)).map(|(a, b)| [a, b]).ok_or_else(too_many)
    }

    /// Count more scores: all of them, or, on an error, none.
    ///
    /// # Errors
    /// As [`auc::pair_counts`]; [`Error::range`] when a class has 2^63 members.
    pub fn update<S: Number>(&mut self, scores: &[S], labels: &[bool], interrupt: &Interrupt) -> Result<()> {
        let [n_neg, n_pos] = auc::check(scores, labels)?;
        let totals = self.sums([n_neg, n_pos])?;
        if scores.len() >= LARGE {
            let mut apart = Self::new(self.per_octave())?;
            for (scores, labels) in scores.chunks(STEP).zip(labels.chunks(STEP)) {
                interrupt.check()?;
                apart.count(scores, labels)?;
            }
            apart.totals = [n_neg, n_pos];
            return self.merge(&apart);
        }
        self.count(scores, labels)?;
        self.totals = totals;
        Ok(())
    }

    fn count<S: Number>(&mut self, scores: &[S], labels: &[bool]) -> Result<()> {
        let mut last = PAGES;
        for score in scores {
            let page = Self::page(score.as_f64().key());
            if page != last {
                self.open(page)?;
                last = page;
            }
        }
        for (&score, &label) in scores.iter().zip(labels) {
            let key = score.as_f64().key();
            let (page, place, positive) = (Self::page(key), self.place(key), u64::from(label));
            self.pages[page][place].add(if score.is_f64() { key } else { SEVERAL }, [1 - positive, positive]);
        }
        Ok(())
    }

    /// Add the counts of another accumulator: all of them, or, on an error, none.
    ///
    /// # Errors
    /// [`Error::range`] when the bins differ or a class would have 2^63 members; [`Error::memory`].
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.bits != other.bits {
            return Err(Error::range(format_args!(
                "accumulators with bins={} and bins={} do not go together: give both the same bins",
                self.per_octave(),
                other.per_octave()
            )));
        }
        let totals = self.sums(other.totals)?;
        let held = || other.pages.iter().enumerate().filter(|(_, page)| !page.is_empty());
        for (page, _) in held() {
            self.open(page)?;
        }
        for (page, bins) in held() {
            for (own, bin) in self.pages[page].iter_mut().zip(bins).filter(|(_, bin)| bin.key != 0) {
                own.add(bin.key, bin.counts);
            }
        }
        self.totals = totals;
        Ok(())
    }

    /// Bins that hold scores, ascending, each with its number among all bins.
    pub fn held(&self) -> impl Iterator<Item = (u64, Bin)> + '_ {
        self.pages.iter().enumerate().flat_map(move |(page, bins)| {
            let first = (page as u64) << self.bits;
            bins.iter().enumerate().filter(|(_, bin)| bin.key != 0).map(move |(i, &bin)| (first + i as u64, bin))
        })
    }

    /// Add bins as [`Bins::held`] tells them.
    ///
    /// # Errors
    /// [`Error::range`] when a number, a key and counts contradict each other or a class has 2^63 members.
    pub fn restore(&mut self, number: u64, bin: Bin) -> Result<()> {
        let inside = bin.key == SEVERAL || self.number(bin.key) == number;
        if number >> self.bits >= PAGES as u64 || !inside || bin.counts == [0; 2] {
            return Err(Error::range(format_args!(
                "bin {number} cannot hold {bin:?}: the state is not that of an accumulator"
            )));
        }
        self.totals = self.sums(bin.counts)?;
        let page = (number >> self.bits) as usize;
        self.open(page)?;
        self.pages[page][number as usize & ((1 << self.bits) - 1)].add(bin.key, bin.counts);
        Ok(())
    }

    /// What the counts say about the AUC.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        let (mut known, mut unknown, mut below) = (0u128, 0u128, 0u128);
        for (_, Bin { key, counts: [neg, pos] }) in self.held() {
            let (neg, pos) = (u128::from(neg), u128::from(pos));
            known += 2 * pos * below;
            *(if key == SEVERAL { &mut unknown } else { &mut known }) += pos * neg;
            below += neg;
        }
        let [n_neg, n_pos] = self.totals;
        let with = |doubled_u| PairCounts { doubled_u, n_pos, n_neg };
        Bounds { low: with(known), middle: with(known + unknown), high: with(known + 2 * unknown) }
    }
}

/// All scores, kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The scores so far.
    pub scores: Vec<f64>,
    /// Whether each is of a positive.
    pub labels: Vec<bool>,
}

impl Kept {
    /// Keep more scores: all of them, or, on an error, none.
    ///
    /// # Errors
    /// As [`auc::pair_counts`]; [`Error::range`] when a score is an integer that float64 cannot hold.
    pub fn update<S: Number>(&mut self, scores: &[S], labels: &[bool]) -> Result<()> {
        auc::check(scores, labels)?;
        if let Some(i) = scores.iter().position(|score| !score.is_f64()) {
            return Err(Error::range(format_args!(
                "scores[{i}] is {}, which float64 cannot hold: scores are kept in float64",
                scores[i]
            )));
        }
        memory::reserve(&mut self.scores, scores.len(), WHAT)?;
        memory::reserve(&mut self.labels, labels.len(), WHAT)?;
        self.scores.extend(scores.iter().map(|score| score.as_f64()));
        self.labels.extend(labels);
        Ok(())
    }

    /// The pair counts.
    ///
    /// # Errors
    /// As [`auc::pair_counts`].
    pub fn bounds(&self, interrupt: &Interrupt) -> Result<Bounds> {
        let counts = auc::pair_counts(&self.scores, &self.labels, interrupt)?;
        Ok(Bounds { low: counts, middle: counts, high: counts })
    }
}

/// An accumulator of either kind.
#[derive(Clone, Debug)]
pub enum Accumulator {
    /// Counts by bin, in memory that does not grow with the scores.
    Bins(Bins),
    /// The scores themselves.
    Kept(Kept),
}

impl Accumulator {
    /// Take more scores in: all of them, or, on an error, none.
    ///
    /// # Errors
    /// As [`Bins::update`] and [`Kept::update`].
    pub fn update<S: Number>(&mut self, scores: &[S], labels: &[bool], interrupt: &Interrupt) -> Result<()> {
        match self {
            Self::Bins(bins) => bins.update(scores, labels, interrupt),
            Self::Kept(kept) => kept.update(scores, labels),
        }
    }

    /// Take in all that another accumulator has.
    ///
    /// # Errors
    /// As [`Bins::merge`] and [`Kept::update`]; [`Error::range`] when one is exact and the other is not.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        match (self, other) {
            (Self::Bins(bins), Self::Bins(other)) => bins.merge(other),
            (Self::Kept(kept), Self::Kept(other)) => kept.update(&other.scores, &other.labels),
            _ => Err(Error::range(format_args!(
                "an exact accumulator and one with bins do not go together: give both the same exact"
            ))),
        }
    }

    /// What is known about the AUC.
    ///
    /// # Errors
    /// As [`Kept::bounds`].
    pub fn bounds(&self, interrupt: &Interrupt) -> Result<Bounds> {
        match self {
            Self::Bins(bins) => Ok(bins.bounds()),
            Self::Kept(kept) => kept.bounds(interrupt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn binned<S: Number>(scores: &[S], labels: &[bool], per_octave: usize) -> Bins {
        let mut bins = Bins::new(per_octave).unwrap();
        bins.update(scores, labels, &Interrupt::default()).unwrap();
        bins
    }

    fn drawn(draw: &mut Stream, n: usize) -> (Vec<f64>, Vec<bool>) {
        let scores = (0..n).map(|_| draw.uniform() * f64::from(draw.below(5)) - 1.0).collect();
        (scores, (0..n).map(|_| draw.below(3) == 0).collect())
    }

    #[test]
    fn bounds_hold_and_close_in() {
        let mut draw = Stream::new(1, 0, 0);
        for n in [2, 10, 3000] {
            let (scores, labels) = drawn(&mut draw, n);
            let exact = auc::pair_counts(&scores, &labels, &Interrupt::default()).unwrap();
            let mut width = u128::MAX;
            for per_octave in [1, 16, 1024, MOST_BINS] {
                let Bounds { low, middle, high } = binned(&scores, &labels, per_octave).bounds();
                assert!(low.doubled_u <= exact.doubled_u && exact.doubled_u <= high.doubled_u);
                assert_eq!(low.doubled_u + high.doubled_u, 2 * middle.doubled_u);
                assert_eq!((middle.n_pos, middle.n_neg), (exact.n_pos, exact.n_neg));
                assert!(high.doubled_u - low.doubled_u <= width);
                width = high.doubled_u - low.doubled_u;
            }
        }
    }

    #[test]
    fn a_key_leads_back_to_its_score() {
        for score in [f64::NEG_INFINITY, -1.5, -5e-324, 0.0, 5e-324, 0.1, f64::INFINITY] {
            assert_eq!(score_of(score.key()).to_bits(), score.to_bits());
        }
    }

    #[test]
    fn parts_in_any_order_are_the_whole() {
        let (scores, labels) = drawn(&mut Stream::new(2, 0, 0), 1000);
        let whole = binned(&scores, &labels, 64);
        let mut parts = Bins::new(64).unwrap();
        for (s, l) in scores.rchunks(77).zip(labels.rchunks(77)) {
            parts.merge(&binned(s, l, 64)).unwrap();
        }
        assert_eq!(parts, whole);
        let mut restored = Bins::new(64).unwrap();
        for (number, bin) in whole.held() {
            restored.restore(number, bin).unwrap();
        }
        assert_eq!(restored, whole);
        assert!(parts.merge(&Bins::new(32).unwrap()).is_err());
    }

    #[test]
    fn bins_of_one_value_are_exact() {
        let (scores, labels) = ([0.5f32, -0.0, 0.0, 0.5, f32::INFINITY], [true, true, false, false, true]);
        let Bounds { low, high, .. } = binned(&scores, &labels, 1).bounds();
        assert_eq!(low, high);
        assert_eq!(low, auc::pair_counts(&scores, &labels, &Interrupt::default()).unwrap());
        // These two are one float64, and not known to be equal.
        let long = binned(&[1i64 << 60, (1 << 60) + 1], &[true, false], MOST_BINS).bounds();
        assert_eq!((long.low.doubled_u, long.high.doubled_u), (0, 2));
    }

    #[test]
    fn counts_beyond_64_bits_of_pairs() {
        let mut bins = binned(&[0.0, 1.0], &[false, true], 8);
        for _ in 0..62 {
            bins.merge(&bins.clone()).unwrap();
        }
        assert_eq!(bins.bounds().low, PairCounts { doubled_u: 1 << 125, n_pos: 1 << 62, n_neg: 1 << 62 });
        let before = bins.clone();
        assert!(bins.merge(&bins.clone()).is_err());
        assert_eq!(bins, before);
    }

    #[test]
    fn an_error_changes_nothing() {
        let mut bins = binned(&[0.5, 1.5], &[true, false], 8);
        let before = bins.clone();
        let never = Interrupt::default();
        assert!(bins.update(&[1.0, f64::NAN], &[true, false], &never).is_err());
        assert!(bins.update(&[1.0], &[true, false], &never).is_err());
        assert!(bins.update(&[1.0, 2.0], &[false], &never).is_err());
        let stop = Interrupt::default();
        stop.raise();
        assert_eq!(bins.update(&vec![1.0; LARGE], &vec![true; LARGE], &stop), Err(Error::interrupted()));
        assert!(bins.restore(1 << 60, Bin { key: 1, counts: [1, 1] }).is_err());
        assert!(bins.restore(5, Bin { key: 1.0f64.key(), counts: [1, 1] }).is_err());
        assert_eq!(bins, before);
        for per_octave in [0, 3, 2 * MOST_BINS] {
            assert!(Bins::new(per_octave).is_err());
        }
    }
}
