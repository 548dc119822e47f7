//! Risks, gradients and errors of given predictors.

use super::environments::{Batch, Environments, Needs};
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};

/// Operations from which threads pay.
const LARGE: usize = 1 << 18;

/// Call `look` with each predictor of `theta` (R, p) and put together what it returns. Where a parameter is not finite
/// nothing is known: NaN, as many as `look` returns elsewhere.
fn each(
    environments: &dyn Environments,
    theta: &[f64],
    size: usize,
    interrupt: &Interrupt,
    look: impl Fn(&[f64]) -> Result<Vec<f64>> + Sync + Send,
) -> Result<Vec<f64>> {
    let width = environments.n_features() + 1;
    if !theta.len().is_multiple_of(width) {
        return Err(Error::range(format_args!("theta must have {width} columns, the last for the bias")));
    }
    let rows = memory::collect(theta.chunks_exact(width), "the list of predictors")?;
    let large = environments.work().saturating_mul(rows.len()) > LARGE;
    let parts = parallel::map(rows, large, interrupt, |theta| {
        if theta.iter().all(|value| value.is_finite()) {
            look(theta)
        } else {
            memory::filled(f64::NAN, size, "the results")
        }
    })?;
    let mut out = memory::room(parts.len() * size, "the results")?;
    out.extend(parts.into_iter().flatten());
    Ok(out)
}

/// (R, E): mean losses of predictors `theta` (R, p).
///
/// # Errors
/// [`Error`] when sizes disagree, memory runs out or on interrupt.
pub fn risks(environments: &dyn Environments, theta: &[f64], interrupt: &Interrupt) -> Result<Vec<f64>> {
    each(environments, theta, environments.n_environments(), interrupt, |theta| {
        let needs = Needs { risks: true, ..Needs::default() };
        let mut batch = Batch::new(environments, needs, 1)?;
        environments.first(theta, needs, &mut batch);
        Ok(batch.risks)
    })
}

/// (R, E, p): gradients of the risks of predictors `theta` (R, p).
///
/// # Errors
/// As [`risks`].
pub fn gradients(environments: &dyn Environments, theta: &[f64], interrupt: &Interrupt) -> Result<Vec<f64>> {
    let width = environments.n_features() + 1;
    each(environments, theta, environments.n_environments() * width, interrupt, |theta| {
        let mut batch = Batch::new(environments, Needs::default(), 1)?;
        environments.first(theta, Needs::default(), &mut batch);
        Ok(batch.gradients)
    })
}

/// (R, E): errors of predictors `theta` (R, p).
///
/// # Errors
/// As [`risks`].
pub fn errors(environments: &dyn Environments, theta: &[f64], interrupt: &Interrupt) -> Result<Vec<f64>> {
    each(environments, theta, environments.n_environments(), interrupt, |theta| Ok(environments.errors(theta)))
}
