//! Fishr (Rame et al. 2022, https://arxiv.org/abs/2109.02934): gradients of single samples vary alike in all environments.

use super::domainbed::annealed;
use super::environments::{Environments, Needs};
use super::objectives::{Objective, Run, add, not_negative};

/// The pooled risk + penalty times the mean, over environments and parameters, of the squared distance of the variance of
/// single samples' derivatives from its mean over environments; as in DomainBed, where the penalty begins after `anneal`
/// steps with a new optimiser, and variances are moving averages with a factor of `ema` that are divided by 1 - ema, so
/// that their gradients are those of the present variances. There a class has a logit of its own; here there is one.
///
/// The variance of parameter j is squares_j - g_j^2, and its gradient that of squares_j less 2 g_j times row j of the
/// Hessian.
#[derive(Clone, Copy, Debug)]
pub struct Fishr;

impl Objective for Fishr {
    fn name(&self) -> &'static str {
        "fishr"
    }
    fn parameters(&self) -> &'static [&'static str] {
        &["penalty", "ema", "anneal"]
    }
    fn fault(&self, parameter: usize, value: f64) -> Option<&'static str> {
        match parameter {
            1 => (!(0.0..1.0).contains(&value)).then_some("must lie in [0, 1)"),
            _ => not_negative(value),
        }
    }
    fn needs(&self) -> Needs {
        Needs { squares: true, products: true, square_products: true, ..Needs::default() }
    }
    fn memory(&self, n_environments: usize, width: usize) -> usize {
        n_environments * width
    }
    fn between(
        &self,
        _environments: &dyn Environments,
        run: &Run,
        memory: &mut [f64],
        directions: &mut [f64],
        weights: &mut [f64],
    ) {
        let (width, n, ema) = (run.width(), run.n_environments() as f64, run.parameter(1));
        for ((average, square), gradient) in memory.iter_mut().zip(run.squares).zip(run.gradients) {
            *average = ema * *average + (1.0 - ema) * (square - gradient * gradient);
        }
        for j in 0..width {
            let mean = memory.iter().skip(j).step_by(width).sum::<f64>() / n;
            for i in (j..memory.len()).step_by(width) {
                weights[i] = (memory[i] - mean) / (1.0 - ema);
                directions[i] = weights[i] * run.gradients[i];
            }
        }
    }
    fn gradient(&self, _environments: &dyn Environments, run: &Run, _memory: &mut [f64], out: &mut [f64]) -> bool {
        let (penalty, begins) = annealed(run, 0, 2, 0.0);
        run.add_pooled_gradient(1.0, out);
        let factor = 4.0 * penalty / (run.n_environments() * run.width()) as f64;
        for (squares, products) in
            run.square_products.chunks_exact(run.width()).zip(run.products.chunks_exact(run.width()))
        {
            add(factor, squares, out);
            add(-factor, products, out);
        }
        begins
    }
}
