//! Run-time choice of the instruction set and the arithmetic kernels share: the only file with `unsafe`.
//!
//! A [`Kernel`] is written once in plain Rust and compiled once per instruction set. No kernel uses fused
//! multiply-add, so all paths give the same bits.

#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Environment variable that forces a path: `baseline`, `avx2` or `avx512`.
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
            _ => Level::Avx512,
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
        Level::Avx512
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
        Level::Avx512 => unsafe { avx512(kernel) },
        Level::Avx2 => unsafe { avx2(kernel) },
        Level::Baseline => kernel.run(),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn dispatch_at<K: Kernel>(_level: Level, kernel: K) -> K::Output {
    kernel.run()
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
    /// Nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// e^x for x <= 0, within 2 ulp; below the normal range of results it is 0.
    fn exp_nonpositive(x: Self) -> Self;
}

impl Real for f64 {
    const LARGEST: f64 = f64::MAX;
    const SMALLEST: f64 = f64::MIN_POSITIVE;
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
}

impl Real for f32 {
    const LARGEST: f64 = f32::MAX as f64;
    const SMALLEST: f64 = f32::MIN_POSITIVE as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
