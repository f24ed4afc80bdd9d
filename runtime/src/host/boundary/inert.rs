//! Types whose drop frees memory and does nothing else, also inside of each other: those of values that a segment makes and that may
//! end before a boundary.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque},
    error, ffi, fmt, io, iter, num, ops, path,
    rc::Rc,
    sync::Arc,
    time, vec,
};

use crate::{DType, Dim, Error, Param, Scalar, Shape, State, Tensor};

/// A type whose drop frees memory and does nothing else.
pub trait Inert {}

macro_rules! inert {
    ($($ty:ty $(: $($t:ident)*)?;)*) => {$(
        impl$(<$($t: Inert),*>)? Inert for $ty {}
    )*};
}
inert! {
    (); bool; char; str; String; f32; f64;
    i8; i16; i32; i64; i128; isize; u8; u16; u32; u64; u128; usize;
    path::Path; path::PathBuf; ffi::OsStr; ffi::OsString; time::Duration; time::Instant;
    Error; io::Error; fmt::Error; num::ParseIntError; num::ParseFloatError; num::TryFromIntError;
    dyn error::Error; dyn error::Error + Send; dyn error::Error + Send + Sync;
    DType; Dim<'_>; Shape<'_>;
    Option<T>: T; [T]: T; Vec<T>: T; VecDeque<T>: T; LinkedList<T>: T; BinaryHeap<T>: T; BTreeSet<T>: T;
    BTreeMap<A, B>: A B;
    Cell<T>: T; RefCell<T>: T; OnceCell<T>: T; std::sync::Mutex<T>: T;
    ops::Range<T>: T; ops::RangeInclusive<T>: T;
    vec::IntoIter<T>: T; vec::Drain<'_, T>: T;
    iter::Enumerate<I>: I; iter::Rev<I>: I; iter::Skip<I>: I; iter::Take<I>: I; iter::StepBy<I>: I; iter::Fuse<I>: I;
    iter::Cloned<I>: I; iter::Copied<I>: I; iter::Cycle<I>: I;
    iter::Zip<A, B>: A B; iter::Chain<A, B>: A B;
    (A,): A; (A, B): A B; (A, B, C): A B C; (A, B, C, D): A B C D; (A, B, C, D, E): A B C D E;
    (A, B, C, D, E, F): A B C D E F;
}
impl<T: ?Sized> Inert for &T {}
impl<T: ?Sized> Inert for &mut T {}
impl<T: Inert, const N: usize> Inert for [T; N] {}
impl<T: Inert + ?Sized> Inert for Box<T> {}
impl<T: Inert + ?Sized> Inert for Rc<T> {}
impl<T: Inert + ?Sized> Inert for Arc<T> {}
impl<A: Inert, B: Inert, S> Inert for HashMap<A, B, S> {}
impl<T: Inert, S> Inert for HashSet<T, S> {}
impl<I: Inert + Iterator<Item: Inert>> Inert for iter::Peekable<I> {}
// Code that acquires a guard returns it as the value of a `Result`, so the type of the error does not matter.
impl<T: Inert, E> Inert for Result<T, E> {}
impl<T> Inert for Tensor<'_, T> {}
impl<T> Inert for Scalar<'_, T> {}
impl<T> Inert for Param<T> {}
impl<T> Inert for State<T> {}
