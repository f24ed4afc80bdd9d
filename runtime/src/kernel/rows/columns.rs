//! Rows that lie side by side in memory, some of them at a time: value `i` of all of them is next to each other, so that vectors go
//! across rows. Every row is reduced in the order of `reductions.rs`, to the same bits.
//!
//! The macro writes a function of these for a kernel whose results are single values and in which no branch reduces a row. What
//! differs between rows is an array; closures are told the number of their row.

use std::array;

use super::{
    super::lang::{self, Number},
    lang::{Ordered, Stored},
    reductions::{LANES, PIECE, WIDTH},
};

/// Values of a row that are combined in registers.
const GROUP: usize = 8;

/// One value for each row.
pub type Each<T> = [T; WIDTH];

/// Rows side by side: values that can be computed at any place.
pub trait Columns: Copy {
    /// The type of their values.
    type Item: Copy;
    /// Number of values in a row.
    fn size(self) -> usize;
    /// The values of `N` indices within the size, from `first` on: a function of their number, and of that of the row.
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> Self::Item;
}

/// Rows of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a, T: Stored> {
    values: &'a [T::Raw],
    stride: usize,
    size: usize,
}

impl<'a, T: Stored> Input<'a, T> {
    /// Creates rows of `size` values. The values of an index follow those of the index before at a distance of `stride`.
    #[must_use]
    #[inline(always)]
    pub fn new(values: &'a [T::Raw], stride: usize, size: usize) -> Self {
        Self { values, stride, size }
    }
}

impl<T: Stored> Columns for Input<'_, T> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.size
    }
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> T {
        let all: [&Each<T::Raw>; N] = array::from_fn(
            #[inline(always)]
            |i| &self.values[(first + i) * self.stride..].as_chunks().0[0],
        );
        #[inline(always)]
        move |i, column| T::of(all[i][column])
    }
}

/// Rows that were computed.
#[derive(Debug)]
pub struct Kept<T>(Vec<Each<T>>);

impl<T: Copy> Columns for &Kept<T> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> T {
        let all: &[Each<T>; N] = &self.0[first..].as_chunks().0[0];
        #[inline(always)]
        move |i, column| all[i][column]
    }
}

/// The columns that [`map`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Map<R, F>(R, F);

impl<R: Columns, T: Copy, F: Fn(usize, R::Item) -> T + Copy> Columns for Map<R, F> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> T {
        let rows = self.0.window::<N>(first);
        #[inline(always)]
        move |i, column| (self.1)(column, rows(i, column))
    }
}

/// The columns that [`zip`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B>(A, B);

impl<A: Columns, B: Columns> Columns for Zip<A, B> {
    type Item = (A::Item, B::Item);
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> Self::Item {
        let (rows, others) = (self.0.window::<N>(first), self.1.window::<N>(first));
        #[inline(always)]
        move |i, column| (rows(i, column), others(i, column))
    }
}

/// The columns that [`enumerate`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Enumerate<R>(R);

impl<R: Columns> Columns for Enumerate<R> {
    type Item = (u32, R::Item);
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize, usize) -> Self::Item {
        let rows = self.0.window::<N>(first);
        #[inline(always)]
        move |i, column| ((first + i) as u32, rows(i, column))
    }
}

/// Returns each value changed by a function.
#[inline(always)]
pub fn map<R: Columns, T: Copy, F: Fn(usize, R::Item) -> T + Copy>(rows: R, f: F) -> Map<R, F> {
    Map(rows, f)
}

/// Returns the pairs of the values of two rows.
#[inline(always)]
pub fn zip<A: Columns, B: Columns>(rows: A, others: B) -> Zip<A, B> {
    Zip(rows, others)
}

/// Returns each value with its index.
#[inline(always)]
pub fn enumerate<R: Columns>(rows: R) -> Enumerate<R> {
    Enumerate(rows)
}

/// Computes the values of rows now.
#[inline(always)]
pub fn keep<R: Columns>(rows: R) -> Kept<R::Item> {
    Kept((0..rows.size()).map(|i| one(rows, i)).collect())
}

/// The values of one index.
#[inline(always)]
fn one<R: Columns>(rows: R, index: usize) -> Each<R::Item> {
    let values = rows.window::<1>(index);
    each(
        #[inline(always)]
        |column| values(0, column),
    )
}

/// Returns the number of values in a row.
#[must_use]
#[inline(always)]
pub fn len<R: Columns>(rows: R) -> u32 {
    rows.size() as u32
}

/// Returns the values of a function of the number of a row.
#[inline(always)]
pub fn each<T>(f: impl Fn(usize) -> T) -> Each<T> {
    array::from_fn(f)
}

/// Returns the value that belongs to each row. If the operand has one value, that belongs to each of them.
#[must_use]
#[inline(always)]
pub fn ones<T: Stored>(values: &[T::Raw]) -> Each<T> {
    each(|column| T::of(values.get(column).or(values.first()).copied().unwrap_or_default()))
}

/// Stores a value for each row that there is.
#[inline(always)]
pub fn set<T: Stored>(to: &mut [T::Raw], values: &Each<T>) {
    for (to, value) in to.iter_mut().zip(values) {
        *to = value.raw();
    }
}

/// Folds `init` and all values, by `step` within a lane and by `combine` between lanes.
#[inline(always)]
pub fn fold<R: Columns, A: Copy>(
    rows: R,
    init: Each<A>,
    step: impl Fn(usize, A, R::Item) -> A,
    combine: impl Fn(usize, A, A) -> A,
) -> Each<A> {
    in_order(rows, init, |column, value| step(column, init[column], value), &step, combine)
}

/// Likewise, with `first` for the first value of a lane; `none` without a value.
#[inline(always)]
fn in_order<R: Columns, A: Copy>(
    rows: R,
    none: Each<A>,
    first: impl Fn(usize, R::Item) -> A,
    step: impl Fn(usize, A, R::Item) -> A,
    combine: impl Fn(usize, A, A) -> A,
) -> Each<A> {
    let size = rows.size();
    let mut results = Results::new(size, none);
    for start in (0..size).step_by(PIECE) {
        let piece = Piece { rows, end: size.min(start + PIECE) };
        let (mut at, behind) = (start, piece.end.min(start + LANES));
        while at + GROUP <= behind {
            results.push(GROUP, piece.group(at, &first, &step, &combine), &combine);
            at += GROUP;
        }
        // Lanes beside which there is no group have one value: if there were others, all `LANES` lanes would be there.
        for at in at..behind {
            let values = rows.window::<1>(at);
            results.push(1, each(|column| first(column, values(0, column))), &combine);
        }
    }
    results.last(none, &combine)
}

/// A piece of rows that ends at `end`.
struct Piece<R> {
    rows: R,
    end: usize,
}

impl<R: Columns> Piece<R> {
    /// The lanes from `at` on, combined.
    #[inline(always)]
    fn group<A: Copy>(
        &self,
        at: usize,
        first: impl Fn(usize, R::Item) -> A,
        step: impl Fn(usize, A, R::Item) -> A,
        combine: impl Fn(usize, A, A) -> A,
    ) -> Each<A> {
        let values = self.rows.window::<GROUP>(at);
        if at + LANES >= self.end {
            return each(
                #[inline(always)]
                |column| {
                    let value = |i| first(column, values(i, column));
                    let pair = |i| combine(column, value(i), value(i + 1));
                    combine(column, combine(column, pair(0), pair(2)), combine(column, pair(4), pair(6)))
                },
            );
        }
        let mut lanes: [Each<A>; GROUP] = array::from_fn(
            #[inline(always)]
            |i| each(|column| first(column, values(i, column))),
        );
        for start in (at + LANES..self.end).step_by(LANES) {
            for (i, lane) in (start..self.end).zip(&mut lanes) {
                let values = self.rows.window::<1>(i);
                for (column, lane) in lane.iter_mut().enumerate() {
                    *lane = step(column, *lane, values(0, column));
                }
            }
        }
        each(
            #[inline(always)]
            |column| {
                let pair = |i: usize| combine(column, lanes[i][column], lanes[i + 1][column]);
                combine(column, combine(column, pair(0), pair(2)), combine(column, pair(4), pair(6)))
            },
        )
    }
}

/// More than the binary digits of the number of lanes in the longest row.
const LEVELS: usize = 30;

/// The results of lanes, of which neighbours are combined as soon as both are there: there is one for each binary digit of their
/// number. All pieces but the last have as many lanes, a power of two.
struct Results<A> {
    all: Vec<Each<A>>,
    /// The number of `all` that wait.
    count: usize,
    lanes: usize,
}

impl<A: Copy> Results<A> {
    /// For `lanes` lanes.
    fn new(lanes: usize, none: Each<A>) -> Self {
        let levels = (lanes.next_power_of_two().ilog2() as usize + 1).min(LEVELS);
        Self { all: vec![none; levels], count: 0, lanes: 0 }
    }

    /// Adds the result of as many lanes, a power of two.
    #[inline(always)]
    fn push(&mut self, lanes: usize, mut result: Each<A>, combine: impl Fn(usize, A, A) -> A) {
        for _ in 0..(self.lanes / lanes).trailing_ones() {
            self.count -= 1;
            result = combined(&self.all[self.count], &result, &combine);
        }
        self.all[self.count] = result;
        self.count += 1;
        self.lanes += lanes;
    }

    /// Combines what waits; `none` without a lane.
    #[inline(always)]
    fn last(&self, none: Each<A>, combine: impl Fn(usize, A, A) -> A) -> Each<A> {
        match self.all[..self.count].split_last() {
            Some((last, before)) => {
                before.iter().rev().fold(*last, |right, left| combined(left, &right, &combine))
            }
            None => none,
        }
    }
}

#[inline(always)]
fn combined<A: Copy>(a: &Each<A>, b: &Each<A>, combine: impl Fn(usize, A, A) -> A) -> Each<A> {
    each(
        #[inline(always)]
        |column| combine(column, a[column], b[column]),
    )
}

/// A reduction whose result does not show the order.
#[inline(always)]
fn in_any_order<R: Columns, A: Copy>(rows: R, init: A, step: impl Fn(usize, A, R::Item) -> A) -> Each<A> {
    let (size, mut all) = (rows.size(), [init; WIDTH]);
    let whole = size - size % GROUP;
    for start in (0..whole).step_by(GROUP) {
        let values = rows.window::<GROUP>(start);
        all = each(
            #[inline(always)]
            |column| (0..GROUP).fold(all[column], |one, i| step(column, one, values(i, column))),
        );
    }
    for i in whole..size {
        let values = rows.window::<1>(i);
        all = each(|column| step(column, all[column], values(0, column)));
    }
    all
}

/// Returns the sum of all values; 0 without one.
#[must_use]
#[inline(always)]
pub fn sum<R: Columns<Item: Ordered>>(rows: R) -> Each<R::Item> {
    let add = |_, a, b| lang::add(a, b);
    let sums = in_order(rows, [R::Item::ZERO; WIDTH], |_, value| value, add, add);
    each(|column| R::Item::ZERO.add(sums[column]))
}

/// Returns the largest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn max<R: Columns<Item: Ordered>>(rows: R) -> Each<R::Item> {
    let max = largest(rows);
    // Comparisons don't see the sign of a zero.
    if max.contains(&R::Item::ZERO) {
        return in_any_order(rows, R::Item::LOWEST, |_, a, b| lang::max(a, b));
    }
    max
}

/// Returns the smallest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn min<R: Columns<Item: Ordered>>(rows: R) -> Each<R::Item> {
    let min = smallest(rows);
    if min.contains(&R::Item::ZERO) {
        return in_any_order(rows, R::Item::HIGHEST, |_, a, b| lang::min(a, b));
    }
    min
}

/// A value that no other one is larger than.
#[inline(always)]
fn largest<R: Columns<Item: Ordered>>(rows: R) -> Each<R::Item> {
    in_any_order(rows, R::Item::LOWEST, |_, a, b| if b > a { b } else { a })
}

/// A value that no other one is smaller than.
#[inline(always)]
fn smallest<R: Columns<Item: Ordered>>(rows: R) -> Each<R::Item> {
    in_any_order(rows, R::Item::HIGHEST, |_, a, b| if b < a { b } else { a })
}

/// Returns the number of values that fulfil a condition.
#[must_use]
#[inline(always)]
pub fn count<R: Columns>(rows: R, condition: impl Fn(usize, R::Item) -> bool) -> Each<u32> {
    in_any_order(rows, 0, |column, count, value| count + u32::from(condition(column, value)))
}

/// Returns the index of the largest value, the first of equal ones; NaN counts as missing, and without a number it is 0.
#[must_use]
#[inline(always)]
pub fn argmax<R: Columns<Item: Ordered>>(rows: R) -> Each<u32> {
    positions(rows, &largest(rows))
}

/// Returns the index of the smallest value, likewise.
#[must_use]
#[inline(always)]
pub fn argmin<R: Columns<Item: Ordered>>(rows: R) -> Each<u32> {
    positions(rows, &smallest(rows))
}

/// The index of the first value that equals that of `of`; 0 if none does.
#[inline(always)]
fn positions<R: Columns<Item: Ordered>>(rows: R, of: &Each<R::Item>) -> Each<u32> {
    let mut places = [0; WIDTH];
    // Backwards: the first one is the last that is found.
    for i in (0..rows.size()).rev() {
        let values = rows.window::<1>(i);
        for (column, place) in places.iter_mut().enumerate() {
            *place = if values(0, column) == of[column] { i as u32 } else { *place };
        }
    }
    places
}
