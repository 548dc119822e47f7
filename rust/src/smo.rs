//! Quadratic programs of support vector machines: two variables at a time.
//!
//! Minimises 1/2 b'Kb + q'b over lower <= b <= upper with sum(b) = 0. In these variables (multiplier times label) one
//! solver serves all models of the family: labels are bounds, and any linear term, any weight a sample has and any
//! combination of instances in the place of an instance are data. Groups of non-positive variables may share one slack:
//! the sum of their multipliers is bounded too.
//!
//! The pair is chosen by the second-order rule of Fan, Chen & Lin (2005): the variable that violates optimality most,
//! and the partner that promises the largest decrease.

use crate::error::{Error, Result};
use crate::kernel_rows::{Add, KernelRows, PADDING};
use crate::memory;
use crate::parallel::Interrupt;
use crate::simd::{Kernel, dispatch};

/// No group.
pub const ALONE: u32 = u32::MAX;

/// Least curvature that is divided by: the kernel need not be positive definite to the last bit.
const FLAT: f64 = 1e-12;
/// Room beside a bound, as a share of the distance between the bounds, that is none.
const ROUNDING: f64 = 1e-9;
/// Variables whose extremes are looked for together.
const BLOCK: usize = PADDING;
const LANES: usize = 8;

const WHAT: &str = "the variables of the solver";

/// A variable stands for a weighted sum of instances.
#[derive(Clone, Copy, Debug)]
pub struct Combinations<'a> {
    /// Where the members of each variable begin, and the end.
    pub starts: &'a [i64],
    /// Numbers of the instances.
    pub members: &'a [i64],
    /// Their weights.
    pub weights: &'a [f64],
}

/// What is to be minimised.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// Least values.
    pub lower: &'a [f64],
    /// Largest values.
    pub upper: &'a [f64],
    /// Linear term q.
    pub linear: &'a [f64],
    /// What the variables stand for; instance after instance where there is nothing.
    pub combinations: Option<Combinations<'a>>,
    /// Group of each variable or [`ALONE`], and the most that the values of each group may sum up to, in absolute value.
    pub groups: Option<(&'a [u32], &'a [f64])>,
    /// Values to start from; they are moved to where they are allowed.
    pub start: Option<&'a [f64]>,
    /// Largest violation of optimality that is left.
    pub tolerance: f64,
    /// Most steps.
    pub most_steps: u64,
}

/// Where the solver ended.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The variables.
    pub values: Vec<f64>,
    /// Kernel times values, without linear term and intercept: the score of each variable.
    pub scores: Vec<f64>,
    /// Multiplier of the equality: what is added to the scores.
    pub intercept: f64,
    /// Value of the objective.
    pub objective: f64,
    /// Largest violation of optimality.
    pub gap: f64,
    /// Steps taken.
    pub steps: u64,
}

/// Least of the values that may rise and largest of those that may fall, with their positions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Extremes {
    least: (f64, usize),
    largest: (f64, usize),
}

/// gradient += by (a - b), and its extremes.
struct Step<'a> {
    gradient: &'a mut [f64],
    rows: Option<(&'a [f64], &'a [f64])>,
    by: f64,
    no_rise: &'a [f64],
    no_fall: &'a [f64],
}

impl Kernel for Step<'_> {
    type Output = Extremes;
    #[inline(always)]
    fn run(self) -> Extremes {
        let mut least = (f64::INFINITY, 0);
        let mut largest = (f64::NEG_INFINITY, 0);
        let n = self.gradient.len();
        for first in (0..n).step_by(BLOCK) {
            let block = first..first + BLOCK;
            let gradient = &mut self.gradient[block.clone()];
            if let Some((a, b)) = self.rows {
                for ((g, &a), &b) in gradient.iter_mut().zip(&a[block.clone()]).zip(&b[block.clone()]) {
                    *g += self.by * (a - b);
                }
            }
            let (no_rise, no_fall) = (&self.no_rise[block.clone()], &self.no_fall[block]);
            let mut low = [f64::INFINITY; LANES];
            let mut high = [f64::NEG_INFINITY; LANES];
            for at in (0..BLOCK).step_by(LANES) {
                for lane in 0..LANES {
                    let (up, down) =
                        (gradient[at + lane] + no_rise[at + lane], gradient[at + lane] - no_fall[at + lane]);
                    low[lane] = if up < low[lane] { up } else { low[lane] };
                    high[lane] = if down > high[lane] { down } else { high[lane] };
                }
            }
            let low = low.into_iter().fold(f64::INFINITY, f64::min);
            let high = high.into_iter().fold(f64::NEG_INFINITY, f64::max);
            if low < least.0 {
                least = (low, first);
            }
            if high > largest.0 {
                largest = (high, first);
            }
        }
        // the position inside the block, looked for once
        let rising = |i: &usize| self.gradient[*i] + self.no_rise[*i] <= least.0;
        least.1 = (least.1..least.1 + BLOCK).find(rising).unwrap_or(least.1);
        let falling = |i: &usize| self.gradient[*i] - self.no_fall[*i] >= largest.0;
        largest.1 = (largest.1..largest.1 + BLOCK).find(falling).unwrap_or(largest.1);
        Extremes { least, largest }
    }
}

/// The partner that promises the largest decrease for a variable that rises.
struct Partner<'a> {
    gradient: &'a [f64],
    row: &'a [f64],
    diagonal: &'a [f64],
    no_fall: &'a [f64],
    own: f64,
    own_diagonal: f64,
}

impl Partner<'_> {
    #[inline(always)]
    fn gain(&self, i: usize) -> f64 {
        let excess = self.gradient[i] - self.no_fall[i] - self.own;
        let excess = if excess > 0.0 { excess } else { 0.0 };
        let curvature = self.own_diagonal + self.diagonal[i] - 2.0 * self.row[i];
        excess * excess / if curvature > FLAT { curvature } else { FLAT }
    }
}

impl Kernel for Partner<'_> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run(self) -> Option<usize> {
        let mut best = (0.0, None);
        for first in (0..self.gradient.len()).step_by(BLOCK) {
            let mut most = [0.0; LANES];
            for at in (0..BLOCK).step_by(LANES) {
                for lane in 0..LANES {
                    let gain = self.gain(first + at + lane);
                    most[lane] = if gain > most[lane] { gain } else { most[lane] };
                }
            }
            let most = most.into_iter().fold(0.0, f64::max);
            if most > best.0 {
                best = (most, Some(first));
            }
        }
        let (most, first) = best;
        first.map(|first| first + (0..BLOCK).position(|i| self.gain(first + i) >= most).unwrap_or(0))
    }
}

/// Rows of the kernel between variables.
struct Variables<'a> {
    rows: &'a mut KernelRows,
    of: Option<Combinations<'a>>,
    n: usize,
    padded: usize,
    /// A row between instances, and two between variables.
    sum: Vec<f64>,
    both: [Vec<f64>; 2],
    /// The variables that `both` belongs to.
    names: [usize; 2],
}

impl<'a> Variables<'a> {
    fn new(rows: &'a mut KernelRows, of: Option<Combinations<'a>>, n: usize) -> Result<Self> {
        let padded = n.next_multiple_of(PADDING);
        let (sum, both) = if of.is_some() {
            let sum = memory::filled(0.0, rows.padded(), WHAT)?;
            (sum, [memory::filled(0.0, padded, WHAT)?, memory::filled(0.0, padded, WHAT)?])
        } else {
            (Vec::new(), [Vec::new(), Vec::new()])
        };
        Ok(Self { rows, of, n, padded, sum, both, names: [usize::MAX; 2] })
    }

    /// Fill place `place` with the row of variable `i`.
    fn combine(&mut self, of: Combinations<'_>, i: usize, place: usize) -> Result<()> {
        if self.names[place] == i {
            return Ok(());
        }
        let members = |i: usize| of.starts[i] as usize..of.starts[i + 1] as usize;
        let own = members(i);
        let out = &mut self.both[place];
        let alone = own.len() == 1 && (of.weights[own.start] - 1.0).abs() < f64::MIN_POSITIVE;
        let row = if alone {
            self.rows.row(of.members[own.start] as usize)?
        } else {
            self.sum.fill(0.0);
            for k in own {
                let row = self.rows.row(of.members[k] as usize)?;
                dispatch(Add { sums: &mut self.sum, row, coefficient: of.weights[k] });
            }
            &self.sum
        };
        let plain = of.members.len() == self.n;
        for (j, out) in out.iter_mut().enumerate().take(self.n) {
            let all = if plain { j..j + 1 } else { members(j) };
            *out = all.map(|k| of.weights[k] * row[of.members[k] as usize]).sum();
        }
        self.names[place] = i;
        Ok(())
    }

    fn row(&mut self, i: usize) -> Result<&[f64]> {
        let Some(of) = self.of else { return self.rows.row(i) };
        self.combine(of, i, 0)?;
        Ok(&self.both[0])
    }

    fn two(&mut self, i: usize, j: usize) -> Result<(&[f64], &[f64])> {
        let Some(of) = self.of else { return self.rows.two(i, j) };
        self.combine(of, i, 0)?;
        self.combine(of, j, 1)?;
        Ok((&self.both[0], &self.both[1]))
    }

    fn diagonal(&mut self, interrupt: &Interrupt) -> Result<Vec<f64>> {
        let mut diagonal = memory::filled(0.0, self.padded, WHAT)?;
        for (i, value) in diagonal.iter_mut().enumerate().take(self.n) {
            interrupt.check()?;
            *value = match self.of {
                None => self.rows.diagonal(i),
                Some(of) => {
                    let own = of.starts[i] as usize..of.starts[i + 1] as usize;
                    if own.len() == 1 {
                        of.weights[own.start].powi(2) * self.rows.diagonal(of.members[own.start] as usize)
                    } else {
                        self.row(i)?[i]
                    }
                }
            };
        }
        Ok(diagonal)
    }
}

/// The variables and what is known about them.
struct State<'a> {
    problem: Problem<'a>,
    values: Vec<f64>,
    /// Kernel times values plus linear term.
    gradient: Vec<f64>,
    /// Infinite where a value may not rise or not fall, else 0.
    no_rise: Vec<f64>,
    no_fall: Vec<f64>,
    /// What each group has left, and its variables.
    slack: Vec<f64>,
    members: Vec<Vec<usize>>,
}

impl<'a> State<'a> {
    fn new(problem: Problem<'a>, padded: usize) -> Result<Self> {
        let n = problem.linear.len();
        let mut values = memory::filled(0.0, padded, WHAT)?;
        if let Some(start) = problem.start {
            for i in 0..n {
                values[i] = start[i].clamp(problem.lower[i], problem.upper[i]);
            }
        }
        let mut gradient = memory::filled(0.0, padded, WHAT)?;
        gradient[..n].copy_from_slice(problem.linear);
        let (mut slack, mut members) = (Vec::new(), Vec::new());
        if let Some((group, most)) = problem.groups {
            slack.extend_from_slice(most);
            members.resize(most.len(), Vec::new());
            for i in 0..n {
                if group[i] != ALONE {
                    members[group[i] as usize].push(i);
                }
            }
            for (slack, members) in slack.iter_mut().zip(&members) {
                let used: f64 = members.iter().map(|&i| -values[i]).sum();
                if used > *slack {
                    let share = *slack / used;
                    for &i in members {
                        values[i] *= share;
                    }
                    *slack = 0.0;
                } else {
                    *slack -= used;
                }
            }
        }
        let no_rise = memory::filled(f64::INFINITY, padded, WHAT)?;
        let no_fall = memory::filled(f64::INFINITY, padded, WHAT)?;
        let mut state = Self { problem, values, gradient, no_rise, no_fall, slack, members };
        (0..n).for_each(|i| state.look(i));
        Ok(state)
    }

    fn n(&self) -> usize {
        self.problem.linear.len()
    }

    fn group(&self, i: usize) -> Option<usize> {
        self.problem.groups.and_then(|(group, _)| (group[i] != ALONE).then_some(group[i] as usize))
    }

    /// How far value `i` may rise.
    fn room_above(&self, i: usize) -> f64 {
        self.problem.upper[i] - self.values[i]
    }

    /// How far value `i` may fall on its own.
    fn room_below(&self, i: usize) -> f64 {
        let room = self.values[i] - self.problem.lower[i];
        self.group(i).map_or(room, |g| room.min(self.slack[g]))
    }

    /// Note where value `i` may go.
    fn look(&mut self, i: usize) {
        self.no_rise[i] = if self.room_above(i) > 0.0 { 0.0 } else { f64::INFINITY };
        self.no_fall[i] = if self.room_below(i) > 0.0 { 0.0 } else { f64::INFINITY };
    }

    /// Change value `i`, which leaves less in its group or more.
    fn change(&mut self, i: usize, by: f64) {
        let (lower, upper) = (self.problem.lower[i], self.problem.upper[i]);
        // what a bound stopped ends on the bound to the last bit
        self.values[i] = if by >= self.room_above(i) {
            upper
        } else if -by >= self.values[i] - lower {
            lower
        } else {
            self.values[i] + by
        };
        if let Some(g) = self.group(i) {
            self.slack[g] = if -by >= self.slack[g] { 0.0 } else { self.slack[g] + by };
        }
    }

    /// Note where value `i` and the others of its group may go.
    fn look_around(&mut self, i: usize, was_full: bool) {
        self.look(i);
        if let Some(g) = self.group(i)
            && was_full != (self.slack[g] <= 0.0)
        {
            for k in 0..self.members[g].len() {
                self.look(self.members[g][k]);
            }
        }
    }

    fn full(&self, i: usize) -> bool {
        self.group(i).is_some_and(|g| self.slack[g] <= 0.0)
    }

    /// In the groups that have nothing left: the pair that violates optimality most, and by how much.
    fn worst_inside(&self) -> Option<(f64, usize, usize)> {
        let mut worst: Option<(f64, usize, usize)> = None;
        for (members, &slack) in self.members.iter().zip(&self.slack) {
            if slack > 0.0 {
                continue;
            }
            let (mut least, mut largest) = ((f64::INFINITY, 0), (f64::NEG_INFINITY, 0));
            for &i in members {
                let g = self.gradient[i];
                if self.values[i] < self.problem.upper[i] && g < least.0 {
                    least = (g, i);
                }
                if self.values[i] > self.problem.lower[i] && g > largest.0 {
                    largest = (g, i);
                }
            }
            let excess = largest.0 - least.0;
            if excess > worst.map_or(0.0, |(w, _, _)| w) {
                worst = Some((excess, least.1, largest.1));
            }
        }
        worst
    }

    /// Move values until they sum up to 0, where the gradient says that it hurts least.
    fn balance(&mut self) -> Result<Vec<(usize, f64)>> {
        let mut changes = Vec::new();
        let mut excess: f64 = self.values.iter().sum();
        let mut order = memory::collect(0..self.n(), WHAT)?;
        order.sort_unstable_by(|&i, &j| self.gradient[i].total_cmp(&self.gradient[j]).then(i.cmp(&j)));
        if excess > 0.0 {
            order.reverse();
        }
        for i in order {
            let by = if excess > 0.0 { -self.room_below(i).min(excess) } else { self.room_above(i).min(-excess) };
            if by != 0.0 {
                let was_full = self.full(i);
                self.change(i, by);
                self.look_around(i, was_full);
                changes.push((i, by));
                excess += by;
            }
            if excess == 0.0 {
                break;
            }
        }
        memory::reserve(&mut changes, 0, WHAT)?;
        Ok(changes)
    }
}

fn check(problem: &Problem<'_>, n_rows: usize) -> Result<()> {
    let n = problem.linear.len();
    let other = problem.start.map_or(n, <[f64]>::len);
    let groups = problem.groups.map_or(n, |(group, _)| group.len());
    let variables = problem.combinations.map_or(n_rows, |of| of.starts.len().saturating_sub(1));
    for (second, found) in [
        ("lower", problem.lower.len()),
        ("upper", problem.upper.len()),
        ("start", other),
        ("groups", groups),
        ("the rows of the kernel", variables),
    ] {
        if found != n {
            return Err(Error::length("linear", n, second, found));
        }
    }
    for i in 0..n {
        let (low, high) = (problem.lower[i], problem.upper[i]);
        let fits = low <= 0.0 && high >= 0.0 && low.is_finite() && high.is_finite() && problem.linear[i].is_finite();
        if !fits || problem.start.is_some_and(|start| !start[i].is_finite()) {
            return Err(Error::range(format_args!(
                "variable {i} must have finite values and bounds with 0 between them; got bounds {low} and {high}, \
                 linear {}",
                problem.linear[i]
            )));
        }
    }
    if let Some(of) = problem.combinations {
        let fits = of.starts.first() == Some(&0)
            && of.starts.windows(2).all(|pair| pair[0] < pair[1])
            && of.starts.last() == i64::try_from(of.members.len()).ok().as_ref()
            && of.members.len() == of.weights.len()
            && of.members.iter().all(|&k| usize::try_from(k).is_ok_and(|k| k < n_rows))
            && of.weights.iter().all(|w| w.is_finite());
        if !fits {
            return Err(Error::range(format_args!(
                "starts must ascend from 0 to the number of members, and members be rows with finite weights"
            )));
        }
    }
    if let Some((group, most)) = problem.groups {
        for (i, &g) in group.iter().enumerate().filter(|&(_, &g)| g != ALONE) {
            if g as usize >= most.len() || problem.upper[i] > 0.0 {
                return Err(Error::range(format_args!("variable {i} must be of a known group and never above 0")));
            }
        }
        if let Some(bad) = most.iter().position(|m| !(*m >= 0.0 && m.is_finite())) {
            return Err(Error::range(format_args!("the limit of group {bad} must be finite and not negative")));
        }
    }
    if !(problem.tolerance > 0.0 && problem.tolerance.is_finite()) {
        return Err(Error::range(format_args!("tolerance must be positive; got {}", problem.tolerance)));
    }
    Ok(())
}

/// Minimise; where `most_steps` do not suffice the gap of the result is above the tolerance.
///
/// # Errors
/// [`Error`] when the problem does not fit together, memory runs out or on interrupt.
pub fn solve(rows: &mut KernelRows, problem: Problem<'_>, interrupt: &Interrupt) -> Result<Solution> {
    check(&problem, rows.len())?;
    let n = problem.linear.len();
    if n == 0 {
        return Err(Error::range(format_args!("there must be at least one variable")));
    }
    let mut variables = Variables::new(rows, problem.combinations, n)?;
    let diagonal = variables.diagonal(interrupt)?;
    let mut state = State::new(problem, variables.padded)?;
    let add = |variables: &mut Variables<'_>, gradient: &mut [f64], i: usize, coefficient: f64| -> Result<()> {
        dispatch(Add { sums: gradient, row: variables.row(i)?, coefficient });
        Ok(())
    };
    for i in 0..n {
        interrupt.check()?;
        if state.values[i] != 0.0 {
            add(&mut variables, &mut state.gradient, i, state.values[i])?;
        }
    }
    for (i, by) in state.balance()? {
        interrupt.check()?;
        add(&mut variables, &mut state.gradient, i, by)?;
    }
    let mut steps = 0;
    let mut rows: Option<(usize, usize, f64)> = None;
    let gap = loop {
        interrupt.check()?;
        let (both, by) = match rows {
            Some((i, j, by)) => (Some(variables.two(i, j)?), by),
            None => (None, 0.0),
        };
        let State { gradient, no_rise, no_fall, .. } = &mut state;
        let ends = dispatch(Step { gradient, rows: both, by, no_rise, no_fall });
        let across = ends.largest.0 - ends.least.0;
        let inside = state.worst_inside();
        let gap = inside.map_or(0.0, |(excess, _, _)| excess).max(across).max(0.0);
        if gap <= problem.tolerance || steps >= problem.most_steps {
            break gap;
        }
        steps += 1;
        // the pair, and whether it stays inside a group that has nothing left
        let (i, j) = match inside {
            Some((excess, i, j)) if excess > across => (i, j),
            _ => {
                let i = ends.least.1;
                let row = variables.row(i)?;
                let partner = dispatch(Partner {
                    gradient: &state.gradient,
                    row,
                    diagonal: &diagonal,
                    no_fall: &state.no_fall,
                    own: ends.least.0,
                    own_diagonal: diagonal[i],
                });
                let Some(j) = partner else { break gap };
                (i, j)
            }
        };
        let (row, _) = variables.two(i, j)?;
        let curvature = (diagonal[i] + diagonal[j] - 2.0 * row[j]).max(FLAT);
        let together = state.group(i).is_some() && state.group(i) == state.group(j);
        let room = if together { state.values[j] - problem.lower[j] } else { state.room_below(j) };
        let by = ((state.gradient[j] - state.gradient[i]) / curvature).min(state.room_above(i)).min(room);
        let were_full = [state.full(i), state.full(j)];
        state.change(i, by);
        state.change(j, -by);
        state.look_around(i, were_full[0]);
        state.look_around(j, were_full[1]);
        rows = Some((i, j, by));
    };
    Ok(finish(state, gap, steps))
}

/// The multiplier of the equality. Where values are free it is what their gradients have in common, else the middle of
/// all that is optimal; room that rounding has left of a bound counts as none.
fn intercept(state: &State<'_>) -> f64 {
    let problem = &state.problem;
    let (mut free, mut sum) = (0u64, 0.0);
    let (mut least, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
    for i in 0..state.n() {
        let (value, gradient) = (state.values[i], state.gradient[i]);
        let little = ROUNDING * (problem.upper[i] - problem.lower[i]);
        let rises = problem.upper[i] - value > little;
        let shared = |g: usize| state.slack[g] > ROUNDING * problem.groups.map_or(0.0, |(_, most)| most[g]);
        let falls = value - problem.lower[i] > little && state.group(i).is_none_or(shared);
        if rises && falls {
            free += 1;
            sum += gradient;
        }
        if rises {
            least = least.min(gradient);
        }
        if falls {
            largest = largest.max(gradient);
        }
    }
    match (free, least.is_finite(), largest.is_finite()) {
        (1.., _, _) => -sum / free as f64,
        (0, true, true) => -f64::midpoint(least, largest),
        (0, true, false) => -least,
        (0, false, true) => -largest,
        (0, false, false) => 0.0,
    }
}

fn finish(state: State<'_>, gap: f64, steps: u64) -> Solution {
    let n = state.n();
    let intercept = intercept(&state);
    let problem = state.problem;
    let pairs = state.values.iter().zip(&state.gradient).zip(problem.linear);
    let objective = pairs.map(|((&value, &gradient), &linear)| 0.5 * value * (gradient + linear)).sum();
    let scores = state.gradient.iter().zip(problem.linear).map(|(gradient, linear)| gradient - linear).collect();
    let mut values = state.values;
    values.truncate(n);
    Solution { values, scores, intercept, objective, gap, steps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gram::InstanceKernel;

    /// Numbers from 0 to 1 that look random.
    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        (0..n).map(next).collect()
    }

    fn rows(n: usize, seed: u64) -> KernelRows {
        let x = noise(n * 2, seed);
        KernelRows::of_instances(x, 2, InstanceKernel::Rbf { gamma: 3.0 }, 1 << 20, &Interrupt::default()).unwrap()
    }

    /// Largest violation of optimality, from nothing but the values: over all pairs, how fast the objective falls.
    fn violation(rows: &mut KernelRows, problem: &Problem<'_>, values: &[f64]) -> f64 {
        let n = values.len();
        let mut gradient = rows.times(values, &Interrupt::default()).unwrap();
        for i in 0..n {
            gradient[i] += problem.linear[i];
        }
        let group = |i: usize| problem.groups.map_or(ALONE, |(group, _)| group[i]);
        let left = |g: u32| {
            let used: f64 = (0..n).filter(|&i| group(i) == g).map(|i| -values[i]).sum();
            problem.groups.unwrap().1[g as usize] - used
        };
        let mut worst = 0f64;
        for i in 0..n {
            for j in 0..n {
                let same = group(i) != ALONE && group(i) == group(j);
                let rises = values[i] < problem.upper[i];
                let falls = values[j] > problem.lower[j] && (group(j) == ALONE || same || left(group(j)) > 1e-12);
                if rises && falls {
                    worst = worst.max(gradient[j] - gradient[i]);
                }
            }
        }
        worst
    }

    fn solved(rows: &mut KernelRows, problem: Problem<'_>) -> Solution {
        let solution = solve(rows, problem, &Interrupt::default()).unwrap();
        for (i, value) in solution.values.iter().enumerate() {
            assert!((problem.lower[i]..=problem.upper[i]).contains(value));
        }
        assert!(solution.values.iter().sum::<f64>().abs() < 1e-12 * solution.values.len() as f64);
        assert!(solution.gap <= problem.tolerance);
        assert!(violation(rows, &problem, &solution.values) <= problem.tolerance * 1.01 + 1e-12);
        solution
    }

    #[test]
    fn solutions_are_optimal_from_any_start() {
        for (n, seed) in [(1, 1), (2, 2), (63, 3), (64, 4), (150, 5)] {
            let mut rows = rows(n, seed);
            let sign: Vec<f64> = noise(n, seed + 10).iter().map(|&u| if u < 0.4 { 1.0 } else { -1.0 }).collect();
            let size: Vec<f64> = noise(n, seed + 20).iter().map(|&u| if u < 0.1 { 0.0 } else { 4.0 * u }).collect();
            let lower: Vec<f64> = (0..n).map(|i| if sign[i] < 0.0 { -size[i] } else { 0.0 }).collect();
            let upper: Vec<f64> = (0..n).map(|i| if sign[i] > 0.0 { size[i] } else { 0.0 }).collect();
            let linear: Vec<f64> = (0..n).map(|i| -sign[i] * noise(n, seed + 30)[i]).collect();
            let start: Vec<f64> = noise(n, seed + 40).iter().map(|u| 9.0 * u - 4.5).collect();
            let mut objectives = Vec::new();
            for start in [None, Some(&start[..])] {
                let problem = Problem {
                    lower: &lower,
                    upper: &upper,
                    linear: &linear,
                    combinations: None,
                    groups: None,
                    start,
                    tolerance: 1e-10,
                    most_steps: 1 << 20,
                };
                objectives.push(solved(&mut rows, problem).objective);
            }
            assert!((objectives[0] - objectives[1]).abs() < 1e-8);
        }
    }

    #[test]
    fn groups_share_one_slack() {
        let n = 120;
        let mut rows = rows(n, 7);
        // four in five are negative, in groups of six
        let lower: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { 0.0 } else { -1.0 }).collect();
        let upper: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
        let linear: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { -1.0 } else { 1.0 }).collect();
        let group: Vec<u32> = (0..n).map(|i| if i % 5 == 0 { ALONE } else { i as u32 / 6 }).collect();
        let most: Vec<f64> = (0..n / 6).map(|g| g as f64 / 20.0).collect();
        let start: Vec<f64> = (0..n).map(|i| if i % 5 == 0 { 0.9 } else { -0.7 }).collect();
        let mut objectives = Vec::new();
        for start in [None, Some(&start[..])] {
            let problem = Problem {
                lower: &lower,
                upper: &upper,
                linear: &linear,
                combinations: None,
                groups: Some((&group, &most)),
                start,
                tolerance: 1e-9,
                most_steps: 1 << 22,
            };
            let solution = solved(&mut rows, problem);
            for (g, most) in most.iter().enumerate() {
                let used: f64 = (0..n).filter(|&i| group[i] == g as u32).map(|i| -solution.values[i]).sum();
                assert!(used <= most + 1e-12);
            }
            objectives.push(solution.objective);
        }
        assert!((objectives[0] - objectives[1]).abs() < 1e-8);
    }

    #[test]
    fn a_combination_is_as_good_as_the_instance_it_equals() {
        let n = 60;
        let mut rows = rows(n, 9);
        let upper: Vec<f64> = (0..n).map(|i| if i < 20 { 1.0 } else { 0.0 }).collect();
        let lower: Vec<f64> = (0..n).map(|i| if i < 20 { 0.0 } else { -1.0 }).collect();
        let linear: Vec<f64> = (0..n).map(|i| if i < 20 { -1.0 } else { 1.0 }).collect();
        let plain = Problem {
            lower: &lower,
            upper: &upper,
            linear: &linear,
            combinations: None,
            groups: None,
            start: None,
            tolerance: 1e-10,
            most_steps: 1 << 20,
        };
        let want = solved(&mut rows, plain);
        // instance i as i, and as a quarter and three quarters of itself
        let alone: Vec<i64> = (0..n as i64).collect();
        let ends: Vec<i64> = (0..=n as i64).collect();
        let of = Combinations { starts: &ends, members: &alone, weights: &vec![1.0; n] };
        let got = solve(&mut rows, Problem { combinations: Some(of), ..plain }, &Interrupt::default()).unwrap();
        assert_eq!(got.values, want.values);
        let twice: Vec<i64> = (0..2 * n as i64).map(|i| i / 2).collect();
        let ends: Vec<i64> = (0..=n as i64).map(|i| 2 * i).collect();
        let weights: Vec<f64> = (0..2 * n).map(|i| if i % 2 == 0 { 0.25 } else { 0.75 }).collect();
        let of = Combinations { starts: &ends, members: &twice, weights: &weights };
        let got = solve(&mut rows, Problem { combinations: Some(of), ..plain }, &Interrupt::default()).unwrap();
        assert!((got.objective - want.objective).abs() < 1e-9);
        assert!((got.intercept - want.intercept).abs() < 1e-7);
    }

    #[test]
    fn what_does_not_fit_is_refused_and_few_steps_are_told() {
        let mut rows = rows(3, 1);
        let problem = Problem {
            lower: &[0.0, -1.0, -1.0],
            upper: &[1.0, 0.0, 0.0],
            linear: &[-1.0, 1.0, 1.0],
            combinations: None,
            groups: None,
            start: None,
            tolerance: 1e-9,
            most_steps: 1,
        };
        let stop = Interrupt::default();
        assert!(solve(&mut rows, problem, &stop).unwrap().gap > 1e-9);
        assert!(solve(&mut rows, Problem { lower: &[0.0], ..problem }, &stop).is_err());
        assert!(solve(&mut rows, Problem { lower: &[0.5, -1.0, -1.0], ..problem }, &stop).is_err());
        assert!(solve(&mut rows, Problem { linear: &[f64::NAN, 1.0, 1.0], ..problem }, &stop).is_err());
        assert!(solve(&mut rows, Problem { tolerance: 0.0, ..problem }, &stop).is_err());
        assert!(solve(&mut rows, Problem { start: Some(&[0.0, f64::NAN, 0.0]), ..problem }, &stop).is_err());
        let grouped = Problem { groups: Some((&[0, ALONE, ALONE], &[1.0])), ..problem };
        assert!(solve(&mut rows, grouped, &stop).is_err());
        let of = Combinations { starts: &[0, 1, 2, 3], members: &[0, 1, 3], weights: &[1.0; 3] };
        assert!(solve(&mut rows, Problem { combinations: Some(of), ..problem }, &stop).is_err());
        stop.raise();
        assert_eq!(solve(&mut rows, problem, &stop).unwrap_err(), Error::interrupted());
    }
}
