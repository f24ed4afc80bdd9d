//! Reductions of rows on the CPU.
//!
//! They have one order on all devices: a row is divided into pieces of `PIECE` values, value `i` of a piece goes to lane
//! `i % LANES`, each lane takes its values one after the other, and the lanes of a piece, and then the pieces, are combined
//! pairwise, neighbours first. `reductions.cuh` does the same. Reductions whose result does not show the order have a
//! faster one here.
//!
//! Lanes are computed in blocks of constant sizes, of which the compiler makes vectors.

use std::{array, iter};

use super::{
    super::lang::{self, Number},
    lang::{Ordered, Row},
};

/// Partial results of a piece.
pub const LANES: usize = 1024;

/// Values of a row that are reduced by themselves.
pub const PIECE: usize = 8192;

/// Rows that lie side by side and are reduced at a time.
pub(super) const WIDTH: usize = 32;

/// Lanes that are computed together, in a core's nearest memory; fewer of them at the end of a row. Lanes have several values only where
/// all `LANES` are there, which are whole blocks. So `step` is compiled for these alone, and only `first` for blocks of each size.
const BLOCK: usize = 256;
const SHORT: usize = 64;
const TWO_SHORT: usize = 2 * SHORT;
const LEAST: usize = 16;

/// Accumulators of a reduction in any order: so many that a loop over them stays one, of which vectors are made.
const ABREAST: usize = SHORT;

/// More than the binary digits of the number of smallest blocks in the longest row.
const LEVELS: usize = 30;

/// Folds `init` and all values, by `step` within a lane and by `combine` between lanes.
#[inline(always)]
pub fn fold<R: Row, A: Copy>(
    row: R,
    init: A,
    step: impl Fn(A, R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    in_order(row, init, |value| step(init, value), &step, combine)
}

/// Likewise, with `first` for the first value of a lane; `none` without a value.
#[inline(always)]
fn in_order<R: Row, A: Copy>(
    row: R,
    none: A,
    first: impl Fn(R::Item) -> A,
    step: impl Fn(A, R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let size = row.size();
    match size {
        // Results of so few blocks need no place, which would take as long as rows as short as these.
        SHORT => return of_half(&halves::<R, SHORT, _, A>(row, 0, &first, &combine), &combine),
        TWO_SHORT => {
            let halves: [A; SHORT] = halves::<R, TWO_SHORT, _, A>(row, 0, &first, &combine);
            return of_half(&halved(&halves, &combine), &combine);
        }
        _ => {}
    }
    let mut results = Results { all: [none; LEVELS], count: 0, blocks: 0 };
    for start in (0..size).step_by(PIECE) {
        let end = size.min(start + PIECE);
        if end > start + LANES {
            for at in (start..start + LANES).step_by(BLOCK) {
                let lanes = lanes(row, at, end, &first, &step);
                results.push(BLOCK / LEAST, of_block(&halved(&lanes, &combine), &combine), &combine);
            }
            continue;
        }
        // Each lane has one value.
        let mut at = start;
        while at + BLOCK <= end {
            let halves = halves::<R, BLOCK, _, A>(row, at, &first, &combine);
            results.push(BLOCK / LEAST, of_block(&halves, &combine), &combine);
            at += BLOCK;
        }
        while at + SHORT <= end {
            let halves = halves::<R, SHORT, _, A>(row, at, &first, &combine);
            results.push(SHORT / LEAST, of_half(&halves, &combine), &combine);
            at += SHORT;
        }
        while at + LEAST <= end {
            results.push(1, of_least(&firsts(row, at, &first), &combine), &combine);
            at += LEAST;
        }
        if at < end {
            let mut lanes = [none; LEAST];
            for (lane, value) in iter::zip(&mut lanes, row.part(at..end)) {
                *lane = first(value);
            }
            results.push(1, combined(lanes, end - at, &combine), &combine);
        }
    }
    results.last(none, &combine)
}

/// `N` lanes of one value each, from `at` on.
#[inline(always)]
fn firsts<R: Row, const N: usize, A>(row: R, at: usize, first: impl Fn(R::Item) -> A) -> [A; N] {
    let values = row.window::<N>(at);
    array::from_fn(
        #[inline(always)]
        |i| first(values(i)),
    )
}

/// Half of such lanes: pairs, combined.
#[inline(always)]
fn halves<R: Row, const N: usize, const HALF: usize, A: Copy>(
    row: R,
    at: usize,
    first: impl Fn(R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> [A; HALF] {
    halved(&firsts::<R, N, A>(row, at, first), combine)
}

/// A block of lanes from `at` on, of a piece that ends at `end`. Lanes that change have a place in memory, which costs time.
#[inline(always)]
fn lanes<R: Row, A: Copy>(
    row: R,
    at: usize,
    end: usize,
    first: impl Fn(R::Item) -> A,
    step: impl Fn(A, R::Item) -> A,
) -> [A; BLOCK] {
    let mut lanes = firsts(row, at, first);
    for start in (at + LANES..end).step_by(LANES) {
        if start + BLOCK <= end {
            let values = row.window::<BLOCK>(start);
            for (i, lane) in lanes.iter_mut().enumerate() {
                *lane = step(*lane, values(i));
            }
        } else {
            for (lane, value) in iter::zip(&mut lanes, row.part(start..end)) {
                *lane = step(*lane, value);
            }
        }
    }
    lanes
}

/// The results of pairs of neighbours.
#[inline(always)]
fn halved<const N: usize, const HALF: usize, A: Copy>(
    lanes: &[A; N],
    combine: impl Fn(A, A) -> A,
) -> [A; HALF] {
    array::from_fn(
        #[inline(always)]
        |i| combine(lanes[2 * i], lanes[2 * i + 1]),
    )
}

/// The result of half as many lanes as a block has.
#[inline(always)]
fn of_block<A: Copy>(halves: &[A; BLOCK / 2], combine: impl Fn(A, A) -> A) -> A {
    let quarters: [A; SHORT] = halved(halves, &combine);
    of_half(&halved(&quarters, &combine), combine)
}

/// The result of half as many lanes as a short block has.
#[inline(always)]
fn of_half<A: Copy>(halves: &[A; SHORT / 2], combine: impl Fn(A, A) -> A) -> A {
    of_least(&halved(halves, &combine), combine)
}

/// The result of a smallest block.
#[inline(always)]
fn of_least<A: Copy>(lanes: &[A; LEAST], combine: impl Fn(A, A) -> A) -> A {
    let halves: [A; LEAST / 2] = halved(lanes, &combine);
    let [a, b, c, d] = halved(&halves, &combine);
    combine(combine(a, b), combine(c, d))
}

/// Combines the first `count` lanes: pairs of neighbours, until one is left; one without a neighbour waits.
#[inline(always)]
fn combined<A: Copy>(mut lanes: [A; LEAST], mut count: usize, combine: impl Fn(A, A) -> A) -> A {
    while count > 1 {
        for i in 0..count / 2 {
            lanes[i] = combine(lanes[2 * i], lanes[2 * i + 1]);
        }
        if count % 2 == 1 {
            lanes[count / 2] = lanes[count - 1];
        }
        count = count.div_ceil(2);
    }
    lanes[0]
}

/// The results of blocks of lanes, of which neighbours are combined as soon as both are there: there is one for each binary
/// digit of the number of smallest blocks, the one of most blocks first. All pieces but the last have as many blocks, a power
/// of two.
struct Results<A> {
    all: [A; LEVELS],
    count: usize,
    blocks: usize,
}

impl<A: Copy> Results<A> {
    /// Adds the result of as many smallest blocks, a power of two.
    #[inline(always)]
    fn push(&mut self, blocks: usize, mut result: A, combine: impl Fn(A, A) -> A) {
        for _ in 0..(self.blocks / blocks).trailing_ones() {
            self.count -= 1;
            result = combine(self.all[self.count], result);
        }
        self.all[self.count] = result;
        self.count += 1;
        self.blocks += blocks;
    }

    /// Combines what waits; `none` without a block.
    #[inline(always)]
    fn last(&self, none: A, combine: impl Fn(A, A) -> A) -> A {
        match self.all[..self.count].split_last() {
            Some((last, before)) => before.iter().rev().fold(*last, |right, left| combine(*left, right)),
            None => none,
        }
    }
}

/// A reduction whose result does not show the order.
#[inline(always)]
fn in_any_order<R: Row, A: Copy>(
    row: R,
    init: A,
    step: impl Fn(A, R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let size = row.size();
    let whole = size - size % ABREAST;
    let mut all = [init; ABREAST];
    for start in (0..whole).step_by(ABREAST) {
        let values = row.window::<ABREAST>(start);
        for (i, one) in all.iter_mut().enumerate() {
            *one = step(*one, values(i));
        }
    }
    for (one, value) in iter::zip(&mut all, row.part(whole..size)) {
        *one = step(*one, value);
    }
    of_half(&halved(&all, &combine), combine)
}

/// Returns the sum of all values; 0 without one.
#[must_use]
#[inline(always)]
pub fn sum<R: Row<Item: Ordered>>(row: R) -> R::Item {
    // Lanes need not begin with zero: it changes nothing but the sign of a zero, which it does at the end as well.
    R::Item::ZERO.add(in_order(row, R::Item::ZERO, |value| value, lang::add, lang::add))
}

/// Returns the largest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn max<R: Row<Item: Ordered>>(row: R) -> R::Item {
    let max = largest(row);
    // Comparisons don't see the sign of a zero.
    if max == R::Item::ZERO { in_any_order(row, R::Item::LOWEST, lang::max, lang::max) } else { max }
}

/// Returns the smallest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn min<R: Row<Item: Ordered>>(row: R) -> R::Item {
    let min = smallest(row);
    if min == R::Item::ZERO { in_any_order(row, R::Item::HIGHEST, lang::min, lang::min) } else { min }
}

/// A value that no other one is larger than.
#[inline(always)]
fn largest<R: Row<Item: Ordered>>(row: R) -> R::Item {
    let larger = |a, b| if b > a { b } else { a };
    in_any_order(row, R::Item::LOWEST, larger, larger)
}

/// A value that no other one is smaller than.
#[inline(always)]
fn smallest<R: Row<Item: Ordered>>(row: R) -> R::Item {
    let smaller = |a, b| if b < a { b } else { a };
    in_any_order(row, R::Item::HIGHEST, smaller, smaller)
}

/// Returns the number of values that fulfil a condition.
#[must_use]
#[inline(always)]
pub fn count<R: Row>(row: R, condition: impl Fn(R::Item) -> bool) -> u32 {
    in_any_order(row, 0, |count, value| count + u32::from(condition(value)), |a, b| a + b)
}

/// Returns the index of the largest value, the first of equal ones; NaN counts as missing, and without a number it is 0.
#[must_use]
#[inline(always)]
pub fn argmax<R: Row<Item: Ordered>>(row: R) -> u32 {
    position(row, largest(row))
}

/// Returns the index of the smallest value, likewise.
#[must_use]
#[inline(always)]
pub fn argmin<R: Row<Item: Ordered>>(row: R) -> u32 {
    position(row, smallest(row))
}

/// The index of the first value that equals `value`; 0 if none does.
#[inline(always)]
fn position<R: Row<Item: Ordered>>(row: R, value: R::Item) -> u32 {
    let size = row.size();
    for start in (0..size).step_by(BLOCK) {
        let end = size.min(start + BLOCK);
        let equal: u32 = row.part(start..end).map(|other| u32::from(other == value)).sum();
        if equal > 0 {
            let at = row.part(start..end).position(|other| other == value);
            return (start + at.unwrap_or(0)) as u32;
        }
    }
    0
}
