//! The passes over rows in float64, one row after the other: what [`Samples`] is checked against, and what shows that an
//! objective is right to more digits than float32 has.

use super::environments::{Batch, Environments, Needs, Task};
use super::logistic::Samples;
use super::objectives::{add, dot};
use crate::error::Result;

/// Rows of [`Samples`], slowly.
#[derive(Clone, Copy, Debug)]
pub struct Exact<'a>(pub &'a Samples);

/// p (1 - p), the residual p - y and the loss of a row.
fn at(logit: f64, class: f64) -> [f64; 3] {
    let small = (-logit.abs()).exp();
    let (slope, right) = (small / ((1.0 + small) * (1.0 + small)), (2.0 * class - 1.0) * logit);
    let wrong = if right < 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
    [slope, if class > 0.5 { -wrong } else { wrong }, (-right).max(0.0) + small.ln_1p()]
}

fn divide(values: &mut [f64], by: f64) {
    for value in values {
        *value /= by;
    }
}

impl Exact<'_> {
    /// Call with (x, 1) and the class of each row of an environment; the number of rows.
    fn rows(self, e: usize, mut of: impl FnMut(&[f64], f64)) -> f64 {
        let mut x = vec![1.0; self.n_features() + 1];
        let n = self.0.weights()[e] as usize;
        for i in 0..n {
            let class = self.0.row(e, i, &mut x);
            of(&x, class);
        }
        n as f64
    }
}

impl Environments for Exact<'_> {
    fn task(&self) -> Task {
        self.0.task()
    }
    fn n_environments(&self) -> usize {
        self.0.n_environments()
    }
    fn n_features(&self) -> usize {
        self.0.n_features()
    }
    fn weights(&self) -> &[f64] {
        self.0.weights()
    }
    fn shares(&self) -> &[f64] {
        self.0.shares()
    }
    fn inputs(&self) -> &[f64] {
        self.0.inputs()
    }
    fn offers(&self, _needs: Needs) -> Result<()> {
        Ok(())
    }
    fn together(&self) -> usize {
        1
    }
    fn work(&self) -> usize {
        self.0.work()
    }

    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (width, n) = (self.n_features() + 1, self.n_environments());
        for run in 0..batch.n_runs {
            let theta = &theta[run * width..(run + 1) * width];
            for e in 0..n {
                let here = (run * n + e) * width..(run * n + e + 1) * width;
                let mut risk = 0.0;
                let Batch { gradients, along_theta, along_bias, squares, .. } = &mut *batch;
                let mut outs = [gradients, along_theta, along_bias, squares]
                    .map(|values| values.get_mut(here.clone()).unwrap_or_default());
                for out in &mut outs {
                    out.fill(0.0);
                }
                let rows = self.rows(e, |x, class| {
                    let logit = dot(theta, x);
                    let [slope, residual, loss] = at(logit, class);
                    risk += loss;
                    add(residual, x, outs[0]);
                    add(slope * logit, x, outs[1]);
                    add(slope, x, outs[2]);
                    for (out, x) in outs[3].iter_mut().zip(x) {
                        *out += residual * residual * x * x;
                    }
                });
                for out in outs {
                    divide(out, rows);
                }
                if needs.risks {
                    batch.risks[run * n + e] = risk / rows;
                }
            }
        }
    }

    fn second(&self, theta: &[f64], needs: Needs, batch: &mut Batch) {
        let (width, n) = (self.n_features() + 1, self.n_environments());
        for run in 0..batch.n_runs {
            let theta = &theta[run * width..(run + 1) * width];
            for e in 0..n {
                let here = (run * n + e) * width..(run * n + e + 1) * width;
                if needs.products {
                    let (direction, out) = (&batch.directions[here.clone()], &mut batch.products[here.clone()]);
                    out.fill(0.0);
                    let rows = self.rows(e, |x, class| {
                        let [slope, ..] = at(dot(theta, x), class);
                        add(slope * dot(direction, x), x, out);
                    });
                    divide(out, rows);
                }
                if needs.square_products {
                    let (weights, out) = (&batch.weights[here.clone()], &mut batch.square_products[here]);
                    out.fill(0.0);
                    let rows = self.rows(e, |x, class| {
                        let [slope, residual, _] = at(dot(theta, x), class);
                        let sum: f64 = weights.iter().zip(x).map(|(weight, x)| weight * x * x).sum();
                        add(slope * residual * sum, x, out);
                    });
                    divide(out, rows);
                }
            }
        }
    }

    fn errors(&self, theta: &[f64]) -> Vec<f64> {
        self.0.errors(theta)
    }
}
