//! Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011).
//!
//! A number is a pure function of (seed, stream, purpose, position), so streams can be filled in any order, on any
//! number of threads. Normals use + - * / and the square root alone, which IEEE 754 fixes to the last bit: the same
//! seed gives the same bits on every processor and dispatch path.

use std::f64::consts::{LN_2, PI, SQRT_2};

use crate::each::each;
use crate::error::Result;
use crate::parallel::Interrupt;
use crate::simd::{Kernel, dispatch};

/// Counters whose words are made at once.
pub const LANES: usize = 16;
/// Of these one loop takes so many.
const PART: usize = 8;
const PARTS: usize = LANES / PART;
const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;
const WORDS: usize = 4;
/// Rounds after the first two.
const LATER: usize = ROUNDS - 2;
/// Normals made of the words of [`LANES`] counters.
pub const TILE: usize = 4 * LANES;
/// Words of a stream that are made at once.
pub const BATCH: usize = 16;

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
    for _ in 0..ROUNDS {
        counter = round(counter, key);
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    counter
}

/// [`round`] of words in the lower halves of 64 bits; the upper halves hold anything.
///
/// So a product is one instruction for each vector, and nothing moves from lane to lane.
#[inline(always)]
fn wide_round(x: [u64; 4], k: [u64; 2]) -> [u64; 4] {
    let a = u64::from(x[0] as u32) * u64::from(MULTIPLIERS[0]);
    let b = u64::from(x[2] as u32) * u64::from(MULTIPLIERS[1]);
    [(b >> 32) ^ x[1] ^ k[0], b, (a >> 32) ^ x[3] ^ k[1], a]
}

/// The keys of the rounds.
#[inline(always)]
fn wide_keys(key: [u32; 2]) -> [[u64; 2]; ROUNDS] {
    let mut keys = [key; ROUNDS];
    for i in 1..ROUNDS {
        keys[i] = [keys[i - 1][0].wrapping_add(WEYL[0]), keys[i - 1][1].wrapping_add(WEYL[1])];
    }
    keys.map(|key| key.map(u64::from))
}

/// The words of [`LANES`] counters from one on, lane by lane.
#[inline(always)]
fn lanes_of_words(counter: [u32; 4], keys: &[[u64; 2]; ROUNDS]) -> [[u64; LANES]; 4] {
    const M: [u64; 2] = [MULTIPLIERS[0] as u64, MULTIPLIERS[1] as u64];
    // of the first two rounds, half is the same in all lanes
    let b = u64::from(counter[2]) * M[1];
    let (same, next) = ((b >> 32) ^ u64::from(counter[1]) ^ keys[0][0], b ^ keys[1][0]);
    let product = u64::from(same as u32) * M[0];
    let mut words = [[0; LANES]; 4];
    each!(part < PARTS => {
        for lane in part * PART..(part + 1) * PART {
            let a = u64::from(counter[0].wrapping_add(lane as u32)) * M[0];
            let b = u64::from(((a >> 32) ^ u64::from(counter[3]) ^ keys[0][1]) as u32) * M[1];
            let mut x = [(b >> 32) ^ next, b, (product >> 32) ^ a ^ keys[1][1], product];
            each!(later < LATER => { x = wide_round(x, keys[later + 2]) });
            for i in 0..4 {
                words[i][lane] = x[i];
            }
        }
    });
    words
}

/// A stream of random words.
#[derive(Clone, Debug)]
pub struct Stream {
    key: [u32; 2],
    counter: [u32; 4],
    words: [u32; BATCH],
    used: usize,
}

impl Stream {
    /// The stream of that number and purpose under a seed.
    #[must_use]
    pub fn new(seed: u64, stream: u64, purpose: u32) -> Self {
        let counter = [0, purpose, stream as u32, (stream >> 32) as u32];
        Self { key: key(seed), counter, words: [0; BATCH], used: BATCH }
    }

    /// The same stream, given its first words as [`first_words`] makes them.
    #[must_use]
    pub fn with_first_words(seed: u64, stream: u64, purpose: u32, words: &[u32; BATCH]) -> Self {
        let counter = [BATCH as u32 / 4, purpose, stream as u32, (stream >> 32) as u32];
        Self { key: key(seed), counter, words: *words, used: 0 }
    }

    /// The next word.
    #[inline]
    pub fn word(&mut self) -> u32 {
        if self.used == BATCH {
            self.refill();
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        for (words, i) in self.words.as_chunks_mut().0.iter_mut().zip(0..) {
            *words =
                philox([self.counter[0].wrapping_add(i), self.counter[1], self.counter[2], self.counter[3]], self.key);
        }
        self.counter[0] = self.counter[0].wrapping_add(BATCH as u32 / 4);
        self.used = 0;
    }

    /// An unbiased integer in 0..n (Lemire 2019); 0 when n is 0.
    #[inline]
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
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        let bits = u64::from(self.word()) << 32 | u64::from(self.word());
        (bits >> 11) as f64 * (1.0 / 9007199254740992.0)
    }

    /// Shuffle in place (Fisher-Yates).
    ///
    /// # Errors
    /// [`Error::interrupted`](crate::error::Error::interrupted).
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

struct FirstWords<'a> {
    key: [u32; 2],
    first: u64,
    purpose: u32,
    out: &'a mut [[u32; BATCH]],
}

impl Kernel for FirstWords<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let keys = wide_keys(self.key);
        for (i, streams) in self.out.chunks_mut(LANES).enumerate() {
            let start = self.first.wrapping_add((i * LANES) as u64);
            for block in 0..BATCH / 4 {
                let mut words = [[0; LANES]; 4];
                for lane in 0..LANES {
                    let stream = start.wrapping_add(lane as u64);
                    let mut x = [block as u64, self.purpose.into(), stream, stream >> 32];
                    each!(round < ROUNDS => { x = wide_round(x, keys[round]) });
                    for i in 0..4 {
                        words[i][lane] = x[i] as u32;
                    }
                }
                for (lane, stream) in streams.iter_mut().enumerate() {
                    for i in 0..4 {
                        stream[4 * block + i] = words[i][lane];
                    }
                }
            }
        }
    }
}

/// The first words of the streams of a purpose from one on, for many at once.
pub fn first_words(seed: u64, first_stream: u64, purpose: u32, out: &mut [[u32; BATCH]]) {
    dispatch(FirstWords { key: key(seed), first: first_stream, purpose, out });
}

/// Pairs of normals that are made at once: with fewer a processor waits for one step after the other.
const N: usize = 2 * LANES;

/// 2^52: or-ing an integer below into its bits adds the integer, which vectorises everywhere.
const TWO_52: f64 = 4503599627370496.0;

/// What is known of pairs of normals on the way, kept in memory: there it waits while others take the same step.
#[derive(Clone, Debug)]
#[repr(C, align(64))] // what lies across two lines of the cache is not there at once for the next step
struct Steps {
    e: [f64; N],
    s: [f64; N],
    s2: [f64; N],
    ln: [f64; N],
    /// Twice the angle.
    angle: [f64; N],
    angle2: [f64; N],
    sin: [f64; N],
    cos: [f64; N],
}

impl Steps {
    #[inline(always)]
    fn new() -> Self {
        let [e, s, s2, ln, angle, angle2, sin, cos] = [[0.0; N]; 8];
        Self { e, s, s2, ln, angle, angle2, sin, cos }
    }
}

/// Add a coefficient to each series and multiply it by its variable.
#[inline(always)]
fn series_step<const SERIES: usize>(mut series: [(&mut [f64; N], f64, &[f64; N]); SERIES]) {
    for i in 0..N {
        for (sum, coefficient, variable) in &mut series {
            sum[i] = (sum[i] + *coefficient) * variable[i];
        }
    }
}

/// Two independent normals from each two words (Box & Muller 1958), of which the lower halves count.
///
/// The radius is sqrt(-2 ln((u + 1/2) / 2^32)). Two bits of v choose a quadrant, thirty an angle inside (-pi/4, pi/4).
/// Powers of two are factors that change no mantissa: they are taken out of u, of the logarithm and of the radius, and
/// put into the sine and the cosine. Steps are taken for all lanes in turn and for several series at once, as each waits
/// for the one before.
#[inline(always)]
fn normal_pairs(u: &[u64; N], v: &[u64; N], steps: &mut Steps, normals: &mut [[f64; HALF]; 2]) {
    const MANTISSA: u64 = (1 << 52) - 1;
    // added to the bits of a float whose mantissa is above sqrt(2), it carries into the exponent
    const CARRY: u64 = MANTISSA - (SQRT_2.to_bits() & MANTISSA);
    const TWO_50: f64 = TWO_52 / 4.0;
    const SIGN: u64 = 1 << 63;
    // coefficients of artanh(s) / s - 1 in s^2, of the sine of half the angle, and of twice its cosine
    const LN: [f64; 7] = [1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0];
    const SIN: [f64; 5] = [
        -1.0 / 39916800.0 / 1024.0,
        1.0 / 362880.0 / 256.0,
        -1.0 / 5040.0 / 64.0,
        1.0 / 120.0 / 16.0,
        -1.0 / 6.0 / 4.0,
    ];
    const COS: [f64; 7] = [
        1.0 / 479001600.0 / 2048.0,
        -1.0 / 3628800.0 / 512.0,
        1.0 / 40320.0 / 128.0,
        -1.0 / 720.0 / 32.0,
        1.0 / 24.0 / 8.0,
        -0.5 / 2.0,
        2.0,
    ];
    let Steps { e, s, s2, ln, angle, angle2, sin, cos } = steps;
    for i in 0..N {
        let x = f64::from_bits(TWO_52.to_bits() | (u[i] & 0xFFFF_FFFF)) - (TWO_52 - 0.5);
        let bits = x.to_bits() + CARRY;
        e[i] = f64::from_bits(TWO_52.to_bits() | (bits >> 52)) - (TWO_52 + 1055.0); // 1023 of the format, 32 of u
        let m = f64::from_bits((bits & MANTISSA) + (1f64.to_bits() - CARRY)); // above sqrt(1/2), not above sqrt(2)
        s[i] = (1.0 - m) / (m + 1.0);
    }
    for i in 0..N {
        let place = f64::from_bits(TWO_50.to_bits() | (v[i] & 0xFFFF_FFFC)) - (TWO_50 + (536870912.0 - 0.5));
        angle[i] = place * (PI / 1073741824.0);
        angle2[i] = angle[i] * angle[i];
        sin[i] = angle2[i] * (1.0 / 6227020800.0 / 4096.0);
        cos[i] = angle2[i] * (-1.0 / 87178291200.0 / 8192.0);
    }
    for i in 0..N {
        s2[i] = s[i] * s[i];
        ln[i] = s2[i] * (1.0 / 17.0);
    }
    // a loop over these steps is not unrolled at every level of optimisation, and half as fast then
    series_step([(ln, LN[0], s2), (cos, COS[0], angle2), (sin, SIN[0], angle2)]);
    series_step([(ln, LN[1], s2), (cos, COS[1], angle2), (sin, SIN[1], angle2)]);
    series_step([(ln, LN[2], s2), (cos, COS[2], angle2), (sin, SIN[2], angle2)]);
    series_step([(ln, LN[3], s2), (cos, COS[3], angle2), (sin, SIN[3], angle2)]);
    series_step([(ln, LN[4], s2), (cos, COS[4], angle2)]);
    series_step([(ln, LN[5], s2), (cos, COS[5], angle2)]);
    for (half, normals) in normals.iter_mut().enumerate() {
        for lane in 0..LANES {
            let i = half * LANES + lane;
            let sin = angle[i] + angle[i] * angle2[i] * (sin[i] + SIN[4]);
            let radius = (e[i] * (-0.5 * LN_2) + (s[i] + s[i] * s2[i] * (ln[i] + LN[6]))).sqrt().to_bits(); // half of it
            let cos = cos[i] + COS[6];
            let (a, b) = if v[i] & 1 == 0 { (cos, sin) } else { (sin, cos) };
            let flip = (v[i] << 62) & SIGN;
            normals[lane] = f64::from_bits(radius ^ flip) * a;
            normals[LANES + lane] = f64::from_bits(radius ^ flip ^ (v[i] << 63)) * b;
        }
    }
}

/// Normals of half a tile: the fewest that are made.
pub const HALF: usize = 2 * LANES;
/// Halves of tiles that are made at once.
pub const HALVES: usize = 16;

/// Normals of several streams, made together: tiles of short streams would keep a processor waiting.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Queue {
    u: [u64; HALVES * LANES],
    v: [u64; HALVES * LANES],
    steps: Steps,
    normals: [[f64; HALF]; HALVES],
    keys: [[u64; 2]; ROUNDS],
    purpose: u32,
    /// Stream of each tile, its first counter, and the halves before it.
    tiles: [(u64, u32, usize); HALVES],
    n_tiles: usize,
    queued: usize,
}

impl Queue {
    /// A queue of streams of a purpose under a seed.
    #[must_use]
    pub fn new(seed: u64, purpose: u32) -> Self {
        Self {
            u: [0; HALVES * LANES],
            v: [0; HALVES * LANES],
            steps: Steps::new(),
            normals: [[0.0; HALF]; HALVES],
            keys: wide_keys(key(seed)),
            purpose,
            tiles: [(0, 0, 0); HALVES],
            n_tiles: 0,
            queued: 0,
        }
    }

    /// Put a tile of a stream into the queue, or its first half only; there must be room for both.
    #[inline]
    pub fn push(&mut self, stream: u64, tile: usize, both: bool) {
        self.tiles[self.n_tiles] = (stream, (tile as u32).wrapping_mul(LANES as u32), self.queued);
        self.n_tiles += 1;
        self.queued += 1 + usize::from(both);
    }

    /// Whether there is no room for another tile.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.queued > HALVES - 2
    }

    /// The normals of the halves in the queue, which is empty then.
    pub fn drain(&mut self) -> &[[f64; HALF]] {
        let n = std::mem::take(&mut self.queued);
        dispatch(Drain { queue: self, n });
        self.n_tiles = 0;
        &self.normals[..n]
    }
}

/// Makes the normals of the first `n` halves.
struct Drain<'a> {
    queue: &'a mut Queue,
    n: usize,
}

impl Kernel for Drain<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Queue { u, v, steps, normals, keys, purpose, tiles, n_tiles, .. } = self.queue;
        for &(stream, first, halves) in &tiles[..*n_tiles] {
            let start = halves * LANES;
            if let (Some(u), Some(v)) = (u[start..].first_chunk_mut::<N>(), v[start..].first_chunk_mut::<N>()) {
                let words = lanes_of_words([first, *purpose, stream as u32, (stream >> 32) as u32], keys);
                u[..LANES].copy_from_slice(&words[0]);
                v[..LANES].copy_from_slice(&words[1]);
                u[LANES..].copy_from_slice(&words[2]);
                v[LANES..].copy_from_slice(&words[3]);
            }
        }
        let words = u.as_chunks().0.iter().zip(v.as_chunks().0);
        for (normals, (u, v)) in normals.as_chunks_mut().0.iter_mut().zip(words).take(self.n.div_ceil(2)) {
            normal_pairs(u, v, steps, normals);
        }
    }
}

/// Fill `out` with the independent N(0, 1) of a stream from its tile `first_tile` on; a tile has [`TILE`] of them.
#[cfg(test)]
pub(crate) fn fill_normals(seed: u64, stream: u64, purpose: u32, first_tile: usize, out: &mut [f64]) {
    let (mut queue, mut tile) = (Queue::new(seed, purpose), first_tile);
    for out in out.chunks_mut(HALVES * HALF) {
        for _ in 0..out.len().div_ceil(TILE) {
            queue.push(stream, tile, true);
            tile = tile.wrapping_add(1);
        }
        out.copy_from_slice(&queue.drain().as_flattened()[..out.len()]);
    }
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
        let (n, keys) = (self.n, wide_keys(self.key));
        // What is left of a word must not be less, or some numbers would come up more often than others.
        let least = if PAIRED { (n * n).wrapping_neg() % (n * n) } else { n.wrapping_neg() % n };
        let (mut block, mut rejected) = (self.counter[0], 0);
        for tile in self.out.chunks_mut(if PAIRED { 2 * TILE } else { TILE }) {
            let (mut first, mut second, mut rejects) = ([[0; LANES]; 4], [[0; LANES]; 4], [0; LANES]);
            let counter = [block, self.counter[1], self.counter[2], self.counter[3]];
            let words = lanes_of_words(counter, &keys);
            each!(i < WORDS => {
                each!(part < PARTS => {
                    for lane in part * PART..(part + 1) * PART {
                        let mut product = u64::from(words[i][lane] as u32) * u64::from(n);
                        let number = (product >> 32) as u32;
                        if PAIRED {
                            product = u64::from(product as u32) * u64::from(n);
                        }
                        let reject = (product as u32) < least;
                        first[i][lane] = if reject { n } else { number };
                        second[i][lane] = if reject { n } else { (product >> 32) as u32 };
                        rejects[lane] += u32::from(reject);
                    }
                });
            });
            let (first, second) = (first.as_flattened(), second.as_flattened());
            block = block.wrapping_add(LANES as u32);
            if tile.len() == if PAIRED { 2 * TILE } else { TILE } {
                let (to_first, to_second) = tile.split_at_mut(TILE);
                to_first.copy_from_slice(first);
                if PAIRED {
                    to_second.copy_from_slice(second);
                }
                let rejects = rejects.iter().sum::<u32>() as usize;
                rejected += if PAIRED { 2 * rejects } else { rejects };
            } else {
                for (to, &number) in tile.iter_mut().zip(first.iter().chain(second)) {
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

    /// The logarithm, the sine and the cosine as they are, with no factor moved elsewhere.
    fn normal_pair(u: u32, v: u32) -> [f64; 2] {
        let x = (f64::from(u) + 0.5) / 4294967296.0;
        let exponent = f64::from((x.to_bits() >> 52) as u32) - 1023.0;
        let mantissa = f64::from_bits((x.to_bits() & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
        let (m, e) = if mantissa > SQRT_2 { (mantissa * 0.5, exponent + 1.0) } else { (mantissa, exponent) };
        let s = (m - 1.0) / (m + 1.0);
        let series = |z: f64, from: &[f64]| from[1..].iter().fold(from[0], |sum, c| c + z * sum);
        let odd = series(s * s, &[17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0].map(|n| 1.0 / n));
        let ln = e * LN_2 + 2.0 * (s + s * (s * s) * odd);
        let want = x.ln();
        assert!((ln - want).abs() <= 1e-15 + 2e-15 * want.abs(), "{u}: {ln} {want}");
        let angle = (f64::from(v >> 2) + 0.5 - 536870912.0) * (std::f64::consts::FRAC_PI_2 / 1073741824.0);
        let z = angle * angle;
        let term = |n: u32| [1.0, -1.0][n as usize / 2 % 2] / (1..=n).map(f64::from).product::<f64>();
        let sin = angle + angle * z * series(z, &[13, 11, 9, 7, 5, 3].map(term));
        let cos = series(z, &[14, 12, 10, 8, 6, 4, 2, 0].map(term));
        assert!((sin - angle.sin()).abs() < 1e-13 && (cos - angle.cos()).abs() < 1e-13, "{v}"); // the series end
        let (a, b) = if v & 1 == 0 { (cos, sin) } else { (sin, -cos) };
        let radius = (-2.0 * ln).sqrt();
        let sign = if v & 2 == 0 { radius } else { -radius };
        [sign * a, sign * b]
    }

    #[derive(Clone)]
    struct Pairs(Vec<[[u64; N]; 2]>);
    impl Kernel for Pairs {
        type Output = Vec<[[u64; 2]; N]>;
        #[inline(always)]
        fn run(self) -> Self::Output {
            let (mut steps, mut normals) = (Steps::new(), [[0.0; HALF]; 2]);
            let pairs = self.0.iter().map(|[u, v]| {
                normal_pairs(u, v, &mut steps, &mut normals);
                let pair = |i: usize| [0, LANES].map(|b| normals[i / LANES][i % LANES + b].to_bits());
                std::array::from_fn(pair)
            });
            pairs.collect()
        }
    }

    #[test]
    fn normals_are_those_of_the_plain_formula_to_the_last_bit() {
        let mut draw = Stream::new(1, 0, 0);
        let root = |k: u32| (SQRT_2 * f64::from(1u32 << k)) as u32; // where the exponent changes
        let mut edges: Vec<u32> = (0..31).flat_map(|k| [1 << k, root(k)]).flat_map(|x| [x - 1, x, x + 1]).collect();
        edges.extend([u32::MAX, u32::MAX - 1, 3 << 30, 1 << 31]);
        let mut words: Vec<[u32; 2]> = edges.iter().flat_map(|&u| edges.iter().map(move |&v| [u, v])).collect();
        words.resize_with((words.len() + 200_000).next_multiple_of(N), || [draw.word(), draw.word()]);
        let wide = |words: &[[u32; 2]; N]| {
            [0, 1].map(|i| words.map(|word| u64::from(word[i]) | u64::from(word[1 - i]) << 32)) // the upper half is no matter
        };
        for all in on_every_level(&Pairs(words.as_chunks().0.iter().map(wide).collect())) {
            for (found, words) in all.iter().zip(words.as_chunks::<N>().0) {
                for (lane, &[u, v]) in words.iter().enumerate() {
                    let want = normal_pair(u, v).map(f64::to_bits);
                    assert_eq!(found[lane], want, "{u} {v}");
                }
            }
        }
    }

    #[test]
    fn a_queue_makes_the_normals_of_its_streams() {
        let mut queue = Queue::new(3, 1);
        let mut want: Vec<f64> = Vec::new();
        let halves = [(4, 0, true), (1 << 40, 7, false), (5, 1, true), (6, 0, false), (7, usize::MAX, true)];
        for (stream, tile, both) in halves {
            assert!(!queue.is_full());
            queue.push(stream, tile, both);
            let mut tile_of = vec![0.0; TILE];
            fill_normals(3, stream, 1, tile, &mut tile_of);
            want.extend(&tile_of[..if both { TILE } else { HALF }]);
        }
        let found = queue.drain().as_flattened();
        assert_eq!(found.len(), want.len());
        assert!(found.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(
            (0..HALVES / 2).all(|tile| !queue.is_full() && {
                queue.push(0, tile, true);
                true
            }) && queue.is_full()
        );
    }

    #[test]
    fn first_words_are_those_of_the_stream() {
        for first in [0, 5, u64::from(u32::MAX) - 3, u64::MAX - 2] {
            let mut first_of = [[0; BATCH]; 19];
            first_words(8, first, 6, &mut first_of);
            for (i, words) in (0..).zip(&first_of) {
                let stream = u64::wrapping_add(first, i);
                let (mut plain, mut begun) = (Stream::new(8, stream, 6), Stream::with_first_words(8, stream, 6, words));
                for at in 0..3 * BATCH as u32 {
                    let want = philox([at / 4, 6, stream as u32, (stream >> 32) as u32], key(8))[at as usize % 4];
                    assert_eq!([plain.word(), begun.word()], [want; 2]);
                }
            }
        }
    }

    #[derive(Clone)]
    struct Twice(usize);
    impl Kernel for Twice {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run(self) -> Vec<u64> {
            let (mut queue, mut out) = (Queue::new(5, 1), Vec::new());
            for tile in 0..self.0.div_ceil(TILE) {
                queue.push(3 << 32 | 2, tile, true);
                let n = std::mem::take(&mut queue.queued);
                Drain { queue: &mut queue, n }.run();
                queue.n_tiles = 0;
                out.extend(queue.normals[..n].as_flattened().iter().map(|x| x.to_bits()));
            }
            out.truncate(self.0);
            out
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
