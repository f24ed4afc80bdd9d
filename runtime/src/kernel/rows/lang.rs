//! Rows on the CPU. What they are made of is computed where it is used, as by iterators; `keep` computes it once.

use std::{cell::Cell, iter, ops::Range};

pub use super::reductions::{LANES, PIECE, argmax, argmin, count, fold, max, min, sum};

use super::super::{
    block::Beyond,
    lang::{Integer, Number},
    random::Random,
};

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

stored!(f32 f64 i32 i64 i8 u32 u8);

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

/// Its words: no tensor has it, but a row of random numbers does.
impl Stored for Random {
    type Raw = [u32; 2];
    #[inline(always)]
    fn of([first, second]: [u32; 2]) -> Self {
        Self::of(first, second)
    }
    #[inline(always)]
    fn raw(self) -> [u32; 2] {
        self.words().into()
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
    f64 0.0, Self::NEG_INFINITY, Self::INFINITY;
    i32 0, Self::MIN, Self::MAX;
    i64 0, Self::MIN, Self::MAX;
    i8 0, Self::MIN, Self::MAX;
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
    /// The values of `N` indices within the size, from `first` on: a function of their number, which is below `N`. Loops over
    /// it are vectorised, whatever they do with its values.
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> Self::Item;
}

/// A row of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a, T: Stored>(&'a [T::Raw]);

impl<'a, T: Stored> Input<'a, T> {
    /// Returns the row of these values.
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
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> T {
        window(chunk::<N, T::Raw>(self.0, first), T::of)
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
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> T {
        window(chunk::<N, T>(&self.0, first), |value| value)
    }
}

/// `N` values. Their number is known to the compiler, so that indices are not compared with it.
#[inline(always)]
fn chunk<const N: usize, M>(memory: &[M], first: usize) -> &[M; N] {
    &memory[first..].as_chunks().0[0]
}

/// A window of values that are in memory.
#[inline(always)]
fn window<const N: usize, M: Copy, T>(memory: &[M; N], of: impl Fn(M) -> T) -> impl Fn(usize) -> T {
    #[inline(always)]
    move |i| of(memory[i])
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
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> T {
        let row = self.0.window::<N>(first);
        #[inline(always)]
        move |i| (self.1)(row(i))
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
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> Self::Item {
        let (row, other) = (self.0.window::<N>(first), self.1.window::<N>(first));
        #[inline(always)]
        move |i| (row(i), other(i))
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
    #[inline(always)]
    fn window<const N: usize>(self, first: usize) -> impl Fn(usize) -> Self::Item {
        let row = self.0.window::<N>(first);
        #[inline(always)]
        move |i| ((first + i) as u32, row(i))
    }
}

/// Returns each value changed by a function.
#[inline(always)]
pub fn map<R: Row, T: Copy, F: Fn(R::Item) -> T + Copy>(row: R, f: F) -> Map<R, F> {
    Map(row, f)
}

/// Returns the pairs of two rows' values.
#[inline(always)]
pub fn zip<A: Row, B: Row>(row: A, other: B) -> Zip<A, B> {
    Zip(row, other)
}

/// Returns each value with its index.
#[inline(always)]
pub fn enumerate<R: Row>(row: R) -> Enumerate<R> {
    Enumerate(row)
}

/// Returns a row whose values are computed now.
#[inline(always)]
pub fn keep<R: Row>(row: R) -> Kept<R::Item> {
    Kept(row.part(0..row.size()).collect())
}

/// Returns the number of values.
#[must_use]
#[inline(always)]
pub fn len<R: Row>(row: R) -> u32 {
    row.size() as u32
}

/// Returns one value; an index out of range is noted, and zero stands for it.
#[must_use]
#[inline(always)]
pub fn at<R: Row>(context: &Context, row: R, index: impl Integer) -> R::Item
where
    R::Item: Nothing,
{
    let (index, bound) = (index.index(), row.size());
    if (index as usize) < bound {
        return row.value(index as usize);
    }
    context.note(Beyond { index, bound });
    R::Item::NOTHING
}

/// A stand-in for a value that does not exist.
pub trait Nothing {
    /// 0, or `false`; of a random number, both words.
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($t:ident $nothing:literal)*) => {$(
        impl Nothing for $t {
            const NOTHING: Self = $nothing;
        }
    )*};
}

nothing!(f32 0.0 f64 0.0 i32 0 i64 0 i8 0 u32 0 u8 0 bool false);

impl Nothing for Random {
    const NOTHING: Self = Self::NOTHING;
}

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

/// Returns a row of a block. If its operand has one row, that row is each of them.
#[must_use]
#[inline(always)]
pub fn row<T: Stored>(values: &[T::Raw], row: usize, size: usize) -> Input<'_, T> {
    Input(values.get(row * size..(row + 1) * size).unwrap_or(values))
}

/// Returns the value that belongs to a row of a block. If its operand has one value, that belongs to each of them.
#[must_use]
#[inline(always)]
pub fn one<T: Stored>(values: &[T::Raw], row: usize) -> T {
    T::of(values.get(row).or(values.first()).copied().unwrap_or_default())
}

/// Returns the place of a row of a block.
#[must_use]
#[inline(always)]
pub fn place<R>(values: &mut [R], row: usize, size: usize) -> &mut [R] {
    values.get_mut(row * size..(row + 1) * size).unwrap_or_default()
}

/// Returns the number of values that all rows have.
#[must_use]
pub fn shortest(sizes: &[usize]) -> usize {
    sizes.iter().copied().min().unwrap_or(0)
}

/// Returns the first values of a slice, as memory has them.
#[must_use]
pub fn stored<T: Stored>(values: &[T], len: usize) -> Vec<T::Raw> {
    values.iter().take(len).map(|value| value.raw()).collect()
}

/// Returns the values that memory has.
#[must_use]
pub fn values<T: Stored>(raw: &[T::Raw]) -> Vec<T> {
    raw.iter().map(|raw| T::of(*raw)).collect()
}
