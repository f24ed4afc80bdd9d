//! Functions and traits that generated code needs for `#[device]` control flow: facades over [`control`](super::control), as those of
//! [`boundary`](super::boundary) for segments. Errors name these traits; they are not meant to be implemented or called by
//! hand.
//!
//! **Unstable**: any release may change this module, and semantic versioning does not cover it.

use std::{marker::PhantomData, panic::Location};

use super::{
    boundary::Nowhere,
    control::{self, Carried, Description, NextTensor, Predicate, SwitchIndex, sealed},
};
use crate::{Error, Runtime, Tensor, value::raw::RawTensor};

/// The predicate of a `#[device] if` or `while`.
#[diagnostic::on_unimplemented(
    message = "[G124] `{Self}` is not a predicate of the device",
    label = "expected a `Scalar<bool>`, or a `Tensor<bool>` of rank 0",
    note = "compare on the device, as in `ops::gt(&x, 0.0)?`; a mask of several elements is not one decision",
    note = "a `bool` of the host steers the host: remove `#[device]`"
)]
pub trait DevicePredicate<'s> {
    /// Returns it as a tensor.
    fn predicate(&self) -> Tensor<'s, bool>;
}

#[diagnostic::do_not_recommend]
impl<'s, P: Predicate<'s>> DevicePredicate<'s> for P {
    fn predicate(&self) -> Tensor<'s, bool> {
        self.tensor().clone()
    }
}

/// The index of a `#[device] match`.
#[diagnostic::on_unimplemented(
    message = "[G124] `{Self}` is not an index on the device",
    label = "expected a `Scalar` of `i32` or `u32`, or such a `Tensor` of rank 0",
    note = "`ops::cast` makes other numbers indices; a `bool` steers a `#[device] if`",
    note = "a number of the host steers the host: remove `#[device]`"
)]
pub trait DeviceIndex<'s, T> {
    /// Returns it as a tensor.
    fn index(&self) -> Tensor<'s, T>;
}

#[diagnostic::do_not_recommend]
impl<'s, T, I: SwitchIndex<'s, Case = T>> DeviceIndex<'s, T> for I {
    fn index(&self) -> Tensor<'s, T> {
        self.tensor().clone()
    }
}

/// A variable that an arm assigns.
#[diagnostic::on_unimplemented(
    message = "[G125] `{Self}` cannot leave a `#[device]` body",
    label = "assigned in a body, and the device cannot hold it",
    note = "what a body assigns is a tensor or a scalar, a tuple, an array or a vector of them, or a struct with `#[derive(Clone, Carried)]`",
    note = "keep a number on the device: `let mut n = ops::full(x.scope(), (), 0i32)?;` before, `n = ops::add(&n, 1)?;` in the body"
)]
pub trait CarriedByDevice<By>: Sized {
    /// Returns the value together with the way in which it is carried.
    fn carry(self) -> Carrying<Self, By>;
}

#[diagnostic::do_not_recommend]
impl<T: Carried> CarriedByDevice<Values> for T {
    #[inline]
    fn carry(self) -> Carrying<Self, Values> {
        Carrying(self, PhantomData)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Nowhere> CarriedByDevice<()> for T {
    fn carry(self) -> Carrying<Self, ()> {
        Carrying(self, PhantomData)
    }
}

/// A field of a struct that derives `Carried`.
#[diagnostic::on_unimplemented(
    message = "[G125] `{Self}` cannot be a field of a struct that derives `Carried`",
    label = "the device cannot hold it",
    note = "such a field is a tensor or a scalar, a tuple, an array, a vector or an option of them, or a struct that derives `Carried`",
    note = "keep a value of the host beside the struct, or make it one of the device with `ops::full`"
)]
pub trait CarriedField: Sized {
    /// See [`Carried`].
    fn describe(&self, to: &mut Description);
    /// See [`Carried`].
    fn replace(self, next: &mut NextTensor<'_>) -> Self;
    /// See [`Carried`].
    #[must_use]
    fn share(&self) -> Self;
}

#[diagnostic::do_not_recommend]
impl<T: Carried> CarriedField for T {
    fn describe(&self, to: &mut Description) {
        Carried::describe(self, to);
    }
    fn replace(self, next: &mut NextTensor<'_>) -> Self {
        Carried::replace(self, next)
    }
    fn share(&self) -> Self {
        Carried::share(self)
    }
}

/// The value of an arm: what [`CarriedByDevice`] allows, nothing, or a `Result` of these. An error of an arm ends the
/// function, as `?` in the arm does.
#[diagnostic::on_unimplemented(
    message = "[G125] `{Self}` cannot be the value of a `#[device]` `if` or `match`",
    label = "every arm has such a value, and the device cannot hold it",
    note = "the value of an arm is a tensor or a scalar, a tuple, an array or a vector of them, or a struct with `#[derive(Carried)]`",
    note = "end the arm with `;` if its value is not used"
)]
pub trait LeavesArm<By, E>: Sized {
    /// Returns the value together with the way in which it is carried.
    ///
    /// # Errors
    /// Returns the error of a `Result`.
    fn leave(self) -> Result<Carrying<Self, By>, E>;
}

#[diagnostic::do_not_recommend]
impl<T: Carried, E> LeavesArm<Values, E> for T {
    #[inline]
    fn leave(self) -> Result<Carrying<Self, Values>, E> {
        Ok(Carrying(self, PhantomData))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Carried, F: Into<E>, E> LeavesArm<Results, E> for Result<T, F> {
    #[inline]
    fn leave(self) -> Result<Carrying<Self, Results>, E> {
        match self {
            Ok(value) => Ok(Carrying(Ok(value), PhantomData)),
            Err(error) => Err(error.into()),
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Nowhere, E> LeavesArm<(), E> for T {
    fn leave(self) -> Result<Carrying<Self, ()>, E> {
        Ok(Carrying(self, PhantomData))
    }
}

/// A value that arms give or take. It carries how it is carried, so that a value of the host causes a single error, where
/// it is assigned or given, and not another one about the tuple that contains it.
#[derive(Debug)]
pub struct Carrying<T, By>(pub T, pub PhantomData<By>);

impl<T, By: Carries<T>> Clone for Carrying<T, By> {
    fn clone(&self) -> Self {
        Self(By::share(&self.0), PhantomData)
    }
}

/// Carries a value as it is.
#[derive(Debug)]
pub struct Values;

/// Carries what is in `Ok`; an error has ended the arm.
#[derive(Debug)]
pub struct Results;

/// Carries a `T`.
pub trait Carries<T> {
    /// See [`Carried`].
    fn describe(value: &T, to: &mut Description);
    /// See [`Carried`].
    fn replace(value: T, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> T;
    /// See [`Carried`].
    fn share(value: &T) -> T;
}

impl<T: Carried> Carries<T> for Values {
    fn describe(value: &T, to: &mut Description) {
        value.describe(to);
    }
    fn replace(value: T, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> T {
        value.replace(next)
    }
    fn share(value: &T) -> T {
        value.share()
    }
}

/// Errors have no tensors, and [`LeavesArm::leave`] lets none through.
impl<T: Carried, E> Carries<Result<T, E>> for Results {
    fn describe(value: &Result<T, E>, to: &mut Description) {
        if let Ok(value) = value {
            value.describe(to);
        }
    }
    fn replace(value: Result<T, E>, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Result<T, E> {
        value.map(|value| value.replace(next))
    }
    fn share(value: &Result<T, E>) -> Result<T, E> {
        match value {
            Ok(value) => Ok(value.share()),
            Err(_) => unreachable!("an error has ended its arm"),
        }
    }
}

impl<T, By> sealed::Sealed for Carrying<T, By> {}
impl<T, By: Carries<T>> Carried for Carrying<T, By> {
    fn describe(&self, to: &mut Description) {
        By::describe(&self.0, to);
    }
    fn replace(self, next: &mut dyn FnMut(&Runtime, RawTensor) -> RawTensor) -> Self {
        Self(By::replace(self.0, next), PhantomData)
    }
    fn share(&self) -> Self {
        Self(By::share(&self.0), PhantomData)
    }
}

/// The round of a loop that is described: the first one, which stands for all.
#[derive(Debug)]
pub struct Round(bool);

impl Round {
    /// Returns the state before the first round.
    #[must_use]
    pub fn first() -> Self {
        Self(true)
    }

    /// Returns whether another round is described.
    #[must_use]
    pub fn begins(&mut self) -> bool {
        std::mem::take(&mut self.0)
    }
}

/// Returns the place of the call: generated code calls it where the `while` is.
#[must_use]
#[track_caller]
pub fn place() -> &'static Location<'static> {
    Location::caller()
}

/// Returns the limit of a loop.
///
/// # Panics
/// Panics at compile time if it is 0.
#[must_use]
pub const fn limit(rounds: u32) -> u32 {
    assert!(rounds > 0, "a loop with the limit 0 runs no round");
    rounds
}

/// Ends the closures that describe arms: until here, variables that they refer to cannot be assigned.
#[inline]
pub fn end<F>(closures: F) {
    drop(closures);
}

/// Describes both arms of an `if`, by one closure.
///
/// # Errors
/// Returns the errors of the arms, and of [`control::cond`].
pub(crate) fn branches<R, E, F>(predicate: &Tensor<'_, bool>, arms: F) -> Result<R, E>
where
    R: Carried,
    E: From<Error>,
    F: Fn(bool, &mut Option<R>) -> Result<(), E>,
{
    control::cond(predicate, || given(|place| arms(true, place)), || given(|place| arms(false, place)))
}

/// Describes all arms of a `match`, by one closure: `table` has the integers of each arm, and the last arm is for all
/// others.
///
/// # Errors
/// Returns the errors of the arms, and of [`control::switch`].
pub(crate) fn selection<'s, T, R, E, F>(index: &Tensor<'s, T>, table: &[&[T]], arms: F) -> Result<R, E>
where
    Tensor<'s, T>: SwitchIndex<'s, Case = T>,
    R: Carried,
    E: From<Error>,
    F: Fn(usize, &mut Option<R>) -> Result<(), E>,
{
    control::switch(index, table, |arm| given(|place| arms(arm, place)))
}

/// Describes the predicate and a round of the `while` at `at`.
///
/// # Errors
/// Returns the errors of the predicate, of the body, and of [`control::while_loop`].
pub(crate) fn rounds<'s, C, E, P, F>(
    limit: u32,
    at: &'static Location<'static>,
    carried: C,
    predicate: P,
    body: F,
) -> Result<C, E>
where
    C: Carried,
    E: From<Error>,
    P: Fn(&C, &mut Option<Tensor<'s, bool>>) -> Result<(), E>,
    F: Fn(C, &mut Option<C>) -> Result<(), E>,
{
    let predicate = |carried: &C| given(|place| predicate(carried, place));
    control::repeat(limit, at, carried, predicate, |carried| given(|place| body(carried, place)))
}

/// Returns what a closure has put to its place. Its type is known at its last line, and that of its errors at the first.
fn given<R, E>(describe: impl FnOnce(&mut Option<R>) -> Result<(), E>) -> Result<R, E> {
    let mut place = None;
    describe(&mut place)?;
    match place {
        Some(given) => Ok(given),
        None => unreachable!("generated code gives a value wherever it succeeds"),
    }
}

/// The type of a variable that every arm assigns and moves, and that does not leave them.
#[derive(Debug)]
pub struct OfArms<T>(PhantomData<fn() -> T>);

impl<T> OfArms<T> {
    /// Returns the type, which the arms determine.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "generated code calls it")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }

    /// Returns a value of the type: generated code contains the call, and never runs it.
    ///
    /// # Panics
    /// Panics if it is called.
    #[must_use]
    pub fn value(&self) -> T {
        unreachable!("a call that only has a type")
    }
}

/// A variable of which an arm may take a part. Method resolution determines what the arm gets, in the order of the traits
/// below; each has one reference less, since two that fit would be ambiguous where later code decides the type.
#[derive(Debug)]
pub struct Own<'a, T: ?Sized>(pub &'a T);

/// A copy of the arm's own, of which it can move parts.
pub trait OwnCopy {
    /// The type of the variable.
    type Copy;
    /// Returns the copy.
    fn own(&self) -> Self::Copy;
}

impl<T: Clone> OwnCopy for &&Own<'_, T> {
    type Copy = T;
    fn own(&self) -> T {
        self.0.clone()
    }
}

/// What a variable that is a `&mut` refers to: an arm that only reads it borrows again.
pub trait OwnReborrow<'a> {
    /// The type of the referent.
    type Referent: ?Sized;
    /// Returns the reference.
    fn own(&self) -> &'a Self::Referent;
}

impl<'a, T: ?Sized> OwnReborrow<'a> for &Own<'a, &mut T> {
    type Referent = T;
    fn own(&self) -> &'a T {
        self.0
    }
}

/// The variable itself: parts of it can be copied.
pub trait OwnReference<'a> {
    /// The type of the variable.
    type Value: ?Sized;
    /// Returns the reference.
    fn own(&self) -> &'a Self::Value;
}

impl<'a, T: ?Sized> OwnReference<'a> for Own<'a, T> {
    type Value = T;
    fn own(&self) -> &'a T {
        self.0
    }
}

/// A copy of a variable of which an arm changes parts.
pub trait CopyOfValue {
    /// The type of the variable.
    type Copy;
    /// Returns the copy.
    fn to_change(&self) -> Self::Copy;
}

impl<T: Clone> CopyOfValue for &&Own<'_, T> {
    type Copy = T;
    fn to_change(&self) -> T {
        self.0.clone()
    }
}

/// A copy of what a `&mut` refers to. In a box, its parts are named as those of the reference are.
pub trait CopyOfReferent {
    /// The type of what the variable refers to.
    type Copy;
    /// Returns the copy.
    fn to_change(&self) -> Box<Self::Copy>;
}

impl<T: Clone> CopyOfReferent for &Own<'_, &mut T> {
    type Copy = T;
    fn to_change(&self) -> Box<T> {
        Box::new((*self.0).clone())
    }
}

/// What has no copy, so that rustc names its type.
pub trait CopyOfAnything {
    /// The type of the variable.
    type Copy;
    /// Is never called.
    fn to_change(&self) -> Self::Copy
    where
        Self::Copy: Clone;
}

impl<T> CopyOfAnything for Own<'_, T> {
    type Copy = T;
    fn to_change(&self) -> T
    where
        T: Clone,
    {
        self.0.clone()
    }
}

/// Gives a variable of which arms changed elements its new value; what it refers to, where it is a `&mut`.
pub trait NewValue<V> {
    /// Replaces the value.
    fn set_to_new_value(&mut self, value: V);
}

impl<T> NewValue<T> for T {
    fn set_to_new_value(&mut self, value: T) {
        *self = value;
    }
}

impl<T> NewValue<Box<T>> for T {
    fn set_to_new_value(&mut self, value: Box<T>) {
        *self = *value;
    }
}

/// A variable of which arms change parts.
pub trait ChangedByArms {
    /// Does nothing. Like the arms, it needs the variable to be `mut`, or to refer to something that is.
    fn is_changed_by_arms(&mut self) {}
}

impl<T: ?Sized> ChangedByArms for T {}
