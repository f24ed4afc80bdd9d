//! Rows on the CPU. What they are made of is computed where it is used, as by iterators; `keep` computes it once.
//!
//! A reduction has one order on all devices: a row is divided into pieces of `PIECE` values, value `i` of a piece goes to lane
//! `i % LANES`, each lane takes its values one after the other, and the lanes of a piece, and then the pieces, are combined
//! pairwise, neighbours first. `rows.cuh` does the same.

use std::{cell::Cell, iter, ops::Range};

use super::super::{
    block::Beyond,
    lang::{self, Integer, Number},
};

/// Partial results of a piece.
pub const LANES: usize = 1024;

/// Values of a row that are reduced by themselves.
pub const PIECE: usize = 8192;

/// Lanes that are computed together, in a core's nearest memory; fewer of them in a short row.
const BLOCK: usize = 256;
const SHORT: usize = 128;

/// More than the binary digits of the number of blocks in the longest row.
const LEVELS: usize = 26;

/// A value as memory has it.
pub trait Stored: Copy + 'static {
    /// A `bool` is a byte.
    type Raw: Copy + Default + 'static;
    /// From memory.
    fn of(raw: Self::Raw) -> Self;
    /// For memory.
    fn raw(self) -> Self::Raw;
}

macro_rules! stored {
    ($($t:ident)*) => {$(
        impl Stored for $t {
            type Raw = Self;
            #[inline(always)]
            fn of(raw: Self) -> Self {
                raw
            }
            #[inline(always)]
            fn raw(self) -> Self {
                self
            }
        }
    )*};
}

stored!(f32 i32 u32 u8);

impl Stored for bool {
    type Raw = u8;
    #[inline(always)]
    fn of(raw: u8) -> Self {
        raw != 0
    }
    #[inline(always)]
    fn raw(self) -> u8 {
        self.into()
    }
}

/// A number type, and what is left of a row without numbers.
#[diagnostic::on_unimplemented(
    message = "rows of `{Self}` have no such method",
    label = "a row of numbers is needed here"
)]
pub trait Ordered: Number {
    /// 0.
    const ZERO: Self;
    /// No number is smaller.
    const LOWEST: Self;
    /// No number is larger.
    const HIGHEST: Self;
}

macro_rules! ordered {
    ($($t:ident $zero:expr, $lowest:expr, $highest:expr;)*) => {$(
        impl Ordered for $t {
            const ZERO: Self = $zero;
            const LOWEST: Self = $lowest;
            const HIGHEST: Self = $highest;
        }
    )*};
}

ordered! {
    f32 0.0, Self::NEG_INFINITY, Self::INFINITY;
    i32 0, Self::MIN, Self::MAX;
    u32 0, Self::MIN, Self::MAX;
    u8 0, Self::MIN, Self::MAX;
}

/// Notes of the function of a row.
#[derive(Debug, Default)]
pub struct Context(Cell<Option<Beyond>>);

impl Context {
    /// Returns the first index that was out of range.
    #[must_use]
    pub fn fault(&self) -> Option<Beyond> {
        self.0.get()
    }

    /// Notes an index out of range, if it is the first.
    #[inline]
    pub(in crate::kernel) fn note(&self, beyond: Beyond) {
        if self.0.get().is_none() {
            self.0.set(Some(beyond));
        }
    }
}

/// A row: values that can be computed at any place.
#[diagnostic::on_unimplemented(message = "`{Self}` is not a row", label = "a row is needed here")]
pub trait Row: Copy {
    /// The type of its values.
    type Item: Copy;
    /// Number of values.
    fn size(self) -> usize;
    /// The value of an index within the size.
    fn value(self, index: usize) -> Self::Item;
    /// The values of some indices within the size.
    fn part(self, range: Range<usize>) -> impl Iterator<Item = Self::Item>;
}

/// A row of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a, T: Stored>(&'a [T::Raw]);

impl<'a, T: Stored> Input<'a, T> {
    /// The row of these values.
    #[must_use]
    #[inline(always)]
    pub fn new(values: &'a [T::Raw]) -> Self {
        Self(values)
    }
}

impl<T: Stored> Row for Input<'_, T> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn value(self, index: usize) -> T {
        T::of(self.0[index])
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> impl Iterator<Item = T> {
        self.0[range].iter().map(|raw| T::of(*raw))
    }
}

/// A row that was computed.
#[derive(Debug)]
pub struct Kept<T>(Vec<T>);

impl<T: Copy> Row for &Kept<T> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn value(self, index: usize) -> T {
        self.0[index]
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> impl Iterator<Item = T> {
        self.0[range].iter().copied()
    }
}

/// The row that [`map`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Map<R, F>(R, F);

impl<R: Row, T: Copy, F: Fn(R::Item) -> T + Copy> Row for Map<R, F> {
    type Item = T;
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn value(self, index: usize) -> T {
        (self.1)(self.0.value(index))
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> impl Iterator<Item = T> {
        self.0.part(range).map(self.1)
    }
}

/// The row that [`zip`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Zip<A, B>(A, B);

impl<A: Row, B: Row> Row for Zip<A, B> {
    type Item = (A::Item, B::Item);
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn value(self, index: usize) -> Self::Item {
        (self.0.value(index), self.1.value(index))
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> impl Iterator<Item = Self::Item> {
        iter::zip(self.0.part(range.clone()), self.1.part(range))
    }
}

/// The row that [`enumerate`] returns.
#[derive(Clone, Copy, Debug)]
pub struct Enumerate<R>(R);

impl<R: Row> Row for Enumerate<R> {
    type Item = (u32, R::Item);
    #[inline(always)]
    fn size(self) -> usize {
        self.0.size()
    }
    #[inline(always)]
    fn value(self, index: usize) -> Self::Item {
        (index as u32, self.0.value(index))
    }
    #[inline(always)]
    fn part(self, range: Range<usize>) -> impl Iterator<Item = Self::Item> {
        iter::zip(range.start as u32..range.end as u32, self.0.part(range))
    }
}

/// Each value changed by a function.
#[inline(always)]
pub fn map<R: Row, T: Copy, F: Fn(R::Item) -> T + Copy>(row: R, f: F) -> Map<R, F> {
    Map(row, f)
}

/// The pairs of two rows' values.
#[inline(always)]
pub fn zip<A: Row, B: Row>(row: A, other: B) -> Zip<A, B> {
    Zip(row, other)
}

/// Each value with its index.
#[inline(always)]
pub fn enumerate<R: Row>(row: R) -> Enumerate<R> {
    Enumerate(row)
}

/// A row whose values are computed now.
#[inline(always)]
pub fn keep<R: Row>(row: R) -> Kept<R::Item> {
    Kept(row.part(0..row.size()).collect())
}

/// Number of values.
#[must_use]
#[inline(always)]
pub fn len<R: Row>(row: R) -> u32 {
    row.size() as u32
}

/// One value; if the index is out of range, that is noted, and zero stands for it.
#[must_use]
#[inline(always)]
pub fn at<R: Row>(context: &Context, row: R, index: impl Integer) -> R::Item
where
    R::Item: Nothing,
{
    let (index, bound) = (index.bits(), row.size());
    if (index as usize) < bound {
        return row.value(index as usize);
    }
    context.note(Beyond { index, bound });
    R::Item::NOTHING
}

/// A stand-in for a value that does not exist.
pub trait Nothing {
    /// 0, or `false`.
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($t:ident $nothing:literal)*) => {$(
        impl Nothing for $t {
            const NOTHING: Self = $nothing;
        }
    )*};
}

nothing!(f32 0.0 i32 0 u32 0 u8 0 bool false);

macro_rules! nothings {
    ($($($t:ident)*;)*) => {$(
        impl<$($t: Nothing),*> Nothing for ($($t,)*) {
            const NOTHING: Self = ($($t::NOTHING,)*);
        }
    )*};
}

nothings! {
    A B;
    A B C;
    A B C D;
}

/// `init` and all values, by `step` within a lane and by `combine` between lanes.
#[inline(always)]
pub fn fold<R: Row, A: Copy>(
    row: R,
    init: A,
    step: impl Fn(A, R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    match row.size() {
        0..=SHORT => fold_in::<SHORT, R, A>(row, init, step, combine),
        _ => fold_in::<BLOCK, R, A>(row, init, step, combine),
    }
}

/// Likewise, with blocks of `N` lanes.
#[inline(always)]
fn fold_in<const N: usize, R: Row, A: Copy>(
    row: R,
    init: A,
    step: impl Fn(A, R::Item) -> A,
    combine: impl Fn(A, A) -> A,
) -> A {
    let size = row.size();
    let mut pairs = Pairs { results: [init; LEVELS], count: 0 };
    for piece in (0..size).step_by(PIECE) {
        let end = size.min(piece + PIECE);
        for first in (piece..end.min(piece + LANES)).step_by(N) {
            let mut lanes = [init; N];
            for start in (first..end).step_by(LANES) {
                let values = row.part(start..end.min(start + N));
                for (lane, value) in iter::zip(&mut lanes, values) {
                    *lane = step(*lane, value);
                }
            }
            pairs.push(combined(lanes, N.min(end - first), &combine), &combine);
        }
    }
    pairs.last(init, &combine)
}

/// Combines the first `count` lanes: pairs of neighbours, until one is left; one without a neighbour waits.
#[inline(always)]
fn combined<const N: usize, A: Copy>(mut lanes: [A; N], mut count: usize, combine: impl Fn(A, A) -> A) -> A {
    // Of a known number, vectors are used.
    if count == 256 {
        halved::<128, A>(&mut lanes, &combine);
        count = 128;
    }
    if count == 128 {
        halved::<64, A>(&mut lanes, &combine);
        halved::<32, A>(&mut lanes, &combine);
        halved::<16, A>(&mut lanes, &combine);
        halved::<8, A>(&mut lanes, &combine);
        halved::<4, A>(&mut lanes, &combine);
        count = 4;
    }
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

/// Combines the pairs of the first `2 * N` lanes.
#[inline(always)]
fn halved<const N: usize, A: Copy>(lanes: &mut [A], combine: impl Fn(A, A) -> A) {
    let mut results = [lanes[0]; N];
    for (result, pair) in iter::zip(&mut results, lanes[..2 * N].chunks_exact(2)) {
        *result = combine(pair[0], pair[1]);
    }
    lanes[..N].copy_from_slice(&results);
}

/// The results of blocks of lanes, of which neighbours are combined as soon as both are there: `results[k]` is that of
/// `1 << k` blocks, if the number of blocks has that digit. All pieces but the last have as many blocks, a power of two.
struct Pairs<A> {
    results: [A; LEVELS],
    count: usize,
}

impl<A: Copy> Pairs<A> {
    #[inline(always)]
    fn push(&mut self, mut result: A, combine: impl Fn(A, A) -> A) {
        let level = self.count.trailing_ones() as usize;
        for left in &self.results[..level] {
            result = combine(*left, result);
        }
        self.results[level] = result;
        self.count += 1;
    }

    /// Combines what waits; `init` without a block.
    #[inline(always)]
    fn last(&self, init: A, combine: impl Fn(A, A) -> A) -> A {
        let mut waiting =
            (0..LEVELS).filter(|level| self.count >> level & 1 == 1).map(|level| self.results[level]);
        match waiting.next() {
            Some(first) => waiting.fold(first, |right, left| combine(left, right)),
            None => init,
        }
    }
}

/// The sum of all values; 0 without one.
#[must_use]
#[inline(always)]
pub fn sum<R: Row<Item: Ordered>>(row: R) -> R::Item {
    fold(row, R::Item::ZERO, lang::add, lang::add)
}

/// The largest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn max<R: Row<Item: Ordered>>(row: R) -> R::Item {
    fold(row, R::Item::LOWEST, lang::max, lang::max)
}

/// The smallest value; NaN counts as missing.
#[must_use]
#[inline(always)]
pub fn min<R: Row<Item: Ordered>>(row: R) -> R::Item {
    fold(row, R::Item::HIGHEST, lang::min, lang::min)
}

/// Returns the number of values that fulfil a condition.
#[must_use]
#[inline(always)]
pub fn count<R: Row>(row: R, condition: impl Fn(R::Item) -> bool) -> u32 {
    fold(row, 0, |count, value| count + u32::from(condition(value)), |a, b| a + b)
}

/// The index of the largest value, the first of equal ones; NaN counts as missing, and without a number it is 0.
#[must_use]
#[inline(always)]
pub fn argmax<R: Row<Item: Ordered>>(row: R) -> u32 {
    best(row, R::Item::LOWEST, |a, b| a > b)
}

/// The index of the smallest value, likewise.
#[must_use]
#[inline(always)]
pub fn argmin<R: Row<Item: Ordered>>(row: R) -> u32 {
    best(row, R::Item::HIGHEST, |a, b| a < b)
}

/// No value yet.
const NONE: u32 = u32::MAX;

#[inline(always)]
fn best<R: Row<Item: Ordered>>(row: R, worst: R::Item, better: impl Fn(R::Item, R::Item) -> bool) -> u32 {
    // A NaN is better than nothing, and not equal to anything.
    let choose = |(a, i): (R::Item, u32), (b, j): (R::Item, u32)| {
        let takes = j != NONE && (better(b, a) || a == b && j < i);
        if takes { (b, j) } else { (a, i) }
    };
    let (_, index) =
        fold(enumerate(row), (worst, NONE), |best, (index, value)| choose(best, (value, index)), choose);
    if index == NONE { 0 } else { index }
}

/// Stores a row.
#[inline(always)]
pub fn put<R: Row<Item: Stored>>(to: &mut [<R::Item as Stored>::Raw], row: R) {
    for (to, value) in iter::zip(to, row.part(0..row.size())) {
        *to = value.raw();
    }
}

/// Stores a value.
#[inline(always)]
pub fn set<T: Stored>(to: &mut T::Raw, value: T) {
    *to = value.raw();
}

/// The value that belongs to a row.
#[must_use]
#[inline(always)]
pub fn one<T: Stored>(values: &[T::Raw]) -> T {
    T::of(values.first().copied().unwrap_or_default())
}

/// As much as all rows have.
#[must_use]
pub fn shortest(sizes: &[usize]) -> usize {
    sizes.iter().copied().min().unwrap_or(0)
}

/// The first values of a slice, as memory has them.
#[must_use]
pub fn stored<T: Stored>(values: &[T], len: usize) -> Vec<T::Raw> {
    values.iter().take(len).map(|value| value.raw()).collect()
}

/// The values that memory has.
#[must_use]
pub fn values<T: Stored>(raw: &[T::Raw]) -> Vec<T> {
    raw.iter().map(|raw| T::of(*raw)).collect()
}
