//! Expectations of the logistic loss and of its derivatives at a normal variable.
//!
//! Let t ~ N(mu, sigma^2) be the logit in favour of the right class and p = 1 / (1 + e^t) what the other class gets. The
//! integrands are smooth, but their width does not follow sigma: a rule of Gauss and Hermite with 64 nodes is right to 1e-15
//! at sigma = 1, to 1e-6 at 3, and to no digit at 20, which a few thousand steps come to. And gradients of well separated
//! classes are tiny, while the AND-mask looks at their direction only, so errors must be small beside E[p] and not beside 1.
//!
//! The trapezoidal rule converges as fast as e^(-c / step) for what is analytic near the axis; the poles of p lie at +-i pi.
//! - Below [`SWITCH`] nodes follow the normal density.
//! - From there on nodes lie at fixed t, so that all but the density there is a table. Where the integrand does not fall off
//!   on one side (p tends to 1), what it tends to is taken off in the shape of a normal distribution function, whose
//!   expectation is known. Where mu > sigma^2 / 2, most of E[p] comes from the tail p ~ e^-t, and e^-t is taken into the
//!   density, which moves its mean to mu - sigma^2: the same again, seen from the other side.
//!
//! Errors beside E[p] are below 1e-12 for sigma < 3 and below 1e-10 to sigma = 30, as the tests show.

use std::ops::Range;
use std::sync::OnceLock;

use crate::simd::{RealKernel, Vectors, dispatch_reals};

/// Nodes that are summed side by side, whatever fits into a register.
pub(super) const SIDE: usize = 8;
/// Values of [`Expected`].
pub(super) const VALUES: usize = 10;
/// Standard deviation from which nodes lie at fixed places.
const SWITCH: f64 = 1.2;
/// Nodes of the rule that follows the density, and their distance in standard deviations.
const NEAR: usize = 40;
const NEAR_STEP: f64 = 0.42;
/// Nodes at fixed places, their distance, and how many lie below 0: those above meet the side on which integrands fall off
/// as slowly as e^(-t / 2).
const FAR: usize = 144;
const FAR_STEP: f64 = 0.5;
const BELOW: usize = 50;
/// Standard deviations beyond which the density counts for nothing.
const REACH: f64 = 8.5;
/// Standard deviation of the normal distribution function that stands in for p.
const WIDTH: f64 = 1.7;
const ROOT_2_PI: f64 = 2.506_628_274_631_000_7;

/// Which values are needed, beside p and p (1 - p).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The second and third derivative of p.
    pub(super) curvatures: bool,
    /// ln(1 + e^-t).
    pub(super) risks: bool,
    /// p^2 and its derivatives.
    pub(super) squares: bool,
}

/// Expectations of: p, -p', -p'', -p''', ln(1 + e^-t), and p^2 with its first four derivatives. Primes are by t.
pub(super) type Expected = [f64; VALUES];

/// Nodes and tables.
struct Rule {
    near: [f64; NEAR],
    near_weights: [f64; NEAR],
    far: [f64; FAR],
    /// Blocks of [`SIDE`] nodes, for each value: what is left of the integrand, and the same where e^-t is taken out.
    tables: [Vec<f64>; 2],
}

/// p of the two sides of 0, (p, 1 - p) at t.
fn probabilities(t: f64) -> (f64, f64) {
    let small = (-t.abs()).exp();
    let large = 1.0 / (1.0 + small);
    if t < 0.0 { (large, small * large) } else { (small * large, large) }
}

/// The integrands over p.
fn over_p(p: f64, q: f64) -> Expected {
    let pq = p * q;
    let square = [1.0, -2.0 * q, q * (4.0 - 6.0 * p), -q * (8.0 - p * (30.0 - 24.0 * p))];
    let fourth = q * (16.0 - p * (114.0 - p * (216.0 - 120.0 * p)));
    [1.0, q, q * (p - q), q * (1.0 - 6.0 * pq), 0.0, p, p * square[1], p * square[2], p * square[3], p * fourth]
}

fn rule() -> &'static Rule {
    static RULE: OnceLock<Rule> = OnceLock::new();
    RULE.get_or_init(|| {
        let near = std::array::from_fn(|i| (i as f64 - (NEAR as f64 - 1.0) / 2.0) * NEAR_STEP);
        let far = std::array::from_fn(|i| (i as f64 - BELOW as f64) * FAR_STEP);
        let mut tables = [vec![0.0; FAR * VALUES], vec![0.0; FAR * VALUES]];
        for (i, &u) in far.iter().enumerate() {
            for (side, table) in tables.iter_mut().enumerate() {
                // the right side is seen from the other end: t = -u, and the integrand times e^t, whose p e^t is 1 - p
                let t = if side == 0 { u } else { -u };
                let (p, q) = probabilities(t);
                let loss = (-t).max(0.0) + (-t.abs()).exp().ln_1p();
                let factor = if side == 0 { p } else { q };
                let a = u / WIDTH;
                let [tail, density] = normal(a);
                let mut values = over_p(p, q).map(|value| factor * value);
                values[4] = if side == 0 { loss } else { loss * t.exp() };
                for ((value, limit), j) in values.iter_mut().zip(LIMITS[side]).zip(0..) {
                    let ramp = WIDTH * (density - a * tail);
                    *value -= limit * if side == 0 && j == 4 { ramp } else { tail };
                    table[(i / SIDE * VALUES + j) * SIDE + i % SIDE] = *value;
                }
            }
        }
        Rule { near, near_weights: near.map(|x: f64| NEAR_STEP * (-0.5 * x * x).exp() / ROOT_2_PI), far, tables }
    })
}

/// What the integrands tend to: at t = -infinity (of ln(1 + e^-t) the slope), and at infinity after division by e^-t.
const LIMITS: [Expected; 2] =
    [[1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, -1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]];

/// Coefficients, highest power first, of the normal tail over the density times (x + 5), in (x - 5) / (x + 5); a Chebyshev
/// interpolant, right to 1e-15.
const MILLS: [f64; 21] = [
    1.242_066_901_448_768_1e-8,
    -5.943_468_181_408_511e-9,
    -1.432_713_623_042_285e-7,
    7.486_860_348_107_56e-8,
    1.052_048_919_771_784_4e-6,
    -8.110_876_317_602_475e-7,
    -6.911_786_606_852_027e-6,
    9.956_648_293_551_802e-6,
    4.179_730_027_883_398e-5,
    -0.000_124_727_194_057_310_46,
    -0.000_148_827_235_892_399_2,
    0.001_365_856_656_551_665_8,
    -0.001_999_963_201_194_449_6,
    -0.007_503_282_371_966_785_5,
    0.052_125_502_563_594_286,
    -0.173_254_734_131_567_44,
    0.413_644_715_723_084_6,
    -0.785_911_075_544_521_7,
    1.241_547_061_574_104_4,
    -1.667_866_595_188_987_3,
    1.928_081_047_153_156_6,
];
const MILLS_AT: f64 = 5.0;

/// Phi(-x) and the standard normal density at x.
pub(super) fn normal(x: f64) -> [f64; 2] {
    let [tails, densities] = normals([x; SIDE]);
    [tails[0], densities[0]]
}

/// The same for some x side by side.
pub(super) fn normals(x: [f64; SIDE]) -> [[f64; SIDE]; 2] {
    dispatch_reals(Tails(x))
}

/// Phi(-x), to all but the last digit of whatever is left.
pub(super) fn normal_tail(x: f64) -> f64 {
    normal(x)[0]
}

/// [`tails`] by itself.
struct Tails([f64; SIDE]);

impl RealKernel<f64> for Tails {
    type Output = [[f64; SIDE]; 2];
    #[inline(always)]
    fn run<S: Vectors<f64>>(self, simd: S) -> Self::Output {
        tails(simd, self.0)
    }
}

/// Phi(-x) and the standard normal density at each x.
#[inline(always)]
fn tails<S: Vectors<f64>>(simd: S, x: [f64; SIDE]) -> [[f64; SIDE]; 2] {
    let (mut inverse, mut exponents, mut u) = ([0.0; SIDE], [0.0; SIDE], [0.0; SIDE]);
    for i in 0..SIDE {
        let x = x[i].abs();
        inverse[i] = 1.0 / (x + MILLS_AT);
        u[i] = 1.0 - 2.0 * MILLS_AT * inverse[i];
        exponents[i] = -0.5 * x * x;
    }
    let (mut tails, mut densities) = ([0.0; SIDE], [0.0; SIDE]);
    for lane in (0..SIDE).step_by(S::WIDTH) {
        let at = simd.load(&u[lane..]);
        let mut ratio = simd.splat(MILLS[0]);
        for &coefficient in &MILLS[1..] {
            ratio = simd.mul_add(ratio, at, simd.splat(coefficient));
        }
        let density = simd.mul(simd.exp_nonpositive(simd.load(&exponents[lane..])), simd.splat(1.0 / ROOT_2_PI));
        simd.store(density, &mut densities[lane..]);
        simd.store(simd.mul(simd.mul(ratio, density), simd.load(&inverse[lane..])), &mut tails[lane..]);
    }
    for i in 0..SIDE {
        if x[i] < 0.0 {
            tails[i] = 1.0 - tails[i];
        }
    }
    [tails, densities]
}

/// Write the expectations at N(mu, sigma^2) for each mu; NaN where something is not finite. Values that are not wanted are
/// left as they are or written, as it comes.
pub(super) fn expectations(wanted: Wanted, sigma: f64, means: &[f64], out: &mut [Expected]) {
    dispatch_reals(Expectations { wanted, sigma, means, out });
}

/// Compiled once and not for each combination of what is wanted: that was a twentieth of all code.
struct Expectations<'a> {
    wanted: Wanted,
    sigma: f64,
    means: &'a [f64],
    out: &'a mut [Expected],
}

impl RealKernel<f64> for Expectations<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vectors<f64>>(self, simd: V) {
        let Self { wanted, sigma, .. } = self;
        let rule = rule();
        for (means, out) in self.means.chunks(SIDE).zip(self.out.chunks_mut(SIDE)) {
            if !(sigma.is_finite() && means.iter().all(|mu| mu.is_finite())) {
                for out in out {
                    out.fill(f64::NAN);
                }
            } else if sigma < SWITCH {
                for (&mu, out) in means.iter().zip(out) {
                    near(simd, rule, wanted, mu, sigma, out);
                }
            } else {
                far(simd, rule, wanted, means, sigma, out);
            }
        }
    }
}

impl Wanted {
    /// Whether a value is wanted.
    #[inline(always)]
    fn has(self, value: usize) -> bool {
        match value {
            0 | 1 => true,
            2 | 3 => self.curvatures,
            4 => self.risks,
            _ => self.squares,
        }
    }
}

/// The sum of what lies side by side, in an order that does not depend on the registers.
#[inline(always)]
fn total(x: &[f64; SIDE]) -> f64 {
    ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
}

#[inline(always)]
fn near<V: Vectors<f64>>(simd: V, rule: &Rule, wanted: Wanted, mu: f64, sigma: f64, out: &mut Expected) {
    let mut sums = [[0.0; SIDE]; VALUES];
    let (mu, sigma) = (simd.splat(mu), simd.splat(sigma));
    let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
    for lane in (0..SIDE).step_by(V::WIDTH) {
        let mut acc = [zero; VALUES];
        for block in (0..NEAR).step_by(SIDE) {
            let t = simd.mul_add(sigma, simd.load(&rule.near[block + lane..]), mu);
            let weight = simd.load(&rule.near_weights[block + lane..]);
            let below = simd.min(t, simd.sub(zero, t));
            let e = simd.exp_nonpositive(below);
            let large = simd.div(one, simd.add(one, e));
            let small = simd.mul(e, large);
            let p = simd.select(t, zero, large, small);
            let q = simd.select(t, zero, small, large);
            let (wp, pq) = (simd.mul(weight, p), simd.mul(p, q));
            acc[0] = simd.add(acc[0], wp);
            let slope = simd.mul(weight, pq);
            acc[1] = simd.add(acc[1], slope);
            if wanted.curvatures {
                acc[2] = simd.mul_add(slope, simd.sub(p, q), acc[2]);
                acc[3] = simd.mul_add(slope, simd.mul_add(simd.splat(-6.0), pq, one), acc[3]);
            }
            if wanted.risks {
                acc[4] = simd.mul_add(weight, softplus(simd, t, large), acc[4]);
            }
            if wanted.squares {
                let first = simd.mul(slope, p);
                acc[5] = simd.mul_add(wp, p, acc[5]);
                acc[6] = simd.mul_add(simd.splat(-2.0), first, acc[6]);
                acc[7] = simd.mul_add(first, horner(simd, p, [-6.0, 4.0]), acc[7]);
                acc[8] = simd.mul_add(first, horner(simd, p, [-24.0, 30.0, -8.0]), acc[8]);
                acc[9] = simd.mul_add(first, horner(simd, p, [-120.0, 216.0, -114.0, 16.0]), acc[9]);
            }
        }
        for j in 0..VALUES {
            simd.store(acc[j], &mut sums[j][lane..]);
        }
    }
    for j in 0..VALUES {
        if wanted.has(j) {
            out[j] = total(&sums[j]);
        }
    }
}

/// A polynomial, highest power first.
#[inline(always)]
fn horner<V: Vectors<f64>, const N: usize>(simd: V, x: V::V, coefficients: [f64; N]) -> V::V {
    let mut y = simd.splat(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        y = simd.mul_add(y, x, simd.splat(coefficient));
    }
    y
}

/// ln(1 + e^-t), where `large` is 1 / (1 + e^-|t|).
#[inline(always)]
fn softplus<V: Vectors<f64>>(simd: V, t: V::V, large: V::V) -> V::V {
    let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
    // -ln(large) = 2 artanh(z), z = (1 - large) / (1 + large) <= 1/3
    let z = simd.div(simd.sub(one, large), simd.add(one, large));
    let series = horner(simd, simd.mul(z, z), ARTANH);
    simd.mul_add(z, series, simd.max(simd.sub(zero, t), zero))
}

/// Coefficients of 2 artanh(z) / z in z^2, highest power first; the next term is below 1e-17 at z = 1/3.
const ARTANH: [f64; 17] = {
    let mut out = [0.0; 17];
    let mut i = 0;
    while i < 17 {
        out[16 - i] = 2.0 / (2 * i + 1) as f64;
        i += 1;
    }
    out
};

/// As [`near`], for up to [`SIDE`] means.
#[inline(always)]
fn far<V: Vectors<f64>>(simd: V, rule: &Rule, wanted: Wanted, means: &[f64], sigma: f64, out: &mut [Expected]) {
    let variance = sigma * sigma;
    let spread = (variance + WIDTH * WIDTH).sqrt();
    let scale = FAR_STEP / (sigma * ROOT_2_PI);
    let curve = simd.splat(-0.5 / variance);
    let (mut sides, mut centres, mut at, mut exponents) = ([0; SIDE], [0.0; SIDE], [0.0; SIDE], [0.0; SIDE]);
    for (i, &mu) in means.iter().enumerate() {
        sides[i] = usize::from(mu > 0.5 * variance);
        centres[i] = if sides[i] == 1 { variance - mu } else { mu };
        at[i] = centres[i] / spread;
        exponents[i] = if sides[i] == 1 { 0.5 * variance - mu } else { 0.0 };
    }
    let [tails, densities] = tails(simd, at);
    let mut factors = [0.0; SIDE];
    for lane in (0..SIDE).step_by(V::WIDTH) {
        simd.store(simd.exp_nonpositive(simd.load(&exponents[lane..])), &mut factors[lane..]);
    }
    for (i, out) in out.iter_mut().enumerate().take(means.len()) {
        // the integrand lies within some deviations of the mean, or of where e^-t moves it
        let block = |t: f64| (t / FAR_STEP + BELOW as f64) / SIDE as f64;
        let first = block(centres[i] - REACH * sigma - variance).floor().clamp(0.0, (FAR / SIDE) as f64) as usize;
        let last = block(centres[i] + REACH * sigma).ceil().clamp(0.0, (FAR / SIDE) as f64) as usize;
        let (centre, table) = (simd.splat(centres[i]), &rule.tables[sides[i]]);
        let mut sums = [[0.0; SIDE]; VALUES];
        for lane in (0..SIDE).step_by(V::WIDTH) {
            let mut acc = [simd.splat(0.0); VALUES];
            for block in first..last {
                let distance = simd.sub(simd.load(&rule.far[block * SIDE + lane..]), centre);
                let density = simd.exp_nonpositive(simd.mul(curve, simd.mul(distance, distance)));
                let table = &table[block * SIDE * VALUES..(block + 1) * SIDE * VALUES];
                let mut add = |values: Range<usize>| {
                    for j in values {
                        acc[j] = simd.mul_add(density, simd.load(&table[j * SIDE + lane..]), acc[j]);
                    }
                };
                add(0..2);
                if wanted.curvatures {
                    add(2..4);
                }
                if wanted.risks {
                    add(4..5);
                }
                if wanted.squares {
                    add(5..VALUES);
                }
            }
            for j in 0..VALUES {
                simd.store(acc[j], &mut sums[j][lane..]);
            }
        }
        for j in 0..VALUES {
            if wanted.has(j) {
                let ramp = spread * (densities[i] - at[i] * tails[i]);
                let limit = LIMITS[sides[i]][j] * if sides[i] == 0 && j == 4 { ramp } else { tails[i] };
                out[j] = factors[i] * (limit + scale * total(&sums[j]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::reals_on_every_level;

    const ALL: Wanted = Wanted { curvatures: true, risks: true, squares: true };

    /// The trapezoidal rule with a step that leaves nothing to be desired, over all that counts.
    fn slowly(mu: f64, sigma: f64) -> Expected {
        let step = (0.1 * sigma).min(0.05);
        let first = (mu - sigma * sigma - 12.0 * sigma).min(if sigma > 1.0 { -70.0 } else { f64::MAX });
        let last = (mu + 12.0 * sigma).max(if sigma > 1.0 { 70.0 } else { f64::MIN });
        let mut out = [0.0; VALUES];
        for i in 0..((last - first) / step) as usize {
            let t = first + step * i as f64;
            let (p, q) = probabilities(t);
            let z = (t - mu) / sigma;
            let weight = step / sigma * (-0.5 * z * z).exp() / ROOT_2_PI;
            for (out, value) in out.iter_mut().zip(over_p(p, q)) {
                *out += weight * p * value;
            }
            out[4] += weight * ((-t).max(0.0) + (-t.abs()).exp().ln_1p());
        }
        out
    }

    #[test]
    fn errors_are_small_beside_the_gradient() {
        for (sigma, limit) in [
            (0.01, 1e-14),
            (0.3, 1e-14),
            (1.0, 1e-12),
            (1.199, 2e-11),
            (1.2, 2e-11),
            (1.5, 2e-11),
            (2.0, 1e-11),
            (3.0, 1e-11),
            (5.0, 1e-11),
            (8.0, 1e-11),
            (20.0, 1e-10),
            (30.0, 1e-10),
        ] {
            for place in [-3.0, -1.0, -0.3, 0.0, 0.2, 0.45, 0.5, 0.5000001, 0.55, 0.8, 1.0, 1.5, 3.0] {
                let mu: f64 = place * f64::max(sigma * sigma, sigma);
                if mu > 650.0 {
                    continue; // the result is 0
                }
                let want = slowly(mu, sigma);
                let mut got = [[0.0; VALUES]];
                expectations(ALL, sigma, &[mu], &mut got);
                for (j, (got, want)) in got[0].iter().zip(want).enumerate() {
                    let scale = want.abs().max(slowly(mu, sigma)[0]);
                    // the loss falls off more slowly by a factor of |t|, and high derivatives have poles of a high order
                    let limit = limit
                        * if j > 7 {
                            100.0
                        } else if j == 4 {
                            10.0
                        } else {
                            1.0
                        };
                    assert!((got - want).abs() <= limit * scale, "{sigma} {place} {j}: {got:e} {want:e}");
                }
            }
        }
    }

    #[test]
    fn both_rules_meet() {
        for mu in [-4.0, -1.0, 0.0, 0.5, 0.71, 0.73, 2.0, 9.0] {
            let mut got = [[[0.0; VALUES]]; 2];
            for (sigma, got) in [SWITCH * (1.0 - 1e-15), SWITCH].into_iter().zip(&mut got) {
                expectations(ALL, sigma, &[mu], got);
            }
            for j in 0..VALUES {
                assert!((got[0][0][j] - got[1][0][j]).abs() < 1e-9 * got[0][0][0], "{mu} {j} {got:?}");
            }
        }
    }

    #[test]
    fn a_constant_is_known_exactly() {
        let mut got = [[0.0; VALUES]; 3];
        expectations(ALL, 0.0, &[0.0, 40.0, -800.0], &mut got);
        assert!((got[0][0] - 0.5).abs() < 1e-15 && (got[0][4] - std::f64::consts::LN_2).abs() < 1e-15, "{got:?}");
        assert!((got[1][0] / (-40f64).exp() - 1.0).abs() < 1e-14 && (got[2][4] - 800.0).abs() < 1e-11, "{got:?}");
    }

    #[test]
    fn what_is_not_finite_is_not_a_number() {
        for (sigma, mu) in [(f64::NAN, 0.0), (f64::INFINITY, 1.0), (1.0, f64::NAN), (3.0, f64::NEG_INFINITY)] {
            let mut got = [[0.0; VALUES]];
            expectations(ALL, sigma, &[mu], &mut got);
            assert!(got[0].iter().all(|value| value.is_nan()), "{sigma} {mu} {got:?}");
        }
    }

    #[test]
    fn what_is_not_wanted_does_not_matter() {
        for sigma in [0.7, 4.0] {
            let means: Vec<f64> = (0..19).map(|i| f64::from(i) * 0.8 - 3.0).collect();
            let mut all = vec![[0.0; VALUES]; 19];
            expectations(ALL, sigma, &means, &mut all);
            for (i, wanted) in [(1, Wanted::default()), (3, Wanted { curvatures: true, ..Wanted::default() })] {
                let mut some = vec![[0.0; VALUES]; 19];
                expectations(wanted, sigma, &means, &mut some);
                for (some, all) in some.iter().zip(&all) {
                    assert_eq!(some[..=i].iter().map(|x| x.to_bits()).collect::<Vec<_>>(), {
                        all[..=i].iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                    });
                }
            }
        }
    }

    #[derive(Clone)]
    struct OnLevel(f64, Vec<f64>);
    impl RealKernel<f64> for OnLevel {
        type Output = Vec<[u64; VALUES]>;
        #[inline(always)]
        fn run<S: Vectors<f64>>(self, simd: S) -> Self::Output {
            let mut out = vec![[0.0; VALUES]; self.1.len()];
            Expectations { wanted: ALL, sigma: self.0, means: &self.1, out: &mut out }.run(simd);
            out.iter().map(|values| values.map(f64::to_bits)).collect()
        }
    }

    #[test]
    fn levels_give_the_same_bits() {
        for sigma in [0.0, 0.4, 1.1, 1.3, 7.0, 60.0] {
            let means = (0..21).map(|i| (f64::from(i) - 9.0) * (sigma + 0.3)).collect();
            let all = reals_on_every_level::<f64, _>(&OnLevel(sigma, means));
            assert!(all.iter().all(|bits| bits == &all[0]));
        }
    }

    #[test]
    fn tails_are_right_to_the_end() {
        // values with 17 digits, from arbitrary precision
        for (x, want) in [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (-2.5, 0.993_790_334_674_223_8),
            (6.0, 9.865_876_450_376_98e-10),
            (20.0, 2.753_624_118_606_233_7e-89),
            (37.0, 5.725_571_222_524_577e-300),
        ] {
            assert!((normal_tail(x) / want - 1.0).abs() < 3e-14, "{x} {:e}", normal_tail(x));
        }
        assert!(normal_tail(40.0) < 1e-300 && (normal_tail(-40.0) - 1.0).abs() < f64::EPSILON);
    }
}
