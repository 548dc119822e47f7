//! Bags from a declarative recipe.
//!
//! The sampler knows components, draws and roles; it knows no test by name. Bag `i` depends on the seed, on `i` and on
//! its label alone (and, where a choice is balanced over all bags of a class, on the number of bags).

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::memory;
use crate::parallel::{self, Interrupt};
use crate::rng::{BATCH, HALF, HALVES, LANES, Queue, Stream, first_words};
use crate::simd::{Kernel, Real, dispatch};

/// Instances of one kind: N(mean, deviation^2 I).
#[derive(Clone, Debug)]
pub struct Component {
    /// Mean, one entry a feature.
    pub mean: Vec<f64>,
    /// Standard deviation of each feature.
    pub deviation: f64,
    /// Number of the concept whose presence such an instance shows.
    pub concept: Option<u16>,
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
    /// First bag that is positive although it lacks a concept, or negative although it holds every one.
    pub contradiction: Option<usize>,
}

const DECISIONS: u32 = 0;
const FEATURES: u32 = 1;
const ORDER: u32 = 2;
const BALANCE: u32 = 3;
/// Bags of one task.
const BLOCK: usize = 512;
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
    let range = |message: fmt::Arguments<'_>| Err(Error::range(message));
    let known = recipe.components.len();
    if known > MOST_COMPONENTS {
        return range(format_args!("a recipe can have at most {MOST_COMPONENTS} components; this one has {known}"));
    }
    if usize::from(recipe.filler) >= known {
        return range(format_args!("filler {} is not one of {known} components", recipe.filler));
    }
    for (role, draws) in [("negative", &recipe.negative), ("positive", &recipe.positive)] {
        for (i, draw) in draws.iter().enumerate() {
            let place = format!("{role}[{i}]");
            if draw.components.is_empty() || draw.components.len() != draw.weights.len() {
                return range(format_args!("{place} needs at least one component, and one weight for each"));
            }
            if draw.components.iter().any(|&c| usize::from(c) >= known) {
                return range(format_args!("{place} names a component that is not among the {known} known"));
            }
            let total: f64 = draw.weights.iter().sum();
            if draw.weights.iter().any(|w| !(w.is_finite() && *w >= 0.0)) || total <= 0.0 {
                return range(format_args!("{place}: weights must not be negative, and not all zero"));
            }
            if !(0.0..=1.0).contains(&draw.probability) {
                return range(format_args!("{place}: probability must lie in [0, 1]; got {}", draw.probability));
            }
            if let Some((low, high)) = draw.counts.iter().find(|(low, high)| low > high) {
                return range(format_args!("{place}: the count range ({low}, {high}) is empty"));
            }
        }
    }
    if let Some((low, high)) = recipe.size
        && (low > high || low == 0)
    {
        return range(format_args!("size must be a range of positive integers; got ({low}, {high})"));
    }
    let largest = largest_bag(recipe);
    if largest.saturating_mul(n_bags as u128) > MOST_INSTANCES {
        return range(format_args!("{n_bags} bags of up to {largest} instances are more than 2**40 instances"));
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

/// Which concepts were seen, one bit each.
struct Concepts {
    /// For each component the place of its concept: the word, and the bit in it, none for what shows no concept.
    marks: Vec<(usize, u64)>,
    /// What is seen where all concepts are; empty where there are none.
    all: Vec<u64>,
}

impl Concepts {
    fn of(recipe: &Recipe) -> Result<Self> {
        let marks = recipe.components.iter().map(|component| match component.concept {
            Some(concept) => (usize::from(concept) / 64, 1 << (concept % 64)),
            None => (0, 0),
        });
        let marks = memory::collect(marks, "the concepts")?;
        let words = marks.iter().filter(|mark| mark.1 != 0).map(|mark| mark.0 + 1).max().unwrap_or(0);
        let mut all = memory::filled(0, words, "the concepts")?;
        for &(word, bit) in &marks {
            if bit != 0 {
                all[word] |= bit;
            }
        }
        Ok(Self { marks, all })
    }

    /// What is seen where no concept is.
    fn none(&self) -> Result<Vec<u64>> {
        memory::filled(0, self.all.len(), "the concepts")
    }
}

/// Bags that are being put together.
struct Bags<'a> {
    concepts: &'a Concepts,
    kinds: Vec<u16>,
    /// Concepts seen in the last bag.
    seen: Vec<u64>,
}

impl Bags<'_> {
    /// Append instances of a component, for which there is room.
    fn put(&mut self, component: u16, count: u64) {
        let (word, bit) = self.concepts.marks[usize::from(component)];
        if count > 0
            && let Some(seen) = self.seen.get_mut(word)
        {
            *seen |= bit;
        }
        self.kinds.resize(self.kinds.len() + count as usize, component);
    }

    /// Append the kinds of one bag.
    fn add(
        &mut self,
        recipe: &Recipe,
        (positive, rank): (bool, usize),
        shares: &[Vec<u16>],
        mut random: Stream,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let start = self.kinds.len();
        for word in &mut self.seen {
            *word = 0;
        }
        for (draw, shares) in if positive { &recipe.positive } else { &recipe.negative }.iter().zip(shares) {
            if draw.probability < 1.0 && random.uniform() >= draw.probability {
                continue;
            }
            let count: u64 = draw.counts.iter().map(|&(low, high)| u64::from(random.between(low, high))).sum();
            let copies = if draw.choice == Choice::Each { draw.components.len() } else { 1 };
            let more = count.saturating_mul(copies as u64);
            interrupt.check()?;
            memory::reserve(&mut self.kinds, usize::try_from(more).unwrap_or(usize::MAX), KINDS)?;
            match draw.choice {
                Choice::Each => draw.components.iter().for_each(|&component| self.put(component, count)),
                Choice::Bag => self.put(pick(draw, random.uniform()), count),
                Choice::Balanced => self.put(shares[rank], count),
                Choice::Instance => (0..count).for_each(|_| self.put(pick(draw, random.uniform()), 1)),
            }
        }
        let size = recipe.size.map_or(0, |(low, high)| random.between(low, high)).max(recipe.pad_to) as usize;
        let filler = (start + size).saturating_sub(self.kinds.len());
        interrupt.check()?;
        memory::reserve(&mut self.kinds, filler, KINDS)?;
        self.put(recipe.filler, filler as u64);
        interrupt.check()?;
        random.shuffle(&mut self.kinds[start..], interrupt) // the place of an instance must not tell what it is
    }
}

/// Labels, sizes and instance kinds of `n_negative` and `n_positive` bags, in random order or negatives first.
///
/// # Errors
/// [`Error::range`] when the recipe contradicts itself or a bag would be empty; [`Error::memory`];
/// [`Error::interrupted`].
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
    let concepts = Concepts::of(recipe)?;
    let mut offsets = memory::filled(0, n_bags + 1, "the offsets of the bags")?;
    // of each task: the rank of its first bag among the bags of either class, the labels, where the sizes go
    let mut blocks = memory::room(n_bags.div_ceil(BLOCK), "the list of tasks")?;
    let mut ranks = [0; 2];
    for (labels, sizes) in labels.chunks(BLOCK).zip(offsets[1..].chunks_mut(BLOCK)) {
        blocks.push((ranks, labels, sizes));
        let positive = labels.iter().filter(|&&positive| positive).count();
        ranks = [ranks[0] + labels.len() - positive, ranks[1] + positive];
    }
    let parts = parallel::map(blocks, n_bags > 4 * BLOCK, interrupt, |(mut ranks, labels, sizes)| {
        let first = ranks[0] + ranks[1];
        let mut bags = Bags { concepts: &concepts, kinds: Vec::new(), seen: concepts.none()? };
        let mut words = memory::filled([0; BATCH], labels.len(), "random words")?;
        first_words(seed, first as u64, DECISIONS, &mut words);
        let mut contradiction = None;
        for (((bag, &positive), words), size) in (first..).zip(labels).zip(&words).zip(sizes) {
            let random = Stream::with_first_words(seed, bag as u64, DECISIONS, words);
            let (before, rank) = (bags.kinds.len(), &mut ranks[usize::from(positive)]);
            bags.add(recipe, (positive, *rank), &shares[usize::from(positive)], random, interrupt)?;
            *rank += 1;
            if bags.kinds.len() == before {
                return Err(Error::range(format_args!(
                    "bag {bag} came out empty: let some draw always give an instance, or set pad_to=1"
                )));
            }
            let holds = bags.seen.iter().zip(&concepts.all).all(|(seen, all)| seen == all);
            if !bags.seen.is_empty() && holds != positive {
                contradiction = contradiction.or(Some(bag));
            }
            *size = (bags.kinds.len() - before) as i64;
        }
        Ok((bags.kinds, contradiction))
    })?;
    for i in 0..n_bags {
        offsets[i + 1] += offsets[i];
    }
    let contradiction = parts.iter().find_map(|part| part.1);
    let mut kinds = memory::room(parts.iter().map(|(kinds, _)| kinds.len()).sum(), KINDS)?;
    for (part, _) in &parts {
        kinds.extend_from_slice(part);
    }
    Ok(Plan { labels, offsets, kinds, contradiction })
}

/// What the features of instances are drawn from.
struct Laws<'a> {
    /// Number of features.
    d: usize,
    /// Means of each component, one component after the other.
    means: Vec<f64>,
    components: &'a [Component],
}

/// Features of some bags, into `out`. What is in the queue is computed in f64 whatever the output, so that the f32 sample
/// is the f64 sample rounded.
fn block<T: Real>(
    laws: &Laws<'_>,
    plan: &Plan,
    bags: Range<usize>,
    seed: u64,
    out: &mut [T],
    interrupt: &Interrupt,
) -> Result<()> {
    let mut queue = Queue::new(seed, FEATURES);
    // how many values each half in the queue has to give
    let (mut given, mut halves) = ([0; HALVES], 0);
    let mut sink = Sink { laws, kinds: &plan.kinds[plan.offsets[bags.start] as usize..], column: 0, out };
    for bag in bags {
        let mut left = (plan.offsets[bag + 1] - plan.offsets[bag]) as usize * laws.d;
        let mut tile = 0;
        while left > 0 {
            queue.push(bag as u64, tile, left > HALF);
            for _ in 0..=usize::from(left > HALF) {
                given[halves] = left.min(HALF);
                left -= given[halves];
                halves += 1;
            }
            tile += 1;
            if queue.is_full() {
                interrupt.check()?;
                dispatch(Take { sink: &mut sink, normals: queue.drain(), given: &given[..halves] });
                halves = 0;
            }
        }
    }
    dispatch(Take { sink: &mut sink, normals: queue.drain(), given: &given[..halves] });
    Ok(())
}

/// Write the first normals of each half, scaled and shifted.
struct Take<'a, 'b, T> {
    sink: &'a mut Sink<'b, T>,
    normals: &'a [[f64; HALF]],
    given: &'a [usize],
}

impl<T: Real> Kernel for Take<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.sink.take(self.normals, self.given);
    }
}

/// Where features go: values so far not written, and the kinds of their instances.
struct Sink<'a, T> {
    laws: &'a Laws<'a>,
    kinds: &'a [u16],
    /// Feature of the next value.
    column: usize,
    out: &'a mut [T],
}

impl<'a, T: Real> Sink<'a, T> {
    /// As [`Take`].
    #[inline(always)]
    fn take(&mut self, normals: &[[f64; HALF]], given: &[usize]) {
        let d = self.laws.d;
        for (normals, &given) in normals.iter().zip(given) {
            let mut normals = &normals[..given];
            if d.is_multiple_of(LANES) {
                for normals in normals.as_chunks::<LANES>().0 {
                    let (deviation, means, values) = self.next(LANES);
                    if let (Some(means), Some(values)) =
                        (means.first_chunk::<LANES>(), values.first_chunk_mut::<LANES>())
                    {
                        let mut row = [T::default(); LANES];
                        for i in 0..LANES {
                            row[i] = T::from_f64(normals[i] * deviation + means[i]);
                        }
                        *values = row;
                    }
                }
                continue;
            }
            while !normals.is_empty() {
                let (these, later) = normals.split_at(normals.len().min(d - self.column));
                let (deviation, means, values) = self.next(these.len());
                for ((value, normal), mean) in values.iter_mut().zip(these).zip(means) {
                    *value = T::from_f64(normal * deviation + mean);
                }
                normals = later;
            }
        }
    }

    /// Deviation, means and place of the next n values, all of one instance.
    #[inline(always)]
    fn next(&mut self, n: usize) -> (f64, &'a [f64], &'a mut [T]) {
        let (laws, kind) = (self.laws, usize::from(self.kinds[0]));
        let means = &laws.means[kind * laws.d + self.column..][..n];
        let (values, rest) = std::mem::take(&mut self.out).split_at_mut(n);
        self.out = rest;
        self.column += n;
        if self.column == laws.d {
            (self.column, self.kinds) = (0, &self.kinds[1..]);
        }
        (laws.components[kind].deviation, means, values)
    }
}

/// Draw the features of a plan, row-major into `out` (instances, features).
///
/// # Errors
/// [`Error::memory`], [`Error::interrupted`].
pub fn features<T: Real>(recipe: &Recipe, plan: &Plan, seed: u64, out: &mut [T], interrupt: &Interrupt) -> Result<()> {
    let d = recipe.components.first().map_or(0, |c| c.mean.len());
    let mut means = memory::room(d * recipe.components.len(), "the means")?;
    recipe.components.iter().for_each(|component| means.extend_from_slice(&component.mean));
    let laws = Laws { d, means, components: &recipe.components };
    let n_bags = plan.labels.len();
    let cuts = parallel::cuts(n_bags, BLOCK, |bag| plan.offsets[bag] as usize * d)?;
    parallel::fill(out, &cuts, out.len() > 1 << 16, interrupt, |block, out| {
        let bags = block * BLOCK..((block + 1) * BLOCK).min(n_bags);
        self::block(&laws, plan, bags, seed, out, interrupt)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::fill_normals;

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
        let component = |mean| Component { mean: vec![mean; 4], deviation: 0.5, concept: None };
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
    fn a_bag_of_the_wrong_label_is_found() {
        let never = Interrupt::default();
        // beyond 64 concepts, and one that two components show
        let mut recipe = recipe();
        let n_concepts = 70;
        recipe.components = (0..=n_concepts + 1)
            .map(|i| Component { mean: vec![0.0], deviation: 1.0, concept: (i > 0).then(|| i.min(n_concepts) - 1) })
            .collect();
        let all: Vec<u16> = (1..=n_concepts).collect();
        recipe.negative = vec![draw(Choice::Each, &all[1..], &[(1, 1)]), draw(Choice::Bag, &[0], &[(1, 2)])];
        recipe.positive = vec![draw(Choice::Each, &all, &[(1, 1)])];
        assert_eq!(plan(&recipe, 3000, 3000, true, 1, &never).unwrap().contradiction, None);
        recipe.positive[0].components[69] = n_concepts + 1;
        assert_eq!(plan(&recipe, 3000, 3000, true, 1, &never).unwrap().contradiction, None);
        recipe.negative.push(Draw { probability: 0.01, ..draw(Choice::Bag, &[1], &[(1, 1)]) });
        let found = plan(&recipe, 3000, 3000, true, 1, &never).unwrap();
        let holds = |bag: usize| {
            let kinds = &found.kinds[found.offsets[bag] as usize..found.offsets[bag + 1] as usize];
            all[..69].iter().all(|kind| kinds.contains(kind))
        };
        assert!(found.contradiction.is_some());
        assert_eq!(found.contradiction, (0..6000).find(|&bag| holds(bag) != found.labels[bag]));
        recipe.components.iter_mut().for_each(|component| component.concept = None);
        assert_eq!(plan(&recipe, 3000, 3000, true, 1, &never).unwrap().contradiction, None);
        recipe.components[0].concept = Some(5); // the filler counts as well
        (recipe.negative, recipe.positive) = (vec![draw(Choice::Bag, &[1], &[(1, 1)])], vec![]);
        assert_eq!(plan(&recipe, 9, 0, true, 1, &never).unwrap().contradiction, None);
        recipe.pad_to = 2;
        assert_eq!(plan(&recipe, 9, 0, true, 1, &never).unwrap().contradiction, Some(0));
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
        many.components.resize(MOST_COMPONENTS + 1, Component { mean: vec![0.0; 4], deviation: 1.0, concept: None });
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
        let component =
            |i: u16| Component { mean: (0..7).map(f64::from).collect(), deviation: f64::from(i + 1), concept: None };
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
        assert!(x.len() > 2 * HALVES * HALF && !HALF.is_multiple_of(7));
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
        assert_eq!(features(&recipe, &plan, 9, &mut x, &stop), Err(Error::interrupted()));
    }
}
