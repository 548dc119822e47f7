//! A sort that answers an interrupt: values go into bins between cuts from a sample, and then each bin is sorted.

use std::mem::take;

use crate::each::each;
use crate::error::Result;
use crate::memory;
use crate::parallel::{self, Interrupt};

/// Up to this many values are sorted at once.
const AT_ONCE: usize = 1 << 14;
const BINS: usize = 256;
/// Comparisons that find a bin.
const HALVINGS: usize = BINS.ilog2() as usize;
const SAMPLES_PER_BIN: usize = 16;
/// Values that go into bins between two looks for an interrupt.
const STEP: usize = 1 << 16;
/// What is sorted.
const WHAT: &str = "the sorted scores";

/// `value`, `n` times, with looks for an interrupt: the first touch of memory takes its time.
pub(crate) fn filled<T: Clone>(value: T, n: usize, what: &str, interrupt: &Interrupt) -> Result<Vec<T>> {
    let mut values = memory::room(n, what)?;
    while values.len() < n {
        interrupt.check()?;
        values.resize(n.min(values.len() + (1 << 22)), value.clone());
    }
    Ok(values)
}

/// Values that cut `values` into bins of about equal size, ascending and distinct.
fn cuts<K: Ord + Copy>(values: &[K]) -> Vec<K> {
    let stride = values.len() / (BINS * SAMPLES_PER_BIN);
    // At odd steps within each stride: input with a period must not hide from the sample.
    let at = |i: usize| i * stride + i.wrapping_mul(0x9E37_79B9_7F4A_7C15 >> 16) % stride;
    let mut sample: Vec<K> = (0..BINS * SAMPLES_PER_BIN).map(|i| values[at(i)]).collect();
    sample.sort_unstable();
    let mut cuts: Vec<K> = (1..BINS).map(|b| sample[b * SAMPLES_PER_BIN]).collect();
    cuts.dedup();
    cuts
}

/// The values, sorted.
pub(crate) fn sorted<K>(mut values: Vec<K>, interrupt: &Interrupt) -> Result<Vec<K>>
where
    K: Ord + Copy + Default + Send + Sync,
{
    interrupt.check()?;
    if values.len() <= AT_ONCE {
        values.sort_unstable();
        return Ok(values);
    }
    let cuts = cuts(&values);
    // Branch-free search in a table padded to a power of two; the last cut stands in for the missing ones, and the
    // index is clamped, since a value at or above the last cut would count the padding too.
    let mut table = [cuts[cuts.len() - 1]; BINS - 1];
    table[..cuts.len()].copy_from_slice(&cuts);
    let bin = |value: K| {
        let mut base = 0;
        each!(step < HALVINGS => {
            let half = BINS >> (step + 1);
            base += if table[base + half - 1] <= value { half } else { 0 };
        });
        base.min(cuts.len())
    };
    let mut bins = memory::room(values.len(), WHAT)?;
    let mut starts = [0usize; BINS + 1];
    for values in values.chunks(STEP) {
        interrupt.check()?;
        for &value in values {
            let bin = bin(value);
            bins.push(bin as u8);
            starts[bin + 1] += 1;
        }
    }
    for b in 0..BINS {
        starts[b + 1] += starts[b];
    }
    let mut sorted = filled(K::default(), values.len(), WHAT, interrupt)?;
    let mut slots = Vec::with_capacity(BINS);
    let mut rest = &mut sorted[..];
    for b in 0..BINS {
        let (piece, tail) = take(&mut rest).split_at_mut(starts[b + 1] - starts[b]);
        slots.push(piece.iter_mut());
        rest = tail;
    }
    for (values, bins) in values.chunks(STEP).zip(bins.chunks(STEP)) {
        interrupt.check()?;
        for (&value, &bin) in values.iter().zip(bins) {
            if let Some(slot) = slots[usize::from(bin)].next() {
                *slot = value;
            }
        }
    }
    drop(slots);
    drop((values, bins));
    parallel::fill(&mut sorted, &starts, true, interrupt, |_, bin| {
        bin.sort_unstable();
        Ok(())
    })?;
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::rng::Stream;

    #[test]
    fn sorts_as_the_standard_library() {
        let mut draw = Stream::new(1, 0, 0);
        for n in [0, 1, 2, AT_ONCE, AT_ONCE + 1, 100_000] {
            for levels in [1, 2, 300, u32::MAX] {
                let values: Vec<u64> = (0..n).map(|_| u64::from(draw.below(levels)) << 20).collect();
                let mut want = values.clone();
                want.sort_unstable();
                assert_eq!(sorted(values, &Interrupt::default()).unwrap(), want);
            }
        }
        let periodic: Vec<u32> = (0..200_000).map(|i| i % 16).collect();
        assert!(sorted(periodic, &Interrupt::default()).unwrap().is_sorted());
    }

    #[test]
    fn answers_an_interrupt() {
        let stop = Interrupt::default();
        stop.raise();
        assert_eq!(sorted(vec![1; 10], &stop), Err(Error::interrupted()));
        assert_eq!(filled(1, 10, "x", &stop), Err(Error::interrupted()));
    }
}
