//! Pairs of a positive and a negative, counted without a sort.
//!
//! Bins by value are narrow enough that all pairs inside one can be compared; of two in different bins the order is
//! known. A bin that holds one class costs nothing. Large input goes through wide bins first, so that the work on each
//! stays in the cache: along a straight line, or where the values crowd, between cuts taken from a sample. Where scores
//! repeat, they are counted by value and not moved at all. Sums are of integers: no order of the work can be seen.

use std::mem::take;
use std::slice::IterMut;

use crate::each::each;
use crate::error::Result;
use crate::labels::{self, Label};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::scores::{LANES, PART as HALF, PARTS as HALVES, Score};
use crate::simd::{Kernel, dispatch, dispatch_narrow};
use crate::sort;

/// Up to this many pairs they are compared at once.
const FEW_PAIRS: usize = 1 << 12;
/// Up to this many pairs, where they are all there are.
const FEW_IN_ALL: usize = 1 << 13;
/// Scores to a narrow bin, on average: most are in bins fuller than that.
const IN_A_BIN: usize = 10;
const MOST_BINS: usize = 1 << 13;
/// More scores than this go through wide bins.
pub(crate) const BLOCK: usize = 1 << 15;
/// Scores to a wide bin.
const IN_A_WIDE_BIN: usize = 1 << 12;
const MOST_WIDE_BINS: usize = 1 << 9;
/// Cuts between wide bins where no straight line will do.
const CUTS: usize = 255;
/// Comparisons that find a score among the cuts.
const HALVINGS: usize = 8;
/// Scores that go into bins between two looks for an interrupt.
const STEP: usize = 1 << 12;
/// From this many scores on threads share the passes over them.
const SHARED: usize = 1 << 18;
/// Places for values that repeat.
const PLACES: usize = 1 << 13;
/// How often bins are cut into bins before a sort decides.
const DEEPEST: u32 = 5;

/// What the labels and scores turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Pairs with the positive above, twice, plus ties; and the number of positives.
    Counted(u128, usize),
    /// A score is NaN.
    NotANumber,
    /// The labels are not two-valued.
    NotLabels,
}

/// Write whether each label is positive; returns whether all are 0 or 1.
#[inline(always)]
fn read_labels<L: Label>(labels: &[L], positive: &mut [u16]) -> bool {
    let mut usual = true;
    for (positive, label) in positive.iter_mut().zip(labels) {
        *positive = u16::from(label.is_one());
        usual &= label.is_usual();
    }
    usual
}

fn two_valued<L: Label>(labels: &[L]) -> bool {
    labels::is_binary(labels.iter().fold(0, |bits, label| bits | label.bit()))
}

/// The least and the largest score, and whether there is a NaN.
#[inline(always)]
fn extremes<S: Score>(scores: &[S]) -> (S, S, bool) {
    let Some(&first) = scores.first() else { return (S::default(), S::default(), false) };
    let (mut low, mut high, mut nan) = ([first; LANES], [first; LANES], [false; LANES]);
    let (whole, tail) = scores.as_chunks::<LANES>();
    for scores in whole {
        each!(part < HALVES => {
            for lane in part * HALF..(part + 1) * HALF {
                let score = scores[lane];
                low[lane] = if score < low[lane] { score } else { low[lane] };
                high[lane] = if score > high[lane] { score } else { high[lane] };
                nan[lane] |= score.is_nan();
            }
        });
    }
    for (lane, &score) in tail.iter().enumerate() {
        low[lane] = if score < low[lane] { score } else { low[lane] };
        high[lane] = if score > high[lane] { score } else { high[lane] };
        nan[lane] |= score.is_nan();
    }
    let lowest = low.into_iter().fold(first, |a, b| if b < a { b } else { a });
    let highest = high.into_iter().fold(first, |a, b| if b > a { b } else { a });
    (lowest, highest, nan.into_iter().any(|nan| nan))
}

struct Extremes<'a, S>(&'a [S]);

impl<S: Score> Kernel for Extremes<'_, S> {
    type Output = (S, S, bool);
    #[inline(always)]
    fn run(self) -> Self::Output {
        extremes(self.0)
    }
}

/// Ranges of cells that hold too many pairs: start, first positive, end.
type Crowded = Vec<(u32, u32, u32)>;

/// Scores of one block, their classes (0 and 1 in `ids`) and room to work in.
struct Block<'a, S: Score> {
    scores: &'a [S],
    ids: &'a mut [u16],
    low: S,
    slope: S::Slope,
    bins: usize,
    /// Two for each bin.
    ends: &'a mut [u32],
    /// Room for the scores and for [`LANES`] more.
    cells: &'a mut [S],
    crowded: &'a mut Crowded,
}

impl<S: Score> Kernel for Block<'_, S> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let Self { scores, ids, low, slope, bins, ends, cells, crowded } = self;
        let ends = &mut ends[..2 * bins];
        for (id, score) in ids.iter_mut().zip(scores) {
            *id += 2 * score.bin(low, slope) as u16;
        }
        ends.fill(0);
        for &id in ids.iter() {
            ends[usize::from(id)] += 1;
        }
        let mut start = 0;
        for end in ends.iter_mut() {
            start += std::mem::replace(end, start);
        }
        for (id, &score) in ids.iter().zip(scores) {
            let end = &mut ends[usize::from(*id)];
            cells[*end as usize] = score;
            *end += 1;
        }
        let n_pos: usize = ids.iter().map(|&id| usize::from(id & 1)).sum();
        if 2 * n_pos > ids.len() {
            count::<S, true>(cells, ends, crowded)
        } else {
            count::<S, false>(cells, ends, crowded)
        }
    }
}

/// Count in bins that are done but for the pairs inside; the larger class is the one that is looked at in lanes.
#[inline(always)]
fn count<S: Score, const POSITIVE_LANES: bool>(cells: &[S], ends: &[u32], crowded: &mut Crowded) -> u64 {
    let (mut doubled_u, mut below, mut start) = (0u64, 0u64, 0usize);
    let mut difference = [S::Count::default(); LANES];
    for &[mid, end] in ends.as_chunks().0 {
        let (mid, end) = (mid as usize, end as usize);
        let (n_neg, n_pos) = (mid - start, end - mid);
        doubled_u += n_pos as u64 * (2 * below + n_neg as u64);
        below += n_neg as u64;
        if n_neg * n_pos > FEW_PAIRS {
            doubled_u -= n_neg as u64 * n_pos as u64;
            crowded.push((start as u32, mid as u32, end as u32)); // there is room: see `Room`
        } else {
            let (lanes, others) = if POSITIVE_LANES { (mid..end, start..mid) } else { (start..mid, mid..end) };
            compare(cells, lanes, &cells[others], &mut difference);
        }
        start = end;
    }
    let difference = difference.into_iter().map(Into::into).sum::<i64>();
    doubled_u.wrapping_add_signed(if POSITIVE_LANES { -difference } else { difference })
}

/// Compare each score of a range of cells with all others; there are [`LANES`] cells behind the range.
#[inline(always)]
fn compare<S: Score>(cells: &[S], lanes: std::ops::Range<usize>, others: &[S], total: &mut [S::Count; LANES]) {
    let mut at = lanes.start;
    while at < lanes.end {
        if let Some(chunk) = cells[at..].first_chunk::<LANES>() {
            S::compare(chunk, lanes.end - at, others, total);
        }
        at += LANES;
    }
}

/// Every pair compared, for negatives with [`LANES`] cells behind them.
struct AllPairs<'a, S> {
    cells: &'a [S],
    n_neg: usize,
    pos: &'a [S],
}

impl<S: Score> Kernel for AllPairs<'_, S> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let mut difference = [S::Count::default(); LANES];
        compare(self.cells, 0..self.n_neg, self.pos, &mut difference);
        let pairs = self.n_neg as u64 * self.pos.len() as u64;
        pairs.wrapping_add_signed(difference.into_iter().map(Into::into).sum())
    }
}

/// Room for the work on blocks, kept from one to the next.
struct Room<S> {
    ids: Vec<u16>,
    ends: Vec<u32>,
    cells: Vec<S>,
    crowded: Crowded,
}

impl<S: Score> Room<S> {
    /// Room for blocks of up to `n` scores.
    fn new(n: usize) -> Result<Self> {
        const WHAT: &str = "the scores by bin";
        Ok(Self {
            ids: memory::filled(0, n, WHAT)?,
            ends: memory::filled(0, 2 * bins_for(n), WHAT)?,
            cells: memory::filled(S::default(), n + LANES, WHAT)?,
            // More than FEW_PAIRS pairs take twice the root of it in scores.
            crowded: memory::room(n / 128 + 1, WHAT)?,
        })
    }

    /// Count the pairs in a block with classes in `self.ids`, all scores in `low..=high`.
    fn block(&mut self, scores: &[S], low: S, high: S, depth: u32, interrupt: &Interrupt) -> Result<u128> {
        let (n, bins) = (scores.len(), bins_for(scores.len()));
        let slope = if depth < DEEPEST { S::slope(low, high, bins) } else { None };
        let ids = &mut self.ids[..n];
        let Some(slope) = slope else {
            let (mut keys, mut n_neg) = (memory::filled(S::Key::default(), n, "the keys of the scores")?, 0);
            let mut back = n;
            for (id, score) in ids.iter().zip(scores) {
                back -= usize::from(*id);
                keys[if *id == 1 { back } else { n_neg }] = score.key();
                n_neg += usize::from(1 - *id);
            }
            let (neg, pos) = keys.split_at_mut(n_neg);
            return Ok(by_sorting(pos, neg));
        };
        self.crowded.clear();
        let (ends, cells, crowded) = (&mut self.ends[..], &mut self.cells[..], &mut self.crowded);
        let mut doubled_u = u128::from(dispatch_narrow(Block { scores, ids, low, slope, bins, ends, cells, crowded }));
        for &(start, mid, end) in &self.crowded {
            let cells = &self.cells[start as usize..end as usize];
            doubled_u += halves(cells, (mid - start) as usize, depth + 1, None, interrupt)?;
        }
        Ok(doubled_u)
    }
}

fn bins_for(n: usize) -> usize {
    (n / IN_A_BIN).clamp(2, MOST_BINS)
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

fn by_sorting<K: Ord + Copy>(pos: &mut [K], neg: &mut [K]) -> u128 {
    pos.sort_unstable();
    neg.sort_unstable();
    count_below::<K, false>(pos, neg) + count_below::<K, true>(pos, neg)
}

/// Count the pairs of cells that hold `n_neg` negatives and then positives.
fn halves<S: Score>(
    cells: &[S],
    n_neg: usize,
    depth: u32,
    room: Option<&mut Room<S>>,
    interrupt: &Interrupt,
) -> Result<u128> {
    let n_pos = cells.len() - n_neg;
    if n_pos == 0 || n_neg == 0 {
        return Ok(0);
    }
    let (low, high, _) = dispatch_narrow(Extremes(cells));
    if low == high {
        return Ok(n_pos as u128 * n_neg as u128);
    }
    if cells.len() > 4 * BLOCK {
        let labels: Vec<bool> = memory::collect((0..cells.len()).map(|i| i >= n_neg), "the labels")?;
        return Ok(match wide(cells, &&labels[..], depth, interrupt)? {
            Outcome::Counted(doubled_u, _) => doubled_u,
            Outcome::NotANumber | Outcome::NotLabels => 0, // neither got this far
        });
    }
    let mut own;
    let room = if let Some(room) = room {
        room
    } else {
        own = Room::new(cells.len())?;
        &mut own
    };
    room.ids[..n_neg].fill(0);
    room.ids[n_neg..cells.len()].fill(1);
    room.block(cells, low, high, depth, interrupt)
}

/// How scores find their wide bin.
#[derive(Debug)]
enum Wide<S: Score> {
    /// Along a straight line; what lies outside counts as its end.
    Line { low: S, high: S, slope: S::Slope },
    /// By the number of cuts not above the score; the last cut is repeated to fill the table.
    Cuts { table: Box<[S; CUTS]>, last: u16 },
}

impl<S: Score> Wide<S> {
    /// Cuts of a sorted sample, at even steps; a value that takes more than a step gets a bin of its own.
    fn cuts(sample: &[S]) -> Self {
        let mut cuts = [S::default(); CUTS];
        let mut n = 0;
        for step in 1..=CUTS {
            let value = sample[step * sample.len() / (CUTS + 1)];
            if n == 0 || cuts[n - 1] < value {
                cuts[n] = value;
                n += 1;
            } else if cuts[n - 1] == value {
                cuts[n] = value.next();
                n += 1;
            }
        }
        let last = cuts[n - 1];
        cuts[n..].fill(last);
        Self::Cuts { table: Box::new(cuts), last: n as u16 }
    }

    fn of(sample: &[S], bins: usize) -> Self {
        let (low, high) = (sample[0], sample[sample.len() - 1]);
        let Some(slope) = S::slope(low, high, bins) else { return Self::cuts(sample) };
        // A bin may hold a few times its share; when many do not keep to that, cuts are better.
        let limit = 8 + 8 * sample.len() / bins;
        let crowd = sample.chunk_by(|a, b| a.bin(low, slope) == b.bin(low, slope)).map(<[S]>::len);
        let crowded: usize = crowd.filter(|&n| n > limit).sum();
        if crowded > sample.len() / 8 { Self::cuts(sample) } else { Self::Line { low, high, slope } }
    }

    fn n_bins(&self, bins: usize) -> usize {
        match self {
            Self::Line { .. } => bins,
            Self::Cuts { last, .. } => usize::from(*last) + 1,
        }
    }
}

/// Find the wide bin of each score: twice that, plus the class, into `ids`. Returns whether labels are 0 and 1, and
/// whether a score is NaN.
struct Assign<'a, S: Score, L> {
    scores: &'a [S],
    labels: &'a [L],
    ids: &'a mut [u16],
    wide: &'a Wide<S>,
}

impl<S: Score, L: Label> Kernel for Assign<'_, S, L> {
    type Output = (bool, bool);
    #[inline(always)]
    fn run(self) -> (bool, bool) {
        let Self { scores, labels, ids, wide } = self;
        let usual = read_labels(labels, ids);
        let mut nan = false;
        match wide {
            &Wide::Line { low, high, slope } => {
                for (id, &score) in ids.iter_mut().zip(scores) {
                    nan |= score.is_nan();
                    let inside = if score > low { score } else { low }; // NaN, too, gets a bin that there is
                    let inside = if inside > high { high } else { inside };
                    *id += 2 * inside.bin(low, slope) as u16;
                }
            }
            Wide::Cuts { table, last } => {
                for (id, &score) in ids.iter_mut().zip(scores) {
                    nan |= score.is_nan();
                    let mut base = 0;
                    each!(step < HALVINGS => {
                        let half = (CUTS + 1) >> (step + 1);
                        base += if table[base + half - 1] <= score { half } else { 0 };
                    });
                    *id += 2 * (base as u16).min(*last);
                }
            }
        }
        (usual, nan)
    }
}

/// Labels of whatever type: what is large is compiled once and not for each of them.
trait Classes<S: Score>: Sync {
    /// [`Assign`] for the scores from `first` on.
    fn assign(&self, first: usize, scores: &[S], ids: &mut [u16], wide: &Wide<S>) -> (bool, bool);
    /// As [`two_valued`].
    fn two_valued(&self) -> bool;
}

impl<S: Score, L: Label> Classes<S> for &[L] {
    fn assign(&self, first: usize, scores: &[S], ids: &mut [u16], wide: &Wide<S>) -> (bool, bool) {
        dispatch(Assign { scores, labels: &self[first..first + scores.len()], ids, wide })
    }

    fn two_valued(&self) -> bool {
        two_valued(self)
    }
}

/// Scores from all over the input, sorted.
fn sample<S: Score>(scores: &[S], depth: u32) -> Result<Vec<S>> {
    let m = (scores.len() / 256).clamp(512, 4096);
    let stride = scores.len() / m;
    let mut hash = u64::from(depth);
    let mut sample = memory::room(m, "a sample of the scores")?;
    sample.extend((0..m).map(|i| {
        hash = hash.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        scores[i * stride + (hash >> 33) as usize % stride].key()
    }));
    sample.sort_unstable();
    memory::collect(sample.into_iter().map(S::of_key), "a sample of the scores")
}

/// Consecutive pieces of the input that threads work on.
fn pieces(n: usize) -> Result<Vec<usize>> {
    let parts = if n < SHARED { 1 } else { parallel::threads()? };
    parallel::cuts(n, n.div_ceil(parts), |i| i)
}

/// Count pairs of large input: into wide bins, and then bin by bin.
fn wide<S: Score>(scores: &[S], labels: &dyn Classes<S>, depth: u32, interrupt: &Interrupt) -> Result<Outcome> {
    let n = scores.len();
    let sample = sample(scores, depth)?;
    if let Some(outcome) = repeated(scores, labels, &sample, interrupt)? {
        return Ok(outcome);
    }
    let bins = (n / IN_A_WIDE_BIN).clamp(32, MOST_WIDE_BINS);
    let wide = Wide::of(&sample, bins);
    let n_ids = 2 * wide.n_bins(bins);

    let cuts = pieces(n)?;
    let mut ids = sort::filled(0u16, n, "the bins of the scores", interrupt)?;
    let mut work = Vec::with_capacity(cuts.len());
    let mut rest = &mut ids[..];
    for cut in cuts.windows(2) {
        let (ids, tail) = take(&mut rest).split_at_mut(cut[1] - cut[0]);
        work.push((cut[0], &scores[cut[0]..cut[1]], ids));
        rest = tail;
    }
    let counted = parallel::map(work, true, interrupt, |(start, scores, ids)| {
        let mut counts = memory::filled(0usize, n_ids, "the sizes of the bins")?;
        let (mut usual, mut nan) = (true, false);
        for (first, (scores, ids)) in (start..).step_by(STEP).zip(scores.chunks(STEP).zip(ids.chunks_mut(STEP))) {
            interrupt.check()?;
            let seen = labels.assign(first, scores, ids, &wide);
            usual &= seen.0;
            nan |= seen.1;
            for &id in ids.iter() {
                counts[usize::from(id)] += 1;
            }
        }
        Ok((counts, usual, nan))
    })?;
    if counted.iter().any(|part| part.2) {
        return Ok(Outcome::NotANumber);
    }
    if counted.iter().any(|part| !part.1) && !labels.two_valued() {
        return Ok(Outcome::NotLabels);
    }

    let mut cells = sort::filled(S::default(), n, "the scores by bin", interrupt)?;
    let mut sizes = memory::filled(0usize, n_ids, "the sizes of the bins")?;
    let mut slots: Vec<Vec<IterMut<'_, S>>> = Vec::with_capacity(counted.len());
    for _ in &counted {
        slots.push(memory::room(n_ids, "the places of the scores")?);
    }
    let mut rest = &mut cells[..];
    for id in 0..n_ids {
        for ((counts, ..), slots) in counted.iter().zip(&mut slots) {
            let (piece, tail) = take(&mut rest).split_at_mut(counts[id]);
            slots.push(piece.iter_mut());
            sizes[id] += counts[id];
            rest = tail;
        }
    }
    let work = slots.into_iter().zip(cuts.windows(2)).collect();
    parallel::map(work, true, interrupt, |(mut slots, cut): (Vec<IterMut<'_, S>>, &[usize])| {
        let (ids, scores) = (&ids[cut[0]..cut[1]], &scores[cut[0]..cut[1]]);
        for (ids, scores) in ids.chunks(STEP).zip(scores.chunks(STEP)) {
            interrupt.check()?;
            for (&id, &score) in ids.iter().zip(scores) {
                if let Some(slot) = slots[usize::from(id)].next() {
                    *slot = score;
                }
            }
        }
        Ok(())
    })?;
    drop(ids);

    let n_pos = sizes.iter().skip(1).step_by(2).sum();
    let doubled_u = bin_by_bin(&cells, &sizes, depth, interrupt)?;
    Ok(Outcome::Counted(doubled_u, n_pos))
}

/// Scores of neighbouring wide bins, the sizes of both classes in each, and how many negatives lie below.
type Wider<'a, S> = (&'a [S], &'a [[usize; 2]], usize);

/// Count the pairs of scores that lie in wide bins, negatives before positives in each.
fn bin_by_bin<S: Score>(cells: &[S], sizes: &[usize], depth: u32, interrupt: &Interrupt) -> Result<u128> {
    // Neighbouring bins make one task, so that they share their room.
    let mut tasks: Vec<Wider<'_, S>> = Vec::new();
    let (bins, mut below) = (sizes.as_chunks::<2>().0, 0);
    let (mut first, mut start, mut length, mut negatives) = (0, 0, 0, 0);
    for (i, [n_neg, n_pos]) in bins.iter().enumerate() {
        length += n_neg + n_pos;
        negatives += n_neg;
        if length >= 2 * BLOCK || i + 1 == bins.len() {
            tasks.push((&cells[start..start + length], &bins[first..=i], below));
            (first, start, below) = (i + 1, start + length, below + negatives);
            (length, negatives) = (0, 0);
        }
    }
    let counts = parallel::map(tasks, true, interrupt, |(mut cells, bins, mut below)| {
        let largest = bins.iter().map(|[a, b]| a + b).filter(|&n| n <= 4 * BLOCK).max().unwrap_or(0);
        let mut room = Room::new(largest)?;
        let mut doubled_u = 0;
        for &[n_neg, n_pos] in bins {
            let (bin, tail) = cells.split_at(n_neg + n_pos);
            doubled_u += 2 * n_pos as u128 * below as u128;
            doubled_u += halves(bin, n_neg, depth + 1, Some(&mut room), interrupt)?;
            below += n_neg;
            cells = tail;
        }
        Ok(doubled_u)
    })?;
    Ok(counts.into_iter().sum())
}

/// Numbers of negatives and positives at each of a few values.
struct Tally<S: Score> {
    values: Vec<S>,
    /// Two for each value.
    counts: Vec<u32>,
    /// Scores that found their place taken.
    others: Vec<(S, u16)>,
    usual: bool,
    nan: bool,
}

/// Count by value where the sample says that scores repeat; nothing where they do not repeat enough.
fn repeated<S: Score>(
    scores: &[S],
    labels: &dyn Classes<S>,
    sample: &[S],
    interrupt: &Interrupt,
) -> Result<Option<Outcome>> {
    const WHAT: &str = "the counts of the scores";
    let distinct = 1 + sample.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let (low, high) = (sample[0], sample[sample.len() - 1]);
    if 4 * distinct > sample.len() || u32::try_from(scores.len()).is_err() {
        return Ok(None);
    }
    let Some(slope) = S::slope(low, high, PLACES) else { return Ok(None) };
    let wide = Wide::Line { low, high, slope };
    let cuts = pieces(scores.len())?;
    let work = cuts.windows(2).map(|cut| (cut[0], &scores[cut[0]..cut[1]])).collect();
    let counted = parallel::map(work, true, interrupt, |(start, scores): (usize, &[S])| {
        let most_others = scores.len() / 64;
        let mut tally = Tally {
            values: memory::filled(low, PLACES, WHAT)?,
            counts: memory::filled(0, 2 * PLACES, WHAT)?,
            others: memory::room(most_others + STEP, WHAT)?,
            usual: true,
            nan: false,
        };
        let mut ids = [0; STEP];
        for (first, scores) in (start..).step_by(STEP).zip(scores.chunks(STEP)) {
            interrupt.check()?;
            let ids = &mut ids[..scores.len()];
            let seen = labels.assign(first, scores, ids, &wide);
            tally.usual &= seen.0;
            tally.nan |= seen.1;
            for (&id, &score) in ids.iter().zip(scores) {
                let (id, place) = (usize::from(id), usize::from(id / 2));
                if tally.values[place] == score {
                    tally.counts[id] += 1;
                } else if tally.counts[2 * place] + tally.counts[2 * place + 1] == 0 {
                    tally.values[place] = score;
                    tally.counts[id] += 1;
                } else {
                    tally.others.push((score, id as u16 % 2));
                }
            }
            if tally.others.len() > most_others {
                return Ok(None);
            }
        }
        Ok(Some(tally))
    })?;
    let Some(counted) = counted.into_iter().collect::<Option<Vec<Tally<S>>>>() else { return Ok(None) };
    if counted.iter().any(|tally| tally.nan) {
        return Ok(Some(Outcome::NotANumber));
    }
    if counted.iter().any(|tally| !tally.usual) && !labels.two_valued() {
        return Ok(Some(Outcome::NotLabels));
    }
    let n_groups = counted.iter().map(|tally| PLACES + tally.others.len()).sum();
    let mut groups: Vec<(u64, [u64; 2])> = memory::room(n_groups, WHAT)?;
    let key = |score: S| score.key().into() as u64; // one type of groups, and one sort of them
    for tally in &counted {
        let at_value =
            tally.values.iter().zip(tally.counts.as_chunks::<2>().0).filter(|(_, counts)| counts[0] + counts[1] > 0);
        groups.extend(at_value.map(|(value, counts)| (key(*value), counts.map(u64::from))));
        groups.extend(tally.others.iter().map(|&(s, class)| (key(s), [u64::from(1 - class), u64::from(class)])));
    }
    interrupt.check()?;
    groups.sort_unstable();
    let (mut doubled_u, mut below, mut n_pos) = (0u128, 0u64, 0u64);
    for group in groups.chunk_by(|a, b| a.0 == b.0) {
        let [neg, pos] = group.iter().fold([0, 0], |sum, (_, n)| [sum[0] + n[0], sum[1] + n[1]]);
        doubled_u += u128::from(pos) * u128::from(2 * below + neg);
        below += neg;
        n_pos += pos;
    }
    Ok(Some(Outcome::Counted(doubled_u, n_pos as usize)))
}

struct ReadLabels<'a, L> {
    labels: &'a [L],
    positive: &'a mut [u16],
}

impl<L: Label> Kernel for ReadLabels<'_, L> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        read_labels(self.labels, self.positive)
    }
}

/// Count pairs on the calling thread, in one block.
pub(crate) fn in_one_block<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<Outcome> {
    let n = scores.len();
    let mut room = Room::<S>::new(n)?;
    let usual = dispatch_narrow(ReadLabels { labels, positive: &mut room.ids });
    let (low, high, nan) = dispatch_narrow(Extremes(scores));
    if nan {
        return Ok(Outcome::NotANumber);
    }
    if !usual && !two_valued(labels) {
        return Ok(Outcome::NotLabels);
    }
    let n_pos = room.ids.iter().map(|&id| usize::from(id)).sum::<usize>();
    let doubled_u = if n_pos == 0 || n_pos == n {
        0
    } else if low == high {
        n_pos as u128 * (n - n_pos) as u128
    } else {
        room.block(scores, low, high, 0, interrupt)?
    };
    Ok(Outcome::Counted(doubled_u, n_pos))
}

/// Count pairs, on the stack alone: for up to `N - LANES` scores with few pairs, else nothing.
pub(crate) fn few<S: Score, L: Label, const N: usize>(scores: &[S], labels: &[L]) -> Option<Outcome> {
    let mut cells = [S::default(); N];
    let n = scores.len();
    let (mut front, mut back, mut bits, mut nan) = (0, n, 0, false);
    for (&score, &label) in scores.iter().zip(labels) {
        let positive = label.is_one();
        bits |= label.bit();
        nan |= score.is_nan();
        cells[if positive { back - 1 } else { front }] = score;
        back -= usize::from(positive);
        front += usize::from(!positive);
    }
    if nan {
        return Some(Outcome::NotANumber);
    }
    if !labels::is_binary(bits) {
        return Some(Outcome::NotLabels);
    }
    let n_pos = n - front;
    (front * n_pos <= FEW_IN_ALL).then(|| {
        let doubled_u = dispatch_narrow(AllPairs { cells: &cells, n_neg: front, pos: &cells[front..n] });
        Outcome::Counted(doubled_u.into(), n_pos)
    })
}

/// Longest row that [`Narrow`] takes.
pub(crate) const NARROW: usize = 512;
/// Bins of negatives that a bin of a positive is compared with at once.
const AT_ONCE: usize = 64;
/// As many of them as make a vector.
const PART: usize = 32;
const PARTS: usize = AT_ONCE / PART;
/// Pairs in one bin that are looked up; with more the scores repeat.
const FEW_ALIKE: usize = 64;
/// Rows that pass before the next attempt where scores repeat.
const PAUSE: u32 = 16;

/// Bins of the scores of a row, so many and so narrow that few pairs share one.
struct NarrowBins {
    /// Those of the negatives; behind them is one that no score has.
    neg: [i16; NARROW],
    n_neg: usize,
    pos: [i16; NARROW],
    n_pos: usize,
    /// Pairs that share a bin, negative and positive.
    alike: [(u16, u16); FEW_ALIKE],
    n_alike: usize,
}

/// Find the bins; false where a score is NaN or there is no straight line to them.
struct Assigned<'a, S> {
    /// Negatives, then positives.
    cells: &'a [S],
    bins: &'a mut NarrowBins,
}

impl<S: Score> Kernel for Assigned<'_, S> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        // one less than there are numbers: that one stands behind the last negative
        const BINS: usize = u16::MAX as usize;
        let NarrowBins { neg, n_neg, pos, n_pos, .. } = self.bins;
        let (low, high, nan) = extremes(self.cells);
        let slope = if nan { None } else { S::slope(low, high, BINS) };
        let Some(slope) = slope else { return false };
        let (of_neg, of_pos) = self.cells.split_at(*n_neg);
        for (bins, cells) in [(&mut neg[..*n_neg], of_neg), (&mut pos[..*n_pos], of_pos)] {
            for (bin, cell) in bins.iter_mut().zip(cells) {
                *bin = (cell.bin(low, slope) as u16 ^ 0x8000).cast_signed();
            }
        }
        neg[*n_neg..n_neg.next_multiple_of(AT_ONCE)].fill(i16::MAX);
        true
    }
}

/// The number of pairs whose positive has the higher bin, with those that share one put down; nothing where they are many.
struct Compared<'a>(&'a mut NarrowBins);

impl Kernel for Compared<'_> {
    type Output = Option<u32>;
    #[inline(always)]
    fn run(self) -> Option<u32> {
        let NarrowBins { neg, n_neg, pos, n_pos, alike, n_alike } = self.0;
        let (neg, pos) = (neg[..n_neg.next_multiple_of(AT_ONCE)].as_chunks::<AT_ONCE>().0, &pos[..*n_pos]);
        let (mut below, mut above) = (0u32, 0u32);
        for (i, neg) in neg.iter().enumerate() {
            let (mut lower, mut higher) = ([0i16; AT_ONCE], [0i16; AT_ONCE]);
            for bin in pos {
                each!(part < PARTS => {
                    for lane in part * PART..(part + 1) * PART {
                        lower[lane] += i16::from(neg[lane] < *bin);
                        higher[lane] += i16::from(neg[lane] > *bin);
                    }
                });
            }
            for lane in 0..AT_ONCE {
                below += lower[lane] as u32;
                above += if i * AT_ONCE + lane < *n_neg { higher[lane] as u32 } else { 0 };
            }
        }
        *n_alike = 0;
        let found = *n_neg * *n_pos - (below + above) as usize;
        if found > FEW_ALIKE {
            return None;
        }
        for (j, bin) in pos.iter().enumerate() {
            if *n_alike == found {
                break;
            }
            for (i, neg) in neg.iter().enumerate() {
                let mut any = 0;
                for lane in 0..AT_ONCE {
                    any |= i16::from(neg[lane] == *bin);
                }
                if any > 0 {
                    for lane in (0..AT_ONCE).filter(|&lane| neg[lane] == *bin) {
                        alike[*n_alike] = ((i * AT_ONCE + lane) as u16, j as u16);
                        *n_alike += 1;
                    }
                }
            }
        }
        Some(below)
    }
}

/// Pairs of short rows, one row after the other: of two scores in different bins a comparison of small integers tells the
/// order.
pub(crate) struct Narrow<S> {
    /// Negatives, then positives.
    cells: [S; NARROW],
    bins: NarrowBins,
    /// Rows still to be left alone.
    pause: u32,
}

/// Where the negatives and the positives of a row are.
pub(crate) struct Places {
    at: [u16; NARROW],
    n: usize,
    n_neg: usize,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self { at: [0; NARROW], n: 0, n_neg: 0 }
    }

    /// Those of some labels; false where there are too many, they are not two-valued or one class is absent.
    pub(crate) fn find<L: Label>(&mut self, labels: &[L]) -> bool {
        let n = labels.len();
        if n > NARROW {
            return false;
        }
        let (mut front, mut back, mut bits) = (0, n, 0);
        for (i, &label) in labels.iter().enumerate() {
            let positive = label.is_one();
            bits |= label.bit();
            self.at[if positive { back - 1 } else { front }] = i as u16;
            back -= usize::from(positive);
            front += usize::from(!positive);
        }
        (self.n, self.n_neg) = (n, front);
        labels::is_binary(bits) && 0 < front && front < n
    }
}

impl<S: Score> Narrow<S> {
    pub(crate) fn new() -> Self {
        let bins = NarrowBins {
            neg: [0; NARROW],
            n_neg: 0,
            pos: [0; NARROW],
            n_pos: 0,
            alike: [(0, 0); FEW_ALIKE],
            n_alike: 0,
        };
        Self { cells: [S::default(); NARROW], bins, pause: 0 }
    }

    /// Count the pairs of a row; nothing where another way has to be taken, or an error found.
    pub(crate) fn row(&mut self, scores: &[S], places: &Places) -> Option<Outcome> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let cells = &mut self.cells[..places.n];
        for (cell, &place) in cells.iter_mut().zip(&places.at) {
            *cell = scores[usize::from(place)];
        }
        (self.bins.n_neg, self.bins.n_pos) = (places.n_neg, places.n - places.n_neg);
        if !dispatch_narrow(Assigned { cells, bins: &mut self.bins }) {
            return None;
        }
        let Some(below) = dispatch_narrow(Compared(&mut self.bins)) else {
            self.pause = PAUSE;
            return None;
        };
        let mut doubled_u = 2 * u128::from(below);
        for &(neg, pos) in &self.bins.alike[..self.bins.n_alike] {
            let (neg, pos) = (cells[usize::from(neg)], cells[places.n_neg + usize::from(pos)]);
            doubled_u += u128::from(neg < pos) + u128::from(neg <= pos);
        }
        Some(Outcome::Counted(doubled_u, self.bins.n_pos))
    }
}

/// Count pairs.
pub(crate) fn doubled_u<S: Score, L: Label>(scores: &[S], labels: &[L], interrupt: &Interrupt) -> Result<Outcome> {
    if scores.len() <= BLOCK { in_one_block(scores, labels, interrupt) } else { wide(scores, &labels, 0, interrupt) }
}
