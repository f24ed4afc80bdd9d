//! Traits that generated code requires of the types that enter and leave segments, and of those in the
//! signatures of graph functions. Errors name these traits; they are not meant to be implemented or called by
//! hand.
//!
//! Each is a facade over a public trait, for the sake of the message: its only implementation is generic and
//! marked `do_not_recommend`, so rustc names the offending value, but neither the tuple that contains it nor
//! a list of every valid type. They are called as methods of the trait itself, because a bound on a function
//! would add a note about that function, which users never wrote.
//!
//! **Unstable**: any release may change this module, and semantic versioning does not cover it.

use std::{marker::PhantomData, panic::Location};

use crate::{
    Error, Result, Tensor,
    base::plan::Site,
    host::{
        control::{Carried, SwitchIndex},
        device_flow,
        piecewise::{BodyId, Piecewise},
    },
    model::params::Params,
    tensor::live_out::{Decoder, LiveOut},
    value::{
        entry::Encoder,
        key::KeyWriter,
        live_in::{DeviceValue, Key, LiveIn},
    },
};

mod ends;
mod inert;

pub use ends::{
    Container, Ends, EndsAsContainer, EndsAsGuard, EndsAsLiveIn, EndsAsOther, EndsIn, EndsItself,
    EndsWithSegment, Plain,
};

// Generated code uses these as well, so their names appear in messages.
pub use super::device_flow::{CarriedByDevice, CarriedField, DeviceIndex, DevicePredicate, LeavesArm};
pub use crate::model::params::ParamField;

/// A live-in: a reference to it, and how a segment uses it. It carries how it is keyed and copied, so that a
/// value without a key causes a single error, where it enters.
#[derive(Debug)]
pub struct LiveInRef<'a, T: ?Sized> {
    value: &'a T,
    write: fn(&T, &mut KeyWriter),
    copy: Option<fn(&T) -> T>,
}

impl<T: ?Sized> Copy for LiveInRef<'_, T> {}

impl<T: ?Sized> Clone for LiveInRef<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> LiveInRef<'_, T> {
    /// Returns the segment's own copy.
    #[inline]
    pub fn copy(&self) -> T {
        match self.copy {
            Some(copy) => copy(self.value),
            None => unreachable!("generated code copies what it entered to be copied"),
        }
    }
}

impl<'a, T: ?Sized> LiveInRef<'a, T> {
    /// Returns the value in place.
    #[inline]
    pub fn get(&self) -> &'a T {
        self.value
    }
}

impl<T: ?Sized> LiveIn for LiveInRef<'_, T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        (self.write)(self.value, k);
    }
}

/// A live-in that a segment changes through a `&mut`. Its type may be unsized, so that a slice or a trait object
/// without a key causes a single error, as every other value does.
#[derive(Debug)]
pub struct LiveInMut<'a, T: ?Sized> {
    value: &'a T,
    write: fn(&T, &mut KeyWriter),
    copy: fn(&T) -> Box<T>,
}

impl<T: ?Sized> Copy for LiveInMut<'_, T> {}

impl<T: ?Sized> Clone for LiveInMut<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> LiveInMut<'_, T> {
    /// Returns the segment's own copy.
    #[inline]
    pub fn copy(&self) -> Box<T> {
        (self.copy)(self.value)
    }
}

impl<T: ?Sized> LiveIn for LiveInMut<'_, T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        (self.write)(self.value, k);
    }
}

/// Defines the facades through which values enter segments and calls, one a row: its message, its name, the form of
/// the value in the key, and the trait that it stands for.
macro_rules! facades {
    ($($(#[$attribute:meta])* $facade:ident: $form:ident $public:ident;)*) => {$(
        facades! { @$form $(#[$attribute])* $facade $public }
    )*};
    (@whole $(#[$attribute:meta])* $facade:ident $public:ident) => {
        $(#[$attribute])*
        pub trait $facade: Sized {
            /// Returns the value as a part of the key, and how it is copied.
            fn enter(&self) -> LiveInRef<'_, Self>;
        }

        #[diagnostic::do_not_recommend]
        impl<T: $public + Clone> $facade for T {
            #[inline]
            fn enter(&self) -> LiveInRef<'_, Self> {
                LiveInRef { value: self, write: T::write_key, copy: Some(T::clone) }
            }
        }
    };
    (@in_place $(#[$attribute:meta])* $facade:ident $public:ident) => {
        $(#[$attribute])*
        pub trait $facade {
            /// Returns the value as a part of the key.
            fn enter(&self) -> LiveInRef<'_, Self>;
        }

        #[diagnostic::do_not_recommend]
        impl<T: $public + ?Sized> $facade for T {
            #[inline]
            fn enter(&self) -> LiveInRef<'_, Self> {
                LiveInRef { value: self, write: |value, k| k.value(value), copy: None }
            }
        }
    };
    (@exclusive $(#[$attribute:meta])* $facade:ident $public:ident) => {
        $(#[$attribute])*
        pub trait $facade {
            /// Returns the value as a part of the key, and how it is copied.
            fn enter(&self) -> LiveInMut<'_, Self>;
        }

        #[diagnostic::do_not_recommend]
        impl<T: $public + Clone> $facade for T {
            #[inline]
            fn enter(&self) -> LiveInMut<'_, Self> {
                LiveInMut { value: self, write: T::write_key, copy: |value| Box::new(value.clone()) }
            }
        }
    };
}

facades! {
    /// A value that a segment uses as a whole: the segment gets a copy.
    #[diagnostic::on_unimplemented(
        message = "[G050] `{Self}` cannot enter a captured segment",
        label = "used by a segment, and cannot be part of its key",
        note = "derive `Clone`, and `Params` (weights), `GraphOutput` (tensors) or `ConfigValue` (host settings)",
        note = "or compute what is needed of it with `#[host] let`, or use it in an `#[eager]` region: they run on every call"
    )]
    EntersSegment: whole LiveIn;

    /// A value that a segment changes through a `&mut`: the segment changes a copy.
    #[diagnostic::on_unimplemented(
        message = "[G050] `{Self}` cannot enter a captured segment",
        label = "used by a segment, and cannot be part of its key",
        note = "derive `Clone`, and `Params` (weights), `GraphOutput` (tensors) or `ConfigValue` (host settings)",
        note = "or compute what is needed of it with `#[host] let`, or use it in an `#[eager]` region: they run on every call"
    )]
    EntersSegmentToChange: exclusive LiveIn;

    /// A value that a segment uses in place, because it is a field of another value.
    #[diagnostic::on_unimplemented(
        message = "[G050] `{Self}` cannot enter a captured segment",
        label = "used by a segment, and cannot be part of its key",
        note = "derive `Params` (weights), `GraphOutput` (tensors) or `ConfigValue` (host settings)",
        note = "or compute what is needed of it with `#[host] let`, or use it in an `#[eager]` region: they run on every call"
    )]
    FieldEntersSegment: in_place LiveIn;

    /// Like [`EntersSegment`], for a value of an eager region whose `let` has no `#[key]`.
    #[diagnostic::on_unimplemented(
        message = "[G051] `{Self}` comes from an `#[eager]` expression and enters a segment",
        label = "eager code may make another one on every call",
        note = "a host value: mark its `let` with `#[key]`, for one recording per value",
        note = "a `Ragged`: `pad_to` makes it a tensor of a fixed size"
    )]
    EagerEntersSegment: whole DeviceValue;

    /// Like [`EntersSegmentToChange`], for a value of an eager region whose `let` has no `#[key]`.
    #[diagnostic::on_unimplemented(
        message = "[G051] `{Self}` comes from an `#[eager]` expression and enters a segment",
        label = "eager code may make another one on every call",
        note = "a host value: mark its `let` with `#[key]`, for one recording per value",
        note = "a `Ragged`: `pad_to` makes it a tensor of a fixed size"
    )]
    EagerEntersSegmentToChange: exclusive DeviceValue;

    /// Like [`FieldEntersSegment`], for a field of a value of an eager region.
    #[diagnostic::on_unimplemented(
        message = "[G051] `{Self}` comes from an `#[eager]` expression and enters a segment",
        label = "eager code may make another one on every call",
        note = "a host value: bind it with `#[key] let`, for one recording per value",
        note = "a `Ragged`: `pad_to` makes it a tensor of a fixed size"
    )]
    EagerFieldEntersSegment: in_place DeviceValue;

    /// The type that a parameter without an attribute refers to.
    #[diagnostic::on_unimplemented(
        message = "[G054] `{Self}` is not a struct of parameters",
        label = "expected a parameter, state, or a `#[derive(Params)]` struct",
        note = "a struct of tensors states its lifetime: `&Type<'_>`",
        note = "a struct of weights derives `Params`; a host value is passed as `#[key] x: T` (one recording per value), or as `#[host] x: &Scalar<T>` or `&Tensor<T>` (refreshed on every call)",
        note = "a plan, a handle or a pool is taken by identity: `&HostContext<T>`"
    )]
    GraphParams: in_place Params;

    /// A parameter that was made by other code in a step.
    #[diagnostic::on_unimplemented(
        message = "[G055] `{Self}` is not a value of a step that a graph can accept",
        label = "it cannot be part of a key",
        note = "a struct of tensors derives `GraphOutput`; a `Ragged` becomes a tensor with `pad_to`; a `Step`, a `Runtime` and other handles stay with the caller"
    )]
    GraphInput: in_place LiveIn;

    /// A `#[key]` parameter.
    #[diagnostic::on_unimplemented(
        message = "[G056] `{Self}` cannot be a `#[key]`",
        label = "one recording is made per value of a key",
        note = "keys are integers, `bool`, `char`, strings, durations, and options, tuples, arrays, vectors, ranges and maps of them; derive `Clone` and `ConfigValue` for an enum or struct of these",
        note = "a number with many values is taken as `#[host] x: &Scalar<_>`, refreshed on every call; host settings go in a `#[config]` field of a `#[derive(Params)]` struct"
    )]
    GraphKey: whole Key;
}

/// A value that a segment computes and later code uses.
#[diagnostic::on_unimplemented(
    message = "[G052] `{Self}` cannot leave a captured segment",
    label = "made in a segment and used after it, and a replay cannot make it again",
    note = "a host value is computed with `#[host] let`, on every call",
    note = "a struct of tensors needs `#[derive(GraphOutput)]`"
)]
pub trait LeavesSegment<'s, By>: Sized {
    /// Returns the value together with its encoding.
    fn leave(self) -> Leaving<Self, By>;
}

#[diagnostic::do_not_recommend]
impl<'s, T: LiveOut<'s>> LeavesSegment<'s, LiveOuts> for T {
    #[inline]
    fn leave(self) -> Leaving<Self, LiveOuts> {
        Leaving(self, PhantomData)
    }
}

/// A trait that is never implemented: a second implementation of [`LeavesSegment`] keeps rustc from assuming
/// the first one where it does not apply, which would cause a second error, about the segment's whole output.
pub trait Nowhere {}

#[diagnostic::do_not_recommend]
impl<T: Nowhere> LeavesSegment<'_, ()> for T {
    fn leave(self) -> Leaving<Self, ()> {
        Leaving(self, PhantomData)
    }
}

/// A value that leaves a segment. It carries its encoding, so that a value without one causes a single error,
/// where it was made, and not another one about the tuple that contains it.
#[derive(Debug)]
pub struct Leaving<T, By>(pub T, pub PhantomData<By>);

/// Encodes and decodes values that leave segments.
pub trait Leaves<'s, T> {
    /// See [`LiveOut::encode`].
    fn encode(value: &T, e: &mut Encoder);
    /// See [`LiveOut::decode`].
    fn decode(d: &mut Decoder<'s>) -> T;
}

/// The encoding of every [`LiveOut`].
#[derive(Debug)]
pub struct LiveOuts;

impl<'s, T: LiveOut<'s>> Leaves<'s, T> for LiveOuts {
    #[inline]
    fn encode(value: &T, e: &mut Encoder) {
        value.encode(e);
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> T {
        T::decode(d)
    }
}

impl<'s, T, By: Leaves<'s, T>> LiveOut<'s> for Leaving<T, By> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        By::encode(&self.0, e);
    }
    #[inline]
    fn decode(d: &mut Decoder<'s>) -> Self {
        Self(By::decode(d), PhantomData)
    }
}

/// A value that a segment changed through a `&mut`: its own copy, whose value leaves, and where host code puts it. Method resolution decides.
#[derive(Debug)]
pub struct Referent<'a, T: ?Sized>(pub &'a mut T);

/// A value that can enter a segment to be changed in it.
pub trait ChangesReferent<T> {
    /// Returns what leaves.
    fn value(&mut self) -> T;
    /// Puts what left.
    fn set(&mut self, value: T);
}

impl<T: Clone> ChangesReferent<T> for Referent<'_, T> {
    #[inline]
    fn value(&mut self) -> T {
        self.0.clone()
    }
    #[inline]
    fn set(&mut self, value: T) {
        *self.0 = value;
    }
}

/// A value that cannot be copied, such as a slice or a trait object, and that has caused an error where it enters. Nothing leaves, so
/// that rustc has nothing more to say about it.
pub trait CannotChangeReferent {
    /// Returns nothing.
    fn value(&mut self) {}
    /// Does nothing.
    fn set(&mut self, (): ()) {}
}

impl<T: ?Sized> CannotChangeReferent for &mut Referent<'_, T> {}

/// An error type of graph functions. Every fallible operation is called through it, so that a type which
/// cannot hold our errors causes a single error, where it is written.
#[diagnostic::on_unimplemented(
    message = "[G057] `{Self}` cannot be the error of a graph function: it has no `From<graphable::Error>`",
    label = "capture and replay can fail, and this must hold their errors",
    note = "add `impl From<graphable::Error> for {Self}`, or return `graphable::Result<_>`"
)]
pub trait UserError: Sized {
    /// Converts an error of the runtime.
    fn convert(error: Error) -> Self;

    /// Converts a result of the runtime.
    ///
    /// # Errors
    /// Returns the runtime's error, converted.
    fn of<T>(result: Result<T>) -> Result<T, Self>;

    /// Replays, records or runs a segment; see [`Piecewise::segment`].
    ///
    /// # Errors
    /// See [`Piecewise::segment`].
    fn segment<'s, K, O, F>(cx: Piecewise<'s>, site: &'static Site, key: K, body: F) -> Result<O, Self>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K) -> Result<O, Self> + Copy + 'static;

    /// Like [`segment`](Self::segment), for a body that writes its outputs to a place: their type is known at
    /// its last line, and the error type is known at its first; see [`Piecewise::segment_into`].
    ///
    /// # Errors
    /// See [`Piecewise::segment`].
    fn segment_into<'s, K, O, F>(cx: Piecewise<'s>, site: &'static Site, key: K, body: F) -> Result<O, Self>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K, &mut Option<O>) -> Result<(), Self> + Copy + 'static;

    /// Like [`segment`](Self::segment), for the whole body of a function; see [`Piecewise::whole`].
    ///
    /// # Errors
    /// See [`Piecewise::segment`].
    fn whole<'s, K, O, F>(
        identity: BodyId,
        cx: Piecewise<'s>,
        site: &'static Site,
        key: K,
        body: F,
    ) -> Result<O, Self>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K) -> Result<O, Self> + Copy;

    /// Describes a `#[device] if`; see [`control::cond`](crate::control::cond).
    ///
    /// # Errors
    /// See [`control::cond`](crate::control::cond).
    fn device_if<R, F>(predicate: &Tensor<'_, bool>, arms: F) -> Result<(R, F), Self>
    where
        R: Carried,
        F: Fn(bool, &mut Option<R>) -> Result<(), Self>;

    /// Describes a `#[device] match`; see [`control::switch`](crate::control::switch).
    ///
    /// # Errors
    /// See [`control::switch`](crate::control::switch).
    fn device_match<'s, T, R, F>(index: &Tensor<'s, T>, table: &[&[T]], arms: F) -> Result<(R, F), Self>
    where
        Tensor<'s, T>: SwitchIndex<'s, Case = T>,
        R: Carried,
        F: Fn(usize, &mut Option<R>) -> Result<(), Self>;

    /// Describes a `#[device] while`; see [`control::while_loop`](crate::control::while_loop).
    ///
    /// # Errors
    /// See [`control::while_loop`](crate::control::while_loop).
    fn device_while<'s, C, P, F>(
        limit: u32,
        at: &'static Location<'static>,
        carried: C,
        predicate: P,
        body: F,
    ) -> Result<(C, (P, F)), Self>
    where
        C: Carried,
        P: Fn(&C, &mut Option<Tensor<'s, bool>>) -> Result<(), Self>,
        F: Fn(C, &mut Option<C>) -> Result<(), Self>;
}

#[diagnostic::do_not_recommend]
impl<E: From<Error>> UserError for E {
    #[inline]
    fn convert(error: Error) -> E {
        error.into()
    }

    #[inline]
    fn of<T>(result: Result<T>) -> Result<T, E> {
        result.map_err(E::from)
    }

    #[inline]
    fn segment<'s, K, O, F>(cx: Piecewise<'s>, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K) -> Result<O, E> + Copy + 'static,
    {
        cx.segment(site, key, body)
    }

    #[inline]
    fn segment_into<'s, K, O, F>(cx: Piecewise<'s>, site: &'static Site, key: K, body: F) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K, &mut Option<O>) -> Result<(), E> + Copy + 'static,
    {
        cx.segment_into(site, key, body)
    }

    #[inline]
    fn whole<'s, K, O, F>(
        identity: BodyId,
        cx: Piecewise<'s>,
        site: &'static Site,
        key: K,
        body: F,
    ) -> Result<O, E>
    where
        K: LiveIn,
        O: LiveOut<'s>,
        F: Fn(&K) -> Result<O, E> + Copy,
    {
        cx.whole(identity, site, key, body)
    }

    #[inline]
    fn device_if<R, F>(predicate: &Tensor<'_, bool>, arms: F) -> Result<(R, F), E>
    where
        R: Carried,
        F: Fn(bool, &mut Option<R>) -> Result<(), E>,
    {
        Ok((device_flow::branches(predicate, &arms)?, arms))
    }

    #[inline]
    fn device_match<'s, T, R, F>(index: &Tensor<'s, T>, table: &[&[T]], arms: F) -> Result<(R, F), E>
    where
        Tensor<'s, T>: SwitchIndex<'s, Case = T>,
        R: Carried,
        F: Fn(usize, &mut Option<R>) -> Result<(), E>,
    {
        Ok((device_flow::selection(index, table, &arms)?, arms))
    }

    #[inline]
    fn device_while<'s, C, P, F>(
        limit: u32,
        at: &'static Location<'static>,
        carried: C,
        predicate: P,
        body: F,
    ) -> Result<(C, (P, F)), E>
    where
        C: Carried,
        P: Fn(&C, &mut Option<Tensor<'s, bool>>) -> Result<(), E>,
        F: Fn(C, &mut Option<C>) -> Result<(), E>,
    {
        Ok((device_flow::rounds(limit, at, carried, &predicate, &body)?, (predicate, body)))
    }
}

/// The value that a graph function returns in its `Result`.
#[diagnostic::on_unimplemented(
    message = "[G053] `{Self}` cannot be the result of a graph function",
    label = "a replay cannot make it again",
    note = "return tensors, numbers and strings, tuples and vectors of them, or a `#[derive(GraphOutput)]` struct"
)]
pub trait GraphResult<'s, By>: Sized {
    /// Returns the value together with its encoding.
    ///
    /// # Errors
    /// Returns those of `result`.
    #[inline]
    fn leave<E>(result: Result<Self, E>) -> Result<Leaving<Self, By>, E> {
        result.map(|value| Leaving(value, PhantomData))
    }
}

#[diagnostic::do_not_recommend]
impl<'s, T: LiveOut<'s>> GraphResult<'s, LiveOuts> for T {}

#[diagnostic::do_not_recommend]
impl<T: Nowhere> GraphResult<'_, ()> for T {}

/// The first argument of a `#[piecewise]` call, together with the executor in which it runs.
#[derive(Debug)]
pub struct OnlyForFunctionsWithBoundaries<'s, A>(pub Piecewise<'s>, pub A);

/// The type that the first argument of a function with boundaries must have; `G` is the function's graph.
#[diagnostic::on_unimplemented(
    message = "[G060] the function of `{G}` has `#[eager]` boundaries and cannot be called as plain code",
    label = "write `#[piecewise]` before the call",
    note = "only a `#[graphable]` function can make such a call; elsewhere, build a `{G}`"
)]
pub trait NeedsPiecewise<'s, G, A> {
    /// Returns the executor and the argument.
    fn open(self) -> (Piecewise<'s>, A);
}

#[diagnostic::do_not_recommend]
impl<'s, G, A> NeedsPiecewise<'s, G, A> for OnlyForFunctionsWithBoundaries<'s, A> {
    fn open(self) -> (Piecewise<'s>, A) {
        (self.0, self.1)
    }
}
