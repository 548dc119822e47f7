//! Run-time choice of the instruction set and the arithmetic kernels share: the only file with `unsafe`.
//!
//! A [`Kernel`] is written once in plain Rust and compiled once per instruction set. No kernel uses fused
//! multiply-add, so all paths give the same bits.

#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Environment variable that forces a path: `baseline`, `avx2`, `avx512` or `avx512-vpopcnt`.
pub const SIMD_VARIABLE: &str = "MILFAST_SIMD";

/// Instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the target has.
    Baseline,
    /// AVX2 and POPCNT.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same and VPOPCNTDQ, which counts bits.
    Avx512Vpopcnt,
}

/// A piece of work that is worth compiling for several instruction sets.
///
/// `run` must be `#[inline(always)]`, and so must what it calls in its inner loops: only inlined code is compiled with
/// the instruction set of the caller.
pub trait Kernel {
    /// What the work returns.
    type Output;
    /// Do the work.
    fn run(self) -> Self::Output;
}

/// The instruction set in use: the best one the processor has, or a lower one that `MILFAST_SIMD` asks for.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var(SIMD_VARIABLE).as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            Ok("avx512") => Level::Avx512,
            _ => Level::Avx512Vpopcnt,
        };
        best().min(wanted)
    })
}

#[cfg(target_arch = "x86_64")]
fn best() -> Level {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        if is_x86_feature_detected!("avx512vpopcntdq") { Level::Avx512Vpopcnt } else { Level::Avx512 }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
        Level::Avx2
    } else {
        Level::Baseline
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Level {
    Level::Baseline
}

/// Run a kernel on the instruction set in use.
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    dispatch_at(level(), kernel)
}

#[cfg(target_arch = "x86_64")]
fn dispatch_at<K: Kernel>(level: Level, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,popcnt")]
    fn avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
    fn avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
    match level {
        // SAFETY: `best` saw the features of this level, and `level` never goes above `best`.
        Level::Avx512 | Level::Avx512Vpopcnt => unsafe { avx512(kernel) },
        Level::Avx2 => unsafe { avx2(kernel) },
        Level::Baseline => kernel.run(),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch_at<K: Kernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run()
}

/// Operations on words of 64 bits side by side, for kernels that the compiler does not turn into vectors by itself.
///
/// A value of such a type stands for the right to use the instructions: only this file can make one.
pub trait Simd: Copy {
    /// As many words as go into a register.
    type Words: Copy;
    /// How many that is.
    const WIDTH: usize;
    /// Whether there is an instruction for `count_ones`, which is as fast as an addition then.
    const COUNTS: bool;
    /// The same word everywhere.
    fn splat(self, word: u64) -> Self::Words;
    /// The first words of a slice.
    fn load(self, words: &[u64]) -> Self::Words;
    /// Write to the beginning of a slice.
    fn store(self, x: Self::Words, words: &mut [u64]);
    /// Bits in both.
    fn and(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Bits in either.
    fn or(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Bits in one of the two.
    fn xor(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Sum of each word, modulo 2^64.
    fn add(self, a: Self::Words, b: Self::Words) -> Self::Words;
    /// Number of bits of each word.
    fn count_ones(self, x: Self::Words) -> Self::Words;
}

/// As [`Kernel`], written with the operations of [`Simd`].
pub trait WordKernel {
    /// What the work returns.
    type Output;
    /// Do the work.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// One word at a time: what every processor can do.
#[derive(Clone, Copy)]
struct Single;

impl Simd for Single {
    type Words = u64;
    const WIDTH: usize = 1;
    const COUNTS: bool = false;
    #[inline(always)]
    fn splat(self, word: u64) -> u64 {
        word
    }
    #[inline(always)]
    fn load(self, words: &[u64]) -> u64 {
        words[0]
    }
    #[inline(always)]
    fn store(self, x: u64, words: &mut [u64]) {
        words[0] = x;
    }
    #[inline(always)]
    fn and(self, a: u64, b: u64) -> u64 {
        a & b
    }
    #[inline(always)]
    fn or(self, a: u64, b: u64) -> u64 {
        a | b
    }
    #[inline(always)]
    fn xor(self, a: u64, b: u64) -> u64 {
        a ^ b
    }
    #[inline(always)]
    fn add(self, a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn count_ones(self, x: u64) -> u64 {
        x.count_ones().into()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    #[allow(clippy::wildcard_imports)] // some thirty names
    use std::arch::x86_64::*;

    use super::Simd;

    /// Ones of the numbers 0 to 15, for each of the sixteen bytes of a lane.
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];

    // SAFETY of all `unsafe` below: values of these types are made in functions that have the instructions, and slices
    // are cut to the length of a register before they are read or written.
    macro_rules! simd {
        ($(#[$doc:meta])* $name:ident, $words:ty, $width:literal, $counts:literal, $splat:ident, $load:ident,
         $store:ident, $and:ident, $or:ident, $xor:ident, $add:ident, |$x:ident| $count_ones:expr) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(super) struct $name(pub(super) ());

            impl Simd for $name {
                type Words = $words;
                const WIDTH: usize = $width;
                const COUNTS: bool = $counts;
                #[inline(always)]
                fn splat(self, word: u64) -> $words {
                    unsafe { $splat(word as i64) }
                }
                #[inline(always)]
                fn load(self, words: &[u64]) -> $words {
                    unsafe { $load(words[..$width].as_ptr().cast()) }
                }
                #[inline(always)]
                fn store(self, x: $words, words: &mut [u64]) {
                    unsafe { $store(words[..$width].as_mut_ptr().cast(), x) }
                }
                #[inline(always)]
                fn and(self, a: $words, b: $words) -> $words {
                    unsafe { $and(a, b) }
                }
                #[inline(always)]
                fn or(self, a: $words, b: $words) -> $words {
                    unsafe { $or(a, b) }
                }
                #[inline(always)]
                fn xor(self, a: $words, b: $words) -> $words {
                    unsafe { $xor(a, b) }
                }
                #[inline(always)]
                fn add(self, a: $words, b: $words) -> $words {
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                fn count_ones(self, $x: $words) -> $words {
                    unsafe { $count_ones }
                }
            }
        };
    }

    simd!(
        /// AVX2: the ones of half a byte are looked up (Muła).
        Avx2, __m256i, 4, false, _mm256_set1_epi64x, _mm256_loadu_si256, _mm256_storeu_si256,
        _mm256_and_si256, _mm256_or_si256, _mm256_xor_si256, _mm256_add_epi64, |x| {
            let ones = _mm256_broadcastsi128_si256(_mm_loadu_si128(ONES.as_ptr().cast()));
            let half = _mm256_set1_epi8(15);
            let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(x, half));
            let high = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16::<4>(x), half));
            _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256())
        }
    );
    simd!(
        /// AVX-512 without an instruction that counts bits.
        Avx512, __m512i, 8, false, _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_and_si512, _mm512_or_si512, _mm512_xor_si512, _mm512_add_epi64, |x| {
            let ones = _mm512_broadcast_i32x4(_mm_loadu_si128(ONES.as_ptr().cast()));
            let half = _mm512_set1_epi8(15);
            let low = _mm512_shuffle_epi8(ones, _mm512_and_si512(x, half));
            let high = _mm512_shuffle_epi8(ones, _mm512_and_si512(_mm512_srli_epi16::<4>(x), half));
            _mm512_sad_epu8(_mm512_add_epi8(low, high), _mm512_setzero_si512())
        }
    );
    simd!(
        /// AVX-512 with VPOPCNTDQ.
        Avx512Vpopcnt, __m512i, 8, true, _mm512_set1_epi64, _mm512_loadu_si512, _mm512_storeu_si512,
        _mm512_and_si512, _mm512_or_si512, _mm512_xor_si512, _mm512_add_epi64, |x| _mm512_popcnt_epi64(x)
    );
}

/// Run a kernel of words on the instruction set in use.
pub fn dispatch_words<K: WordKernel>(kernel: K) -> K::Output {
    dispatch_words_at(level(), kernel)
}

#[cfg(target_arch = "x86_64")]
fn dispatch_words_at<K: WordKernel>(level: Level, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,popcnt")]
    fn avx2<K: WordKernel>(kernel: K) -> K::Output {
        kernel.run(x86::Avx2(()))
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
    fn avx512<K: WordKernel>(kernel: K) -> K::Output {
        kernel.run(x86::Avx512(()))
    }
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,popcnt")]
    fn avx512_vpopcnt<K: WordKernel>(kernel: K) -> K::Output {
        kernel.run(x86::Avx512Vpopcnt(()))
    }
    match level {
        // SAFETY: as in `dispatch_at`.
        Level::Avx512Vpopcnt => unsafe { avx512_vpopcnt(kernel) },
        Level::Avx512 => unsafe { avx512(kernel) },
        Level::Avx2 => unsafe { avx2(kernel) },
        Level::Baseline => kernel.run(Single),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch_words_at<K: WordKernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run(Single)
}

/// A floating-point type that kernels compute in.
pub trait Real:
    Copy
    + Send
    + Sync
    + Default
    + PartialOrd
    + std::fmt::Display
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
{
    /// Largest finite value.
    const LARGEST: f64;
    /// Smallest positive normal value.
    const SMALLEST: f64;
    /// The value 1.
    const ONE: Self;
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// e^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    fn exp_nonpositive(x: Self) -> Self;
    /// 2^x for x <= 0 that is above the logarithm of [`Real::SMALLEST`], within 2 ulp.
    fn exp2_normal(x: Self) -> Self;
    /// 2^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    fn exp2_nonpositive(x: Self) -> Self;
}

impl Real for f64 {
    const LARGEST: f64 = f64::MAX;
    const SMALLEST: f64 = f64::MIN_POSITIVE;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn exp_nonpositive(x: Self) -> Self {
        const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52: adding it rounds to an integer in the low bits
        let clamped = if x < -708.0 { -708.0 } else { x };
        let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
        let k = shifted - ROUND;
        // ln 2 in two parts: the high one has 21 zero bits, so k times it is exact
        let r = (clamped - k * 6.931_471_803_691_238e-1) - k * 1.908_214_929_270_587_7e-10;
        let r2 = r * r;
        let r4 = r2 * r2;
        let a = (1.0 / 2.0 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
        let b = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0));
        let c = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + r2 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
        let tail = a + r4 * (b + r4 * c);
        let mantissa = 1.0 + (r + r2 * tail);
        let scaled = f64::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 52));
        if x < -708.0 { 0.0 } else { scaled }
    }
    #[inline(always)]
    fn exp2_normal(x: Self) -> Self {
        const ROUND: f64 = 6755399441055744.0; // 1.5 * 2^52, as above
        let shifted = x + ROUND;
        let r = x - (shifted - ROUND);
        // 1 + r q(r), minimax on |r| <= 1/2 with relative error 3e-18; even and odd powers apart halve the chain
        let r2 = r * r;
        let even = 0.240_226_506_959_101_3
            + r2 * (0.009_618_129_107_594_12
                + r2 * (1.540_353_045_711_213e-4 + r2 * (1.321_543_528_228_796e-6 + r2 * 7.073_783_252_266_793e-9)));
        let odd = std::f64::consts::LN_2
            + r2 * (0.055_504_108_664_820_08
                + r2 * (1.333_355_814_677_462e-3
                    + r2 * (1.525_273_349_312_730_7e-5
                        + r2 * (1.017_819_957_188_748_8e-7 + r2 * 4.434_771_296_054_246e-10))));
        let mantissa = 1.0 + (r * odd + r2 * even);
        f64::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 52))
    }
    #[inline(always)]
    fn exp2_nonpositive(x: Self) -> Self {
        // the bits of 2^-1023, without its exponent, are those of 0
        Self::exp2_normal(if x < -1022.0 { -1023.0 } else { x })
    }
}

impl Real for f32 {
    const LARGEST: f64 = f32::MAX as f64;
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
    const ONE: Self = 1.0;
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn exp_nonpositive(x: Self) -> Self {
        const ROUND: f32 = 12582912.0; // 1.5 * 2^23
        let clamped = if x < -87.0 { -87.0 } else { x };
        let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
        let k = shifted - ROUND;
        let r = (clamped - k * 6.931_457_5e-1) - k * 1.428_606_8e-6;
        let r2 = r * r;
        let low = (1.0 / 2.0 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
        let tail = low + r2 * r2 * (1.0 / 720.0 + r * (1.0 / 5040.0));
        let mantissa = 1.0 + (r + r2 * tail);
        let scaled = f32::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 23));
        if x < -87.0 { 0.0 } else { scaled }
    }
    #[inline(always)]
    fn exp2_normal(x: Self) -> Self {
        const ROUND: f32 = 12582912.0; // 1.5 * 2^23
        let shifted = x + ROUND;
        let r = x - (shifted - ROUND);
        // as above, with relative error 2e-9
        let r2 = r * r;
        let even = 0.240_226_48 + r2 * (0.009_618_437 + r2 * 1.535_336_2e-4);
        let odd = std::f32::consts::LN_2 + r2 * (0.055_503_324 + r2 * 1.339_887_4e-3);
        let mantissa = 1.0 + (r * odd + r2 * even);
        f32::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 23))
    }
    #[inline(always)]
    fn exp2_nonpositive(x: Self) -> Self {
        Self::exp2_normal(if x < -126.0 { -127.0 } else { x })
    }
}

/// Run a kernel on every instruction set the processor has and return the results: for tests of equality.
#[cfg(test)]
pub(crate) fn on_every_level<K: Kernel + Clone>(kernel: &K) -> Vec<K::Output> {
    [Level::Baseline, Level::Avx2, Level::Avx512]
        .into_iter()
        .filter(|&level| level <= best())
        .map(|level| dispatch_at(level, kernel.clone()))
        .collect()
}

/// As [`on_every_level`].
#[cfg(test)]
pub(crate) fn words_on_every_level<K: WordKernel + Clone>(kernel: &K) -> Vec<K::Output> {
    [Level::Baseline, Level::Avx2, Level::Avx512, Level::Avx512Vpopcnt]
        .into_iter()
        .filter(|&level| level <= best())
        .map(|level| dispatch_words_at(level, kernel.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation of [`Simd`] on some words.
    #[derive(Clone)]
    struct Operations([u64; 16]);
    impl WordKernel for Operations {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<u64> {
            let mut out = vec![0; 56];
            for lane in (0..8).step_by(S::WIDTH) {
                let (a, b) = (simd.load(&self.0[lane..]), simd.load(&self.0[8 + lane..]));
                let results = [
                    a,
                    simd.splat(self.0[3]),
                    simd.and(a, b),
                    simd.or(a, b),
                    simd.xor(a, b),
                    simd.add(a, b),
                    simd.count_ones(a),
                ];
                for (i, x) in results.into_iter().enumerate() {
                    simd.store(x, &mut out[8 * i + lane..]);
                }
            }
            out
        }
    }

    #[test]
    fn words_are_handled_alike_on_every_level() {
        for seed in 1..2000u64 {
            let x: [u64; 16] = std::array::from_fn(|i| (seed * 40 + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let of = |f: fn(u64, u64) -> u64| (0..8).map(move |i| f(x[i], x[8 + i]));
            let want: Vec<u64> = of(|a, _| a)
                .chain([x[3]; 8])
                .chain(of(|a, b| a & b))
                .chain(of(|a, b| a | b))
                .chain(of(|a, b| a ^ b))
                .chain(of(u64::wrapping_add))
                .chain(of(|a, _| a.count_ones().into()))
                .collect();
            for got in words_on_every_level(&Operations(x)) {
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn exp_is_within_two_ulp() {
        for i in 0..2_000_000 {
            let x = -f64::from(i) * 3.54e-4;
            let (got, want) = (f64::exp_nonpositive(x), x.exp());
            assert!((got - want).abs() <= 2.0 * (f64::from_bits(want.to_bits() + 1) - want), "{x}");
            let x = x as f32 * 0.12;
            let (got, want) = (f32::exp_nonpositive(x), x.exp());
            assert!((got - want).abs() <= 2.0 * (f32::from_bits(want.to_bits() + 1) - want), "{x}");
        }
        assert!((f64::exp_nonpositive(0.0) - 1.0).abs() < f64::MIN_POSITIVE);
        assert!(f64::exp_nonpositive(-1e300) < f64::MIN_POSITIVE);
    }

    #[test]
    fn exp2_is_within_two_ulp() {
        let off = |got: f64, want: f64, ulp: f64| (got - want).abs() / ulp;
        let mut worst = [0f64; 2];
        for i in 0..4_000_000 {
            let x = -f64::from(i) * (1022.0 / 4e6);
            let want = x.exp2();
            let ulp = f64::from_bits(want.to_bits() & 0x7FF0_0000_0000_0000) * f64::EPSILON;
            worst[0] = worst[0].max(off(f64::exp2_nonpositive(x), want, ulp));
        }
        // all float32 of an octave of results, and many more over the whole range
        let octave = (0..1 << 23).map(|i| -(i as f32) / (1 << 23) as f32);
        for x in octave.chain((0..2_000_000).map(|i| -(i as f32) * (126.0 / 2e6))) {
            let want = f64::from(x).exp2();
            let ulp = f64::from(f32::from_bits((want as f32).to_bits() & 0x7F80_0000)) * f64::from(f32::EPSILON);
            worst[1] = worst[1].max(off(f64::from(f32::exp2_nonpositive(x)), want, ulp));
        }
        assert!(worst.iter().all(|&ulp| ulp <= 1.5), "{worst:?}");
    }

    #[test]
    fn exp2_ends_in_zero_and_one() {
        for x in [0.0, -0.0, -f64::MIN_POSITIVE, -1e-300] {
            assert_eq!(f64::exp2_nonpositive(x).to_bits(), 1f64.to_bits());
            assert_eq!(f32::exp2_nonpositive(x as f32).to_bits(), 1f32.to_bits());
        }
        assert_eq!(f64::exp2_nonpositive(-1022.0).to_bits(), f64::MIN_POSITIVE.to_bits());
        assert_eq!(f32::exp2_nonpositive(-126.0).to_bits(), f32::MIN_POSITIVE.to_bits());
        for x in [-1022.5, -1023.5, -1e9, -1e300, f64::NEG_INFINITY] {
            assert_eq!(f64::exp2_nonpositive(x).to_bits(), 0);
            assert_eq!(f32::exp2_nonpositive(x as f32).to_bits(), 0);
        }
    }
}
