//! Runs of gradient descent, many at a time.

use std::ops::Range;

use super::environments::{Batch, Environments, Needs};
use super::objectives::{Objective, Run};
use super::optimiser::Optimiser;
use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};

/// Operations from which threads pay.
const LARGE: usize = 1 << 18;

/// Where runs ended.
#[derive(Clone, Debug, Default)]
pub struct Trained {
    /// (R, p): parameters after the last step.
    pub theta: Vec<f64>,
    /// Whether a run came to parameters that are not finite.
    pub diverged: Vec<bool>,
    /// Steps that were made: all, or the one that led there and those before.
    pub steps: Vec<u64>,
}

/// Parameters and starting points of runs, checked.
struct Runs<'a> {
    environments: &'a dyn Environments,
    objective: &'a dyn Objective,
    needs: Needs,
    /// Values a run.
    n_parameters: usize,
    parameters: &'a [f64],
    width: usize,
    theta: &'a [f64],
}

impl<'a> Runs<'a> {
    fn new(
        environments: &'a dyn Environments,
        objective: &'a dyn Objective,
        parameters: &'a [f64],
        theta: &'a [f64],
        name: &str,
    ) -> Result<Self> {
        let (n_parameters, width) = (2 + objective.parameters().len(), environments.n_features() + 1);
        let runs = parameters.len() / n_parameters;
        if !parameters.len().is_multiple_of(n_parameters) || theta.len() != runs * width {
            return Err(Error::range(format_args!(
                "parameters and {name} must have as many rows, of {n_parameters} and {width} values; \
                 got {} and {} values",
                parameters.len(),
                theta.len()
            )));
        }
        let needs = objective.needs();
        environments.offers(needs)?;
        for (i, &value) in parameters.iter().enumerate() {
            let (run, parameter) = (i / n_parameters, i % n_parameters);
            let (what, fault) = match parameter {
                0 => ("lr", (value < 0.0).then_some("must not be negative")),
                1 => ("weight_decay", (value < 0.0).then_some("must not be negative")),
                _ => (objective.parameters()[parameter - 2], objective.fault(parameter - 2, value)),
            };
            let fault = if value.is_finite() { fault } else { Some("must be finite") };
            if let Some(fault) = fault {
                return Err(Error::range(format_args!("parameters[{run}, {parameter}] is {value}: {what} {fault}")));
            }
        }
        if let Some(i) = theta.iter().position(|value| !value.is_finite()) {
            return Err(Error::range(format_args!(
                "{name}[{}, {}] is {}: it must be finite",
                i / width,
                i % width,
                theta[i]
            )));
        }
        Ok(Self { environments, objective, needs, n_parameters, parameters, width, theta })
    }

    fn len(&self) -> usize {
        self.theta.len() / self.width
    }

    fn parameters_of(&self, run: usize) -> &[f64] {
        &self.parameters[run * self.n_parameters..(run + 1) * self.n_parameters]
    }

    /// What the objective sees of the run at place `at` of a batch.
    fn seen<'b>(&'b self, run: usize, at: usize, step: usize, theta: &'b [f64], batch: &'b Batch) -> Run<'b> {
        let n = self.environments.n_environments();
        let each = n * self.width;
        let of = |values: &'b [f64], size: usize| values.get(at * size..(at + 1) * size).unwrap_or_default();
        Run {
            parameters: self.parameters_of(run),
            theta: of(theta, self.width),
            step,
            shares: self.environments.shares(),
            risks: of(&batch.risks, n),
            gradients: of(&batch.gradients, each),
            along_theta: of(&batch.along_theta, each),
            along_bias: of(&batch.along_bias, each),
            squares: of(&batch.squares, each),
            products: of(&batch.products, each),
            square_products: of(&batch.square_products, each),
        }
    }

    /// Both passes at theta, for the runs in the order of `runs`.
    fn look(&self, runs: &[usize], step: usize, theta: &[f64], memories: &mut [f64], batch: &mut Batch) {
        batch.n_runs = runs.len();
        self.environments.first(theta, self.needs, batch);
        if !self.needs.second() {
            return;
        }
        let each = self.environments.n_environments() * self.width;
        let size = self.memory();
        let (mut directions, mut weights) = (std::mem::take(&mut batch.directions), std::mem::take(&mut batch.weights));
        for (at, &run) in runs.iter().enumerate() {
            let of = |values: &[f64]| if values.is_empty() { 0..0 } else { at * each..(at + 1) * each };
            let (d, w) = (of(&directions), of(&weights));
            self.objective.between(
                self.environments,
                &self.seen(run, at, step, theta, batch),
                &mut memories[run * size..(run + 1) * size],
                &mut directions[d],
                &mut weights[w],
            );
        }
        (batch.directions, batch.weights) = (directions, weights);
        self.environments.second(theta, self.needs, batch);
    }

    fn memory(&self) -> usize {
        self.objective.memory(self.environments.n_environments(), self.width)
    }

    /// What the objective remembers of all runs, at the start.
    fn memories(&self, batch: &Batch) -> Result<Vec<f64>> {
        let size = self.memory();
        let mut memories = memory::filled(0.0, size * self.len(), "what the learner remembers")?;
        for run in 0..self.len() {
            let here = run * size..(run + 1) * size;
            self.objective.start(&self.seen(run, run, 0, self.theta, batch), &mut memories[here]);
        }
        Ok(memories)
    }

    fn train(&self, n_steps: u64, interrupt: &Interrupt) -> Result<Trained> {
        let (n_runs, width) = (self.len(), self.width);
        let mut batch = Batch::new(self.environments, self.needs, n_runs)?;
        let mut memories = self.memories(&batch)?;
        let size = self.memory();
        let mut optimiser = Optimiser::new(self.objective.rule(), n_runs, width)?;
        let mut going: Vec<usize> = memory::collect(0..n_runs, "the list of runs")?;
        // the runs that go on, in their order
        let mut theta = memory::collect(self.theta.iter().copied(), "the parameters")?;
        let mut direction = memory::filled(0.0, width, "the parameters")?;
        let mut out = Trained {
            theta: memory::collect(self.theta.iter().copied(), "the parameters")?,
            diverged: memory::filled(false, n_runs, "the list of runs")?,
            steps: memory::filled(n_steps, n_runs, "the list of runs")?,
        };
        for step in 0..n_steps {
            if going.is_empty() {
                break;
            }
            interrupt.check()?;
            self.look(&going, step as usize, &theta, &mut memories, &mut batch);
            let mut lost = false;
            for (at, &run) in going.iter().enumerate() {
                direction.fill(0.0);
                let seen = self.seen(run, at, step as usize, &theta, &batch);
                let of_run = &mut memories[run * size..(run + 1) * size];
                if self.objective.gradient(self.environments, &seen, of_run, &mut direction) {
                    optimiser.restart(run);
                }
                let rate = self.objective.rate(&seen);
                let parameters = self.parameters_of(run);
                let here = &mut theta[at * width..(at + 1) * width];
                optimiser.step(run, rate, parameters[1], &direction, here);
                if here.iter().any(|value| !value.is_finite()) {
                    lost = true;
                    out.diverged[run] = true;
                    out.steps[run] = step + 1;
                    out.theta[run * width..(run + 1) * width].copy_from_slice(here);
                }
            }
            if lost {
                let mut kept = 0;
                for at in 0..going.len() {
                    if !out.diverged[going[at]] {
                        going[kept] = going[at];
                        theta.copy_within(at * width..(at + 1) * width, kept * width);
                        kept += 1;
                    }
                }
                going.truncate(kept);
                theta.truncate(kept * width);
            }
        }
        for (at, &run) in going.iter().enumerate() {
            out.theta[run * width..(run + 1) * width].copy_from_slice(&theta[at * width..(at + 1) * width]);
        }
        Ok(out)
    }

    /// Some of the runs.
    fn some(&self, runs: Range<usize>) -> Runs<'_> {
        Runs {
            parameters: &self.parameters[runs.start * self.n_parameters..runs.end * self.n_parameters],
            theta: &self.theta[runs.start * self.width..runs.end * self.width],
            ..*self
        }
    }
}

/// Make `n_steps` steps of each run from its start, `initial` (R, p), with its own parameters (R, 2 + those of the
/// objective). A run does not depend on the others.
///
/// # Errors
/// [`Error::range`] when a value is out of range or sizes disagree, [`Error::memory`], or on interrupt.
pub fn train(
    environments: &dyn Environments,
    objective: &dyn Objective,
    parameters: &[f64],
    initial: &[f64],
    n_steps: u64,
    interrupt: &Interrupt,
) -> Result<Trained> {
    let runs = Runs::new(environments, objective, parameters, initial, "initial")?;
    let n = runs.len();
    let threads = parallel::threads()?.max(1);
    // all threads get as many runs as can be, in groups of about the same size
    let rounds = n.div_ceil(threads * environments.together());
    let groups = (rounds * threads).min(n).max(1);
    let work = environments.work().saturating_mul(n).saturating_mul(n_steps as usize);
    let items: Vec<_> = (0..groups).map(|i| i * n / groups..(i + 1) * n / groups).collect();
    let parts = parallel::map(items, work > LARGE, interrupt, |range| runs.some(range).train(n_steps, interrupt))?;
    let mut out = Trained {
        theta: memory::room(initial.len(), "the parameters")?,
        diverged: memory::room(n, "the list of runs")?,
        steps: memory::room(n, "the list of runs")?,
    };
    for part in parts {
        out.theta.extend(part.theta);
        out.diverged.extend(part.diverged);
        out.steps.extend(part.steps);
    }
    Ok(out)
}

/// Directions (R, p) of the first step of each run at `theta` (R, p), without weight decay; in float64 throughout, which
/// takes more time than a step does.
///
/// # Errors
/// As [`train`].
pub fn objective_gradient(
    environments: &dyn Environments,
    objective: &dyn Objective,
    parameters: &[f64],
    theta: &[f64],
    interrupt: &Interrupt,
) -> Result<Vec<f64>> {
    let exact = environments.exact();
    let environments = exact.as_deref().unwrap_or(environments);
    let runs = Runs::new(environments, objective, parameters, theta, "theta")?;
    let (n, width) = (runs.len(), runs.width);
    let mut out = memory::filled(0.0, n * width, "the gradients")?;
    for first in (0..n).step_by(environments.together()) {
        interrupt.check()?;
        let some = runs.some(first..(first + environments.together()).min(n));
        let mut batch = Batch::new(environments, some.needs, some.len())?;
        let mut memories = some.memories(&batch)?;
        let all: Vec<usize> = memory::collect(0..some.len(), "the list of runs")?;
        some.look(&all, 0, some.theta, &mut memories, &mut batch);
        let size = some.memory();
        for run in all {
            let here = (first + run) * width..(first + run + 1) * width;
            let seen = some.seen(run, run, 0, some.theta, &batch);
            objective.gradient(environments, &seen, &mut memories[run * size..(run + 1) * size], &mut out[here]);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariance::{Moments, learner, learners};

    fn moments() -> Moments {
        let inputs = vec![2.0, 0.3, 0.3, 1.0, 1.0, -0.5, -0.5, 1.0];
        Moments::new(1, inputs, &[1.0, 0.2, -0.5, 0.9], vec![3.0, 4.0], vec![10.0, 30.0]).unwrap()
    }

    fn parameters(objective: &dyn Objective, run: usize) -> Vec<f64> {
        let own = objective.parameters().iter().map(|_| 0.5);
        [0.01 * (run + 1) as f64, 0.001 * run as f64].into_iter().chain(own).collect()
    }

    #[test]
    fn a_run_does_not_depend_on_the_others() {
        let environments = moments();
        for &objective in learners() {
            let fits = (0..objective.parameters().len()).all(|i| objective.fault(i, 0.5).is_none());
            if environments.offers(objective.needs()).is_err() || !fits {
                continue;
            }
            let stop = Interrupt::default();
            let parameters: Vec<_> = (0..19).map(|run| parameters(objective, run)).collect();
            let starts: Vec<_> = (0..19).map(|run| vec![0.1 * f64::from(run), -0.3]).collect();
            let all = train(&environments, objective, &parameters.concat(), &starts.concat(), 50, &stop).unwrap();
            for run in 0..19 {
                let alone = train(&environments, objective, &parameters[run], &starts[run], 50, &stop).unwrap();
                let bits = |theta: &[f64]| theta.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&alone.theta), bits(&all.theta[2 * run..2 * run + 2]), "{objective:?}");
            }
        }
    }

    #[test]
    fn a_run_that_diverges_stops_and_the_others_go_on() {
        let environments = moments();
        let mask = learner("and-mask").unwrap();
        // theta is multiplied with -9 in each step of the second run, give or take a unit
        let parameters = [0.01, 0.0, 0.9, 10.0, 1.0, 0.9, 0.02, 0.0, 0.9];
        let start = [0.5; 6];
        let out = train(&environments, mask, &parameters, &start, 1000, &Interrupt::default()).unwrap();
        assert_eq!(out.diverged, [false, true, false]);
        assert!(out.steps[1] > 300 && out.steps[1] < 330 && out.steps[0] == 1000 && out.steps[2] == 1000);
        assert!(out.theta[2..4].iter().any(|value| !value.is_finite()));
        let alone = train(&environments, mask, &parameters[6..], &start[4..], 1000, &Interrupt::default()).unwrap();
        assert!(alone.theta.iter().zip(&out.theta[4..]).all(|(a, b)| a.to_bits() == b.to_bits()));
    }

    #[test]
    fn no_steps_and_no_runs_are_fine() {
        let environments = moments();
        let erm = learner("erm").unwrap();
        let out = train(&environments, erm, &[0.1, 0.0], &[1.0, 2.0], 0, &Interrupt::default()).unwrap();
        assert!(out.theta == [1.0, 2.0] && out.steps == [0] && out.diverged == [false]);
        assert!(train(&environments, erm, &[], &[], 5, &Interrupt::default()).unwrap().theta.is_empty());
    }

    #[test]
    fn an_interrupt_is_an_error() {
        let stop = Interrupt::default();
        stop.raise();
        let erm = learner("erm").unwrap();
        assert_eq!(train(&moments(), erm, &[0.1, 0.0], &[1.0, 2.0], 5, &stop).unwrap_err(), Error::interrupted());
    }

    #[test]
    fn values_out_of_range_are_named() {
        let message = |name: &str, parameters: &[f64], start: &[f64]| {
            train(&moments(), learner(name).unwrap(), parameters, start, 5, &Interrupt::default())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message("erm", &[-1.0, 0.0], &[0.0; 2]), "parameters[0, 0] is -1: lr must not be negative");
        assert_eq!(
            message("erm", &[0.1, 0.0, 0.1, f64::NAN], &[0.0; 4]),
            "parameters[1, 1] is NaN: weight_decay must be finite"
        );
        assert_eq!(
            message("irmv1", &[0.1, 0.0, 1.5], &[0.0; 2]),
            "parameters[0, 2] is 1.5: penalty_weight must lie in [0, 1]"
        );
        assert_eq!(
            message("iga", &[0.1, 0.0, -3.0], &[0.0; 2]),
            "parameters[0, 2] is -3: penalty must not be negative"
        );
        assert_eq!(message("erm", &[0.1, 0.0], &[0.0, f64::INFINITY]), "initial[0, 1] is inf: it must be finite");
        assert!(message("erm", &[0.1, 0.0], &[0.0; 4]).starts_with("parameters and initial must have as many rows"));
        assert!(learner("nobody").unwrap_err().to_string().starts_with("learner must be one of erm, irmv1, iga"));
    }
}
