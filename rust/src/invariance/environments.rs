//! What a kind of data has to offer: the risks of linear predictors in each environment, and their derivatives.

use std::fmt::Debug;
use std::ops::{Deref, DerefMut};

use crate::error::{Error, Result};
use crate::memory;

/// What is predicted, and so what the risk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A number; the risk and the error are the mean squared error.
    Regression,
    /// A class, 0 or 1; the risk is the mean logistic loss, the error the share of wrong classes.
    Classification,
}

/// What an objective asks for, beside gradients, which it always gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // a list of things to tick
pub struct Needs {
    /// R_e.
    pub risks: bool,
    /// H_e theta and H_e applied to the bias.
    pub curvatures: bool,
    /// Mean squared gradients of single samples, one a parameter.
    pub squares: bool,
    /// H_e u for one direction u a run and environment: a second pass.
    pub products: bool,
    /// Half the gradient of the weighted sum of squares, weights one a run, environment and parameter: a second pass.
    pub square_products: bool,
}

impl Needs {
    /// Whether there is a second pass.
    #[must_use]
    pub fn second(self) -> bool {
        self.products || self.square_products
    }
}

/// Numbers side by side that fill a line of the cache: what begins elsewhere takes two lines to read.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Line<T, const N: usize>(pub [T; N]);

impl<T, const N: usize> Deref for Line<T, N> {
    type Target = [T; N];
    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        &self.0
    }
}

impl<T, const N: usize> DerefMut for Line<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; N] {
        &mut self.0
    }
}

/// Quantities of some runs. Arrays are row-major; those that are not needed are empty.
///
/// R runs, E environments and p = features + 1 parameters, the bias last.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Number of runs that are looked at, the first ones.
    pub n_runs: usize,
    /// (R, E): mean loss.
    pub risks: Vec<f64>,
    /// (R, E, p): gradient of the risk.
    pub gradients: Vec<f64>,
    /// (R, E, p): H theta.
    pub along_theta: Vec<f64>,
    /// (R, E, p): the column of H that belongs to the bias.
    pub along_bias: Vec<f64>,
    /// (R, E, p): mean over samples of the squared derivative of the loss by each parameter.
    pub squares: Vec<f64>,
    /// (R, E, p): directions u, for the second pass.
    pub directions: Vec<f64>,
    /// (R, E, p): H u.
    pub products: Vec<f64>,
    /// (R, E, p): weights w of squares, for the second pass.
    pub weights: Vec<f64>,
    /// (R, E, p): half the gradient of sum_j w_j squares_j.
    pub square_products: Vec<f64>,
    /// What the backend remembers from the first pass to the second.
    pub kept: Vec<Line<f32, 16>>,
    /// Sums of the backend.
    pub sums: Vec<Line<f64, 8>>,
    /// What a backend of moments or of a population remembers of each run.
    pub remembered: Vec<f64>,
}

impl Batch {
    /// Room for what is needed of `n_runs` runs.
    ///
    /// # Errors
    /// [`Error::memory`].
    pub fn new(environments: &dyn Environments, needs: Needs, n_runs: usize) -> Result<Self> {
        let n_environments = environments.n_environments();
        let many = n_runs.saturating_mul(n_environments).saturating_mul(environments.n_features() + 1);
        let what = "the gradients of the runs";
        let room = |wanted: bool| memory::filled(0.0, if wanted { many } else { 0 }, what);
        let mut batch = Self {
            n_runs,
            risks: memory::filled(0.0, if needs.risks { n_runs * n_environments } else { 0 }, what)?,
            gradients: room(true)?,
            along_theta: room(needs.curvatures)?,
            along_bias: room(needs.curvatures)?,
            squares: room(needs.squares)?,
            directions: room(needs.products)?,
            products: room(needs.products)?,
            weights: room(needs.square_products)?,
            square_products: room(needs.square_products)?,
            kept: Vec::new(),
            sums: Vec::new(),
            remembered: Vec::new(),
        };
        environments.prepare(needs, &mut batch)?;
        Ok(batch)
    }
}

/// Data of some environments, or their population.
///
/// All methods treat each run by itself: its results do not depend on the other runs of a call.
pub trait Environments: Send + Sync + Debug {
    /// What is predicted.
    fn task(&self) -> Task;
    /// E.
    fn n_environments(&self) -> usize;
    /// Features without the constant one of the bias.
    fn n_features(&self) -> usize;
    /// Rows of each environment, or weights where there are no rows: a population.
    fn weights(&self) -> &[f64];
    /// Weights over their sum: shares in the pooled data.
    fn shares(&self) -> &[f64];
    /// (E, p, p): mean of xt xt^T in each environment. The last row holds the means of the features.
    fn inputs(&self) -> &[f64];
    /// An error that tells what is not to be had.
    ///
    /// # Errors
    /// [`Error::range`].
    fn offers(&self, needs: Needs) -> Result<()>;
    /// Room in [`Batch::kept`] and [`Batch::sums`].
    ///
    /// # Errors
    /// [`Error::memory`].
    fn prepare(&self, _needs: Needs, _batch: &mut Batch) -> Result<()> {
        Ok(())
    }
    /// The same data, looked at in float64 at any cost, where the passes are not.
    fn exact(&self) -> Option<Box<dyn Environments + '_>> {
        None
    }
    /// Most runs that are stepped together.
    fn together(&self) -> usize;
    /// Operations that a pass of one run takes, about.
    fn work(&self) -> usize;
    /// Everything of [`Batch`] but `products` and `square_products`, as far as needed, at theta (`batch.n_runs`, p).
    fn first(&self, theta: &[f64], needs: Needs, batch: &mut Batch);
    /// `products` and `square_products`, as far as needed, after [`Environments::first`] at the same theta.
    fn second(&self, theta: &[f64], needs: Needs, batch: &mut Batch);
    /// (E,): errors of one predictor. NaN where they are not known.
    fn errors(&self, theta: &[f64]) -> Vec<f64>;
}

/// Weights over their sum.
///
/// # Errors
/// [`Error::range`] when one is not positive and finite.
pub(super) fn shares(weights: &[f64], name: &str) -> Result<Vec<f64>> {
    if let Some(i) = weights.iter().position(|&w| !(w > 0.0 && w.is_finite())) {
        return Err(Error::range(format_args!("{name}[{i}] is {}: it must be positive and finite", weights[i])));
    }
    let sum: f64 = weights.iter().sum();
    Ok(weights.iter().map(|w| w / sum).collect())
}
