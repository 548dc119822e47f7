//! Bootstrap replicates of AUCs: sorted once, then counted for each resample.
//!
//! A resample is drawn from a stream of its own number, and as places in the input. So it is the same for any number of
//! threads, for all models scored on the same labels, and whether they come in one call or in several.

use crate::auc::{self, PairCounts};
use crate::error::{Error, Result};
use crate::labels::Label;
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::rng::{Integers, TILE};
use crate::scores::Score;
use crate::sort;

const WHAT: &str = "the scores in order";
/// Purposes of the random numbers: plain, of positives, of negatives.
const PURPOSES: [u32; 3] = [0x0A0C_0000, 0x0A0C_0002, 0x0A0C_0004];
/// Draws made at once.
const DRAWS: usize = 16 * TILE;
/// Draws of one task, and between two looks for an interrupt.
const STEP: usize = 1 << 18;

/// What is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resample {
    /// As many scores as there are, from all of them.
    Plain,
    /// As many of each class as there are, from the class.
    Stratified,
}

/// What the scores of one model say about pairs. Members of a class are numbered as they come.
struct Model {
    /// Numbers of the negatives, by ascending score.
    neg: Vec<u32>,
    /// For each positive, how many negatives lie below it.
    below: Vec<u32>,
    /// For each positive, how many negatives do not lie above it; empty where no positive ties with a negative.
    not_above: Vec<u32>,
}

impl Model {
    fn new<S: Score, L: Label>(scores: &[S], labels: &[L], n_pos: usize, interrupt: &Interrupt) -> Result<Self> {
        // A score goes with its number within its class, positives before negatives.
        let mut order: Vec<u128> = memory::room(scores.len(), WHAT)?;
        let mut next = [n_pos as u32, 0];
        for (&score, &label) in scores.iter().zip(labels) {
            let number = &mut next[usize::from(label.is_one())];
            order.push(score.numbered(*number));
            *number += 1;
        }
        let order = sort::sorted(order, interrupt)?;
        let mut neg = memory::room(scores.len() - n_pos, WHAT)?;
        let mut below = sort::filled(0, n_pos, WHAT, interrupt)?;
        let mut not_above = sort::filled(0, n_pos, WHAT, interrupt)?;
        let mut tied = false;
        for group in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let positives = group.partition_point(|&numbered| (numbered as u32 as usize) < n_pos);
            let lower = neg.len() as u32;
            neg.extend(group[positives..].iter().map(|&numbered| numbered as u32 - n_pos as u32));
            for &numbered in &group[..positives] {
                let number = numbered as u32 as usize;
                below[number] = lower;
                not_above[number] = neg.len() as u32;
            }
            tied |= positives > 0 && positives < group.len();
        }
        Ok(Self { neg, below, not_above: if tied { not_above } else { Vec::new() } })
    }

    /// Twice the U statistic of members that come so many times; `sums` has room for one more than the negatives.
    fn doubled_u(&self, pos: &[u8], neg: &[u8], sums: &mut [u32], interrupt: &Interrupt) -> Result<u64> {
        let mut sum = 0; // of not more than 2^32 members
        for (numbers, sums) in self.neg.chunks(STEP).zip(sums[1..].chunks_mut(STEP)) {
            interrupt.check()?;
            // four at a time: the sum of one waits for that of the one before, and the rest does not
            let ((numbers, last), (totals, last_totals)) = (numbers.as_chunks::<4>(), sums.as_chunks_mut::<4>());
            for (numbers, totals) in numbers.iter().zip(totals) {
                let [a, b, c, d] = numbers.map(|number| u32::from(neg[number as usize]));
                *totals = [sum + a, sum + (a + b), sum + (a + b + c), sum + ((a + b) + (c + d))];
                sum = totals[3];
            }
            for (&number, total) in last.iter().zip(last_totals) {
                sum += u32::from(neg[number as usize]);
                *total = sum;
            }
        }
        let lost = sum_up(pos, &self.below, sums, interrupt)?;
        Ok(lost + if self.not_above.is_empty() { lost } else { sum_up(pos, &self.not_above, sums, interrupt)? })
    }
}

/// Over the positives, how often each comes times the sum at its place.
fn sum_up(times: &[u8], places: &[u32], sums: &[u32], interrupt: &Interrupt) -> Result<u64> {
    let mut total = 0;
    for (times, places) in times.chunks(STEP).zip(places.chunks(STEP)) {
        interrupt.check()?;
        let lost = |(&t, &at): (&u8, &u32)| u64::from(t) * u64::from(sums[at as usize]);
        let ((times, last), (places, last_places)) = (times.as_chunks::<4>(), places.as_chunks::<4>());
        for (times, places) in times.iter().zip(places) {
            let [a, b, c, d] = [0, 1, 2, 3].map(|i| lost((&times[i], &places[i])));
            total += (a + b) + (c + d);
        }
        total += last.iter().zip(last_places).map(lost).sum::<u64>();
    }
    Ok(total)
}

/// Count how often each of n members is drawn in n draws; `times` has room for one more, which takes what is rejected.
///
/// A count has eight bits: that one of n members is drawn 256 times has a chance below n / 256!, less than 10^-490.
fn draw(mut draws: Integers, times: &mut [u8], interrupt: &Interrupt) -> Result<()> {
    let mut numbers = [0; DRAWS];
    let n = times.len() - 1;
    let (mut missing, mut unchecked) = (n, STEP);
    while missing > 0 {
        if unchecked >= STEP {
            interrupt.check()?;
            unchecked = 0;
        }
        let numbers = &mut numbers[..DRAWS.min(missing)];
        let rejected = draws.fill(numbers);
        for &number in numbers.iter() {
            let times = &mut times[number as usize];
            *times = times.wrapping_add(1);
        }
        missing -= numbers.len() - rejected;
        unchecked += numbers.len();
    }
    times[n] = 0;
    Ok(())
}

/// AUCs of `n_replicates` resamples, replicate by replicate, for each model a row of `scores`.
///
/// NaN where a plain resample holds one class only.
///
/// # Errors
/// As [`auc::pair_counts`], naming the row of several; [`Error::Range`] for 2^32 scores or more, or when a class is empty.
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
    if u32::try_from(n).is_err() {
        return Err(Error::Range(format!("labels has {n} entries: at most 2**32 - 1 can be resampled")));
    }
    let mut n_pos = 0;
    for (row, scores) in scores.chunks_exact(n.max(1)).enumerate() {
        let [n_neg, positives] =
            auc::check(scores, labels).map_err(|error| if k > 1 { auc::in_row(row, error) } else { error })?;
        if n_neg == 0 || positives == 0 {
            return Err(Error::Range("labels hold one class only: there is no AUC to resample".to_owned()));
        }
        n_pos = positives as usize;
    }
    let rows = memory::collect(0..k, "the list of models")?;
    let models = parallel::map(rows, scores.len() >= STEP, interrupt, |row| {
        Model::new(&scores[row * n..(row + 1) * n], labels, n_pos, interrupt)
    })?;
    let mut values = sort::filled(f64::NAN, n_replicates.saturating_mul(k), "the replicates", interrupt)?;
    let block = (STEP / n.max(1)).max(1);
    let cuts = parallel::cuts(n_replicates, block, |replicate| replicate * k)?;
    parallel::fill(&mut values, &cuts, n.saturating_mul(n_replicates) >= STEP, interrupt, |i, values| {
        let mut times = memory::filled(0u8, n + 1, "the resample")?;
        let mut sums = memory::filled(0u32, n - n_pos + 1, "the resample")?;
        for (replicate, values) in (i * block..).zip(values.chunks_mut(k.max(1))) {
            times.fill(0);
            let integers =
                |purpose: usize, n: usize| Integers::new(seed, replicate as u64, PURPOSES[purpose], n as u32);
            match resample {
                Resample::Plain => draw(integers(0, n), &mut times, interrupt)?,
                Resample::Stratified => {
                    draw(integers(1, n_pos), &mut times[..=n_pos], interrupt)?;
                    draw(integers(2, n - n_pos), &mut times[n_pos..], interrupt)?;
                }
            }
            let (pos, neg) = times[..n].split_at(n_pos);
            let n_pos_drawn = pos.iter().map(|&times| u32::from(times)).sum::<u32>().into();
            for (value, model) in values.iter_mut().zip(&models) {
                let doubled_u = model.doubled_u(pos, neg, &mut sums, interrupt)?.into();
                *value = PairCounts { doubled_u, n_pos: n_pos_drawn, n_neg: n as u64 - n_pos_drawn }.auc();
            }
        }
        Ok(())
    })?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn drawn(seed: u64, n: usize, levels: u32) -> (Vec<f64>, Vec<bool>) {
        let mut draw = Stream::new(seed, 0, 0);
        let scores = (0..n).map(|_| f64::from(draw.below(levels))).collect();
        (scores, (0..n).map(|i| if i < 2 { i == 0 } else { draw.below(3) == 0 }).collect())
    }

    /// The resample written out, score by score.
    fn resampled(scores: &[f64], labels: &[bool], resample: Resample, seed: u64, replicate: u64) -> f64 {
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
                    let want = [&a, &b].map(|s| resampled(s, &labels, resample, 9, replicate as u64));
                    assert_eq!([pair[0].to_bits(), pair[1].to_bits()], want.map(f64::to_bits), "{n} {resample:?}");
                }
            }
        }
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
        assert_eq!(interrupted, Err(Error::Interrupted));
        assert!(replicates(&[1.0, 2.0], &[true, false], 0, Resample::Stratified, 0, &never).unwrap().is_empty());
    }
}
