//! Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011).
//!
//! A number is a pure function of (seed, stream, purpose, position), so streams can be filled in any order, on any
//! number of threads. Normals use + - * / and the square root alone, which IEEE 754 fixes to the last bit: the same
//! seed gives the same bits on every processor and dispatch path.

use crate::error::Result;
use crate::parallel::Interrupt;
use crate::simd::{Kernel, dispatch};

const LANES: usize = 16;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
/// Normals made at once.
pub const TILE: usize = 4 * LANES;

fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

#[inline(always)]
fn round(x: [u32; 4], k: [u32; 2]) -> [u32; 4] {
    let a = u64::from(x[0]) * u64::from(MULTIPLIERS[0]);
    let b = u64::from(x[2]) * u64::from(MULTIPLIERS[1]);
    [(b >> 32) as u32 ^ x[1] ^ k[0], b as u32, (a >> 32) as u32 ^ x[3] ^ k[1], a as u32]
}

#[inline(always)]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        counter = round(counter, key);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// The words of [`LANES`] counters from one on.
///
/// All is kept in the lower half of 64 bits, whatever the upper half holds: so a product is one instruction for each
/// vector, and nothing moves from lane to lane between the rounds.
#[inline(always)]
fn words(counter: [u32; 4], key: [u32; 2]) -> [[u32; LANES]; 4] {
    let mut words = [[0; LANES]; 4];
    for lane in 0..LANES {
        let mut x = [counter[0].wrapping_add(lane as u32), counter[1], counter[2], counter[3]].map(u64::from);
        let mut key = key;
        for _ in 0..10 {
            let a = u64::from(x[0] as u32) * u64::from(MULTIPLIERS[0]);
            let b = u64::from(x[2] as u32) * u64::from(MULTIPLIERS[1]);
            x = [(b >> 32) ^ x[1] ^ u64::from(key[0]), b, (a >> 32) ^ x[3] ^ u64::from(key[1]), a];
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        for i in 0..4 {
            words[i][lane] = x[i] as u32;
        }
    }
    words
}

/// A stream of random words.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    counter: [u32; 4],
    words: [u32; 4],
    used: usize,
}

impl Stream {
    /// The stream of that number and purpose under a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64, purpose: u32) -> Self {
        let counter = [0, purpose, stream as u32, (stream >> 32) as u32];
        Self { key: key(seed), counter, words: [0; 4], used: 4 }
    }

    /// The next word.
    pub fn word(&mut self) -> u32 {
        if self.used == 4 {
            self.words = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    /// An unbiased integer in 0..n (Lemire 2019); 0 when n is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        if n == 0 {
            return 0;
        }
        let mut product = u64::from(self.word()) * u64::from(n);
        if (product as u32) < n {
            let rejected = n.wrapping_neg() % n;
            while (product as u32) < rejected {
                product = u64::from(self.word()) * u64::from(n);
            }
        }
        (product >> 32) as u32
    }

    /// An integer in 0..n for n beyond 32 bits, unbiased as far as 64 random bits allow.
    fn below_long(&mut self, n: u64) -> u64 {
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        ((u128::from(bits) * u128::from(n)) >> 64) as u64
    }

    /// An integer in low..=high.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        match (high - low).checked_add(1) {
            Some(n) => low + self.below(n),
            None => self.word(),
        }
    }

    /// A number in [0, 1) with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        (bits >> 11) as f64 * (1.0 / 9007199254740992.0)
    }

    /// Shuffle in place (Fisher-Yates).
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::error::Error::Interrupted).
    pub fn shuffle<T>(&mut self, items: &mut [T], interrupt: &Interrupt) -> Result<()> {
        for i in (1..items.len()).rev() {
            if i.is_multiple_of(1 << 18) {
                interrupt.check()?;
            }
            let j = match u32::try_from(i + 1) {
                Ok(n) => self.below(n) as usize,
                Err(_) => self.below_long(i as u64 + 1) as usize,
            };
            items.swap(i, j);
        }
        Ok(())
    }
}

/// u as a float, through the bits: vectorises everywhere.
#[inline(always)]
fn exact(u: u32) -> f64 {
    f64::from_bits(0x4330_0000_0000_0000 | u64::from(u)) - 4503599627370496.0
}

/// ln of (u + 1/2) / 2^32.
#[inline(always)]
fn ln_unit(u: u32) -> f64 {
    let x = (exact(u) + 0.5) * (1.0 / 4294967296.0);
    let bits = x.to_bits();
    let exponent = exact((bits >> 52) as u32) - 1023.0;
    let mantissa = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
    let big = mantissa > std::f64::consts::SQRT_2;
    let m = if big { mantissa * 0.5 } else { mantissa };
    let e = if big { exponent + 1.0 } else { exponent };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let odd = 1.0 / 3.0
        + z * (1.0 / 5.0
            + z * (1.0 / 7.0
                + z * (1.0 / 9.0 + z * (1.0 / 11.0 + z * (1.0 / 13.0 + z * (1.0 / 15.0 + z * (1.0 / 17.0)))))));
    e * std::f64::consts::LN_2 + 2.0 * (s + s * z * odd)
}

/// Two independent normals from two words (Box & Muller 1958).
#[inline(always)]
fn normal_pair(u: u32, v: u32) -> (f64, f64) {
    let radius = (-2.0 * ln_unit(u)).sqrt();
    // two bits choose the quadrant, thirty the angle inside (-pi/4, pi/4)
    let angle = (exact(v >> 2) + (0.5 - 536870912.0)) * (std::f64::consts::FRAC_PI_2 / 1073741824.0);
    let z = angle * angle;
    let sin = angle
        + angle
            * z
            * (-1.0 / 6.0
                + z * (1.0 / 120.0
                    + z * (-1.0 / 5040.0 + z * (1.0 / 362880.0 + z * (-1.0 / 39916800.0 + z * (1.0 / 6227020800.0))))));
    let cos = 1.0
        + z * (-0.5
            + z * (1.0 / 24.0
                + z * (-1.0 / 720.0
                    + z * (1.0 / 40320.0
                        + z * (-1.0 / 3628800.0 + z * (1.0 / 479001600.0 + z * (-1.0 / 87178291200.0)))))));
    let (a, b) = if v & 1 == 0 { (cos, sin) } else { (sin, -cos) };
    let sign = if v & 2 == 0 { radius } else { -radius };
    (sign * a, sign * b)
}

struct Normals<'a> {
    key: [u32; 2],
    counter: [u32; 4],
    out: &'a mut [f64],
}

impl Kernel for Normals<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut block = self.counter[0];
        for tile in self.out.chunks_mut(TILE) {
            let words = words([block, self.counter[1], self.counter[2], self.counter[3]], self.key);
            block = block.wrapping_add(LANES as u32);
            let mut normals = [0.0; TILE];
            for half in 0..2 {
                for lane in 0..LANES {
                    let (a, b) = normal_pair(words[2 * half][lane], words[2 * half + 1][lane]);
                    normals[2 * half * LANES + lane] = a;
                    normals[(2 * half + 1) * LANES + lane] = b;
                }
            }
            tile.copy_from_slice(&normals[..tile.len()]);
        }
    }
}

/// Fill `out` with the independent N(0, 1) of a stream from its tile `first_tile` on; a tile has [`TILE`] of them.
pub fn fill_normals(seed: u64, stream: u64, purpose: u32, first_tile: usize, out: &mut [f64]) {
    let first = (first_tile as u32).wrapping_mul(LANES as u32);
    let counter = [first, purpose, stream as u32, (stream >> 32) as u32];
    dispatch(Normals { key: key(seed), counter, out });
}

/// Up to this bound two integers come out of one word, and less than one word in sixteen is rejected.
const MOST_PAIRED: u32 = 1 << 14;

struct Below<'a, const PAIRED: bool> {
    key: [u32; 2],
    counter: [u32; 4],
    n: u32,
    out: &'a mut [u32],
}

impl<const PAIRED: bool> Kernel for Below<'_, PAIRED> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let n = self.n;
        // What is left of a word must not be less, or some numbers would come up more often than others.
        let least = if PAIRED { (n * n).wrapping_neg() % (n * n) } else { n.wrapping_neg() % n };
        let (mut block, mut rejected) = (self.counter[0], 0);
        for tile in self.out.chunks_mut(if PAIRED { 2 * TILE } else { TILE }) {
            let words = words([block, self.counter[1], self.counter[2], self.counter[3]], self.key);
            let words = words.as_flattened();
            let (mut first, mut second, mut rejects) = ([0; TILE], [0; TILE], 0);
            for ((first, second), &word) in first.iter_mut().zip(&mut second).zip(words) {
                let mut product = u64::from(word) * u64::from(n);
                *first = (product >> 32) as u32;
                if PAIRED {
                    product = u64::from(product as u32) * u64::from(n);
                    *second = (product >> 32) as u32;
                }
                let reject = (product as u32) < least;
                *first = if reject { n } else { *first };
                *second = if reject { n } else { *second };
                rejects += u32::from(reject);
            }
            block = block.wrapping_add(LANES as u32);
            if let ([to_first, to_second @ ..], []) = tile.as_chunks_mut::<TILE>()
                && to_second.len() == usize::from(PAIRED)
            {
                *to_first = first;
                to_second.fill(second);
                rejected += if PAIRED { 2 * rejects as usize } else { rejects as usize };
            } else {
                for (to, &number) in tile.iter_mut().zip(first.iter().chain(&second)) {
                    *to = number;
                    rejected += usize::from(number == n);
                }
            }
        }
        rejected
    }
}

/// Independent unbiased integers (Lemire 2019), many at once; two from a word where that pays (Brackett-Rozinsky &
/// Lemire 2024).
#[derive(Clone, Debug)]
pub struct Integers {
    key: [u32; 2],
    counter: [u32; 4],
    n: u32,
}

impl Integers {
    /// Integers in 0..n, n not 0, of the stream of that number and purpose under a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64, purpose: u32, n: u32) -> Self {
        let counter = [0, purpose, stream as u32, (stream >> 32) as u32];
        Self { key: key(seed), counter, n: n.max(1) }
    }

    /// Fill `out` and tell how many draws were rejected: they stand there as n, and count for nothing.
    ///
    /// What is left of the last `2 * TILE` is lost.
    pub fn fill(&mut self, out: &mut [u32]) -> usize {
        let (key, counter, n, paired) = (self.key, self.counter, self.n, self.n <= MOST_PAIRED);
        let tiles = out.len().div_ceil(if paired { 2 * TILE } else { TILE });
        self.counter[0] = self.counter[0].wrapping_add((tiles * LANES) as u32);
        if paired {
            dispatch(Below::<true> { key, counter, n, out })
        } else {
            dispatch(Below::<false> { key, counter, n, out })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::on_every_level;

    /// First vectors of the known-answer file that Random123 1.09 ships for philox4x32 with 10 rounds.
    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let pi = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344];
        assert_eq!(philox(pi, [0xa4093822, 0x299f31d0]), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }

    #[test]
    fn logarithm_and_angle_agree_with_the_standard_library() {
        let mut draw = Stream::new(1, 0, 0);
        for i in 0..100_000u32 {
            let u = if i < 1000 { i } else { draw.word() };
            let want = ((f64::from(u) + 0.5) / 4294967296.0).ln();
            assert!((ln_unit(u) - want).abs() <= 1e-15 + 2e-15 * want.abs(), "{u}: {} {want}", ln_unit(u));
            let v = draw.word();
            let (a, b) = normal_pair(u, v);
            assert!(((a * a + b * b) / (-2.0 * want) - 1.0).abs() < 1e-13);
        }
    }

    #[derive(Clone)]
    struct Twice(usize);
    impl Kernel for Twice {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run(self) -> Vec<u64> {
            let mut out = vec![0.0f64; self.0];
            Normals { key: key(5), counter: [0, 1, 2, 3], out: &mut out }.run();
            out.iter().map(|x| x.to_bits()).collect()
        }
    }

    #[test]
    fn normals_have_the_same_bits_on_every_path() {
        for n in [0, 1, 63, 64, 65, 1000] {
            let all = on_every_level(&Twice(n));
            assert!(all.windows(2).all(|w| w[0] == w[1]));
        }
    }

    #[test]
    fn normals_can_be_made_piece_by_piece() {
        let (mut whole, mut pieces) = (vec![0.0f64; 10 * TILE + 7], vec![0.0f64; 10 * TILE + 7]);
        fill_normals(3, 4, 1, 0, &mut whole);
        for (i, piece) in pieces.chunks_mut(3 * TILE).enumerate() {
            fill_normals(3, 4, 1, 3 * i, piece);
        }
        assert!(whole.iter().zip(&pieces).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[derive(Clone)]
    struct Bounded(u32);
    impl Kernel for Bounded {
        type Output = (usize, Vec<u32>);
        #[inline(always)]
        fn run(self) -> Self::Output {
            let (key, counter, n, mut out) = (key(5), [0, 2, 2, 3], self.0, vec![0; 1000]);
            let rejected = if n <= MOST_PAIRED {
                Below::<true> { key, counter, n, out: &mut out }.run()
            } else {
                Below::<false> { key, counter, n, out: &mut out }.run()
            };
            (rejected, out)
        }
    }

    #[test]
    fn integers_are_below_their_bound_on_every_path() {
        for n in [1, 2, 7, 10_000, 11_585, MOST_PAIRED, MOST_PAIRED + 1, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let all = on_every_level(&Bounded(n));
            assert!(all.windows(2).all(|w| w[0] == w[1]));
            assert_eq!(all[0].0, all[0].1.iter().filter(|&&i| i == n).count());
            let (mut whole, mut pieces) = (vec![0; 1000], vec![0; 1000]);
            let rejected = Integers::new(9, 1, 2, n).fill(&mut whole);
            let mut draws = Integers::new(9, 1, 2, n);
            assert_eq!(pieces.chunks_mut(4 * TILE).map(|piece| draws.fill(piece)).sum::<usize>(), rejected);
            assert!(whole.iter().all(|&i| i <= n));
            assert_eq!(whole, pieces);
        }
        assert!(on_every_level(&Bounded((1 << 31) + 1))[0].0 > 400); // every other word is rejected
    }

    #[test]
    fn integers_are_those_of_the_words() {
        for n in [1u32, 2, 7, 10_000, 11_585, 16_384, 16_385, 3 << 30] {
            let mut found = vec![0; 2 * TILE];
            Integers::new(9, 1, 2, n).fill(&mut found);
            let mut words = Stream::new(9, 1, 2);
            // sixteen blocks of four words: the first words of all come first, then the second ones
            let words: Vec<u64> = (0..TILE).map(|_| words.word().into()).collect();
            for (i, &number) in found[..TILE].iter().enumerate() {
                let (word, n) = (words[i % LANES * 4 + i / LANES], u64::from(n));
                let paired = n <= 16_384;
                let bound = if paired { n * n } else { n };
                let (value, left) = ((word * bound) >> 32, (word * bound) % (1 << 32));
                let rejected = left < (1 << 32) % bound;
                let first = if paired { value / n } else { value };
                assert_eq!(u64::from(number), if rejected { n } else { first });
                if paired {
                    assert_eq!(u64::from(found[TILE + i]), if rejected { n } else { value % n });
                }
            }
        }
    }

    #[test]
    fn integers_are_uniform() {
        for n in [7, 70, 11_585 / 7 * 7, 70_000, 3 << 30] {
            let mut draws = vec![0; 70_000];
            let rejected = Integers::new(1, 2, 0, n).fill(&mut draws);
            let mut counts = [0f64; 7];
            for &i in draws.iter().filter(|&&i| i < n) {
                counts[(u64::from(i) * 7 / u64::from(n)) as usize] += 1.0;
            }
            let expected = (draws.len() - rejected) as f64 / 7.0;
            let chi2: f64 = counts.iter().map(|c| (c - expected).powi(2) / expected).sum();
            assert!(chi2 < 22.5, "{n}: {chi2}"); // the 0.1 % point with 6 degrees of freedom
        }
    }

    #[test]
    fn a_long_shuffle_can_be_interrupted() {
        let stop = Interrupt::default();
        stop.raise();
        assert!(Stream::new(5, 0, 0).shuffle(&mut vec![0u8; 1 << 19], &stop).is_err());
    }

    #[test]
    fn below_long_stays_below() {
        let mut draw = Stream::new(4, 0, 0);
        let n = (1u64 << 33) + 1;
        let draws: Vec<u64> = (0..1000).map(|_| draw.below_long(n)).collect();
        assert!(draws.iter().all(|&i| i < n) && draws.iter().any(|&i| i > n / 8 * 7));
    }

    #[test]
    fn normals_have_the_moments_of_a_normal() {
        let n = 1 << 20;
        let mut x = vec![0.0f64; n];
        fill_normals(11, 0, 1, 0, &mut x);
        let moment = |p: i32| x.iter().map(|v| v.powi(p)).sum::<f64>() / n as f64;
        let error = 5.0 / (n as f64).sqrt();
        assert!(moment(1).abs() < error);
        assert!((moment(2) - 1.0).abs() < 2f64.sqrt() * error);
        assert!(moment(3).abs() < 15f64.sqrt() * error);
        assert!((moment(4) - 3.0).abs() < 96f64.sqrt() * error);
        let neighbours = x.windows(2).map(|w| w[0] * w[1]).sum::<f64>() / n as f64;
        assert!(neighbours.abs() < error);
    }

    #[test]
    fn below_is_uniform() {
        let mut draw = Stream::new(2, 0, 0);
        let mut counts = [0f64; 7];
        for _ in 0..70_000 {
            counts[draw.below(7) as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|c| (c - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 22.5, "{chi2}"); // the 0.1 % point with 6 degrees of freedom
    }
}
