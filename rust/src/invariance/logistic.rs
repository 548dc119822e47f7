//! Logistic loss over rows, for many runs at a time.
//!
//! Rows are kept in float32, sixteen side by side, and pass by all runs a block at a time: a block stays next to the
//! processor while the runs read it. A pass is done in float32, where a number has 24 bits: the logits, the residuals
//! and their sums over a block. What blocks yield is added up in float64, and parameters are float64. The order of all
//! additions is fixed: of each of sixteen lanes over the rows of a block, of two halves of them, of blocks, of lanes.
//!
//! Logits are computed in units of ln 2, which saves the exponential function a multiplication.

use std::f64::consts::{LN_2, LOG2_E};
use std::sync::OnceLock;

use super::environments::{Batch, Environments, Line, Needs, Task, shares};
use super::exact::Exact;
use super::moments::check_rows;
use crate::error::{Error, Result};
use crate::memory;
use crate::simd::{Kernel, Real, RealKernel, Vectors, dispatch_narrow, dispatch_reals};

/// Rows side by side.
const LANES: usize = 16;
/// Sixteens of rows that are looked at together.
const GROUP: usize = 4;
/// Lanes of the sums in float64.
const SUMS: usize = LANES / 2;
/// The most sixteens of rows in a block.
const BLOCK: usize = 32;
/// The least: sums over a block are added up for each feature.
const LEAST_BLOCK: usize = 16;
/// Bytes of a block, about: what stays next to the processor beside the numbers of a run.
const BLOCK_BYTES: usize = 22 << 10;
/// Most runs that are stepped together.
const TOGETHER: usize = 16;

/// A value of each of sixteen rows.
type Lanes = Line<f32, LANES>;
const ZEROS: Lanes = Line([0.0; LANES]);
/// What sums up sixteen rows.
type Sum = Line<f64, SUMS>;

/// Coefficients, highest power first, of log(1 + t) / t for 0 <= t <= 1, minimax, with a relative error of 3e-8.
const LOG_1P: [f32; 9] = [
    5.232_691_3e-3,
    -2.950_522_7e-2,
    7.822_593e-2,
    -0.136_632_44,
    0.191_060_07,
    -0.248_429_82,
    0.333_190_98,
    -0.499_994_93,
    0.999_999_94,
];

/// Rows of one environment, filled up to a multiple of 64 with rows of zeros.
#[derive(Clone, Debug)]
struct Rows {
    n: usize,
    /// For each sixteen rows, d times a feature of all of them.
    x: Vec<Lanes>,
    /// -0 for class 0, else 0: what makes a logit negative where it is wrong.
    flips: Vec<Lanes>,
}

/// Rows of some environments, with classes.
#[derive(Clone, Debug)]
pub struct Samples {
    d: usize,
    environments: Vec<Rows>,
    weights: Vec<f64>,
    shares: Vec<f64>,
    inputs: OnceLock<Vec<f64>>,
}

impl Samples {
    /// For each environment features (n, d), row-major, and classes (n,).
    ///
    /// # Errors
    /// [`Error`] when sizes disagree, a value is not finite or a class is not 0 or 1.
    pub fn new(d: usize, environments: &[(&[f32], &[f64])]) -> Result<Self> {
        if environments.is_empty() {
            return Err(Error::range(format_args!("X must have at least one entry: there is no environment")));
        }
        let mut all = memory::room(environments.len(), "the rows")?;
        let mut weights = memory::room(environments.len(), "the rows")?;
        for (e, (x, y)) in environments.iter().enumerate() {
            check_rows(e, d, x, y.len())?;
            let mut flips = memory::filled(ZEROS, y.len().div_ceil(GROUP * LANES) * GROUP, "the rows")?;
            let mut rows = memory::filled(ZEROS, flips.len().saturating_mul(d), "the rows")?;
            for (i, (x, &y)) in x.chunks_exact(d).zip(*y).enumerate() {
                // exactly these two
                #[allow(clippy::float_cmp)]
                if y != 0.0 && y != 1.0 {
                    return Err(Error::range(format_args!("y[{e}][{i}] is {y}: classes must be 0 or 1")));
                }
                let (sixteen, lane) = (i / LANES, i % LANES);
                flips[sixteen][lane] = if y > 0.5 { 0.0 } else { -0.0 };
                for (to, from) in rows[sixteen * d..].iter_mut().zip(x) {
                    to[lane] = *from;
                }
            }
            weights.push(y.len() as f64);
            all.push(Rows { n: y.len(), x: rows, flips });
        }
        let shares = shares(&weights, "n")?;
        Ok(Self { d, environments: all, weights, shares, inputs: OnceLock::new() })
    }

    /// The class of row `i` of an environment, and its features to the beginning of `x`.
    pub(super) fn row(&self, e: usize, i: usize, x: &mut [f64]) -> f64 {
        let (rows, sixteen, lane) = (&self.environments[e], i / LANES, i % LANES);
        for (to, from) in x.iter_mut().zip(&rows.x[sixteen * self.d..(sixteen + 1) * self.d]) {
            *to = from[lane].into();
        }
        if rows.flips[sixteen][lane].is_sign_negative() { 0.0 } else { 1.0 }
    }

    /// Sixteens of rows of a block: a multiple of the group.
    fn block(&self) -> usize {
        let fit = BLOCK_BYTES / (self.d * size_of::<Lanes>());
        (fit / GROUP * GROUP).clamp(LEAST_BLOCK, BLOCK)
    }

    /// Sixteens of rows of all environments.
    fn sixteens(&self) -> usize {
        self.environments.iter().map(|rows| rows.flips.len()).sum()
    }

    fn inputs_of(&self) -> Vec<f64> {
        let width = self.d + 1;
        let mut out = vec![0.0; self.environments.len() * width * width];
        for (rows, out) in self.environments.iter().zip(out.chunks_exact_mut(width * width)) {
            dispatch_narrow(Inputs { d: self.d, rows, out });
            for j in 0..width {
                for k in 0..j {
                    out[k * width + j] = out[j * width + k];
                }
            }
        }
        out
    }
}

/// Mean of xt xt^T, lower triangle.
struct Inputs<'a> {
    d: usize,
    rows: &'a Rows,
    out: &'a mut [f64],
}

impl Kernel for Inputs<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.rows.n as f64;
        let width = self.d + 1;
        for j in 0..self.d {
            for k in 0..=j {
                let mut sums = [0.0; LANES];
                for row in self.rows.x.chunks_exact(self.d) {
                    for i in 0..LANES {
                        sums[i] = f64::from(row[j][i]).mul_add(f64::from(row[k][i]), sums[i]);
                    }
                }
                self.out[j * width + k] = sums.iter().sum::<f64>() / n;
            }
            let mut sums = [0.0; LANES];
            for row in self.rows.x.chunks_exact(self.d) {
                for i in 0..LANES {
                    sums[i] += f64::from(row[j][i]);
                }
            }
            self.out[self.d * width + j] = sums.iter().sum::<f64>() / n;
        }
        self.out[width * width - 1] = 1.0;
    }
}

/// Kinds of sums of the first pass: the gradient, with the other sign, comes first, the others in this order as far as
/// needed.
#[derive(Clone, Copy)]
struct Kinds {
    /// Slope times logit times xt, and after it slope times xt.
    curvatures: Option<usize>,
    /// Squared residual times squared xt.
    squares: Option<usize>,
    /// The loss; one number, in the place of the first parameter.
    risks: Option<usize>,
    many: usize,
}

impl Kinds {
    fn of(needs: Needs) -> Self {
        let mut many = 1;
        let mut take = |wanted: bool, size: usize| {
            let at = many;
            many += if wanted { size } else { 0 };
            wanted.then_some(at)
        };
        let (curvatures, squares, risks) = (take(needs.curvatures, 2), take(needs.squares, 1), take(needs.risks, 1));
        Self { curvatures, squares, risks, many }
    }
}

/// Numbers of the rows of a block, of one run.
struct Buffers {
    /// Class - sigma(logit).
    residuals: [Lanes; BLOCK],
    /// Slope times logit.
    turned: [Lanes; BLOCK],
    losses: [Lanes; BLOCK],
}

impl Buffers {
    fn new() -> Self {
        let zeros = [ZEROS; BLOCK];
        Self { residuals: zeros, turned: zeros, losses: zeros }
    }
}

/// theta . xt of four sixteens of rows from the first of `x` on; with SQUARED of squared xt.
#[inline(always)]
fn logits<S: Vectors<f32>, const H: usize, const SQUARED: bool>(
    simd: S,
    x: &[Lanes],
    theta: &[f32],
) -> [[S::V; GROUP]; H] {
    let (bias, weights) = (theta[theta.len() - 1], &theta[..theta.len() - 1]);
    let d = weights.len();
    let rows: [&[Lanes]; GROUP] = [&x[..d], &x[d..2 * d], &x[2 * d..3 * d], &x[3 * d..4 * d]];
    let mut z = [[simd.splat(bias); GROUP]; H];
    for (j, weight) in weights.iter().enumerate() {
        let weight = simd.splat(*weight);
        for h in 0..H {
            for i in 0..GROUP {
                let mut x = simd.load(&rows[i][j][h * S::WIDTH..]);
                if SQUARED {
                    x = simd.mul(x, x);
                }
                z[h][i] = simd.mul_add(x, weight, z[h][i]);
            }
        }
    }
    z
}

/// Add to sums of `K` kinds: weights of the rows times `F` features of them, and with the first ones the weights.
#[inline(always)]
fn features<S: Vectors<f32>, const K: usize, const F: usize, const SQUARED: bool>(
    simd: S,
    (x, d): (&[Lanes], usize),
    weights: [&[Lanes]; K],
    first: usize,
    sums: &mut [&mut [Sum]; K],
) {
    let mut lanes = [[ZEROS; F]; K];
    let mut biases = [ZEROS; K];
    for lane in (0..LANES).step_by(S::WIDTH) {
        let mut partial = [[simd.splat(0.0); F]; K];
        let mut bias = [simd.splat(0.0); K];
        for (i, row) in x.chunks_exact(d).enumerate() {
            let Some(row) = row[first..].first_chunk::<F>() else { continue };
            let mut w = [simd.splat(0.0); K];
            for k in 0..K {
                w[k] = simd.load(&weights[k][i][lane..]);
                bias[k] = if SQUARED { simd.mul_add(w[k], w[k], bias[k]) } else { simd.add(bias[k], w[k]) };
            }
            for f in 0..F {
                let x = simd.load(&row[f][lane..]);
                for k in 0..K {
                    partial[k][f] = if SQUARED {
                        let g = simd.mul(x, w[k]);
                        simd.mul_add(g, g, partial[k][f])
                    } else {
                        simd.mul_add(x, w[k], partial[k][f])
                    };
                }
            }
        }
        for k in 0..K {
            for f in 0..F {
                simd.store(partial[k][f], &mut lanes[k][f][lane..]);
            }
            simd.store(bias[k], &mut biases[k][lane..]);
        }
    }
    for k in 0..K {
        for f in 0..F {
            simd.add_halves(&lanes[k][f], &mut sums[k][first + f]);
        }
        if first == 0 {
            simd.add_halves(&biases[k], &mut sums[k][d]);
        }
    }
}

/// Add the sum of a number of each row.
#[inline(always)]
fn total<S: Vectors<f32>>(simd: S, values: &[Lanes], sums: &mut Sum) {
    let mut lanes = ZEROS;
    for lane in (0..LANES).step_by(S::WIDTH) {
        let mut sum = simd.splat(0.0);
        for value in values {
            sum = simd.add(sum, simd.load(&value[lane..]));
        }
        simd.store(sum, &mut lanes[lane..]);
    }
    simd.add_halves(&lanes, sums);
}

/// Add to sums of `K` kinds: weights of the rows times xt, the constant feature last. The features are taken a few at a
/// time, as many as there are registers for; that changes no sum.
#[inline(always)]
fn all_features<S: Vectors<f32>, const K: usize, const SQUARED: bool>(
    simd: S,
    (x, d): (&[Lanes], usize),
    weights: [&[Lanes]; K],
    sums: &mut [&mut [Sum]; K],
) {
    let mut first = 0;
    macro_rules! some {
        ($n:literal) => {
            if d - first >= $n {
                features::<S, K, $n, SQUARED>(simd, (x, d), weights, first, sums);
                first += $n;
                continue;
            }
        };
    }
    while first < d {
        // where each multiply-add is a call, code that calls is large and not faster for it
        if S::WIDTH >= LANES / 2 {
            if K == 1 {
                some!(10);
            }
            if K == 1 || S::MANY {
                some!(5);
            } else {
                some!(4);
            }
            some!(2);
        }
        features::<S, K, 1, SQUARED>(simd, (x, d), weights, first, sums);
        first += 1;
    }
}

/// The first pass over one environment, of all runs.
struct First<'a> {
    rows: &'a Rows,
    d: usize,
    /// Sixteens of a block.
    block: usize,
    /// (R, p), times log2(e).
    theta: &'a [f32],
    kinds: Kinds,
    /// Slopes, and where squares have a second pass residuals, of each run; of them those of this environment.
    kept: Kept<'a>,
    /// (R, kinds, p, lanes)
    sums: &'a mut [Sum],
}

/// Where slopes and residuals of rows are kept from the first pass to the second.
struct Kept<'a> {
    values: &'a mut [Lanes],
    /// Sixteens of a run.
    size: usize,
    /// Where slopes of this environment are, and residuals.
    slopes: Option<usize>,
    residuals: Option<usize>,
}

/// What is wanted of a row beside its residual. It is looked at for a few rows at a time: code for each combination was a
/// twentieth of all.
#[derive(Clone, Copy)]
struct Wanted {
    /// The slope, and that times the logit.
    slopes: bool,
    losses: bool,
}

impl First<'_> {
    /// What is needed of the rows of a block, of one run.
    #[inline(always)]
    fn block<S: Vectors<f32>, const H: usize>(
        simd: S,
        wanted: Wanted,
        (x, flips): (&[Lanes], &[Lanes]),
        theta: &[f32],
        slopes: &mut [Lanes],
        to: &mut Buffers,
    ) {
        let (one, limit, round) = (simd.splat(1.0), [simd.splat(-126.0), simd.splat(126.0)], simd.splat(f32::ROUND));
        let groups = flips.as_chunks::<GROUP>().0.iter().zip(slopes.as_chunks_mut::<GROUP>().0);
        for ((group, (flips, slopes)), x) in groups.enumerate().zip(x.chunks_exact(GROUP * (theta.len() - 1))) {
            let at = group * GROUP;
            let logits = logits::<S, H, false>(simd, x, theta);
            for h in 0..H {
                let (z, lane) = (logits[h], h * S::WIDTH);
                let (mut margin, mut shifted, mut r) = (z, z, z);
                for i in 0..GROUP {
                    // positive where the class is right; the order of the operands lets NaN pass
                    margin[i] = simd.flip(z[i], simd.load(&flips[i][lane..]));
                    let inside = simd.min(limit[1], simd.max(limit[0], margin[i]));
                    shifted[i] = simd.add(inside, round);
                    r[i] = simd.sub(inside, simd.sub(shifted[i], round));
                }
                let mut odds = simd.octave(r);
                let mut residual = r;
                for i in 0..GROUP {
                    odds[i] = simd.scaled(odds[i], shifted[i]);
                    // sigma(-margin), which loses no digits where it is small; at the limit, and only there, it ends in 0
                    let large = simd.div(one, simd.add(one, odds[i]));
                    residual[i] = simd.sub(large, simd.splat(f32::MIN_POSITIVE));
                }
                for i in 0..GROUP {
                    let flipped = simd.flip(residual[i], simd.load(&flips[i][lane..]));
                    simd.store(flipped, &mut to.residuals[at + i][lane..]);
                }
                if wanted.slopes {
                    for i in 0..GROUP {
                        let slope = simd.mul(simd.mul(odds[i], residual[i]), residual[i]);
                        simd.store(slope, &mut slopes[i][lane..]);
                        simd.store(simd.mul(slope, z[i]), &mut to.turned[at + i][lane..]);
                    }
                }
                if wanted.losses {
                    for i in 0..GROUP {
                        let t = simd.min(odds[i], simd.div(one, odds[i]));
                        let mut log = simd.splat(LOG_1P[0]);
                        for coefficient in &LOG_1P[1..] {
                            log = simd.mul_add(log, t, simd.splat(*coefficient));
                        }
                        let down = simd.mul(simd.min(margin[i], simd.splat(0.0)), simd.splat(-std::f32::consts::LN_2));
                        simd.store(simd.mul_add(log, t, down), &mut to.losses[at + i][lane..]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn all<S: Vectors<f32>, const H: usize>(self, simd: S) {
        let (d, width) = (self.d, self.d + 1);
        let Kinds { curvatures, squares, risks, many: kinds } = self.kinds;
        let wanted = Wanted { slopes: curvatures.is_some() || self.kept.slopes.is_some(), losses: risks.is_some() };
        let mut buffers = Buffers::new();
        let mut alone = [ZEROS; BLOCK];
        let size = kinds * width;
        for (b, flips) in self.rows.flips.chunks(self.block).enumerate() {
            let (first, many) = (b * self.block, flips.len());
            let x = (&self.rows.x[first * d..(first + many) * d], flips);
            for (run, theta) in self.theta.chunks_exact(width).enumerate() {
                let kept = run * self.kept.size + first;
                let slopes = match self.kept.slopes {
                    Some(at) => &mut self.kept.values[kept + at..kept + at + many],
                    None => &mut alone[..many],
                };
                Self::block::<S, H>(simd, wanted, x, theta, slopes, &mut buffers);
                if (first + many) * LANES > self.rows.n {
                    // rows that only fill up count for nothing
                    for i in self.rows.n.saturating_sub(first * LANES)..many * LANES {
                        let Buffers { residuals, turned, losses } = &mut buffers;
                        for values in [residuals, &mut *slopes, turned, losses] {
                            values[i / LANES][i % LANES] = 0.0;
                        }
                    }
                }
                let x = (x.0, d);
                let residuals = &buffers.residuals[..many];
                let sums = &mut self.sums[run * size..(run + 1) * size];
                let mut sums = sums.chunks_exact_mut(width);
                if let Some(gradients) = sums.next() {
                    if curvatures.is_none() {
                        all_features::<S, 1, false>(simd, x, [residuals], &mut [gradients]);
                    } else if let (Some(along_theta), Some(along_bias)) = (sums.next(), sums.next()) {
                        let weights = [residuals, &buffers.turned[..many], slopes];
                        all_features::<S, 3, false>(simd, x, weights, &mut [gradients, along_theta, along_bias]);
                    }
                }
                if squares.is_some()
                    && let Some(sums) = sums.next()
                {
                    all_features::<S, 1, true>(simd, x, [residuals], &mut [sums]);
                }
                if risks.is_some()
                    && let Some(sums) = sums.next()
                {
                    total(simd, &buffers.losses[..many], &mut sums[0]);
                }
                if let Some(at) = self.kept.residuals {
                    self.kept.values[kept + at..kept + at + many].copy_from_slice(residuals);
                }
            }
        }
    }
}

/// Choose how many registers sixteen rows take.
macro_rules! with_halves {
    ($simd:ident, $self:ident) => {
        match LANES / S::WIDTH {
            1 => $self.all::<S, 1>($simd),
            2 => $self.all::<S, 2>($simd),
            4 => $self.all::<S, 4>($simd),
            8 => $self.all::<S, 8>($simd),
            _ => $self.all::<S, LANES>($simd),
        }
    };
}

impl RealKernel<f32> for First<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<f32>>(self, simd: S) {
        with_halves!(simd, self);
    }
}

/// The second pass over one environment: sums of weights of the rows times xt.
struct Second<'a> {
    rows: &'a Rows,
    d: usize,
    block: usize,
    /// (R, p): directions, or weights of squares.
    directions: &'a [f32],
    kept: &'a [Lanes],
    /// As in [`Kept`]; with residuals it is for squares.
    size: usize,
    slopes: usize,
    residuals: Option<usize>,
    sums: &'a mut [Sum],
}

impl Second<'_> {
    #[inline(always)]
    fn all<S: Vectors<f32>, const H: usize>(self, simd: S) {
        let (d, width) = (self.d, self.d + 1);
        let mut weights = [ZEROS; BLOCK];
        for (b, flips) in self.rows.flips.chunks(self.block).enumerate() {
            let (first, many) = (b * self.block, flips.len());
            let x = &self.rows.x[first * d..(first + many) * d];
            for (run, direction) in self.directions.chunks_exact(width).enumerate() {
                let of = |at: usize| &self.kept[run * self.size + at + first..][..many];
                let slopes = of(self.slopes);
                let residuals = self.residuals.map(of);
                for at in (0..many).step_by(GROUP) {
                    let x = &x[at * d..(at + GROUP) * d];
                    let z = if residuals.is_some() {
                        logits::<S, H, true>(simd, x, direction)
                    } else {
                        logits::<S, H, false>(simd, x, direction)
                    };
                    for h in 0..H {
                        for i in 0..GROUP {
                            let lane = h * S::WIDTH;
                            let mut weight = simd.mul(z[h][i], simd.load(&slopes[at + i][lane..]));
                            if let Some(residuals) = residuals {
                                weight = simd.mul(weight, simd.load(&residuals[at + i][lane..]));
                            }
                            simd.store(weight, &mut weights[at + i][lane..]);
                        }
                    }
                }
                let sums = &mut self.sums[run * width..(run + 1) * width];
                all_features::<S, 1, false>(simd, (x, d), [&weights[..many]], &mut [sums]);
            }
        }
    }
}

impl RealKernel<f32> for Second<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<f32>>(self, simd: S) {
        with_halves!(simd, self);
    }
}

/// Errors of one environment: rows of the wrong class, or nothing where a logit is NaN.
struct Wrong<'a> {
    rows: &'a Rows,
    theta: &'a [f64],
}

impl Kernel for Wrong<'_> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let (bias, weights) = (self.theta[self.theta.len() - 1], &self.theta[..self.theta.len() - 1]);
        let (mut wrong, mut left) = (0, self.rows.n);
        for (x, flips) in self.rows.x.chunks_exact(weights.len()).zip(&self.rows.flips) {
            let mut z = [bias; LANES];
            for (x, weight) in x.iter().zip(weights) {
                for i in 0..LANES {
                    z[i] = f64::from(x[i]).mul_add(*weight, z[i]);
                }
            }
            for (z, flip) in z.iter().zip(flips.iter()).take(left) {
                if z.is_nan() {
                    return None;
                }
                wrong += usize::from((*z > 0.0) == flip.is_sign_negative());
            }
            left = left.saturating_sub(LANES);
        }
        Some(wrong)
    }
}

/// Lanes of a sum, in a fixed order.
fn sum_of(lanes: &Sum) -> f64 {
    let [a, b, c, d, e, f, g, h] = **lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The values in float32, divided by the largest, which is returned: squares and products of what is left do not end
/// in 0.
fn scaled(values: &[f64], to: &mut [f32]) -> f64 {
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    for (to, value) in to.iter_mut().zip(values) {
        *to = (value / scale) as f32;
    }
    scale
}

impl Samples {
    /// Where slopes and residuals of an environment are kept.
    fn places(&self, e: usize, needs: Needs) -> (Option<usize>, Option<usize>) {
        let before = self.environments[..e].iter().map(|rows| rows.flips.len()).sum();
        (needs.second().then_some(before), needs.square_products.then_some(self.sixteens() + before))
    }

    /// Sixteens of rows that are kept of a run.
    fn kept(&self, needs: Needs) -> usize {
        self.sixteens() * (usize::from(needs.second()) + usize::from(needs.square_products))
    }

    fn pass(&self, needs: Needs, squares: bool, batch: &mut Batch) {
        let (width, n) = (self.d + 1, self.environments.len());
        let mut directions = vec![0f32; batch.n_runs * width];
        let mut scales = vec![0.0; batch.n_runs];
        for (e, rows) in self.environments.iter().enumerate() {
            let all = if squares { &batch.weights } else { &batch.directions };
            for (run, (to, scale)) in directions.chunks_exact_mut(width).zip(&mut scales).enumerate() {
                *scale = scaled(&all[(run * n + e) * width..(run * n + e + 1) * width], to);
            }
            let sums = &mut batch.sums[..batch.n_runs * width];
            sums.fill(Line([0.0; SUMS]));
            let (slopes, residuals) = self.places(e, needs);
            dispatch_reals(Second {
                rows,
                d: self.d,
                block: self.block(),
                directions: &directions,
                kept: &batch.kept,
                size: self.kept(needs),
                slopes: slopes.unwrap_or(0),
                residuals: if squares { residuals } else { None },
                sums,
            });
            let out = if squares { &mut batch.square_products } else { &mut batch.products };
            for (run, scale) in scales.iter().enumerate() {
                let out = &mut out[(run * n + e) * width..(run * n + e + 1) * width];
                let scale = if squares { -scale } else { *scale }; // residuals are kept with the other sign
                for (out, sums) in out.iter_mut().zip(&batch.sums[run * width..]) {
                    *out = scale * sum_of(sums) / rows.n as f64;
                }
            }
        }
    }
}

impl Environments for Samples {
    fn task(&self) -> Task {
        Task::Classification
    }
    fn n_environments(&self) -> usize {
        self.environments.len()
    }
    fn n_features(&self) -> usize {
        self.d
    }
    fn weights(&self) -> &[f64] {
        &self.weights
    }
    fn shares(&self) -> &[f64] {
        &self.shares
    }
    fn inputs(&self) -> &[f64] {
        self.inputs.get_or_init(|| self.inputs_of())
    }
    fn offers(&self, _needs: Needs) -> Result<()> {
        Ok(())
    }
    fn exact(&self) -> Option<Box<dyn Environments + '_>> {
        Some(Box::new(Exact(self)))
    }
    fn together(&self) -> usize {
        TOGETHER
    }
    fn work(&self) -> usize {
        self.sixteens() * (self.d + 8)
    }

    fn prepare(&self, needs: Needs, batch: &mut Batch) -> Result<()> {
        let n_runs = batch.n_runs;
        batch.kept = memory::filled(ZEROS, self.kept(needs).saturating_mul(n_runs), "the slopes of rows")?;
        let size = Kinds::of(needs).many * (self.d + 1);
        batch.sums = memory::filled(Line([0.0; SUMS]), n_runs.saturating_mul(size), "the sums over rows")?;
        Ok(())
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (width, n) = (self.d + 1, self.environments.len());
        let kinds = Kinds::of(needs);
        let theta: Vec<f32> = theta.iter().map(|value| (value * LOG2_E) as f32).collect();
        let size = kinds.many * width;
        for (e, rows) in self.environments.iter().enumerate() {
            let sums = &mut batch.sums[..batch.n_runs * size];
            sums.fill(Line([0.0; SUMS]));
            let (slopes, residuals) = self.places(e, needs);
            dispatch_reals(First {
                rows,
                d: self.d,
                block: self.block(),
                theta: &theta,
                kinds,
                kept: Kept { values: &mut batch.kept, size: self.kept(needs), slopes, residuals },
                sums,
            });
            let rows = rows.n as f64;
            for run in 0..batch.n_runs {
                let sums = &batch.sums[run * size..(run + 1) * size];
                let here = (run * n + e) * width..(run * n + e + 1) * width;
                let write = |kind: Option<usize>, scale: f64, out: &mut [f64]| {
                    if let Some(kind) = kind {
                        for (out, sums) in out[here.clone()].iter_mut().zip(&sums[kind * width..]) {
                            *out = scale * sum_of(sums) / rows;
                        }
                    }
                };
                write(Some(0), -1.0, &mut batch.gradients);
                write(kinds.curvatures, LN_2, &mut batch.along_theta);
                write(kinds.curvatures.map(|kind| kind + 1), 1.0, &mut batch.along_bias);
                write(kinds.squares, 1.0, &mut batch.squares);
                if let Some(kind) = kinds.risks {
                    batch.risks[run * n + e] = sum_of(&sums[kind * width]) / rows;
                }
            }
        }
    }

    fn second(&self, _theta: &[f64], needs: Needs, batch: &mut Batch) {
        if needs.products {
            self.pass(needs, false, batch);
        }
        if needs.square_products {
            self.pass(needs, true, batch);
        }
    }

    fn errors(&self, theta: &[f64]) -> Vec<f64> {
        let known = theta.iter().all(|value| value.is_finite());
        let error = |rows: &Rows| match dispatch_narrow(Wrong { rows, theta }) {
            Some(wrong) if known => wrong as f64 / rows.n as f64,
            _ => f64::NAN,
        };
        self.environments.iter().map(error).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::work_on_every_level;

    /// Quantities of one run and environment, each by its definition in float64.
    #[derive(Debug, Default)]
    struct Naive {
        risk: f64,
        gradient: Vec<f64>,
        along_theta: Vec<f64>,
        along_bias: Vec<f64>,
        squares: Vec<f64>,
        products: Vec<f64>,
        square_products: Vec<f64>,
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn naive(x: &[f32], y: &[f64], theta: &[f64], direction: &[f64], weights: &[f64]) -> Naive {
        let d = theta.len() - 1;
        let n = y.len() as f64;
        let zeros = vec![0.0; d + 1];
        let mut out = Naive {
            gradient: zeros.clone(),
            along_theta: zeros.clone(),
            along_bias: zeros.clone(),
            squares: zeros.clone(),
            products: zeros.clone(),
            square_products: zeros,
            ..Naive::default()
        };
        for (x, &y) in x.chunks_exact(d).zip(y) {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).chain([1.0]).collect();
            let z = dot(&x, theta);
            let margin = if y > 0.5 { z } else { -z };
            let wrong = 1.0 / (1.0 + margin.exp());
            let residual = if y > 0.5 { -wrong } else { wrong };
            let slope = wrong / (1.0 + (-margin).exp());
            out.risk += ((-margin).max(0.0) + (-margin.abs()).exp().ln_1p()) / n;
            let weighted: f64 = x.iter().zip(weights).map(|(x, w)| w * x * x).sum();
            for j in 0..=d {
                out.gradient[j] += residual * x[j] / n;
                out.along_theta[j] += slope * z * x[j] / n;
                out.along_bias[j] += slope * x[j] / n;
                out.squares[j] += (residual * x[j]).powi(2) / n;
                out.products[j] += slope * dot(&x, direction) * x[j] / n;
                out.square_products[j] += residual * slope * weighted * x[j] / n;
            }
        }
        out
    }

    struct Numbers(u64);
    impl Numbers {
        /// Of [-1, 1), in float32.
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from((self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0)
        }
        fn take(&mut self, n: usize, scale: f64) -> Vec<f64> {
            (0..n).map(|_| scale * self.next()).collect()
        }
    }

    fn data(numbers: &mut Numbers, d: usize, sizes: &[usize]) -> (Vec<Vec<f32>>, Vec<Vec<f64>>) {
        let x = sizes.iter().map(|n| numbers.take(n * d, 1.0).iter().map(|&x| x as f32).collect()).collect();
        let y = sizes.iter().map(|&n| (0..n).map(|_| f64::from(numbers.next() > 0.2)).collect()).collect();
        (x, y)
    }

    fn samples(d: usize, x: &[Vec<f32>], y: &[Vec<f64>]) -> Samples {
        let data: Vec<_> = x.iter().zip(y).map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
        Samples::new(d, &data).unwrap()
    }

    const ALL: Needs = Needs { risks: true, curvatures: true, squares: true, products: true, square_products: true };

    #[test]
    fn all_quantities_are_those_of_their_definitions() {
        let mut numbers = Numbers(7);
        for (d, sizes) in [
            (1, vec![1, 15, 64]),
            (2, vec![16, 17]),
            (10, vec![1030, 63, 65]),
            (14, vec![513]),
            (23, vec![100, 300]),
            (130, vec![333, 31]),
        ] {
            let (x, y) = data(&mut numbers, d, &sizes);
            let samples = samples(d, &x, &y);
            let (n, width, n_runs) = (sizes.len(), d + 1, 3);
            let theta = numbers.take(n_runs * width, 3.0);
            let mut batch = Batch::new(&samples, ALL, n_runs).unwrap();
            samples.first(&theta, ALL, &mut batch);
            let size = n_runs * n * width;
            // as small as differences of gradients get, and smaller than float32 can be
            batch.directions = numbers.take(size, 1e-50);
            batch.weights = numbers.take(size, 1e-12);
            samples.second(&theta, ALL, &mut batch);
            for run in 0..n_runs {
                for e in 0..n {
                    let here = (run * n + e) * width..(run * n + e + 1) * width;
                    let (direction, weights) = (&batch.directions[here.clone()], &batch.weights[here.clone()]);
                    let want = naive(&x[e], &y[e], &theta[run * width..(run + 1) * width], direction, weights);
                    let risk = batch.risks[run * n + e];
                    assert!((risk - want.risk).abs() < 1e-6 * (1.0 + want.risk), "{risk} {want:?}");
                    for (got, want, what) in [
                        (&batch.gradients, &want.gradient, "gradient"),
                        (&batch.along_theta, &want.along_theta, "along_theta"),
                        (&batch.along_bias, &want.along_bias, "along_bias"),
                        (&batch.squares, &want.squares, "squares"),
                        (&batch.products, &want.products, "products"),
                        (&batch.square_products, &want.square_products, "square_products"),
                    ] {
                        let largest = want.iter().fold(0.0f64, |largest, w| largest.max(w.abs()));
                        for (got, want) in got[here.clone()].iter().zip(want) {
                            // float32 has an epsilon of 1.2e-7; logits of 130 features are sums of 130 terms
                            assert!((got - want).abs() < 1e-5 * largest, "{what} {d} {sizes:?}: {got} {want}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_are_differences_of_risks() {
        let mut numbers = Numbers(3);
        let (x, y) = data(&mut numbers, 4, &[200]);
        let samples = samples(4, &x, &y);
        let theta = numbers.take(5, 1.0);
        let needs = Needs { risks: true, ..Needs::default() };
        let at = |theta: &[f64]| {
            let mut batch = Batch::new(&samples, needs, 1).unwrap();
            samples.first(theta, needs, &mut batch);
            batch
        };
        for j in 0..5 {
            let (mut up, mut down) = (theta.clone(), theta.clone());
            up[j] += 0.01;
            down[j] -= 0.01;
            let slope = (at(&up).risks[0] - at(&down).risks[0]) / 0.02;
            assert!((slope - at(&theta).gradients[j]).abs() < 2e-5);
        }
    }

    #[test]
    fn all_levels_give_the_same_bits() {
        let mut numbers = Numbers(11);
        let products = Needs { products: true, ..Needs::default() };
        for d in [1, 4, 10, 23] {
            let (x, y) = data(&mut numbers, d, &[777, 64]);
            let samples = samples(d, &x, &y);
            let theta = numbers.take(3 * (d + 1), 40.0);
            let size = 6 * (d + 1);
            let (directions, weights) = (numbers.take(size, 1.0), numbers.take(size, 1.0));
            let risks = Needs { risks: true, ..Needs::default() };
            let curvatures = Needs { curvatures: true, ..Needs::default() };
            for needs in [Needs::default(), risks, curvatures, products, ALL] {
                let all = work_on_every_level(|| {
                    let mut batch = Batch::new(&samples, needs, 3).unwrap();
                    samples.first(&theta, needs, &mut batch);
                    if needs.second() {
                        batch.directions.clone_from(&directions);
                        batch.weights.clone_from(&weights);
                        samples.second(&theta, needs, &mut batch);
                    }
                    let Batch { risks, gradients, along_theta, along_bias, .. } = &batch;
                    let first = [risks, gradients, along_theta, along_bias];
                    let all = [&batch.squares, &batch.products, &batch.square_products].into_iter().chain(first);
                    all.flatten().map(|x| x.to_bits()).collect::<Vec<_>>()
                });
                assert!(!all[0].is_empty() && all.windows(2).all(|pair| pair[0] == pair[1]), "{d} {needs:?}");
            }
        }
    }

    #[test]
    fn what_is_far_on_the_right_side_has_no_gradient_and_no_loss() {
        let x = [1.0f32, 2.0, -1.0, -3.0];
        let y = [1.0, 1.0, 0.0, 0.0];
        let samples = Samples::new(1, &[(&x, &y)]).unwrap();
        let mut batch = Batch::new(&samples, ALL, 1).unwrap();
        for (weight, all_right) in [(90.0, true), (1e30, true), (-90.0, false), (-1e30, false)] {
            samples.first(&[weight, 0.0], ALL, &mut batch);
            let (gradient, loss) = (batch.gradients[0], batch.risks[0]);
            if all_right {
                assert!(gradient == 0.0 && loss < 1e-30, "{gradient} {loss}");
                assert!(batch.along_theta.iter().chain(&batch.along_bias).all(|&curvature| curvature == 0.0));
            } else {
                assert!((gradient + 1.75).abs() < 1e-6 && (loss / (-weight * 1.75) - 1.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn errors_count_rows_of_the_wrong_class() {
        let mut numbers = Numbers(5);
        let (x, y) = data(&mut numbers, 3, &[1000, 77]);
        let samples = samples(3, &x, &y);
        let theta = numbers.take(4, 1.0);
        for (e, error) in samples.errors(&theta).into_iter().enumerate() {
            let wrong = x[e].chunks_exact(3).zip(&y[e]).filter(|(x, y)| {
                let z: f64 = theta[3] + x.iter().zip(&theta).map(|(&x, t)| f64::from(x) * t).sum::<f64>();
                (z > 0.0) != (**y > 0.5)
            });
            assert_eq!(error.to_bits(), (wrong.count() as f64 / y[e].len() as f64).to_bits());
        }
        // a logit of 0 says 0
        let zero = Samples::new(1, &[(&[1.0, 1.0, 1.0], &[0.0, 1.0, 1.0])]).unwrap();
        assert_eq!(zero.errors(&[0.0, 0.0])[0].to_bits(), (2.0 / 3.0f64).to_bits());
        assert!(zero.errors(&[f64::NAN, 0.0])[0].is_nan() && zero.errors(&[0.0, f64::INFINITY])[0].is_nan());
    }

    #[test]
    fn moments_of_inputs_are_means_of_products() {
        let mut numbers = Numbers(9);
        let (x, y) = data(&mut numbers, 3, &[100, 50]);
        let samples = samples(3, &x, &y);
        for (x, inputs) in x.iter().zip(samples.inputs().chunks_exact(16)) {
            let n = x.len() as f64 / 3.0;
            for j in 0..4 {
                for k in 0..4 {
                    let of = |row: &[f32], j: usize| row.get(j).map_or(1.0, |&x| f64::from(x));
                    let want = x.chunks_exact(3).map(|row| of(row, j) * of(row, k)).sum::<f64>() / n;
                    assert!((inputs[j * 4 + k] - want).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let message = |d: usize, x: &[f32], y: &[f64]| Samples::new(d, &[(x, y)]).unwrap_err().to_string();
        assert_eq!(message(1, &[1.0], &[]), "y[0] is empty: an environment needs at least one row");
        assert_eq!(message(2, &[1.0, 2.0], &[0.0, 1.0]), "X[0] and y[0] must have as many rows; got 1 and 2");
        assert_eq!(message(1, &[1.0, f32::NAN], &[0.0, 1.0]), "X[0][1, 0] is NaN: drop or impute it first");
        assert_eq!(message(1, &[1.0, 2.0], &[0.0, 0.5]), "y[0][1] is 0.5: classes must be 0 or 1");
        assert!(Samples::new(1, &[]).is_err());
    }
}
