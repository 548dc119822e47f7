//! Run-time choice of the instruction set and the arithmetic kernels share: the only file with `unsafe`.
//!
//! A [`Kernel`] is written once in plain Rust and compiled once per instruction set. Operations on floating-point numbers
//! are those that IEEE 754 rounds correctly, each value by itself and in the same order, so all paths give the same bits.
//! Fused multiply-add is one of them, whether it is an instruction or a call of the C library; the compiler never fuses by
//! itself what is written as two operations. AVX2 counts only together with the instruction, which all but a few
//! processors with AVX2 have. What lacks it gives the same bits slowly, and so does a `mul_add` anywhere outside of what
//! [`dispatch`] and its like inline: there it is a call for each number.

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
    #[cfg(test)]
    if let Some(level) = FORCED.get() {
        return level;
    }
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
    if !(is_x86_feature_detected!("fma") && is_x86_feature_detected!("popcnt")) {
        Level::Baseline
    } else if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
    {
        if is_x86_feature_detected!("avx512vpopcntdq") { Level::Avx512Vpopcnt } else { Level::Avx512 }
    } else if is_x86_feature_detected!("avx2") {
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

/// Run a kernel that wider registers than those of AVX2 make no faster, and for which there is no code with them.
pub fn dispatch_narrow<K: Kernel>(kernel: K) -> K::Output {
    dispatch_narrow_at(level(), kernel)
}

#[cfg(target_arch = "x86_64")]
fn dispatch_at<K: Kernel>(level: Level, kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,popcnt")]
    fn avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
    match level {
        // SAFETY: `best` saw the features of this level, and `level` never goes above `best`.
        Level::Avx512 | Level::Avx512Vpopcnt => unsafe { avx512(kernel) },
        Level::Avx2 | Level::Baseline => dispatch_narrow_at(level, kernel),
    }
}

#[cfg(target_arch = "x86_64")]
fn dispatch_narrow_at<K: Kernel>(level: Level, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,fma,popcnt")]
    fn avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
    match level {
        Level::Baseline => kernel.run(),
        // SAFETY: as in `dispatch_at`; the levels above have these features too.
        Level::Avx2 | Level::Avx512 | Level::Avx512Vpopcnt => unsafe { avx2(kernel) },
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch_at<K: Kernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch_narrow_at<K: Kernel>(_level: Level, kernel: K) -> K::Output {
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
    /// Each word shifted to higher places; 0 for 64 places or more.
    fn up(self, x: Self::Words, places: u32) -> Self::Words;
    /// Each word shifted to lower places; 0 for 64 places or more.
    fn down(self, x: Self::Words, places: u32) -> Self::Words;
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
    fn up(self, x: u64, places: u32) -> u64 {
        x.checked_shl(places).unwrap_or(0)
    }
    #[inline(always)]
    fn down(self, x: u64, places: u32) -> u64 {
        x.checked_shr(places).unwrap_or(0)
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

    use super::{Simd, Vectors};

    /// Ones of the numbers 0 to 15, for each of the sixteen bytes of a lane.
    const ONES: [u8; 16] = [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4];

    // SAFETY of all `unsafe` below: values of these types are made in functions that have the instructions, and slices
    // are cut to the length of a register before they are read or written.
    macro_rules! simd {
        ($(#[$doc:meta])* $name:ident, $words:ty, $width:literal, $counts:literal, $splat:ident, $load:ident,
         $store:ident, $and:ident, $or:ident, $xor:ident, $add:ident, $up:ident, $down:ident,
         |$x:ident| $count_ones:expr) => {
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
                fn up(self, x: $words, places: u32) -> $words {
                    unsafe { $up(x, _mm_cvtsi32_si128(places as i32)) }
                }
                #[inline(always)]
                fn down(self, x: $words, places: u32) -> $words {
                    unsafe { $down(x, _mm_cvtsi32_si128(places as i32)) }
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
        _mm256_and_si256, _mm256_or_si256, _mm256_xor_si256, _mm256_add_epi64,
        _mm256_sll_epi64, _mm256_srl_epi64, |x| {
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
        _mm512_and_si512, _mm512_or_si512, _mm512_xor_si512, _mm512_add_epi64,
        _mm512_sll_epi64, _mm512_srl_epi64, |x| {
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
        _mm512_and_si512, _mm512_or_si512, _mm512_xor_si512, _mm512_add_epi64,
        _mm512_sll_epi64, _mm512_srl_epi64, |x| _mm512_popcnt_epi64(x)
    );

    macro_rules! vectors {
        ($(#[$doc:meta])* $name:ident, $type:ty, $v:ty, $width:literal, $many:literal, $splat:ident, $load:ident,
         $store:ident, $add:ident, $sub:ident, $mul:ident, $mul_add:ident, $min:ident, $max:ident,
         $div:ident, |$x:ident, $limit:ident, $below:ident, $other:ident| $select:expr,
         |$m:ident, $k:ident| $scaled:expr, |$f:ident, $signs:ident| $flip:expr $(, $more:item)*) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(super) struct $name(pub(super) ());

            impl Vectors<$type> for $name {
                type V = $v;
                const WIDTH: usize = $width;
                const MANY: bool = $many;
                #[inline(always)]
                fn splat(self, x: $type) -> $v {
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                fn load(self, x: &[$type]) -> $v {
                    unsafe { $load(x[..$width].as_ptr()) }
                }
                #[inline(always)]
                fn store(self, x: $v, to: &mut [$type]) {
                    unsafe { $store(to[..$width].as_mut_ptr(), x) }
                }
                #[inline(always)]
                fn add(self, a: $v, b: $v) -> $v {
                    unsafe { $add(a, b) }
                }
                #[inline(always)]
                fn sub(self, a: $v, b: $v) -> $v {
                    unsafe { $sub(a, b) }
                }
                #[inline(always)]
                fn mul(self, a: $v, b: $v) -> $v {
                    unsafe { $mul(a, b) }
                }
                #[inline(always)]
                fn mul_add(self, a: $v, b: $v, c: $v) -> $v {
                    unsafe { $mul_add(a, b, c) }
                }
                #[inline(always)]
                fn min(self, a: $v, b: $v) -> $v {
                    unsafe { $min(a, b) }
                }
                #[inline(always)]
                fn max(self, a: $v, b: $v) -> $v {
                    unsafe { $max(a, b) }
                }
                #[inline(always)]
                fn select(self, $x: $v, $limit: $v, $below: $v, $other: $v) -> $v {
                    unsafe { $select }
                }
                #[inline(always)]
                fn div(self, a: $v, b: $v) -> $v {
                    unsafe { $div(a, b) }
                }
                #[inline(always)]
                fn scaled(self, $m: $v, $k: $v) -> $v {
                    unsafe { $scaled }
                }
                #[inline(always)]
                fn flip(self, $f: $v, $signs: $v) -> $v {
                    unsafe { $flip }
                }
                $($more)*
            }
        };
    }
    vectors!(
        /// Four float64.
        Avx2F64, f64, __m256d, 4, false, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_add_pd,
        _mm256_sub_pd, _mm256_mul_pd, _mm256_fmadd_pd, _mm256_min_pd, _mm256_max_pd, _mm256_div_pd,
        |x, limit, below, other| _mm256_blendv_pd(other, below, _mm256_cmp_pd::<_CMP_LT_OQ>(x, limit)),
        |m, k| _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(m), _mm256_slli_epi64::<52>(_mm256_castpd_si256(k)))),
        |f, signs| _mm256_xor_pd(f, signs)
    );
    vectors!(
        /// Eight float32.
        Avx2F32, f32, __m256, 8, false, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps,
        _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps, _mm256_min_ps, _mm256_max_ps, _mm256_div_ps,
        |x, limit, below, other| _mm256_blendv_ps(other, below, _mm256_cmp_ps::<_CMP_LT_OQ>(x, limit)),
        |m, k| _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(m), _mm256_slli_epi32::<23>(_mm256_castps_si256(k)))),
        |f, signs| _mm256_xor_ps(f, signs),
        #[inline(always)]
        fn add_halves(self, x: &[f32; 16], sums: &mut [f64; 8]) {
            unsafe {
                let x = _mm256_add_ps(_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x[8..].as_ptr()));
                let low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
                let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(x));
                let (first, second) = sums.split_at_mut(4);
                _mm256_storeu_pd(first.as_mut_ptr(), _mm256_add_pd(_mm256_loadu_pd(first.as_ptr()), low));
                _mm256_storeu_pd(second.as_mut_ptr(), _mm256_add_pd(_mm256_loadu_pd(second.as_ptr()), high));
            }
        }
    );
    vectors!(
        /// Eight float64.
        Avx512F64, f64, __m512d, 8, true, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_add_pd,
        _mm512_sub_pd, _mm512_mul_pd, _mm512_fmadd_pd, _mm512_min_pd, _mm512_max_pd, _mm512_div_pd,
        |x, limit, below, other| _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(x, limit), other, below),
        |m, k| _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(m), _mm512_slli_epi64::<52>(_mm512_castpd_si512(k)))),
        |f, signs| _mm512_xor_pd(f, signs)
    );
    vectors!(
        /// Sixteen float32.
        Avx512F32, f32, __m512, 16, true, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps,
        _mm512_sub_ps, _mm512_mul_ps, _mm512_fmadd_ps, _mm512_min_ps, _mm512_max_ps, _mm512_div_ps,
        |x, limit, below, other| _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, limit), other, below),
        |m, k| _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(m), _mm512_slli_epi32::<23>(_mm512_castps_si512(k)))),
        |f, signs| _mm512_xor_ps(f, signs),
        #[inline(always)]
        fn add_halves(self, x: &[f32; 16], sums: &mut [f64; 8]) {
            unsafe {
                let x = _mm256_add_ps(_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x[8..].as_ptr()));
                let sum = _mm512_add_pd(_mm512_loadu_pd(sums.as_ptr()), _mm512_cvtps_pd(x));
                _mm512_storeu_pd(sums.as_mut_ptr(), sum);
            }
        }
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
    + std::ops::Div<Output = Self>
    + std::ops::AddAssign
    + 'static
{
    /// Largest finite value.
    const LARGEST: f64;
    /// Smallest positive normal value.
    const SMALLEST: f64;
    /// The value 1.
    const ONE: Self;
    /// Adding it rounds to an integer, which is in the low bits then: 1.5 times the first value without fraction.
    const ROUND: Self;
    /// Exponent of 2 of the smallest positive normal value.
    const LOWEST: Self;
    /// log2(e).
    const LOG2_E: Self;
    /// ln 2 in two parts; the high one ends in so many zero bits that its product with an exponent of 2 is exact.
    const LN_2: [Self; 2];
    /// Coefficients, highest power first, of 2^r for |r| <= 1/2, minimax, with a relative error of 3e-18 in float64 and
    /// of 2e-9 in float32.
    const EXP2: &'static [Self];
    /// As many as have room in 128 bytes.
    const LANES: usize;
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// self * factor + summand, rounded once. Slow outside of kernels: see the head of this file.
    #[must_use]
    fn mul_add(self, factor: Self, summand: Self) -> Self;
    /// This value in [1/2, 2) times 2^k, where k was rounded with [`Real::ROUND`].
    #[must_use]
    fn scaled(self, k: Self) -> Self;
    /// This value, with the other sign where `signs` is -0; where that is 0 nothing changes.
    #[must_use]
    fn flip(self, signs: Self) -> Self;
    /// e^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    #[cfg(test)]
    fn exp_nonpositive(x: Self) -> Self {
        Plain::<1>.exp_nonpositive([x])[0]
    }
    /// Run a kernel with the operations of a level that the processor has.
    #[doc(hidden)]
    fn dispatch_at<K: RealKernel<Self>>(level: Level, kernel: K) -> K::Output;
}

macro_rules! real {
    ($type:ident, $lanes:literal, $mantissa_bits:literal, $plain:literal, $avx2:ident, $avx512:ident,
     [$high:literal, $low:literal], [$($coefficient:expr),*]) => {
        impl Real for $type {
            const LARGEST: f64 = $type::MAX as f64;
            const SMALLEST: f64 = $type::MIN_POSITIVE as f64;
            const ONE: Self = 1.0;
            const ROUND: Self = 3.0 / $type::EPSILON / 2.0;
            const LOWEST: Self = ($type::MIN_EXP - 1) as $type;
            const LOG2_E: Self = std::$type::consts::LOG2_E;
            const LN_2: [Self; 2] = [$high, $low];
            const EXP2: &'static [Self] = &[$($coefficient),*];
            const LANES: usize = $lanes;
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $type
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, summand: Self) -> Self {
                $type::mul_add(self, factor, summand)
            }
            #[inline(always)]
            fn scaled(self, k: Self) -> Self {
                $type::from_bits(self.to_bits().wrapping_add(k.to_bits() << $mantissa_bits))
            }
            #[inline(always)]
            fn flip(self, signs: Self) -> Self {
                $type::from_bits(self.to_bits() ^ signs.to_bits())
            }
            #[cfg(target_arch = "x86_64")]
            fn dispatch_at<K: RealKernel<Self>>(level: Level, kernel: K) -> K::Output {
                #[target_feature(enable = "avx2,fma,popcnt")]
                fn avx2<K: RealKernel<$type>>(kernel: K) -> K::Output {
                    kernel.run(x86::$avx2(()))
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,popcnt")]
                fn avx512<K: RealKernel<$type>>(kernel: K) -> K::Output {
                    kernel.run(x86::$avx512(()))
                }
                match level {
                    // SAFETY: as in `dispatch_at`.
                    Level::Avx512 | Level::Avx512Vpopcnt => unsafe { avx512(kernel) },
                    Level::Avx2 => unsafe { avx2(kernel) },
                    // a quarter of those of elsewhere: each multiply-add is a call, which takes all the time, and calls are large
                    Level::Baseline => kernel.run(Plain::<{ $plain / 4 }>),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            fn dispatch_at<K: RealKernel<Self>>(_level: Level, kernel: K) -> K::Output {
                kernel.run(Plain::<$plain>)
            }
        }
    };
}
real!(
    f64,
    16,
    52,
    4,
    Avx2F64,
    Avx512F64,
    [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10],
    [
        4.434_771_296_054_246e-10,
        7.073_783_252_266_793e-9,
        1.017_819_957_188_748_8e-7,
        1.321_543_528_228_796e-6,
        1.525_273_349_312_730_7e-5,
        1.540_353_045_711_213e-4,
        1.333_355_814_677_462e-3,
        0.009_618_129_107_594_12,
        0.055_504_108_664_820_08,
        0.240_226_506_959_101_3,
        std::f64::consts::LN_2,
        1.0
    ]
);
real!(
    f32,
    32,
    23,
    8,
    Avx2F32,
    Avx512F32,
    [6.931_457_5e-1, 1.428_606_8e-6],
    [1.535_336_2e-4, 1.339_887_4e-3, 0.009_618_437, 0.055_503_324, 0.240_226_48, std::f32::consts::LN_2, 1.0]
);

/// Floating-point operations on as many values as go into a register.
///
/// As with [`Simd`], a value of such a type stands for the right to use the instructions.
pub trait Vectors<T: Real>: Copy {
    /// The values.
    type V: Copy;
    /// How many they are.
    const WIDTH: usize;
    /// Whether the processor has 32 such registers, not 16.
    const MANY: bool;
    /// Whether loops stay loops: without registers to keep arrays in, code that is written out is only long.
    const ROLLED: bool = false;
    /// The same value everywhere.
    fn splat(self, x: T) -> Self::V;
    /// The first values of a slice.
    fn load(self, x: &[T]) -> Self::V;
    /// Write to the beginning of a slice.
    fn store(self, x: Self::V, to: &mut [T]);
    /// a + b.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// a - b.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// a b.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// a b + c, rounded once.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// a where a < b, else b.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// a where a > b, else b.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// `below` where x < limit, else `other`.
    fn select(self, x: Self::V, limit: Self::V, below: Self::V, other: Self::V) -> Self::V;
    /// a / b.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// As [`Real::scaled`].
    fn scaled(self, x: Self::V, k: Self::V) -> Self::V;
    /// As [`Real::flip`].
    fn flip(self, x: Self::V, signs: Self::V) -> Self::V;
    /// Add to each of eight sums the sum of two values, which are eight apart.
    #[inline(always)]
    fn add_halves(self, x: &[T; 16], sums: &mut [f64; 8]) {
        for i in 0..8 {
            sums[i] += (x[i] + x[i + 8]).to_f64();
        }
    }

    /// 2^r for |r| <= 1/2, of some vectors in turns: one alone would wait for each operation.
    #[inline(always)]
    fn octave<const N: usize>(self, r: [Self::V; N]) -> [Self::V; N] {
        octave(self, r)
    }
    /// 2^x for x <= 0 that is not below [`Real::LOWEST`], within 2 ulp.
    #[inline(always)]
    fn exp2_normal<const N: usize>(self, x: [Self::V; N]) -> [Self::V; N] {
        let round = self.splat(T::ROUND);
        let (mut shifted, mut r) = (x, x);
        for i in 0..N {
            shifted[i] = self.add(x[i], round);
            r[i] = self.sub(x[i], self.sub(shifted[i], round));
        }
        let mut power = self.octave(r);
        for i in 0..N {
            power[i] = self.scaled(power[i], shifted[i]);
        }
        power
    }
    /// 2^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    #[inline(always)]
    fn exp2_nonpositive<const N: usize>(self, mut x: [Self::V; N]) -> [Self::V; N] {
        // the bits of the power below the lowest, without its exponent, are those of 0
        let lowest = self.splat(T::LOWEST);
        let below = self.sub(lowest, self.splat(T::ONE));
        for i in 0..N {
            x[i] = self.select(x[i], lowest, below, x[i]);
        }
        self.exp2_normal(x)
    }
    /// e^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    #[inline(always)]
    fn exp_nonpositive(self, x: Self::V) -> Self::V {
        let [high, low] = T::LN_2;
        let (round, zero) = (self.splat(T::ROUND), self.splat(T::default()));
        let lowest = self.mul(self.splat(T::LOWEST), self.splat(high));
        let clamped = self.select(x, lowest, lowest, x);
        let shifted = self.mul_add(clamped, self.splat(T::LOG2_E), round);
        let k = self.sub(zero, self.sub(shifted, round));
        let r = self.mul_add(k, self.splat(low), self.mul_add(k, self.splat(high), clamped));
        let [power] = self.octave([self.mul(r, self.splat(T::LOG2_E))]);
        self.select(x, lowest, zero, self.scaled(power, shifted))
    }
}

#[inline(always)]
fn octave<T: Real, S: Vectors<T>, const N: usize>(simd: S, r: [S::V; N]) -> [S::V; N] {
    let mut q = [simd.splat(T::EXP2[0]); N];
    for &coefficient in &T::EXP2[1..] {
        let coefficient = simd.splat(coefficient);
        for i in 0..N {
            q[i] = simd.mul_add(q[i], r[i], coefficient);
        }
    }
    q
}

/// As [`Kernel`], written with the operations of [`Vectors`].
pub trait RealKernel<T: Real> {
    /// What the work returns.
    type Output;
    /// Do the work.
    fn run<S: Vectors<T>>(self, simd: S) -> Self::Output;
}

/// Run a kernel of floating-point numbers on the instruction set in use.
pub fn dispatch_reals<T: Real, K: RealKernel<T>>(kernel: K) -> K::Output {
    T::dispatch_at(level(), kernel)
}

/// `N` values as the compiler sees fit. Where a multiply-add is a call for each of them, what is made of many is one too:
/// it takes no longer, and the code is a third of the size.
#[derive(Clone, Copy)]
struct Plain<const N: usize>;

impl<T: Real, const N: usize> Vectors<T> for Plain<N> {
    type V = [T; N];
    const WIDTH: usize = N;
    const MANY: bool = false;
    const ROLLED: bool = cfg!(target_arch = "x86_64");
    #[inline(always)]
    fn splat(self, x: T) -> [T; N] {
        [x; N]
    }
    #[inline(always)]
    fn load(self, x: &[T]) -> [T; N] {
        let mut out = [T::default(); N];
        out.copy_from_slice(&x[..N]);
        out
    }
    #[inline(always)]
    fn store(self, x: [T; N], to: &mut [T]) {
        to[..N].copy_from_slice(&x);
    }
    #[inline(always)]
    fn add(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = a;
        for i in 0..N {
            out[i] = a[i] + b[i];
        }
        out
    }
    #[inline(always)]
    fn sub(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = a;
        for i in 0..N {
            out[i] = a[i] - b[i];
        }
        out
    }
    #[inline(always)]
    fn mul(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = a;
        for i in 0..N {
            out[i] = a[i] * b[i];
        }
        out
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn mul_add(self, a: [T; N], b: [T; N], c: [T; N]) -> [T; N] {
        let mut out = c;
        for i in 0..N {
            out[i] = a[i].mul_add(b[i], c[i]);
        }
        out
    }
    #[inline(always)]
    fn min(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = b;
        for i in 0..N {
            out[i] = if a[i] < b[i] { a[i] } else { b[i] };
        }
        out
    }
    #[inline(always)]
    fn max(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = b;
        for i in 0..N {
            out[i] = if a[i] > b[i] { a[i] } else { b[i] };
        }
        out
    }
    #[inline(always)]
    fn select(self, x: [T; N], limit: [T; N], below: [T; N], other: [T; N]) -> [T; N] {
        let mut out = other;
        for i in 0..N {
            out[i] = if x[i] < limit[i] { below[i] } else { other[i] };
        }
        out
    }
    #[inline(always)]
    fn div(self, a: [T; N], b: [T; N]) -> [T; N] {
        let mut out = a;
        for i in 0..N {
            out[i] = a[i] / b[i];
        }
        out
    }
    #[inline(always)]
    fn flip(self, x: [T; N], signs: [T; N]) -> [T; N] {
        let mut out = x;
        for i in 0..N {
            out[i] = x[i].flip(signs[i]);
        }
        out
    }
    #[inline(always)]
    fn scaled(self, x: [T; N], k: [T; N]) -> [T; N] {
        let mut out = x;
        for i in 0..N {
            out[i] = x[i].scaled(k[i]);
        }
        out
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn octave<const M: usize>(self, r: [[T; N]; M]) -> [[T; N]; M] {
        octave(self, r)
    }
}

#[cfg(test)]
thread_local! {
    /// What tests make this thread use.
    static FORCED: std::cell::Cell<Option<Level>> = const { std::cell::Cell::new(None) };
}

/// Call work on this thread once for every instruction set the processor has, and return the results: as
/// [`on_every_level`] for what dispatches by itself, which is not compiled once more.
#[cfg(test)]
pub(crate) fn work_on_every_level<R>(work: impl Fn() -> R) -> Vec<R> {
    let levels = [Level::Baseline, Level::Avx2, Level::Avx512].into_iter().filter(|&level| level <= best());
    let results = levels.map(|level| {
        FORCED.set(Some(level));
        work()
    });
    let results = results.collect();
    FORCED.set(None);
    results
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
pub(crate) fn reals_on_every_level<T: Real, K: RealKernel<T> + Clone>(kernel: &K) -> Vec<K::Output> {
    [Level::Baseline, Level::Avx2, Level::Avx512]
        .into_iter()
        .filter(|&level| level <= best())
        .map(|level| T::dispatch_at(level, kernel.clone()))
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

    fn exp2_nonpositive<T: Real>(x: T) -> T {
        Plain::<1>.exp2_nonpositive([[x]])[0][0]
    }

    /// Every operation of [`Simd`] on some words.
    #[derive(Clone)]
    struct Operations([u64; 16]);
    impl WordKernel for Operations {
        type Output = Vec<u64>;
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Vec<u64> {
            let mut out = vec![0; 104];
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
                    simd.up(a, 0),
                    simd.up(a, 63),
                    simd.up(a, 64),
                    simd.down(a, 1),
                    simd.down(a, 63),
                    simd.down(a, 64),
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
                .chain(of(|a, _| a))
                .chain(of(|a, _| a << 63))
                .chain([0; 8])
                .chain(of(|a, _| a >> 1))
                .chain(of(|a, _| a >> 63))
                .chain([0; 8])
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
            worst[0] = worst[0].max(off(exp2_nonpositive::<f64>(x), want, ulp));
        }
        // all float32 of an octave of results, and many more over the whole range
        let octave = (0..1 << 23).map(|i| -(i as f32) / (1 << 23) as f32);
        for x in octave.chain((0..2_000_000).map(|i| -(i as f32) * (126.0 / 2e6))) {
            let want = f64::from(x).exp2();
            let ulp = f64::from(f32::from_bits((want as f32).to_bits() & 0x7F80_0000)) * f64::from(f32::EPSILON);
            worst[1] = worst[1].max(off(f64::from(exp2_nonpositive::<f32>(x)), want, ulp));
        }
        assert!(worst.iter().all(|&ulp| ulp <= 1.5), "{worst:?}");
    }

    #[test]
    fn exp2_ends_in_zero_and_one() {
        for x in [0.0, -0.0, -f64::MIN_POSITIVE, -1e-300] {
            assert_eq!(exp2_nonpositive::<f64>(x).to_bits(), 1f64.to_bits());
            assert_eq!(exp2_nonpositive::<f32>(x as f32).to_bits(), 1f32.to_bits());
        }
        assert_eq!(exp2_nonpositive::<f64>(-1022.0).to_bits(), f64::MIN_POSITIVE.to_bits());
        assert_eq!(exp2_nonpositive::<f32>(-126.0).to_bits(), f32::MIN_POSITIVE.to_bits());
        for x in [-1022.5, -1023.5, -1e9, -1e300, f64::NEG_INFINITY] {
            assert_eq!(exp2_nonpositive::<f64>(x).to_bits(), 0);
            assert_eq!(exp2_nonpositive::<f32>(x as f32).to_bits(), 0);
        }
    }
}
