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

use super::environments::{Batch, Environments, Needs, Task, shares};
use super::exact::Exact;
use super::moments::check_rows;
use crate::error::{Error, Result};
use crate::memory;
use crate::simd::{Kernel, RealKernel, Vectors, dispatch, dispatch_reals};

/// Rows side by side.
const LANES: usize = 16;
/// Sixteens of rows that are looked at together.
const GROUP: usize = 4;
/// Lanes of the sums in float64.
const SUMS: usize = LANES / 2;
/// The most sixteens of rows in a block.
const BLOCK: usize = 32;
/// Bytes of a block, about: what stays next to the processor beside the numbers of a run.
const BLOCK_BYTES: usize = 22 << 10;
/// Most runs that are stepped together.
const TOGETHER: usize = 16;

/// A value of each of sixteen rows.
type Lanes = [f32; LANES];

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
    /// -0 for class 1, else 0: what makes a logit negative where it is right.
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
            return Err(Error::Range("X must have at least one entry: there is no environment".to_owned()));
        }
        let mut all = memory::room(environments.len(), "the rows")?;
        let mut weights = memory::room(environments.len(), "the rows")?;
        for (e, (x, y)) in environments.iter().enumerate() {
            check_rows(e, d, x, y.len())?;
            let mut flips = memory::filled([0.0; LANES], y.len().div_ceil(GROUP * LANES) * GROUP, "the rows")?;
            let mut rows = memory::filled([0.0; LANES], flips.len().saturating_mul(d), "the rows")?;
            for (i, (x, &y)) in x.chunks_exact(d).zip(*y).enumerate() {
                // exactly these two
                #[allow(clippy::float_cmp)]
                if y != 0.0 && y != 1.0 {
                    return Err(Error::Range(format!("y[{e}][{i}] is {y}: classes must be 0 or 1")));
                }
                let (sixteen, lane) = (i / LANES, i % LANES);
                flips[sixteen][lane] = if y > 0.5 { -0.0 } else { 0.0 };
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
        if rows.flips[sixteen][lane].is_sign_negative() { 1.0 } else { 0.0 }
    }

    /// Sixteens of rows of a block: a multiple of the group.
    fn block(&self) -> usize {
        let fit = BLOCK_BYTES / (self.d * size_of::<Lanes>());
        (fit / GROUP * GROUP).clamp(GROUP, BLOCK)
    }

    /// Sixteens of rows of all environments.
    fn sixteens(&self) -> usize {
        self.environments.iter().map(|rows| rows.flips.len()).sum()
    }

    fn inputs_of(&self) -> Vec<f64> {
        let width = self.d + 1;
        let mut out = vec![0.0; self.environments.len() * width * width];
        for (rows, out) in self.environments.iter().zip(out.chunks_exact_mut(width * width)) {
            dispatch(Inputs { d: self.d, rows, out });
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

/// Kinds of sums of the first pass: residuals times xt comes first, the others in this order as far as needed.
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
    residuals: [Lanes; BLOCK],
    slopes: [Lanes; BLOCK],
    turned: [Lanes; BLOCK],
    losses: [Lanes; BLOCK],
}

impl Buffers {
    fn new() -> Self {
        let zeros = [[0.0; LANES]; BLOCK];
        Self { residuals: zeros, slopes: zeros, turned: zeros, losses: zeros }
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

/// Add to sums of `K` kinds: weights of the rows times `F` features of them.
#[inline(always)]
fn features<S: Vectors<f32>, const K: usize, const F: usize, const SQUARED: bool>(
    simd: S,
    (x, d): (&[Lanes], usize),
    weights: [&[Lanes]; K],
    first: usize,
    sums: [&mut [[f64; SUMS]]; K],
) {
    let mut lanes = [[[0.0; LANES]; F]; K];
    for lane in (0..LANES).step_by(S::WIDTH) {
        let mut partial = [[simd.splat(0.0); F]; K];
        for (i, row) in x.chunks_exact(d).enumerate() {
            let Some(row) = row[first..].first_chunk::<F>() else { continue };
            let mut w = [simd.splat(0.0); K];
            for k in 0..K {
                w[k] = simd.load(&weights[k][i][lane..]);
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
        }
    }
    for (sums, lanes) in sums.into_iter().zip(&lanes) {
        for (sums, lanes) in sums[first..].iter_mut().zip(lanes) {
            flush(lanes, sums);
        }
    }
}

#[inline(always)]
fn flush(lanes: &Lanes, sums: &mut [f64; SUMS]) {
    for i in 0..SUMS {
        sums[i] += f64::from(lanes[i] + lanes[i + SUMS]);
    }
}

/// Add the sum of a number of each row.
#[inline(always)]
fn total<S: Vectors<f32>, const SQUARED: bool>(simd: S, values: &[Lanes], sums: &mut [f64; SUMS]) {
    let mut lanes = [0.0; LANES];
    for lane in (0..LANES).step_by(S::WIDTH) {
        let mut sum = simd.splat(0.0);
        for value in values {
            let value = simd.load(&value[lane..]);
            sum = if SQUARED { simd.mul_add(value, value, sum) } else { simd.add(sum, value) };
        }
        simd.store(sum, &mut lanes[lane..]);
    }
    flush(&lanes, sums);
}

/// Add to sums of `K` kinds: weights of the rows times xt, the constant feature last.
#[inline(always)]
fn all_features<S: Vectors<f32>, const K: usize, const SQUARED: bool>(
    simd: S,
    (x, d): (&[Lanes], usize),
    weights: [&[Lanes]; K],
    mut sums: [&mut [[f64; SUMS]]; K],
) {
    let mut first = 0;
    macro_rules! some {
        ($n:literal) => {
            while first + $n <= d {
                features::<S, K, $n, SQUARED>(simd, (x, d), weights, first, sums.each_mut().map(|sums| &mut **sums));
                first += $n;
            }
        };
    }
    if K == 1 {
        some!(10);
    }
    some!(5);
    some!(3);
    some!(2);
    some!(1);
    for (weights, sums) in weights.into_iter().zip(sums) {
        total::<S, SQUARED>(simd, weights, &mut sums[d]);
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
    sums: &'a mut [f64],
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

impl First<'_> {
    /// Residuals, slopes and losses of the rows of a block.
    #[inline(always)]
    fn block<S: Vectors<f32>, const H: usize>(
        &self,
        simd: S,
        (x, flips): (&[Lanes], &[Lanes]),
        theta: &[f32],
        slopes: bool,
        to: &mut Buffers,
    ) {
        let (zero, one, minus) = (simd.splat(0.0), simd.splat(1.0), simd.splat(-1.0));
        for (group, flips) in flips.chunks_exact(GROUP).enumerate() {
            let at = group * GROUP;
            let logits = logits::<S, H, false>(simd, &x[at * self.d..(at + GROUP) * self.d], theta);
            for h in 0..H {
                let (z, lane) = (logits[h], h * S::WIDTH);
                let (mut u, mut down) = (z, z);
                for i in 0..GROUP {
                    // positive where the class is wrong
                    u[i] = simd.flip(z[i], simd.load(&flips[i][lane..]));
                    down[i] = simd.select(u[i], zero, u[i], simd.mul(u[i], minus));
                }
                // sigma(|u|) = 1 / (1 + t), sigma(-|u|) = t / (1 + t): neither loses digits where it is small
                let t = simd.exp2_nonpositive(down);
                for i in 0..GROUP {
                    let large = simd.div(one, simd.add(one, t[i]));
                    let small = simd.mul(t[i], large);
                    let residual = simd.select(u[i], zero, small, large);
                    let flip = simd.load(&flips[i][lane..]);
                    simd.store(simd.flip(residual, flip), &mut to.residuals[at + i][lane..]);
                    if slopes {
                        let slope = simd.mul(small, large);
                        simd.store(slope, &mut to.slopes[at + i][lane..]);
                        if self.kinds.curvatures.is_some() {
                            simd.store(simd.mul(slope, z[i]), &mut to.turned[at + i][lane..]);
                        }
                    }
                }
                if self.kinds.risks.is_some() {
                    for i in 0..GROUP {
                        let mut log = simd.splat(LOG_1P[0]);
                        for coefficient in &LOG_1P[1..] {
                            log = simd.mul_add(log, t[i], simd.splat(*coefficient));
                        }
                        let up = simd.mul(simd.max(u[i], zero), simd.splat(std::f32::consts::LN_2));
                        simd.store(simd.mul_add(log, t[i], up), &mut to.losses[at + i][lane..]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn all<S: Vectors<f32>, const H: usize>(mut self, simd: S) {
        let (d, width) = (self.d, self.d + 1);
        let mut buffers = Buffers::new();
        let slopes = self.kinds.curvatures.is_some() || self.kept.slopes.is_some();
        let size = self.kinds.many * width * SUMS;
        for (b, flips) in self.rows.flips.chunks(self.block).enumerate() {
            let (first, many) = (b * self.block, flips.len());
            let x = &self.rows.x[first * d..(first + many) * d];
            for (run, theta) in self.theta.chunks_exact(width).enumerate() {
                self.block::<S, H>(simd, (x, flips), theta, slopes, &mut buffers);
                if (first + many) * LANES > self.rows.n {
                    self.clear(first, many, &mut buffers);
                }
                let sums = &mut self.sums[run * size..(run + 1) * size];
                let mut sums = sums.as_chunks_mut::<SUMS>().0.chunks_exact_mut(width);
                let residuals = &buffers.residuals[..many];
                if let Some(gradients) = sums.next() {
                    if self.kinds.curvatures.is_some()
                        && let (Some(along_theta), Some(along_bias)) = (sums.next(), sums.next())
                    {
                        let weights = [residuals, &buffers.turned[..many], &buffers.slopes[..many]];
                        all_features::<S, 3, false>(simd, (x, d), weights, [gradients, along_theta, along_bias]);
                    } else {
                        all_features::<S, 1, false>(simd, (x, d), [residuals], [gradients]);
                    }
                }
                if self.kinds.squares.is_some()
                    && let Some(sums) = sums.next()
                {
                    all_features::<S, 1, true>(simd, (x, d), [residuals], [sums]);
                }
                if self.kinds.risks.is_some()
                    && let Some(sums) = sums.next()
                {
                    total::<S, false>(simd, &buffers.losses[..many], &mut sums[0]);
                }
                let kept = &mut self.kept;
                for (at, values) in [(kept.slopes, &buffers.slopes), (kept.residuals, &buffers.residuals)] {
                    if let Some(at) = at {
                        let at = run * kept.size + at + first;
                        kept.values[at..at + many].copy_from_slice(&values[..many]);
                    }
                }
            }
        }
    }

    /// Rows that only fill up count for nothing.
    fn clear(&self, first: usize, many: usize, buffers: &mut Buffers) {
        for i in self.rows.n - (first * LANES).min(self.rows.n)..many * LANES {
            let (sixteen, lane) = (i / LANES, i % LANES);
            for values in [&mut buffers.residuals, &mut buffers.slopes, &mut buffers.turned, &mut buffers.losses] {
                values[sixteen][lane] = 0.0;
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
    sums: &'a mut [f64],
}

impl Second<'_> {
    #[inline(always)]
    fn all<S: Vectors<f32>, const H: usize>(self, simd: S) {
        let (d, width) = (self.d, self.d + 1);
        let mut weights = [[0.0; LANES]; BLOCK];
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
                let sums = &mut self.sums[run * width * SUMS..(run + 1) * width * SUMS];
                all_features::<S, 1, false>(simd, (x, d), [&weights[..many]], [sums.as_chunks_mut::<SUMS>().0]);
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
            for (z, flip) in z.iter().zip(flips).take(left) {
                if z.is_nan() {
                    return None;
                }
                wrong += usize::from((*z > 0.0) != flip.is_sign_negative());
            }
            left = left.saturating_sub(LANES);
        }
        Some(wrong)
    }
}

/// Lanes of a sum, in a fixed order.
fn sum_of(lanes: &[f64; SUMS]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
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
            let sums = &mut batch.sums[..batch.n_runs * width * SUMS];
            sums.fill(0.0);
            let (slopes, residuals) = self.places(e, needs);
            dispatch_reals(Second {
                rows,
                d: self.d,
                block: self.block(),
                directions: &directions,
                kept: batch.kept.as_chunks().0,
                size: self.kept(needs),
                slopes: slopes.unwrap_or(0),
                residuals: if squares { residuals } else { None },
                sums,
            });
            let out = if squares { &mut batch.square_products } else { &mut batch.products };
            for (run, scale) in scales.iter().enumerate() {
                let out = &mut out[(run * n + e) * width..(run * n + e + 1) * width];
                for (out, sums) in out.iter_mut().zip(batch.sums[run * width * SUMS..].as_chunks().0) {
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
        batch.kept = memory::filled(0.0, self.kept(needs).saturating_mul(LANES * n_runs), "the slopes of rows")?;
        let size = Kinds::of(needs).many * (self.d + 1) * SUMS;
        batch.sums = memory::filled(0.0, n_runs.saturating_mul(size), "the sums over rows")?;
        Ok(())
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (width, n) = (self.d + 1, self.environments.len());
        let kinds = Kinds::of(needs);
        let theta: Vec<f32> = theta.iter().map(|value| (value * LOG2_E) as f32).collect();
        let size = kinds.many * width * SUMS;
        for (e, rows) in self.environments.iter().enumerate() {
            let sums = &mut batch.sums[..batch.n_runs * size];
            sums.fill(0.0);
            let (slopes, residuals) = self.places(e, needs);
            dispatch_reals(First {
                rows,
                d: self.d,
                block: self.block(),
                theta: &theta,
                kinds,
                kept: Kept { values: batch.kept.as_chunks_mut().0, size: self.kept(needs), slopes, residuals },
                sums,
            });
            let rows = rows.n as f64;
            for run in 0..batch.n_runs {
                let sums = batch.sums[run * size..(run + 1) * size].as_chunks::<SUMS>().0;
                let here = (run * n + e) * width..(run * n + e + 1) * width;
                let write = |kind: Option<usize>, scale: f64, out: &mut [f64]| {
                    if let Some(kind) = kind {
                        for (out, sums) in out[here.clone()].iter_mut().zip(&sums[kind * width..]) {
                            *out = scale * sum_of(sums) / rows;
                        }
                    }
                };
                write(Some(0), 1.0, &mut batch.gradients);
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
        let error = |rows: &Rows| match dispatch(Wrong { rows, theta }) {
            Some(wrong) if known => wrong as f64 / rows.n as f64,
            _ => f64::NAN,
        };
        self.environments.iter().map(error).collect()
    }
}
