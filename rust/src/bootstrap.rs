//! Bootstrap replicates of AUCs: sorted once, then counted for each resample.
//!
//! A resample is drawn from a stream of its own number, and as places in the input. So it is the same for any number of
//! threads, for all models scored on the same labels, and whether they come in one call or in several.
//!
//! Scores that no score of the other class lies between share a cell, and only members of cells are counted. The cells
//! of a model, in ascending order, are dealt out to lanes, each a stretch of the order: so many stretches are summed at
//! once, and what lies below a stretch is added in the end.

use std::ops::{Add, AddAssign, BitAnd, Mul, Range, Sub};

use crate::auc::{self, PairCounts};
use crate::each::each;
use crate::error::{Error, Result};
use crate::labels::Label;
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::rng::{Integers, TILE};
use crate::scores::Score;
use crate::simd::{Kernel, dispatch_narrow};
use crate::sort;

const WHAT: &str = "the scores in order";
/// Purposes of the random numbers: plain, of positives, of negatives.
const PURPOSES: [u32; 3] = [0x0A0C_0000, 0x0A0C_0002, 0x0A0C_0004];
/// Draws made at once. Part of what a seed stands for: where they end, the rest of a tile is lost.
const DRAWS: usize = 16 * TILE;
/// Draws of one task, and between two looks for an interrupt.
const STEP: usize = 1 << 18;
/// Stretches of the order that are summed side by side.
const LANES: usize = 16;
/// Of these one loop takes so many.
const PART: usize = 8;
const PARTS: usize = LANES / PART;
/// Members of a class in a cell, if the cell is not a tie: a count that is due again at once waits for itself.
const CROWD: usize = 8;
/// Up to this many scores, slots and counts have 16 bits: there are two slots to a cell and no more cells than scores.
const MOST_SHORT: usize = 1 << 15;
/// Draws made before several models count them one after the other: the slots of one at a time stay near the processor.
const MOST_HELD: usize = 1 << 13;
/// Bytes of counts that a task holds, unless one model takes more.
const MOST_BYTES: usize = 1 << 22;
/// As many can be resampled: they have 32 bits then.
const MOST: usize = 1 << 31;

/// What is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resample {
    /// As many scores as there are, from all of them.
    Plain,
    /// As many of each class as there are, from the class.
    Stratified,
}

/// An integer for the number of a slot, and for what is counted there.
trait Count: Copy + Default + Send + Sync + BitAnd<Output = Self> {
    /// Holds twice the pairs of a resample.
    type Sum: Copy
        + Default
        + From<Self>
        + Into<u64>
        + Add<Output = Self::Sum>
        + AddAssign
        + Sub<Output = Self::Sum>
        + Mul<Output = Self::Sum>;
    /// All bits set.
    const ONES: Self;
    /// A number that fits.
    fn new(number: usize) -> Self;
    /// The number again.
    fn get(self) -> usize;
    /// The sum, modulo what the type holds.
    #[must_use]
    fn plus(self, more: Self) -> Self;
}

macro_rules! count {
    ($count:ty, $sum:ty) => {
        impl Count for $count {
            type Sum = $sum;
            const ONES: Self = Self::MAX;
            #[inline(always)]
            fn new(number: usize) -> Self {
                number as Self
            }
            #[inline(always)]
            fn get(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn plus(self, more: Self) -> Self {
                self.wrapping_add(more)
            }
        }
    };
}
count!(u16, u32);
count!(u32, u64);

/// Of the same cell of each lane, one slot for negatives and one for positives.
type Row<C> = [[C; LANES]; 2];

/// What the scores of one model say about pairs.
struct Model<C> {
    /// For each member, the positives before the negatives and each class as it comes, the slot it is counted in; one
    /// more at the end, for what is rejected.
    slots: Vec<C>,
    /// All ones where positives tie with the negatives of their cell, 0 where they lie above them.
    ties: Vec<[C; LANES]>,
}

/// Keys of scores, each with its number in one: negatives behind the `n_pos` positives, each class as it comes.
fn numbered<S: Score, L: Label>(scores: &[S], labels: &[L], n_pos: usize, interrupt: &Interrupt) -> Result<Vec<u128>> {
    let mut all = memory::room(scores.len(), WHAT)?;
    let mut next = [n_pos as u32, 0];
    for (scores, labels) in scores.chunks(STEP).zip(labels.chunks(STEP)) {
        interrupt.check()?;
        all.extend(scores.iter().zip(labels).map(|(score, label)| {
            let number = &mut next[usize::from(label.is_one())];
            *number += 1;
            score.numbered(*number - 1)
        }));
    }
    Ok(all)
}

impl<C: Count> Model<C> {
    /// From scores that are [`numbered`].
    fn new(scores: Vec<u128>, n_pos: usize, interrupt: &Interrupt) -> Result<Self> {
        let n = scores.len();
        let order = sort::sorted(scores, interrupt)?;
        let mut cells = sort::filled(C::default(), n + 1, WHAT, interrupt)?;
        let mut tied = memory::room(n, WHAT)?; // for each cell
        let mut inside = [0; 2]; // of the last cell, negatives and positives
        let mut unchecked = 0;
        for group in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let positives = group.partition_point(|&numbered| (numbered as u32 as usize) < n_pos);
            let tie = 0 < positives && positives < group.len();
            if tie {
                tied.push(C::ONES);
                inside = [CROWD; 2];
            }
            for (i, &numbered) in group.iter().enumerate() {
                let class = usize::from(i < positives);
                // negatives lie below the positives of their cell
                if !tie && (tied.is_empty() || inside[class] == CROWD || class == 0 && inside[1] > 0) {
                    tied.push(C::default());
                    inside = [0; 2];
                }
                inside[class] += usize::from(!tie);
                cells[numbered as u32 as usize] = C::new(tied.len() - 1);
                unchecked += 1;
                if unchecked == STEP {
                    interrupt.check()?;
                    unchecked = 0;
                }
            }
        }
        drop(order);
        let n_rows = tied.len().div_ceil(LANES).max(1);
        let mut ties = sort::filled([C::default(); LANES], n_rows, WHAT, interrupt)?;
        for (lane, tied) in tied.chunks(n_rows).enumerate() {
            interrupt.check()?;
            ties.iter_mut().zip(tied).for_each(|(ties, &tie)| ties[lane] = tie);
        }
        for (part, cells) in cells.chunks_mut(STEP).enumerate() {
            interrupt.check()?;
            for (member, cell) in (part * STEP..).zip(cells) {
                let (lane, row) = (cell.get() as u32 / n_rows as u32, cell.get() as u32 % n_rows as u32);
                let class = usize::from(member < n_pos);
                *cell = C::new((row as usize * 2 + class) * LANES + lane as usize);
            }
        }
        Ok(Self { slots: cells, ties })
    }

    /// Count in its slot how often each member was drawn.
    fn put_in_order(&self, drawn: &[u8], times: &mut [Row<C>], interrupt: &Interrupt) -> Result<()> {
        let times = times.as_flattened_mut().as_flattened_mut();
        for (slots, drawn) in self.slots.chunks(STEP).zip(drawn.chunks(STEP)) {
            interrupt.check()?;
            for (slot, &drawn) in slots.iter().zip(drawn) {
                times[slot.get()] = times[slot.get()].plus(C::new(drawn.into()));
            }
        }
        Ok(())
    }

    /// AUC of a resample.
    fn auc(&self, times: &[Row<C>], interrupt: &Interrupt) -> Result<f64> {
        let mut sums = Sums::default();
        for (times, ties) in times.chunks(STEP).zip(self.ties.chunks(STEP)) {
            interrupt.check()?;
            sums = dispatch_narrow(Scan { times, ties, sums });
        }
        // twice the pairs of 2^31 scores fit
        let (mut doubled_u, mut n_pos, mut n_neg) = (0, 0, 0);
        for lane in 0..LANES {
            let [neg, pos, doubled]: [u64; 3] = sums.0.map(|sum| sum[lane].into());
            doubled_u += doubled + 2 * pos * n_neg;
            n_pos += pos;
            n_neg += neg;
        }
        Ok(PairCounts { doubled_u: doubled_u.into(), n_pos, n_neg }.auc())
    }
}

/// Of each lane: negatives, positives, and twice the pairs with the positive above plus the tied ones.
#[derive(Clone, Copy, Default)]
struct Sums<T>([[T; LANES]; 3]);

#[derive(Clone)]
struct Scan<'a, C: Count> {
    times: &'a [Row<C>],
    ties: &'a [[C; LANES]],
    sums: Sums<C::Sum>,
}

impl<C: Count> Kernel for Scan<'_, C> {
    type Output = Sums<C::Sum>;
    #[inline(always)]
    fn run(self) -> Sums<C::Sum> {
        let [mut negatives, mut positives, mut doubled] = self.sums.0;
        for ([neg, pos], ties) in self.times.iter().zip(self.ties) {
            each!(part < PARTS => {
                for lane in part * PART..(part + 1) * PART {
                    let n_pos = C::Sum::from(pos[lane]);
                    negatives[lane] += C::Sum::from(neg[lane]);
                    positives[lane] += n_pos;
                    doubled[lane] += n_pos * (negatives[lane] + negatives[lane] - C::Sum::from(neg[lane] & ties[lane]));
                }
            });
        }
        Sums([negatives, positives, doubled])
    }
}

/// Draw as many of some members as there are; `count` gets their numbers, and how many of these are rejected and stand
/// there as the number behind the last.
fn draw(
    mut draws: Integers,
    n_members: usize,
    interrupt: &Interrupt,
    mut count: impl FnMut(&[u32], usize),
) -> Result<()> {
    let mut numbers = [0; DRAWS];
    let (mut missing, mut unchecked) = (n_members, STEP);
    while missing > 0 {
        if unchecked >= STEP {
            interrupt.check()?;
            unchecked = 0;
        }
        let numbers = &mut numbers[..DRAWS.min(missing)];
        let rejected = draws.fill(numbers);
        count(numbers, rejected);
        missing -= numbers.len() - rejected;
        unchecked += numbers.len();
    }
    Ok(())
}

/// AUCs of `n_replicates` resamples, replicate by replicate, for each model a row of `scores`.
///
/// NaN where a plain resample holds one class only.
///
/// # Errors
/// As [`auc::pair_counts`], naming the row of several; [`Error::range`] for more than 2^31 scores, or when a class is empty.
pub fn replicates<S: Score, L: Label>(
    scores: &[S],
    labels: &[L],
    n_replicates: usize,
    resample: Resample,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<f64>> {
    let n = labels.len();
    let k = scores.len().checked_div(n).unwrap_or(0);
    if n > MOST {
        return Err(Error::range(format_args!("labels has {n} entries: at most 2**31 can be resampled")));
    }
    let mut n_pos = 0;
    for (row, scores) in scores.chunks_exact(n.max(1)).enumerate() {
        let [n_neg, positives] =
            auc::check(scores, labels).map_err(|error| if k > 1 { auc::in_row(row, error) } else { error })?;
        if n_neg == 0 || positives == 0 {
            return Err(Error::range(format_args!("labels hold one class only: there is no AUC to resample")));
        }
        n_pos = positives as usize;
    }
    let order = |row: usize| numbered(&scores[row * n..(row + 1) * n], labels, n_pos, interrupt);
    let draws = Draws { n, n_pos, resample, seed, n_replicates };
    if n <= MOST_SHORT { draws.areas_of_few(&order, k, interrupt) } else { draws.areas(&order, k, interrupt) }
}

/// Gives the numbered scores of a model.
type Order<'a> = &'a (dyn Fn(usize) -> Result<Vec<u128>> + Sync);

/// What is drawn: the same for all models, whatever their scores.
struct Draws {
    n: usize,
    n_pos: usize,
    resample: Resample,
    seed: u64,
    n_replicates: usize,
}

impl Draws {
    /// From the numbered scores that `order` gives for each model.
    fn models<C: Count>(&self, order: Order<'_>, k: usize, interrupt: &Interrupt) -> Result<Vec<Model<C>>> {
        let rows = memory::collect(0..k, "the list of models")?;
        parallel::map(rows, k.saturating_mul(self.n) >= STEP, interrupt, |row| {
            Model::new(order(row)?, self.n_pos, interrupt)
        })
    }

    /// Areas of `k` models of up to [`MOST_SHORT`] scores: what is drawn is counted in the slots at once.
    fn areas_of_few(&self, order: Order<'_>, k: usize, interrupt: &Interrupt) -> Result<Vec<f64>> {
        let models = self.models::<u16>(order, k, interrupt)?;
        let n_rows = models.iter().map(|model| model.ties.len()).max().unwrap_or(1);
        // Draws are made anew for each group of models.
        let at_once = (MOST_BYTES / (n_rows * size_of::<Row<u16>>())).clamp(1, k.max(1));
        let room = || {
            let held = memory::room(if k == 1 { 0 } else { MOST_HELD + DRAWS }, "the resample")?;
            Ok((held, sort::filled(Row::default(), at_once * n_rows, "the resample", interrupt)?))
        };
        self.each(k, interrupt, room, |replicate, (held, times), values| {
            for (models, values) in models.chunks(at_once).zip(values.chunks_mut(at_once)) {
                let times = &mut times[..models.len() * n_rows];
                times.fill(Row::default());
                self.count_in_order(replicate, models, held, times, interrupt)?;
                for ((value, model), times) in values.iter_mut().zip(models).zip(times.chunks_exact(n_rows)) {
                    *value = model.auc(&times[..model.ties.len()], interrupt)?;
                }
            }
            Ok(())
        })
    }

    /// Areas of `k` models of any size: how often each member is drawn is counted, and then put in the slots.
    fn areas(&self, order: Order<'_>, k: usize, interrupt: &Interrupt) -> Result<Vec<f64>> {
        let models = self.models::<u32>(order, k, interrupt)?;
        let n_rows = models.iter().map(|model| model.ties.len()).max().unwrap_or(1);
        let room = || {
            let times = sort::filled(Row::default(), n_rows, "the resample", interrupt)?;
            Ok((sort::filled(0, self.n + 1, "the resample", interrupt)?, times))
        };
        self.each(k, interrupt, room, |replicate, (drawn, times), values| {
            self.count(replicate, drawn, interrupt)?;
            for (value, model) in values.iter_mut().zip(&models) {
                let times = &mut times[..model.ties.len()];
                times.fill(Row::default());
                model.put_in_order(drawn, times, interrupt)?;
                *value = model.auc(times, interrupt)?;
            }
            Ok(())
        })
    }

    /// Let `areas` write the `k` areas of each replicate, with the `room` of its task.
    fn each<R>(
        &self,
        k: usize,
        interrupt: &Interrupt,
        room: impl Fn() -> Result<R> + Send + Sync,
        areas: impl Fn(usize, &mut R, &mut [f64]) -> Result<()> + Send + Sync,
    ) -> Result<Vec<f64>> {
        let mut values = sort::filled(f64::NAN, self.n_replicates.saturating_mul(k), "the replicates", interrupt)?;
        let block = (STEP / self.n.max(1)).max(1);
        let cuts = parallel::cuts(self.n_replicates, block, |replicate| replicate * k)?;
        let large = self.n.saturating_mul(self.n_replicates) >= STEP;
        parallel::fill(&mut values, &cuts, large, interrupt, |task, values| {
            let mut room = room()?;
            for (replicate, values) in (task * block..).zip(values.chunks_mut(k.max(1))) {
                areas(replicate, &mut room, values)?;
            }
            Ok(())
        })?;
        Ok(values)
    }

    /// The parts that are drawn from, each with its stream.
    fn strata(&self, replicate: usize) -> impl Iterator<Item = (Range<usize>, Integers)> {
        let (n, n_pos, seed) = (self.n, self.n_pos, self.seed);
        let strata = [0..n, 0..n_pos, n_pos..n].into_iter().zip(PURPOSES);
        let (skip, take) = if self.resample == Resample::Plain { (0, 1) } else { (1, 2) };
        strata.skip(skip).take(take).map(move |(members, purpose)| {
            let draws = Integers::new(seed, replicate as u64, purpose, members.len() as u32);
            (members, draws)
        })
    }

    /// How often each member is drawn; `drawn` has room for one more, which is for what is rejected.
    ///
    /// A count has eight bits: that one of n members is drawn 256 times has a chance below n / 256!, less than 10^-490.
    fn count(&self, replicate: usize, drawn: &mut [u8], interrupt: &Interrupt) -> Result<()> {
        drawn.fill(0);
        for (members, draws) in self.strata(replicate) {
            let drawn = &mut drawn[members.start..=members.end];
            draw(draws, members.len(), interrupt, |numbers, rejected| {
                for &number in numbers {
                    let times = &mut drawn[number as usize];
                    *times = times.wrapping_add(1);
                }
                let times = &mut drawn[members.len()];
                *times = times.wrapping_sub(rejected as u8);
            })?;
        }
        Ok(())
    }

    /// The same in the slot of the member, for each of some models; they have as many of the rows of `times`.
    fn count_in_order(
        &self,
        replicate: usize,
        models: &[Model<u16>],
        held: &mut Vec<u32>,
        times: &mut [Row<u16>],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let each = times.len() / models.len();
        let mut count = |numbers: &[u32], slots: &Range<usize>| {
            for (model, times) in models.iter().zip(times.chunks_exact_mut(each)) {
                let slots = &model.slots[slots.clone()];
                let times = times.as_flattened_mut().as_flattened_mut();
                let mut count = |slot: u16| times[usize::from(slot)] = times[usize::from(slot)].wrapping_add(1);
                // looked up together: one does not wait for the count of another
                let (numbers, last) = numbers.as_chunks::<8>();
                for numbers in numbers {
                    numbers.map(|number| slots[number as usize]).into_iter().for_each(&mut count);
                }
                for &number in last {
                    count(slots[number as usize]);
                }
            }
        };
        let mut all_rejected = [(0, 0); 2];
        for ((members, draws), at_end) in self.strata(replicate).zip(&mut all_rejected) {
            let slots = members.start..members.end + 1;
            *at_end = (members.end, 0);
            draw(draws, members.len(), interrupt, |numbers, rejected| {
                at_end.1 += rejected;
                if models.len() == 1 {
                    count(numbers, &slots); // they are still near
                } else {
                    held.extend_from_slice(numbers);
                    if held.len() > MOST_HELD {
                        count(held, &slots);
                        held.clear();
                    }
                }
            })?;
            count(held, &slots);
            held.clear();
        }
        for (model, times) in models.iter().zip(times.chunks_exact_mut(each)) {
            let times = times.as_flattened_mut().as_flattened_mut();
            for (end, rejected) in all_rejected {
                let times = &mut times[usize::from(model.slots[end])];
                *times = times.wrapping_sub(rejected as u16);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;
    use crate::simd::on_every_level;

    fn drawn(seed: u64, n: usize, levels: u32) -> (Vec<f64>, Vec<bool>) {
        let mut draw = Stream::new(seed, 0, 0);
        let scores = (0..n).map(|_| f64::from(draw.below(levels))).collect();
        (scores, (0..n).map(|i| if i < 2 { i == 0 } else { draw.below(3) == 0 }).collect())
    }

    /// The resample written out, score by score.
    fn written_out(scores: &[f64], labels: &[bool], resample: Resample, seed: u64, replicate: u64) -> f64 {
        let members = |class| (0..labels.len()).filter(move |&i| labels[i] == class);
        let order: Vec<usize> = members(true).chain(members(false)).collect();
        let n_pos = members(true).count();
        let mut chosen: Vec<usize> = Vec::new();
        let mut draw = |purpose: usize, pool: &[usize]| {
            let mut draws = Integers::new(seed, replicate, PURPOSES[purpose], pool.len() as u32);
            let until = chosen.len() + pool.len();
            while chosen.len() < until {
                let mut numbers = vec![0; DRAWS.min(until - chosen.len())];
                draws.fill(&mut numbers);
                chosen.extend(numbers.iter().filter_map(|&number| pool.get(number as usize)));
            }
        };
        if resample == Resample::Plain {
            draw(0, &order);
        } else {
            draw(1, &order[..n_pos]);
            draw(2, &order[n_pos..]);
        }
        let scores: Vec<f64> = chosen.iter().map(|&i| scores[i]).collect();
        let labels: Vec<bool> = chosen.iter().map(|&i| labels[i]).collect();
        auc::pair_counts(&scores, &labels, &Interrupt::default()).unwrap().auc()
    }

    #[test]
    fn replicates_are_the_areas_of_resamples() {
        for (n, levels) in [(2, 2), (7, 3), (60, 5), (300, 1_000_000), (5000, 40)] {
            let (a, labels) = drawn(1, n, levels);
            let (b, _) = drawn(2, n, levels);
            for resample in [Resample::Plain, Resample::Stratified] {
                let both = [a.clone(), b.clone()].concat();
                let got = replicates(&both, &labels, 5, resample, 9, &Interrupt::default()).unwrap();
                for (replicate, pair) in got.chunks(2).enumerate() {
                    let want = [&a, &b].map(|s| written_out(s, &labels, resample, 9, replicate as u64));
                    assert_eq!([pair[0].to_bits(), pair[1].to_bits()], want.map(f64::to_bits), "{n} {resample:?}");
                }
            }
        }
    }

    fn scanned<C: Count>() {
        let mut draw = Stream::new(6, 0, 0);
        let mut numbers = |most: u32| std::array::from_fn::<_, LANES, _>(|_| C::new(draw.below(most + 1) as usize));
        let times: Vec<Row<C>> = (0..50).map(|_| [numbers(20), numbers(9)]).collect();
        let ties: Vec<[C; LANES]> =
            (0..50).map(|_| numbers(1).map(|bit| if bit.get() == 1 { C::ONES } else { C::default() })).collect();
        let mut want = [[0u64; LANES]; 3];
        for lane in 0..LANES {
            for ([neg, pos], ties) in times.iter().zip(&ties) {
                let [neg, pos] = [neg[lane].get() as u64, pos[lane].get() as u64];
                want[2][lane] += pos * (2 * want[0][lane] + if ties[lane].get() == 0 { 2 * neg } else { neg });
                want[0][lane] += neg;
                want[1][lane] += pos;
            }
        }
        for Sums(sums) in on_every_level(&Scan { times: &times, ties: &ties, sums: Sums::default() }) {
            assert_eq!(sums.map(|lanes| lanes.map(Into::into)), want);
        }
    }

    #[test]
    fn lanes_are_summed_on_every_path() {
        scanned::<u16>();
        scanned::<u32>();
    }

    /// The bits of all replicates in one number: of each case what the first version gave, so that a seed in a paper holds.
    #[test]
    fn a_seed_gives_the_same_bits_for_ever() {
        let mut got = Vec::new();
        for (n, levels, n_replicates) in
            [(2, 2, 50), (90, 4, 20), (700, 1_000_000, 9), (10_000, 1 << 30, 6), (10_000, 5, 4), (17_000, 300, 3)]
        {
            let (a, labels) = drawn(3, n, levels);
            let scores = [a, drawn(4, n, levels).0].concat();
            for resample in [Resample::Plain, Resample::Stratified] {
                let values = replicates(&scores, &labels, n_replicates, resample, 77, &Interrupt::default()).unwrap();
                got.push(values.iter().fold(0, |hash: u64, value| {
                    (hash ^ value.to_bits()).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(29)
                }));
            }
        }
        for (n, resample) in [(70_001, Resample::Plain), (140_000, Resample::Stratified)] {
            let (scores, labels) = drawn(5, n, 1 << 30);
            let values = replicates(&scores, &labels, 2, resample, 78, &Interrupt::default()).unwrap();
            got.extend(values.iter().map(|value| value.to_bits()));
        }
        let want = [
            0xbb7ae5ddb67fdf7c,
            0xf869d1bfdf8d99ed,
            0x67bf2115a010572c,
            0xb9fb2c3fb6fd947d,
            0x52ad7101d04f18a1,
            0x8522c36ab7df1311,
            0x124792c747a73cc4,
            0x8a1e22631451dd46,
            0x24839aee931cf457,
            0x96f76ae29ed529b9,
            0x36545934f955db53,
            0xd63f3c84c3809ed1,
            0x3fe00b0b0a66ac21,
            0x3fdfea3b6fd70f36,
            0x3fe020e99838a5cc,
            0x3fdff92ae57e0c6d,
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn one_class_and_interrupts_are_errors() {
        let (stop, never) = (Interrupt::default(), Interrupt::default());
        stop.raise();
        assert!(replicates(&[1.0, 2.0], &[true, true], 3, Resample::Plain, 0, &never).is_err());
        assert!(replicates(&[1.0, f64::NAN], &[true, false], 3, Resample::Plain, 0, &never).is_err());
        let interrupted = replicates(&[1.0, 2.0], &[true, false], 3, Resample::Plain, 0, &stop);
        assert_eq!(interrupted, Err(Error::interrupted()));
        assert!(replicates(&[1.0, 2.0], &[true, false], 0, Resample::Stratified, 0, &never).unwrap().is_empty());
    }
}
