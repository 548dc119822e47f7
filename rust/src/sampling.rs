//! Bags from a declarative recipe.
//!
//! The sampler knows components, draws and roles; it knows no test by name. Bag `i` depends on the seed, on `i` and on
//! its label alone (and, where a choice is balanced over all bags of a class, on the number of bags).

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::rng::{Stream, TILE, fill_normals};
use crate::simd::Real;

/// Instances of one kind: N(mean, deviation^2 I).
#[derive(Clone, Debug)]
pub struct Component {
    /// Mean, one entry a feature.
    pub mean: Vec<f64>,
    /// Standard deviation of each feature.
    pub deviation: f64,
}

/// How a draw picks among its components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// As many instances of each component.
    Each,
    /// One component for the whole bag, by weight.
    Bag,
    /// One component for the whole bag, shared out over the bags of the class in exact proportion to the weights.
    Balanced,
    /// A component for each instance, by weight.
    Instance,
}

/// Instances that a bag receives.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Inclusive ranges: the number of instances is a sum of uniform integers, one of each range.
    pub counts: Vec<(u32, u32)>,
    /// Components to pick from.
    pub components: Vec<u16>,
    /// Weights, one a component.
    pub weights: Vec<f64>,
    /// How to pick.
    pub choice: Choice,
    /// Probability that the draw takes place.
    pub probability: f64,
}

/// What negative and positive bags are made of.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Kinds of instances; their position is the instance kind.
    pub components: Vec<Component>,
    /// Draws of a negative bag.
    pub negative: Vec<Draw>,
    /// Draws of a positive bag.
    pub positive: Vec<Draw>,
    /// Component that fills bags up.
    pub filler: u16,
    /// Inclusive range of the bag size, to which a bag is filled up.
    pub size: Option<(u32, u32)>,
    /// Smallest bag size, to which a bag is filled up.
    pub pad_to: u32,
}

/// Labels, sizes and instance kinds of a sample, before any feature is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// True for a positive bag.
    pub labels: Vec<bool>,
    /// Bag offsets.
    pub offsets: Vec<i64>,
    /// Kind of each instance.
    pub kinds: Vec<u16>,
}

const DECISIONS: u32 = 0;
const FEATURES: u32 = 1;
const ORDER: u32 = 2;
const BALANCE: u32 = 3;
/// Bags of one task.
const BLOCK: usize = 512;
/// Normals drawn between two looks at the interrupt: whole tiles, so that the cuts change no bit.
const CHUNK: usize = 256 * TILE;
/// Kinds are handed on as 16-bit integers with a sign.
const MOST_COMPONENTS: usize = i16::MAX as usize;
const KINDS: &str = "the kinds of the instances";
/// No sample of more instances than this is even tried.
const MOST_INSTANCES: u128 = 1 << 40;

/// Instances that a bag of the recipe can have at most.
#[must_use]
pub fn largest_bag(recipe: &Recipe) -> u128 {
    let most = |draws: &[Draw]| -> u128 {
        let counts = draws.iter().map(|draw| {
            let copies = if draw.choice == Choice::Each { draw.components.len() } else { 1 };
            copies as u128 * draw.counts.iter().map(|&(_, high)| u128::from(high)).sum::<u128>()
        });
        counts.sum()
    };
    let filled = recipe.pad_to.max(recipe.size.map_or(0, |(_, high)| high));
    most(&recipe.negative).max(most(&recipe.positive)).max(filled.into())
}

fn check(recipe: &Recipe, n_bags: usize) -> Result<()> {
    let range = |message: String| Err(Error::Range(message));
    let known = recipe.components.len();
    if known > MOST_COMPONENTS {
        return range(format!("a recipe can have at most {MOST_COMPONENTS} components; this one has {known}"));
    }
    if usize::from(recipe.filler) >= known {
        return range(format!("filler {} is not one of {known} components", recipe.filler));
    }
    for (role, draws) in [("negative", &recipe.negative), ("positive", &recipe.positive)] {
        for (i, draw) in draws.iter().enumerate() {
            let place = format!("{role}[{i}]");
            if draw.components.is_empty() || draw.components.len() != draw.weights.len() {
                return range(format!("{place} needs at least one component, and one weight for each"));
            }
            if draw.components.iter().any(|&c| usize::from(c) >= known) {
                return range(format!("{place} names a component that is not among the {known} known"));
            }
            let total: f64 = draw.weights.iter().sum();
            if draw.weights.iter().any(|w| !(w.is_finite() && *w >= 0.0)) || total <= 0.0 {
                return range(format!("{place}: weights must not be negative, and not all zero"));
            }
            if !(0.0..=1.0).contains(&draw.probability) {
                return range(format!("{place}: probability must lie in [0, 1]; got {}", draw.probability));
            }
            if let Some((low, high)) = draw.counts.iter().find(|(low, high)| low > high) {
                return range(format!("{place}: the count range ({low}, {high}) is empty"));
            }
        }
    }
    if let Some((low, high)) = recipe.size
        && (low > high || low == 0)
    {
        return range(format!("size must be a range of positive integers; got ({low}, {high})"));
    }
    let largest = largest_bag(recipe);
    if largest.saturating_mul(n_bags as u128) > MOST_INSTANCES {
        return range(format!("{n_bags} bags of up to {largest} instances are more than 2**40 instances"));
    }
    Ok(())
}

fn pick(draw: &Draw, at: f64) -> u16 {
    let total: f64 = draw.weights.iter().sum();
    let mut passed = 0.0;
    for (&component, &weight) in draw.components.iter().zip(&draw.weights) {
        passed += weight;
        if at * total < passed {
            return component;
        }
    }
    draw.components[draw.components.len() - 1]
}

/// For each draw of a role with a balanced choice, the component of each bag of that role.
fn balance(draws: &[Draw], seed: u64, role: u64, n: usize, interrupt: &Interrupt) -> Result<Vec<Vec<u16>>> {
    draws
        .iter()
        .zip(0u64..)
        .map(|(draw, i)| {
            if draw.choice != Choice::Balanced {
                return Ok(Vec::new());
            }
            let ranks = (0..n).map(|rank| pick(draw, (rank as f64 + 0.5) / n as f64));
            let mut shares = memory::collect(ranks, "the shares of a balanced choice")?;
            Stream::new(seed, 2 * i + role, BALANCE).shuffle(&mut shares, interrupt)?;
            Ok(shares)
        })
        .collect()
}

/// Append the kinds of one bag to `kinds`.
fn bag_kinds(
    recipe: &Recipe,
    (positive, rank): (bool, usize),
    shares: &[Vec<u16>],
    mut random: Stream,
    kinds: &mut Vec<u16>,
    interrupt: &Interrupt,
) -> Result<()> {
    let start = kinds.len();
    for (draw, shares) in if positive { &recipe.positive } else { &recipe.negative }.iter().zip(shares) {
        if draw.probability < 1.0 && random.uniform() >= draw.probability {
            continue;
        }
        let count: u64 = draw.counts.iter().map(|&(low, high)| u64::from(random.between(low, high))).sum();
        let copies = if draw.choice == Choice::Each { draw.components.len() } else { 1 };
        let more = count.saturating_mul(copies as u64);
        interrupt.check()?;
        memory::reserve(kinds, usize::try_from(more).unwrap_or(usize::MAX), KINDS)?;
        match draw.choice {
            Choice::Each => {
                for &component in &draw.components {
                    kinds.extend((0..count).map(|_| component));
                }
            }
            Choice::Bag => {
                let component = pick(draw, random.uniform());
                kinds.extend((0..count).map(|_| component));
            }
            Choice::Balanced => kinds.extend((0..count).map(|_| shares[rank])),
            Choice::Instance => kinds.extend((0..count).map(|_| pick(draw, random.uniform()))),
        }
    }
    let size = recipe.size.map_or(0, |(low, high)| random.between(low, high)).max(recipe.pad_to) as usize;
    let filler = (start + size).saturating_sub(kinds.len());
    interrupt.check()?;
    memory::reserve(kinds, filler, KINDS)?;
    kinds.extend((0..filler).map(|_| recipe.filler));
    interrupt.check()?;
    random.shuffle(&mut kinds[start..], interrupt) // the place of an instance in its bag must not tell what it is
}

/// Labels, sizes and instance kinds of `n_negative` and `n_positive` bags, in random order or negatives first.
///
/// # Errors
/// [`Error::Range`] when the recipe contradicts itself or a bag would be empty; [`Error::Memory`];
/// [`Error::Interrupted`].
pub fn plan(
    recipe: &Recipe,
    n_negative: usize,
    n_positive: usize,
    shuffled: bool,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Plan> {
    let n_bags = n_negative.saturating_add(n_positive);
    check(recipe, n_bags)?;
    let mut labels = memory::collect((0..n_bags).map(|i| i >= n_negative), "the labels")?;
    if shuffled {
        Stream::new(seed, 0, ORDER).shuffle(&mut labels, interrupt)?;
    }
    interrupt.check()?;
    let shares = [
        balance(&recipe.negative, seed, 0, n_negative, interrupt)?,
        balance(&recipe.positive, seed, 1, n_positive, interrupt)?,
    ];
    let mut seen = [0usize; 2];
    let ranks = labels.iter().map(|&positive| {
        seen[usize::from(positive)] += 1;
        seen[usize::from(positive)] - 1
    });
    let ranks = memory::collect(ranks, "the ranks of the bags")?;
    let blocks = memory::collect((0..n_bags).step_by(BLOCK), "the list of tasks")?;
    let parts = parallel::map(blocks, n_bags > 4 * BLOCK, interrupt, |first| {
        let (mut sizes, mut kinds) = (memory::room(BLOCK, "the sizes of the bags")?, Vec::new());
        for bag in first..(first + BLOCK).min(n_bags) {
            let random = Stream::new(seed, bag as u64, DECISIONS);
            let (before, role) = (kinds.len(), (labels[bag], ranks[bag]));
            bag_kinds(recipe, role, &shares[usize::from(labels[bag])], random, &mut kinds, interrupt)?;
            if kinds.len() == before {
                return Err(Error::Range(format!(
                    "bag {bag} came out empty: let some draw always give an instance, or set pad_to=1"
                )));
            }
            sizes.push((kinds.len() - before) as i64);
        }
        Ok((sizes, kinds))
    })?;
    let mut offsets = memory::room(n_bags + 1, "the offsets of the bags")?;
    offsets.push(0);
    let mut kinds = memory::room(parts.iter().map(|(_, kinds)| kinds.len()).sum(), KINDS)?;
    for (sizes, part) in parts {
        for size in sizes {
            offsets.push(offsets[offsets.len() - 1] + size);
        }
        kinds.extend(part);
    }
    Ok(Plan { labels, offsets, kinds })
}

/// Draw the features of a plan, row-major into `out` (instances, features).
///
/// # Errors
/// [`Error::Memory`], [`Error::Interrupted`].
pub fn features<T: Real>(recipe: &Recipe, plan: &Plan, seed: u64, out: &mut [T], interrupt: &Interrupt) -> Result<()> {
    let d = recipe.components.first().map_or(0, |c| c.mean.len());
    let n_bags = plan.labels.len();
    let cuts = parallel::cuts(n_bags, BLOCK, |bag| plan.offsets[bag] as usize * d)?;
    parallel::fill(out, &cuts, out.len() > 1 << 16, interrupt, |block, mut out| {
        let mut scratch = memory::filled(0.0, out.len().min(CHUNK), "random numbers")?;
        for bag in block * BLOCK..((block + 1) * BLOCK).min(n_bags) {
            let rows = plan.offsets[bag] as usize..plan.offsets[bag + 1] as usize;
            let (values, rest) = out.split_at_mut(rows.len() * d);
            let (mut row, mut column) = (rows.start, 0);
            for (i, values) in values.chunks_mut(CHUNK).enumerate() {
                interrupt.check()?;
                let normals = &mut scratch[..values.len()];
                fill_normals(seed, bag as u64, FEATURES, i * (CHUNK / TILE), normals);
                // A chunk may begin and end inside a row.
                let (mut values, mut normals) = (values, &normals[..]);
                while !values.is_empty() {
                    let component = &recipe.components[usize::from(plan.kinds[row])];
                    let means = &component.mean[column..d.min(column + values.len())];
                    let (these, later) = values.split_at_mut(means.len());
                    // computed in f64 whatever the output, so that the f32 sample is the f64 sample rounded
                    for ((value, normal), mean) in these.iter_mut().zip(normals).zip(means) {
                        *value = T::from_f64(normal * component.deviation + mean);
                    }
                    (values, normals) = (later, &normals[means.len()..]);
                    column += means.len();
                    if column == d {
                        (row, column) = (row + 1, 0);
                    }
                }
            }
            out = rest;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(choice: Choice, components: &[u16], counts: &[(u32, u32)]) -> Draw {
        Draw {
            counts: counts.to_vec(),
            components: components.to_vec(),
            weights: vec![1.0; components.len()],
            choice,
            probability: 1.0,
        }
    }

    fn recipe() -> Recipe {
        let component = |mean| Component { mean: vec![mean; 4], deviation: 0.5 };
        Recipe {
            components: vec![component(0.0), component(10.0), component(20.0), component(30.0)],
            negative: vec![draw(Choice::Balanced, &[1, 2], &[(1, 1)]), draw(Choice::Bag, &[0], &[(1, 9)])],
            positive: vec![draw(Choice::Each, &[1, 2], &[(1, 2)]), draw(Choice::Instance, &[3, 0], &[(1, 2), (1, 2)])],
            filler: 0,
            size: None,
            pad_to: 0,
        }
    }

    #[test]
    fn bags_follow_the_recipe() {
        let recipe = recipe();
        let plan = plan(&recipe, 1000, 500, true, 1, &Interrupt::default()).unwrap();
        assert_eq!(plan.labels.iter().filter(|&&l| l).count(), 500);
        let mut firsts = 0;
        for (bag, &positive) in plan.labels.iter().enumerate() {
            let kinds = &plan.kinds[plan.offsets[bag] as usize..plan.offsets[bag + 1] as usize];
            let count = |kind| kinds.iter().filter(|&&k| k == kind).count();
            if positive {
                assert!(count(1) == count(2) && (1..=2).contains(&count(1)));
                assert!((2..=4).contains(&(count(3) + count(0))));
            } else {
                assert_eq!(count(1) + count(2), 1);
                assert!((1..=9).contains(&count(0)));
                firsts += count(1);
            }
        }
        assert_eq!(firsts, 500); // half of the negatives exactly
        let mut x = vec![0.0f64; plan.kinds.len() * 4];
        features(&recipe, &plan, 1, &mut x, &Interrupt::default()).unwrap();
        for (row, &kind) in x.chunks(4).zip(&plan.kinds) {
            assert!(row.iter().all(|v| (v - 10.0 * f64::from(kind)).abs() < 4.0));
        }
    }

    #[test]
    fn sizes_are_filled_up() {
        let mut recipe = recipe();
        recipe.size = Some((12, 15));
        let plan = plan(&recipe, 200, 200, false, 2, &Interrupt::default()).unwrap();
        assert!(plan.offsets.windows(2).all(|w| (12..=15).contains(&(w[1] - w[0]))));
        assert!(!plan.labels[199] && plan.labels[200]);
    }

    #[test]
    fn a_bag_does_not_depend_on_later_bags() {
        let mut recipe = recipe();
        recipe.negative.remove(0);
        let never = Interrupt::default();
        let (few, many) =
            (plan(&recipe, 10, 0, false, 3, &never).unwrap(), plan(&recipe, 5000, 0, false, 3, &never).unwrap());
        assert_eq!(few.offsets, many.offsets[..11]);
        assert_eq!(few.kinds, many.kinds[..few.kinds.len()]);
    }

    #[test]
    fn contradictions_are_refused() {
        let never = Interrupt::default();
        let mut bad = recipe();
        bad.negative[0].counts = vec![(3, 1)];
        assert!(plan(&bad, 1, 1, true, 0, &never).unwrap_err().to_string().contains("negative[0]"));
        let mut bad = recipe();
        bad.positive[1].components = vec![3, 9];
        assert!(plan(&bad, 1, 1, true, 0, &never).is_err());
        let mut empty = recipe();
        empty.negative = vec![draw(Choice::Bag, &[0], &[(0, 0)])];
        assert!(plan(&empty, 1, 0, true, 0, &never).unwrap_err().to_string().contains("came out empty"));
        assert!(plan(&recipe(), 1 << 39, 0, true, 0, &never).is_err());
        assert!(plan(&recipe(), usize::MAX, usize::MAX, true, 0, &never).is_err());
        let mut many = recipe();
        many.components.resize(MOST_COMPONENTS + 1, Component { mean: vec![0.0; 4], deviation: 1.0 });
        assert!(plan(&many, 1, 1, true, 0, &never).unwrap_err().to_string().contains("at most 32767 components"));
    }

    #[test]
    fn counts_beyond_32_bits_do_not_wrap() {
        let mut huge = recipe();
        huge.negative = vec![draw(Choice::Bag, &[0], &[(1 << 31, 1 << 31), (1 << 31, 1 << 31)])];
        assert_eq!(largest_bag(&huge), 1 << 32);
        let refused = plan(&huge, 257, 0, true, 0, &Interrupt::default()).unwrap_err();
        assert!(refused.to_string().contains("257 bags of up to 4294967296 instances"), "{refused}");
    }

    #[test]
    fn features_of_a_large_bag_are_drawn_in_chunks_without_a_seam() {
        let component = |i: u16| Component { mean: (0..7).map(f64::from).collect(), deviation: f64::from(i + 1) };
        let recipe = Recipe {
            components: (0..3).map(component).collect(),
            negative: vec![draw(Choice::Instance, &[0, 1, 2], &[(5000, 5000)])],
            positive: vec![],
            filler: 0,
            size: None,
            pad_to: 0,
        };
        let never = Interrupt::default();
        let plan = plan(&recipe, 1, 0, false, 9, &never).unwrap();
        let mut x = vec![0.0f64; 5000 * 7];
        assert!(x.len() > 2 * CHUNK && !CHUNK.is_multiple_of(7));
        features(&recipe, &plan, 9, &mut x, &never).unwrap();
        let mut want = vec![0.0f64; x.len()];
        fill_normals(9, 0, FEATURES, 0, &mut want);
        for (row, &kind) in want.chunks_mut(7).zip(&plan.kinds) {
            for (value, mean) in row.iter_mut().zip(&recipe.components[usize::from(kind)].mean) {
                *value = *value * f64::from(kind + 1) + mean;
            }
        }
        assert!(x.iter().zip(&want).all(|(a, b)| a.to_bits() == b.to_bits()));
        let stop = Interrupt::default();
        stop.raise();
        assert_eq!(features(&recipe, &plan, 9, &mut x, &stop), Err(Error::Interrupted));
    }
}
