//! Squared error where squares of single samples' derivatives are needed: moments of the fourth order.
//!
//! Let u be (x, 1, y) and a = (theta, -1), so that the residual is a . u. The derivative of a sample's loss by parameter j
//! is 2 (a . u) u_j, and the mean of its square is 4 a^T M_j a with M_j the mean of u_j^2 u u^T.

use super::environments::{Batch, Environments, Needs, Task};
use super::moments::Moments;
use super::objectives::{add, dot};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::simd::{Kernel, dispatch_narrow};

/// Rows between two looks at the interrupt.
const ROWS: usize = 256;
const WHAT: &str = "the moments of the fourth order";

/// Moments of a regression, those of the fourth order too.
#[derive(Clone, Debug)]
pub struct Squares {
    moments: Moments,
    /// (E, p, p + 1, p + 1): mean of u_j^2 u u^T.
    fourth: Vec<f64>,
}

/// Add u_j^2 u u^T of some rows u, the lower triangle.
struct Products<'a> {
    rows: &'a [f64],
    /// Of a row.
    size: usize,
    sums: &'a mut [f64],
}

impl Kernel for Products<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let size = self.size;
        for (j, sums) in self.sums.chunks_exact_mut(size * size).enumerate() {
            for row in self.rows.chunks_exact(size) {
                for (k, sums) in sums.chunks_exact_mut(size).enumerate() {
                    let factor = row[j] * row[j] * row[k];
                    for (sum, x) in sums[..=k].iter_mut().zip(row) {
                        *sum = factor.mul_add(*x, *sum);
                    }
                }
            }
        }
    }
}

impl Squares {
    fn room(n: usize, width: usize) -> Result<Vec<f64>> {
        let many = [n, width, width + 1, width + 1].into_iter().fold(1usize, usize::saturating_mul);
        memory::filled(0.0, many, WHAT)
    }

    /// Of rows, as [`Moments::of_samples`].
    ///
    /// # Errors
    /// As [`Moments::of_samples`].
    pub fn of_samples(d: usize, environments: &[(&[f64], &[f64])], interrupt: &Interrupt) -> Result<Self> {
        let moments = Moments::of_samples(d, environments, interrupt)?;
        let (width, size) = (d + 1, d + 2);
        let mut fourth = Self::room(environments.len(), width)?;
        let each = width * size * size;
        let cuts = parallel::cuts(environments.len(), 1, |e| e * each)?;
        let rows = environments.iter().map(|(_, y)| y.len()).sum::<usize>();
        parallel::fill(&mut fourth, &cuts, rows.saturating_mul(each) > 1 << 18, interrupt, |e, sums| {
            let (x, y) = environments[e];
            let mut buffer = memory::filled(1.0, ROWS * size, WHAT)?;
            for (x, y) in x.chunks(ROWS * d).zip(y.chunks(ROWS)) {
                interrupt.check()?;
                for ((row, x), y) in buffer.chunks_exact_mut(size).zip(x.chunks_exact(d)).zip(y) {
                    row[..d].copy_from_slice(x);
                    row[width] = *y;
                }
                dispatch_narrow(Products { rows: &buffer[..y.len() * size], size, sums });
            }
            for sums in sums.chunks_exact_mut(size * size) {
                for j in 0..size {
                    for k in 0..=j {
                        let mean = sums[j * size + k] / y.len() as f64;
                        (sums[j * size + k], sums[k * size + j]) = (mean, mean);
                    }
                }
            }
            Ok(())
        })?;
        Self::checked(moments, fourth)
    }

    /// Of a population in which features and target are normal together, arguments as of [`Moments::new`]: there
    /// E[abcd] = E[ab] E[cd] + E[ac] E[bd] + E[ad] E[bc] - 2 E[a] E[b] E[c] E[d].
    ///
    /// # Errors
    /// As [`Moments::new`].
    pub fn of_normal(
        n_features: usize,
        inputs: Vec<f64>,
        cross: &[f64],
        squares: Vec<f64>,
        weights: Vec<f64>,
    ) -> Result<Self> {
        let (n, width, size) = (weights.len(), n_features + 1, n_features + 2);
        let (seconds, targets) = (inputs.clone(), squares.clone());
        let moments = Moments::new(n_features, inputs, cross, squares, weights)?;
        let mut fourth = Self::room(n, width)?;
        for e in 0..n {
            let inputs = &seconds[e * width * width..(e + 1) * width * width];
            let cross = &cross[e * width..(e + 1) * width];
            let second = |a: usize, b: usize| match (a < width, b < width) {
                (true, true) => inputs[a * width + b],
                (false, false) => targets[e],
                _ => cross[a.min(b)],
            };
            let mean = |a: usize| second(a, width - 1);
            for j in 0..width {
                let out = &mut fourth[(e * width + j) * size * size..(e * width + j + 1) * size * size];
                for a in 0..size {
                    for b in 0..size {
                        out[a * size + b] = second(j, j) * second(a, b) + 2.0 * second(j, a) * second(j, b)
                            - 2.0 * mean(j) * mean(j) * mean(a) * mean(b);
                    }
                }
            }
        }
        Self::checked(moments, fourth)
    }

    fn checked(moments: Moments, fourth: Vec<f64>) -> Result<Self> {
        if fourth.iter().any(|value| !value.is_finite()) {
            return Err(Error::range(format_args!(
                "X and y are too large: moments of the fourth order are not finite"
            )));
        }
        Ok(Self { moments, fourth })
    }
}

impl Environments for Squares {
    fn task(&self) -> Task {
        self.moments.task()
    }
    fn n_environments(&self) -> usize {
        self.moments.n_environments()
    }
    fn n_features(&self) -> usize {
        self.moments.n_features()
    }
    fn weights(&self) -> &[f64] {
        self.moments.weights()
    }
    fn shares(&self) -> &[f64] {
        self.moments.shares()
    }
    fn inputs(&self) -> &[f64] {
        self.moments.inputs()
    }
    fn offers(&self, _needs: Needs) -> Result<()> {
        Ok(())
    }
    fn prepare(&self, needs: Needs, batch: &mut Batch) -> Result<()> {
        self.moments.prepare(needs, batch)?;
        if needs.squares || needs.square_products {
            // M_j a, from the first pass to the second
            let size = self.fourth.len() / (self.n_features() + 2);
            batch.remembered = memory::filled(0.0, batch.n_runs.saturating_mul(size), WHAT)?;
        }
        Ok(())
    }
    fn together(&self) -> usize {
        self.moments.together()
    }
    fn work(&self) -> usize {
        self.moments.work() + self.fourth.len()
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        self.moments.first(theta, needs, batch);
        if !(needs.squares || needs.square_products) {
            return;
        }
        let (width, size) = (self.n_features() + 1, self.n_features() + 2);
        let mut a = vec![-1.0; size];
        let each = self.n_environments() * width;
        for run in 0..batch.n_runs {
            a[..width].copy_from_slice(&theta[run * width..(run + 1) * width]);
            for (i, matrix) in self.fourth.chunks_exact(size * size).enumerate() {
                let at = run * each + i;
                let turned = &mut batch.remembered[at * size..(at + 1) * size];
                turned.fill(0.0);
                for (row, &a) in matrix.chunks_exact(size).zip(&a) {
                    add(a, row, turned);
                }
                if needs.squares {
                    batch.squares[at] = 4.0 * dot(&a, turned);
                }
            }
        }
    }

    fn second(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        if needs.products {
            self.moments.second(theta, needs, batch);
        }
        if !needs.square_products {
            return;
        }
        let (width, size) = (self.n_features() + 1, self.n_features() + 2);
        let turned = batch.remembered.chunks_exact(width * size);
        let all = batch.square_products.chunks_exact_mut(width).zip(batch.weights.chunks_exact(width)).zip(turned);
        for ((out, weights), turned) in all.take(batch.n_runs * self.n_environments()) {
            out.fill(0.0);
            for (turned, weight) in turned.chunks_exact(size).zip(weights) {
                add(4.0 * weight, &turned[..width], out);
            }
        }
    }

    fn errors(&self, theta: &[f64]) -> Vec<f64> {
        self.moments.errors(theta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs =
        Needs { risks: false, curvatures: false, squares: true, products: true, square_products: true };

    fn look(data: &Squares, theta: &[f64], weights: &[f64]) -> Batch {
        let mut batch = Batch::new(data, NEEDS, 1).unwrap();
        data.first(theta, NEEDS, &mut batch);
        batch.weights.copy_from_slice(weights);
        data.second(theta, NEEDS, &mut batch);
        batch
    }

    #[test]
    fn squares_and_their_gradients_are_those_of_the_rows() {
        let x: Vec<f64> = (0..40).map(|i| (f64::from(i) * 1.7).sin() * 2.0 + 0.3).collect();
        let y: Vec<f64> = (0..20).map(|i| (f64::from(i) * 0.9).cos() - 0.2).collect();
        let data = Squares::of_samples(2, &[(&x, &y)], &Interrupt::default()).unwrap();
        let (theta, weights) = ([0.7, -0.4, 0.2], [0.5, -1.5, 2.0]);
        let batch = look(&data, &theta, &weights);
        let (mut squares, mut products) = ([0.0; 3], [0.0; 3]);
        for (x, y) in x.chunks_exact(2).zip(&y) {
            let xt = [x[0], x[1], 1.0];
            let r = dot(&theta, &xt) - y;
            for j in 0..3 {
                squares[j] += (2.0 * r * xt[j]).powi(2) / 20.0;
                for k in 0..3 {
                    products[k] += weights[j] * 4.0 * r * xt[j] * xt[j] * xt[k] / 20.0;
                }
            }
        }
        for j in 0..3 {
            assert!((batch.squares[j] / squares[j] - 1.0).abs() < 1e-13, "{:?} {squares:?}", batch.squares);
            assert!((batch.square_products[j] - products[j]).abs() < 1e-12, "{:?}", batch.square_products);
        }
    }

    #[test]
    fn normal_variables_are_known_by_two_moments() {
        // x ~ N(1, 4), y = 3 - x + noise of variance 1/4: at theta = (-1, 3) the residual is the noise alone
        let (inputs, cross) = (vec![5.0, 1.0, 1.0, 1.0], [3.0 - 5.0, 2.0]);
        let squares = vec![4.0 + 4.0 + 0.25];
        let data = Squares::of_normal(1, inputs, &cross, squares, vec![1.0]).unwrap();
        let batch = look(&data, &[-1.0, 3.0], &[1.0, 0.0]);
        assert!((batch.squares[0] - 4.0 * 0.25 * 5.0).abs() < 1e-12 && (batch.squares[1] - 1.0).abs() < 1e-12);
        // r = 4 (x - 1) - noise away from there: E[r^2] and E[r^2 x^2] = E[r^2 ((x - 1)^2 + 1)]
        let batch = look(&data, &[3.0, -1.0], &[1.0, 0.0]);
        assert!((batch.squares[1] - 4.0 * (64.0 + 0.25)).abs() < 1e-11, "{:?}", batch.squares);
        assert!((batch.squares[0] - 4.0 * (16.0 * 48.0 + 64.0 + 0.25 * 5.0)).abs() < 1e-10, "{:?}", batch.squares);
    }
}
