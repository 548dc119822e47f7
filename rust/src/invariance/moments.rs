//! Squared error: second moments say all there is to say, so a step costs as much for a million rows as for a population.

use super::environments::{Batch, Environments, Needs, Task, shares};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, RealKernel, Vectors, dispatch_narrow, dispatch_reals};

/// Numbers that columns of matrices are filled up to multiples of.
const LANES: usize = 8;
/// Runs that are stepped together: one waits for its own results, others can go on.
const TOGETHER: usize = 8;
/// Rows that are summed up at a time.
const ROWS: usize = 64;

/// Second moments of (x, 1) and y in each environment.
#[derive(Clone, Debug)]
pub struct Moments {
    /// p.
    width: usize,
    /// p, filled up.
    stride: usize,
    /// (E, p, p): mean xt xt^T.
    inputs: Vec<f64>,
    /// (E, p, stride): the columns of the Hessian, which is twice that.
    hessians: Vec<f64>,
    /// (E, stride): -2 mean xt y.
    cross: Vec<f64>,
    /// (E,): mean y^2.
    squares: Vec<f64>,
    weights: Vec<f64>,
    shares: Vec<f64>,
}

impl Moments {
    /// Of second moments: `inputs` (E, p, p) is mean xt xt^T, `cross` (E, p) is mean xt y and `squares` (E,) mean y^2,
    /// where xt is (x, 1). Rows of `weights` (E,) count in the pooled risk.
    ///
    /// # Errors
    /// [`Error`] when sizes disagree, a value is not finite, or a matrix is not symmetric.
    pub fn new(
        n_features: usize,
        inputs: Vec<f64>,
        cross: &[f64],
        squares: Vec<f64>,
        weights: Vec<f64>,
    ) -> Result<Self> {
        let (n, width) = (weights.len(), n_features + 1);
        let shares = shares(&weights, "n")?;
        if n == 0 {
            return Err(Error::range(format_args!("n must have at least one entry: there is no environment")));
        }
        for (name, values, size) in
            [("S", inputs.as_slice(), n * width * width), ("c", cross, n * width), ("v", squares.as_slice(), n)]
        {
            if values.len() != size {
                return Err(Error::range(format_args!(
                    "{name} must have {size} values for {n} environments of {n_features} features; got {}",
                    values.len()
                )));
            }
            if let Some(i) = values.iter().position(|value| !value.is_finite()) {
                return Err(Error::range(format_args!(
                    "{name}[{}] has a value that is {} (position {} of the environment): moments must be finite",
                    i / (size / n),
                    values[i],
                    i % (size / n)
                )));
            }
        }
        for (e, matrix) in inputs.chunks_exact(width * width).enumerate() {
            let largest = matrix.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
            for j in 0..width {
                for k in 0..j {
                    if (matrix[j * width + k] - matrix[k * width + j]).abs() > 1e-9 * largest {
                        return Err(Error::range(format_args!(
                            "S[{e}] must be symmetric; [{j}, {k}] differs from [{k}, {j}]"
                        )));
                    }
                }
            }
            let one = matrix[width * width - 1];
            if (one - 1.0).abs() > 1e-9 {
                return Err(Error::range(format_args!("S[{e}] must end in 1, the mean of 1 * 1; it ends in {one}")));
            }
        }
        let stride = width.next_multiple_of(LANES);
        let mut hessians = memory::filled(0.0, n * width * stride, "the moments")?;
        for (column, values) in hessians.chunks_exact_mut(stride).zip(inputs.chunks_exact(width)) {
            for (to, from) in column.iter_mut().zip(values) {
                *to = 2.0 * from;
            }
        }
        let mut filled_cross = memory::filled(0.0, n * stride, "the moments")?;
        for (to, from) in filled_cross.chunks_exact_mut(stride).zip(cross.chunks_exact(width)) {
            for (to, from) in to.iter_mut().zip(from) {
                *to = -2.0 * from;
            }
        }
        Ok(Self { width, stride, inputs, hessians, cross: filled_cross, squares, weights, shares })
    }

    /// Of rows: for each environment features (n, d), row-major, and targets (n,).
    ///
    /// # Errors
    /// [`Error`] when sizes disagree or a value is not finite; on interrupt.
    pub fn of_samples(d: usize, environments: &[(&[f64], &[f64])], interrupt: &Interrupt) -> Result<Self> {
        let width = d + 1;
        let mut weights = memory::room(environments.len(), "the moments")?;
        for (e, (x, y)) in environments.iter().enumerate() {
            check_rows(e, d, x, y.len())?;
            if let Some(i) = y.iter().position(|value| !value.is_finite()) {
                return Err(not_finite("y", e, &i.to_string(), y[i]));
            }
            weights.push(y.len() as f64);
        }
        let rows = environments.iter().map(|(_, y)| y.len()).sum::<usize>();
        let parts =
            parallel::map(environments.to_vec(), rows.saturating_mul(width * width) > 1 << 18, interrupt, |(x, y)| {
                // of (x, 1, y): all moments in one matrix
                let mut sums = memory::filled(0.0, (width + 1) * (width + 1), "the moments")?;
                let mut row = memory::filled(1.0, ROWS * (width + 1), "the moments")?;
                for (x, y) in x.chunks(ROWS * d).zip(y.chunks(ROWS)) {
                    interrupt.check()?;
                    for ((row, x), y) in row.chunks_exact_mut(width + 1).zip(x.chunks_exact(d)).zip(y) {
                        row[..d].copy_from_slice(x);
                        row[width] = *y;
                    }
                    dispatch_narrow(AddProducts {
                        width: width + 1,
                        rows: &row[..y.len() * (width + 1)],
                        sums: &mut sums,
                    });
                }
                let n = y.len() as f64;
                for sum in &mut sums {
                    *sum /= n;
                }
                Ok(sums)
            })?;
        let n = environments.len();
        let mut inputs = memory::room(n * width * width, "the moments")?;
        let mut cross = memory::room(n * width, "the moments")?;
        let mut squares = memory::room(n, "the moments")?;
        for sums in parts {
            let at = |j: usize, k: usize| sums[j.max(k) * (width + 1) + j.min(k)];
            for j in 0..width {
                inputs.extend((0..width).map(|k| at(j, k)));
            }
            cross.extend((0..width).map(|j| at(j, width)));
            squares.push(at(width, width));
        }
        Self::new(d, inputs, &cross, squares, weights)
    }
}

pub(super) fn not_finite(name: &str, e: usize, position: &str, value: f64) -> Error {
    Error::not_finite(&format!("{name}[{e}]"), format_args!("[{position}]"), value)
}

/// Features of one environment: as many as there are rows, all finite.
pub(super) fn check_rows<T: Copy + Into<f64>>(e: usize, d: usize, x: &[T], n: usize) -> Result<()> {
    if n == 0 {
        return Err(Error::range(format_args!("y[{e}] is empty: an environment needs at least one row")));
    }
    if x.len() != n * d {
        return Err(Error::range(format_args!(
            "X[{e}] and y[{e}] must have as many rows; got {} and {n}",
            x.len().checked_div(d).unwrap_or(0)
        )));
    }
    match x.iter().position(|&value| !value.into().is_finite()) {
        None => Ok(()),
        Some(i) => Err(not_finite("X", e, &format!("{}, {}", i / d, i % d), x[i].into())),
    }
}

/// Add the products of all pairs of columns of some rows: the lower triangle.
struct AddProducts<'a> {
    width: usize,
    rows: &'a [f64],
    sums: &'a mut [f64],
}

impl Kernel for AddProducts<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for row in self.rows.chunks_exact(self.width) {
            for (j, sums) in self.sums.chunks_exact_mut(self.width).enumerate() {
                let x = row[j];
                for (sum, y) in sums[..=j].iter_mut().zip(row) {
                    *sum = x.mul_add(*y, *sum);
                }
            }
        }
    }
}

/// Products of Hessians with vectors, one a run or one a run and environment, plus a vector an environment.
struct Products<'a> {
    moments: &'a Moments,
    /// One vector (p) a run, or with `each` one a run and environment.
    vectors: &'a [f64],
    each: bool,
    /// Whether -2 mean xt y is added.
    offset: bool,
    /// (R, E, p)
    out: &'a mut [f64],
}

impl RealKernel<f64> for Products<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Vectors<f64>>(self, simd: S) {
        let Moments { width, stride, hessians, cross, weights, .. } = self.moments;
        let (width, stride, n) = (*width, *stride, weights.len());
        for (i, out) in self.out.chunks_exact_mut(width).enumerate() {
            let e = i % n;
            let at = if self.each { i } else { i / n };
            let vector = &self.vectors[at * width..(at + 1) * width];
            let (hessian, cross) = (&hessians[e * width * stride..(e + 1) * width * stride], &cross[e * stride..]);
            for lane in (0..stride).step_by(S::WIDTH) {
                let mut sum = if self.offset { simd.load(&cross[lane..]) } else { simd.splat(0.0) };
                for (column, x) in hessian.chunks_exact(stride).zip(vector) {
                    sum = simd.mul_add(simd.load(&column[lane..]), simd.splat(*x), sum);
                }
                write(simd, sum, lane, out);
            }
        }
    }
}

/// Write to `out` from `lane` on, as far as it goes.
#[inline(always)]
fn write<S: Vectors<f64>>(simd: S, x: S::V, lane: usize, out: &mut [f64]) {
    if lane + S::WIDTH <= out.len() {
        simd.store(x, &mut out[lane..]);
    } else if lane < out.len() {
        let mut last = [0.0; LANES];
        simd.store(x, &mut last);
        for (to, from) in out[lane..].iter_mut().zip(last) {
            *to = from;
        }
    }
}

impl Environments for Moments {
    fn task(&self) -> Task {
        Task::Regression
    }
    fn n_environments(&self) -> usize {
        self.weights.len()
    }
    fn n_features(&self) -> usize {
        self.width - 1
    }
    fn weights(&self) -> &[f64] {
        &self.weights
    }
    fn shares(&self) -> &[f64] {
        &self.shares
    }
    fn inputs(&self) -> &[f64] {
        &self.inputs
    }
    fn offers(&self, needs: Needs) -> Result<()> {
        if needs.squares || needs.square_products {
            return Err(Error::range(format_args!(
                "learner needs gradients of single samples, which second moments do not tell"
            )));
        }
        Ok(())
    }
    fn together(&self) -> usize {
        TOGETHER
    }
    fn work(&self) -> usize {
        self.hessians.len()
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (width, n) = (self.width, self.n_environments());
        let many = batch.n_runs * n * width;
        let gradients = &mut batch.gradients[..many];
        dispatch_reals(Products { moments: self, vectors: theta, each: false, offset: true, out: gradients });
        let gradients = &batch.gradients[..many];
        if needs.risks {
            // R = th^T S th - 2 th^T c + v; the gradient is 2 (S th - c)
            for (i, (risk, gradient)) in batch.risks.iter_mut().zip(gradients.chunks_exact(width)).enumerate() {
                let (run, e) = (i / n, i % n);
                let theta = &theta[run * width..(run + 1) * width];
                let cross = &self.cross[e * self.stride..];
                let sum: f64 = theta.iter().zip(gradient).zip(cross).map(|((t, g), c)| t * (g + c)).sum();
                *risk = 0.5 * sum + self.squares[e];
            }
        }
        if needs.curvatures {
            let along = batch.along_theta.chunks_exact_mut(width).zip(batch.along_bias.chunks_exact_mut(width));
            for (i, (gradient, (along_theta, along_bias))) in gradients.chunks_exact(width).zip(along).enumerate() {
                let e = i % n;
                for ((to, g), c) in along_theta.iter_mut().zip(gradient).zip(&self.cross[e * self.stride..]) {
                    *to = g - c;
                }
                let column = (e * width + width - 1) * self.stride;
                along_bias.copy_from_slice(&self.hessians[column..column + width]);
            }
        }
    }

    fn second(&self, _theta: &[f64], _needs: Needs, batch: &mut Batch) {
        let many = batch.n_runs * self.n_environments() * self.width;
        let (vectors, out) = (&batch.directions[..many], &mut batch.products[..many]);
        dispatch_reals(Products { moments: self, vectors, each: true, offset: false, out });
    }

    fn errors(&self, theta: &[f64]) -> Vec<f64> {
        let mut batch = Batch {
            n_runs: 1,
            risks: vec![0.0; self.n_environments()],
            gradients: vec![0.0; self.n_environments() * self.width],
            ..Batch::default()
        };
        self.first(theta, Needs { risks: true, ..Needs::default() }, &mut batch);
        batch.risks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs =
        Needs { risks: true, curvatures: true, squares: false, products: true, square_products: false };

    fn rows(n: usize, d: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        ((0..n * d).map(|_| next()).collect(), (0..n).map(|_| 3.0 * next()).collect())
    }

    #[test]
    fn quantities_are_those_of_the_rows() {
        for (d, sizes) in [(1, [5, 1]), (7, [100, 131]), (10, [64, 65]), (23, [30, 200])] {
            let data: Vec<_> = sizes.iter().enumerate().map(|(e, &n)| rows(n, d, 5 + e as u64)).collect();
            let views: Vec<_> = data.iter().map(|(x, y)| (x.as_slice(), y.as_slice())).collect();
            let moments = Moments::of_samples(d, &views, &Interrupt::default()).unwrap();
            let width = d + 1;
            let (theta, _) = rows(2, width, 77);
            let mut batch = Batch::new(&moments, NEEDS, 2).unwrap();
            moments.first(&theta, NEEDS, &mut batch);
            batch.directions = rows(4, width, 78).0;
            moments.second(&theta, NEEDS, &mut batch);
            for i in 0..4 {
                let (run, e) = (i / 2, i % 2);
                let theta = &theta[run * width..(run + 1) * width];
                let direction = &batch.directions[i * width..(i + 1) * width];
                let n = sizes[e] as f64;
                let mut risk = 0.0;
                let mut want = vec![[0.0; 4]; width];
                for (x, y) in data[e].0.chunks_exact(d).zip(&data[e].1) {
                    let x: Vec<f64> = x.iter().copied().chain([1.0]).collect();
                    let dot = |v: &[f64]| x.iter().zip(v).map(|(x, v)| x * v).sum::<f64>();
                    let residual = dot(theta) - y;
                    risk += residual * residual / n;
                    for j in 0..width {
                        let terms = [residual, dot(theta), 1.0, dot(direction)];
                        for k in 0..4 {
                            want[j][k] += 2.0 * terms[k] * x[j] / n;
                        }
                    }
                }
                assert!((batch.risks[i] - risk).abs() < 1e-12 * (1.0 + risk));
                assert!((moments.errors(theta)[e] - risk).abs() < 1e-12 * (1.0 + risk));
                let all = [&batch.gradients, &batch.along_theta, &batch.along_bias, &batch.products];
                for (k, got) in all.into_iter().enumerate() {
                    for j in 0..width {
                        assert!((got[i * width + j] - want[j][k]).abs() < 1e-11, "{d} {k} {j}");
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_are_differences_of_risks() {
        let (x, y) = rows(50, 3, 1);
        let moments = Moments::of_samples(3, &[(&x, &y)], &Interrupt::default()).unwrap();
        let (theta, _) = rows(1, 4, 2);
        let mut batch = Batch::new(&moments, NEEDS, 1).unwrap();
        moments.first(&theta, NEEDS, &mut batch);
        for j in 0..4 {
            let (mut up, mut down) = (theta.clone(), theta.clone());
            up[j] += 1e-3;
            down[j] -= 1e-3;
            let slope = (moments.errors(&up)[0] - moments.errors(&down)[0]) / 2e-3;
            assert!((slope - batch.gradients[j]).abs() < 1e-10);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let message = |inputs: Vec<f64>, cross: &[f64], n: f64| {
            Moments::new(1, inputs, cross, vec![1.0], vec![n]).unwrap_err().to_string()
        };
        let good = || vec![2.0, 0.5, 0.5, 1.0];
        assert!(Moments::new(1, good(), &[0.0, 0.0], vec![1.0], vec![1.0]).is_ok());
        assert_eq!(message(good(), &[0.0, 0.0], 0.0), "n[0] is 0: it must be positive and finite");
        assert!(message(good(), &[0.0], 1.0).starts_with("c must have 2 values"));
        assert!(message(good(), &[0.0, f64::NAN], 1.0).contains("moments must be finite"));
        assert!(message(vec![2.0, 0.5, 0.4, 1.0], &[0.0, 0.0], 1.0).starts_with("S[0] must be symmetric"));
        assert!(message(vec![2.0, 0.5, 0.5, 2.0], &[0.0, 0.0], 1.0).starts_with("S[0] must end in 1"));
    }

    #[test]
    fn single_samples_have_no_gradients_here() {
        let moments = Moments::new(1, vec![1.0, 0.0, 0.0, 1.0], &[0.0; 2], vec![1.0], vec![1.0]).unwrap();
        assert!(moments.offers(Needs { squares: true, ..Needs::default() }).is_err());
        assert!(moments.offers(NEEDS).is_ok());
    }
}
