//! Error sets: the samples on which models err, one bit a sample, and those samples that tell sets apart.
//!
//! [`ErrorSets`] holds one bit a sample. [`Columns`] picks the samples that are in some sets and not in all. Weights are
//! taken apart into binary digits: the samples with the digit 2^k make up a range of words of their own, whose counts are
//! shifted by k.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::each::each;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, Simd, WordKernel, dispatch_narrow, dispatch_words};

/// Sets side by side, one a lane.
pub(crate) const LANES: usize = 8;
/// Samples of a word.
const WORD: usize = 64;
/// Words of all sets from which threads pay: a word takes some ten nanoseconds.
const LARGE: usize = 1 << 16;
/// Words between two looks for an interrupt.
const CHUNK: usize = 128;
const BITS: &str = "the bits of the error sets";

/// One word of each of `LANES` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Lanes(pub(crate) [u64; LANES]);

/// A value that says whether a model errs on a sample.
pub trait Flag: Copy + Send + Sync + std::fmt::Display {
    /// True for one, false for zero, nothing for any other value.
    fn flag(self) -> Option<bool>;
    /// Whether the value is not a number.
    fn is_nan(self) -> bool {
        false
    }
    /// Up to 64 flags as bits, the first one lowest, and whether all were zeros and ones.
    #[inline]
    fn word(flags: &[Self]) -> (u64, bool) {
        flags.iter().enumerate().fold((0, true), |(word, valid), (i, flag)| {
            let flag = flag.flag();
            (word | u64::from(flag == Some(true)) << i, valid & flag.is_some())
        })
    }
}

macro_rules! flag {
    ($zero:expr, $one:expr, $($number:ty),+) => {$(
        impl Flag for $number {
            #[inline]
            #[allow(clippy::float_cmp)]
            fn flag(self) -> Option<bool> {
                if self == $one { Some(true) } else if self == $zero { Some(false) } else { None }
            }
            #[allow(clippy::eq_op)]
            fn is_nan(self) -> bool {
                self != self
            }
        }
    )+};
}
flag!(0, 1, i64, u64);
flag!(0.0, 1.0, f32, f64);

impl Flag for u8 {
    #[inline]
    fn flag(self) -> Option<bool> {
        if self < 2 { Some(self == 1) } else { None }
    }

    #[inline]
    fn word(flags: &[Self]) -> (u64, bool) {
        let (mut word, mut seen, mut shift) = (0, 0, 0);
        let (eights, rest) = flags.as_chunks::<8>();
        for &eight in eights {
            let bytes = u64::from_le_bytes(eight);
            seen |= bytes;
            // The product brings the lowest bit of byte i to bit 56 + i, and nothing carries into them.
            word |= ((bytes & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56) << shift;
            shift += 8;
        }
        for &flag in rest {
            seen |= u64::from(flag);
            word |= u64::from(flag & 1) << shift;
            shift += 1;
        }
        (word, seen & !0x0101_0101_0101_0101 == 0)
    }
}

/// Puts the words of a set from one on into a lane.
type Put<'a> = dyn Fn(usize, usize, usize, &mut [Lanes]) + Sync + 'a;

/// The same from what gives a word of a set.
fn each_word(word: impl Fn(usize, usize) -> u64 + Sync) -> impl Fn(usize, usize, usize, &mut [Lanes]) + Sync {
    move |set, first, lane, out| {
        for (i, out) in out.iter_mut().enumerate() {
            out.0[lane] = word(set, first + i);
        }
    }
}

/// Error sets, one bit a sample: sets in groups of `LANES`, word after word; the last group is filled with empty sets.
#[derive(Debug)]
pub struct ErrorSets {
    pub(crate) bits: Vec<Lanes>,
    n_sets: usize,
    n_samples: usize,
}

impl ErrorSets {
    /// Error sets from flags, row-major: one row a set.
    ///
    /// # Errors
    /// [`Error`] when a value is neither 0 nor 1, there are 2^32 samples or more, or memory runs out;
    /// [`Error::interrupted`].
    pub fn new<T: Flag>(flags: &[T], n_sets: usize, n_samples: usize, interrupt: &Interrupt) -> Result<Self> {
        let invalid = AtomicBool::new(false);
        let put = each_word(|set, word| {
            let row = &flags[set * n_samples..(set + 1) * n_samples];
            let (bits, valid) = T::word(&row[word * WORD..row.len().min((word + 1) * WORD)]);
            if !valid {
                invalid.store(true, Ordering::Relaxed);
            }
            bits
        });
        let sets = Self::fill(n_sets, n_samples, interrupt, &put)?;
        drop(put);
        if !invalid.into_inner() {
            return Ok(sets);
        }
        let i = flags.iter().position(|flag| flag.flag().is_none()).unwrap_or(0); // there is one
        let position = format_args!("[{}, {}]", i / n_samples, i % n_samples);
        Err(if flags[i].is_nan() {
            Error::not_finite("error_sets", position, f64::NAN)
        } else {
            Error::range(format_args!(
                "error_sets{position} is {}: pass 1 or True where the model errs and 0 or False elsewhere \
                 (with n_samples, eight samples a byte)",
                flags[i]
            ))
        })
    }

    /// Error sets from bytes of eight samples each, the first sample in the highest bit, as numpy packs them.
    ///
    /// # Errors
    /// [`Error`] when a bit behind the last sample is set, there are 2^32 samples or more, or memory runs out;
    /// [`Error::interrupted`].
    pub fn from_packed(bytes: &[u8], n_sets: usize, n_samples: usize, interrupt: &Interrupt) -> Result<Self> {
        let width = n_samples.div_ceil(8);
        if !n_samples.is_multiple_of(8)
            && let Some(set) = bytes.chunks_exact(width).position(|row| row[width - 1] << (n_samples % 8) != 0)
        {
            return Err(Error::range(format_args!(
                "error_sets[{set}, {}] has bits set behind sample {n_samples}: n_samples does not go with these bytes, \
                 or they were packed with bitorder='little'",
                width - 1
            )));
        }
        let put = each_word(|set, word| {
            let row = &bytes[set * width..(set + 1) * width];
            let mut eight = [0; 8];
            let part = &row[word * 8..width.min(word * 8 + 8)];
            eight[..part.len()].copy_from_slice(part);
            u64::from_be_bytes(eight).reverse_bits()
        });
        Self::fill(n_sets, n_samples, interrupt, &put)
    }

    /// Error sets whose words a function knows.
    fn fill(n_sets: usize, n_samples: usize, interrupt: &Interrupt, put: &Put<'_>) -> Result<Self> {
        if n_samples > u32::MAX as usize {
            return Err(Error::range(format_args!("error_sets must have less than 2**32 samples; got {n_samples}")));
        }
        let words = n_samples.div_ceil(WORD);
        let groups = n_sets.div_ceil(LANES);
        let mut bits = memory::many(&Lanes::default(), groups.saturating_mul(words), BITS, interrupt)?;
        let cuts = parallel::cuts(groups, 1, |group| group * words)?;
        parallel::fill(&mut bits, &cuts, groups * words * LANES > LARGE, interrupt, |group, out| {
            let sets = group * LANES..n_sets.min((group + 1) * LANES);
            for (first, out) in (0..words).step_by(CHUNK).zip(out.chunks_mut(CHUNK)) {
                interrupt.check()?;
                for (lane, set) in sets.clone().enumerate() {
                    put(set, first, lane, out);
                }
            }
            Ok(())
        })?;
        Ok(Self { bits, n_sets, n_samples })
    }

    /// Number of sets.
    #[must_use]
    pub fn n_sets(&self) -> usize {
        self.n_sets
    }

    /// Number of samples.
    #[must_use]
    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    fn words(&self) -> usize {
        self.n_samples.div_ceil(WORD)
    }

    /// How many of the sets hold each sample.
    ///
    /// # Errors
    /// [`Error::memory`] or [`Error::interrupted`].
    pub fn sample_counts(&self, interrupt: &Interrupt) -> Result<Vec<u32>> {
        let words = self.words();
        let mut counts = memory::filled(0, words * WORD, "the counts of the samples")?;
        let step = 8;
        let cuts = parallel::cuts(words, step, |word| word * WORD)?;
        parallel::fill(&mut counts, &cuts, self.bits.len() * LANES > LARGE, interrupt, |task, counts| {
            let first = task * step;
            for (i, panels) in self.bits.chunks_exact(words).enumerate() {
                if i % 1024 == 0 {
                    interrupt.check()?;
                }
                dispatch_narrow(SampleCounts { panels: &panels[first..first + counts.len() / WORD], counts });
            }
            Ok(())
        })?;
        counts.truncate(self.n_samples);
        Ok(counts)
    }

    /// The samples that tell pairs of sets apart, with their weights (1 each without).
    ///
    /// # Errors
    /// [`Error::range`] when there is not one weight a sample; [`Error::memory`] or [`Error::interrupted`].
    pub fn columns(self, weights: Option<&[u32]>, interrupt: &Interrupt) -> Result<Columns> {
        if let Some(weights) = weights
            && weights.len() != self.n_samples
        {
            return Err(Error::range(format_args!(
                "sample_weight must have one entry a sample, {}; got {}",
                self.n_samples,
                weights.len()
            )));
        }
        let words = self.words();
        // Samples in every set add the same to all counts, samples in no set nothing: only the others are compared.
        let mut seen = memory::filled(AnyAll::START, words, BITS)?;
        let step = 32;
        let cuts = parallel::cuts(words, step, |word| word)?;
        parallel::fill(&mut seen, &cuts, self.bits.len() * LANES > LARGE, interrupt, |task, seen| {
            for (group, panel) in self.bits.chunks_exact(words).enumerate() {
                if group % 1024 == 0 {
                    interrupt.check()?;
                }
                let filler = LANES - LANES.min(self.n_sets - group * LANES);
                dispatch_narrow(AnyAll { panel: &panel[task * step..][..seen.len()], filler, seen });
            }
            Ok(())
        })?;
        let weight = |sample: usize| weights.map_or(1, |weights| u64::from(weights[sample]));
        let mut always = 0;
        for (word, &[_, all]) in seen.iter().enumerate() {
            let mut rest = if self.n_sets == 0 { 0 } else { all };
            while rest != 0 {
                always += weight(word * WORD + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
        let total = weights.map_or(self.n_samples as u64, |weights| weights.iter().map(|&w| u64::from(w)).sum());
        let digits = weights.map_or(1, |weights| 32 - weights.iter().fold(0, |seen, &w| seen | w).leading_zeros());
        let mut kept = memory::room(digits as usize, "the digits of the weights")?;
        for digit in 0..digits {
            let mut mask = memory::room(words, BITS)?;
            for (word, &[any, all]) in seen.iter().enumerate() {
                let heavy = weights.map_or(u64::MAX, |weights| {
                    let weights = &weights[word * WORD..weights.len().min((word + 1) * WORD)];
                    weights.iter().enumerate().fold(0, |bits, (i, w)| bits | u64::from(w >> digit & 1) << i)
                });
                mask.push(any & !all & heavy);
            }
            kept.push(mask);
        }
        let Self { bits, n_sets, .. } = self;
        Columns { bits, words, n_sets, digits: Vec::new(), sizes: Vec::new(), always, total }.keep(&kept, interrupt)
    }
}

/// Adds a sample's bit in each of some sets to its count.
struct SampleCounts<'a> {
    panels: &'a [Lanes],
    counts: &'a mut [u32],
}

impl Kernel for SampleCounts<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (words, counts) in self.panels.iter().zip(self.counts.chunks_exact_mut(WORD)) {
            // Eight counters of a byte in each of eight words: no sum of eight bits overflows them.
            let mut bytes = [0u64; 8];
            for &word in &words.0 {
                for i in 0..8 {
                    bytes[i] += word >> i & 0x0101_0101_0101_0101;
                }
            }
            for i in 0..8 {
                for j in 0..8 {
                    counts[8 * j + i] += (bytes[i] >> (8 * j) & 0xff) as u32;
                }
            }
        }
    }
}

/// Which samples are in any and in all sets of some panels; lanes of the last panel that hold no set are left out.
struct AnyAll<'a> {
    panel: &'a [Lanes],
    filler: usize,
    /// Samples in any set, and those in all.
    seen: &'a mut [[u64; 2]],
}

impl AnyAll<'_> {
    const START: [u64; 2] = [0, u64::MAX];
}

impl Kernel for AnyAll<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut filler = [0; LANES];
        filler[LANES - self.filler..].fill(u64::MAX);
        for (words, [any, all]) in self.panel.iter().zip(self.seen) {
            let (mut or, mut and) = (0, u64::MAX);
            for lane in 0..LANES {
                or |= words.0[lane];
                and &= words.0[lane] | filler[lane];
            }
            *any |= or;
            *all &= and;
        }
    }
}

/// Moves that bring any bits of a word together.
const MOVES: usize = 6;

/// How the bits of a word move together that a mask keeps (Warren, Hacker's Delight, 2nd edition, section 7-4).
#[derive(Clone, Copy, Debug)]
struct Squeeze {
    mask: u64,
    /// Bits that move down by 1, 2, 4, ... places.
    moves: [u64; MOVES],
}

impl Squeeze {
    fn new(mask: u64) -> Self {
        let (mut rest, mut zeros, mut moves) = (mask, !mask << 1, [0; MOVES]);
        for (i, bits) in moves.iter_mut().enumerate() {
            let mut parity = zeros;
            for shift in [1, 2, 4, 8, 16, 32] {
                parity ^= parity << shift;
            }
            *bits = parity & rest;
            rest = (rest ^ *bits) | (*bits >> (1 << i));
            zeros &= !parity;
        }
        Self { mask, moves }
    }
}

/// The kept bits of a panel, moved together and written one behind the other.
struct SqueezePanel<'a> {
    panel: &'a [Lanes],
    squeezes: &'a [Squeeze],
    out: &'a mut [Lanes],
}

impl WordKernel for SqueezePanel<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for lane in (0..LANES).step_by(S::WIDTH) {
            let (mut pending, mut filled, mut next) = (simd.splat(0), 0, 0);
            for (words, squeeze) in self.panel.iter().zip(self.squeezes) {
                let mut x = simd.and(simd.load(&words.0[lane..]), simd.splat(squeeze.mask));
                each!(step < MOVES => {
                    let moved = simd.and(x, simd.splat(squeeze.moves[step]));
                    x = simd.or(simd.xor(x, moved), simd.down(moved, 1 << step));
                });
                pending = simd.or(pending, simd.up(x, filled));
                let more = filled + squeeze.mask.count_ones();
                if more >= u64::BITS {
                    simd.store(pending, &mut self.out[next].0[lane..]);
                    next += 1;
                    pending = simd.down(x, u64::BITS - filled);
                }
                filled = more % u64::BITS;
            }
            if filled > 0 {
                simd.store(pending, &mut self.out[next].0[lane..]);
            }
        }
    }
}

/// Adds the number of bits of each lane, shifted.
struct Sizes<'a> {
    panel: &'a [Lanes],
    shift: usize,
    out: &'a mut [u64; LANES],
}

impl Kernel for Sizes<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut ones = [0; LANES];
        for words in self.panel {
            for lane in 0..LANES {
                ones[lane] += u64::from(words.0[lane].count_ones());
            }
        }
        for lane in 0..LANES {
            self.out[lane] += ones[lane] << self.shift;
        }
    }
}

/// What is compared of error sets: the samples that are in some and not in all of them, by the digits of their weights.
#[derive(Debug)]
pub struct Columns {
    pub(crate) bits: Vec<Lanes>,
    /// Words of a set.
    pub(crate) words: usize,
    pub(crate) n_sets: usize,
    /// Words of each binary digit of the weights.
    pub(crate) digits: Vec<Range<usize>>,
    /// Weight of each set.
    pub(crate) sizes: Vec<u64>,
    /// Weight of the samples in every set.
    pub(crate) always: u64,
    /// Weight of all samples.
    pub(crate) total: u64,
}

impl Columns {
    /// Only the samples of a mask, for each digit of the weights.
    fn keep(mut self, kept: &[Vec<u64>], interrupt: &Interrupt) -> Result<Self> {
        let mut words = 0;
        self.digits = memory::room(kept.len(), "the digits of the weights")?;
        for mask in kept {
            let n: u64 = mask.iter().map(|word| u64::from(word.count_ones())).sum();
            let end = words + (n as usize).div_ceil(WORD);
            self.digits.push(words..end);
            words = end;
        }
        let mut squeezes = memory::room(kept.len(), BITS)?;
        for mask in kept {
            squeezes.push(memory::collect(mask.iter().map(|&mask| Squeeze::new(mask)), BITS)?);
        }
        let (before, groups) = (self.words, self.n_sets.div_ceil(LANES));
        let squeeze = |whole: &[Lanes], panel: &mut [Lanes]| {
            let mut sizes = [self.always; LANES];
            for (shift, (squeezes, digit)) in squeezes.iter().zip(&self.digits).enumerate() {
                let out = &mut panel[digit.clone()];
                dispatch_words(SqueezePanel { panel: whole, squeezes, out });
                dispatch_narrow(Sizes { panel: out, shift, out: &mut sizes });
            }
            sizes
        };
        let large = groups * before * LANES > LARGE;
        let sizes = if words > before {
            // only weights of several digits can need more room
            let mut wider = memory::many(&Lanes::default(), groups.saturating_mul(words), BITS, interrupt)?;
            let panels = wider.chunks_exact_mut(words).zip(self.bits.chunks_exact(before.max(1)));
            let sizes =
                parallel::map(memory::collect(panels, BITS)?, large, interrupt, |(to, from)| Ok(squeeze(from, to)))?;
            self.bits = wider;
            sizes
        } else {
            // a shorter panel takes the place of those before it
            let panels = memory::collect(self.bits.chunks_exact_mut(before.max(1)), BITS)?;
            let sizes = parallel::map(panels, large, interrupt, |whole| {
                let mut panel = memory::filled(Lanes::default(), words, BITS)?;
                let sizes = squeeze(whole, &mut panel);
                whole[..words].copy_from_slice(&panel);
                Ok(sizes)
            })?;
            for group in 1..if words < before { groups } else { 0 } {
                self.bits.copy_within(group * before..group * before + words, group * words);
            }
            self.bits.truncate(groups * words);
            sizes
        };
        self.sizes = memory::room(groups * LANES, "the sizes of the sets")?;
        self.sizes.extend(sizes.into_iter().flatten());
        self.sizes.resize(self.n_sets, self.always); // of sets without samples
        self.words = words;
        Ok(self)
    }

    /// Number of sets.
    #[must_use]
    pub fn n_sets(&self) -> usize {
        self.n_sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::words_on_every_level;

    /// The bits of a word that one mask keeps, and behind them those that another one keeps.
    #[derive(Clone)]
    struct Both([u64; LANES], [Squeeze; 2]);
    impl WordKernel for Both {
        type Output = Lanes;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Lanes {
            let mut out = [Lanes::default()];
            SqueezePanel { panel: &[Lanes(self.0); 2], squeezes: &self.1, out: &mut out }.run(simd);
            out[0]
        }
    }

    #[test]
    fn kept_bits_move_together() {
        for mask in [0, 1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001, 0x0f0f_3333_5555_1234] {
            let word = 0x1234_5678_9abc_def1_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let squeezes = [Squeeze::new(mask), Squeeze::new(!mask)];
            let found = words_on_every_level(&Both([word; LANES], squeezes));
            let order = (0..64).filter(|i| mask >> i & 1 == 1).chain((0..64).filter(|i| mask >> i & 1 == 0));
            let want = order.enumerate().fold(0, |bits, (to, from)| bits | (word >> from & 1) << to);
            assert!(found.iter().all(|out| out.0 == [want; LANES]), "{mask:x}");
        }
    }
}
