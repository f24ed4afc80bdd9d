//! A body that runs again and again.

use std::panic::Location;

use super::{
    carried::{Bodies, Carried, Description},
    node::{Node, copied, copy},
    select::{Predicate, scalar},
};
use crate::{Error, Result, Runtime, ops::control::LoopState, value::raw::RawTensor};

/// The limit of a loop that states none.
pub const DEFAULT_LIMIT: u32 = 1_000_000;

/// Runs `body` as long as `pred` is true on the device; returns what the loop carries after the last round.
///
/// `carried` is the value before the first round; the body takes it and returns the next one, with the same element
/// types, shapes and padding. `pred` is called twice, for the first round and for all others, and `body` once,
/// whatever the values are: they describe the loop. See [the module](crate::control) for what they can do.
///
/// At most `limit` rounds take place. If the predicate is still true then, the loop ends, what follows it runs,
/// and the next read is [`Error::LoopLimit`].
///
/// ```
/// use graphable::prelude::*;
///
/// /// The Fibonacci numbers `n` and `n + 1`.
/// #[graphable]
/// fn fibonacci(#[host] n: &Scalar<u32>) -> Result<(Tensor<u32>, Tensor<u32>)> {
///     let number = |value: u32| ops::full(n.scope(), (), value);
///     let (_, a, b) = control::while_loop(
///         50,
///         (number(0)?, number(0)?, number(1)?),
///         |(i, ..)| ops::lt(i, n),
///         |(i, a, b)| {
///             let sum = ops::add(&a, &b)?;
///             Ok((ops::add(&i, 1)?, b, sum))
///         },
///     )?;
///     Ok((a, b))
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let fibonacci = FibonacciGraph::builder().build(&mut rt)?;
/// for (n, expected) in [(0, (0, 1)), (10, (55, 89)), (1, (1, 1)), (7, (13, 21))] {
///     let step = rt.step()?;
///     let (a, b) = fibonacci.call(&step, n)?;
///     assert_eq!((step.item(&a)?, step.item(&b)?), expected);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of the closures; [`Error::BodiesDiffer`] if the body returns something else than it takes;
/// [`Error::Argument`] for a limit of 0; [`Error::Shape`] for a predicate that is not a single value;
/// [`Error::OutsideSegment`], and errors of the device.
#[track_caller]
pub fn while_loop<'s, C, P, E>(
    limit: u32,
    carried: C,
    pred: impl Fn(&C) -> Result<P, E>,
    body: impl FnOnce(C) -> Result<C, E>,
) -> Result<C, E>
where
    C: Carried,
    P: Predicate<'s>,
    E: From<Error>,
{
    repeat(limit, Location::caller(), carried, pred, body)
}

/// The loop of [`while_loop`], which errors name by `at`.
pub(in crate::host) fn repeat<'s, C, P, E>(
    limit: u32,
    at: &'static Location<'static>,
    carried: C,
    pred: impl Fn(&C) -> Result<P, E>,
    body: impl FnOnce(C) -> Result<C, E>,
) -> Result<C, E>
where
    C: Carried,
    P: Predicate<'s>,
    E: From<Error>,
{
    if limit == 0 {
        let reason =
            "a loop of at most 0 rounds does nothing; its limit is the largest number of rounds, at least 1";
        return Err(Error::Argument { op: NAME, reason: reason.into() }.into());
    }
    let carried = into_buffers(carried)?;
    let first = pred(&carried)?;
    let (scope, view) = scalar(NAME, first.tensor())?;
    let buffers = Description::of(&carried);
    buffers.check_runtime(NAME, scope.rt)?;
    let state = LoopState::begin(scope, view, limit, at)?;
    drop(first);
    let node = Node::open(NAME, state.selector.clone(), 1, true)?;
    let next = || body(carried.share());
    node.body(0, next, |next| {
        next_values(scope.rt, &next, &buffers)?;
        drop(next);
        let again = pred(&carried)?;
        let (_, view) = scalar(NAME, again.tensor())?;
        Ok(state.next_round(view)?)
    })?;
    node.close(&buffers)?;
    Ok(carried.replace(&mut |rt, old| {
        let after = rt.core.borrow_mut().body_runner().after_loop(old);
        rt.release(old.slot, old.epoch);
        after
    }))
}

const NAME: &str = "while";

/// Copies values to buffers of their own, which the rounds of a loop write.
fn into_buffers<C: Carried>(carried: C) -> Result<C> {
    let mut failed = None;
    let carried = carried.replace(&mut |rt, old| {
        if failed.is_some() {
            return old;
        }
        let buffer = rt.check_live(NAME, &old).and_then(|()| copied(rt, NAME, &old));
        match buffer {
            Ok(buffer) => {
                rt.release(old.slot, old.epoch);
                buffer
            }
            Err(error) => {
                failed = Some(error);
                old
            }
        }
    });
    failed.map_or(Ok(carried), Err)
}

/// Copies what a body returned to the buffers of its loop. What shows a buffer itself goes through a copy, since
/// the buffers are overwritten one after the other.
fn next_values(rt: &Runtime, next: &impl Carried, buffers: &Description) -> Result<()> {
    let next = Description::of(next);
    next.check_runtime(NAME, rt)?;
    let names = Bodies { control: NAME, first: "what the loop carries", second: "what its body returns" };
    next.check_like(buffers, &names, rt)?;
    let mut copies: Vec<RawTensor> = Vec::new();
    let outcome = copy_all(rt, &next, buffers, &mut copies);
    copies.iter().for_each(|raw| rt.release(raw.slot, raw.epoch));
    outcome
}

fn copy_all(
    rt: &Runtime,
    next: &Description,
    buffers: &Description,
    copies: &mut Vec<RawTensor>,
) -> Result<()> {
    let mut moves = Vec::with_capacity(next.tensors.len());
    for (from, to) in next.tensors.iter().zip(&buffers.tensors) {
        rt.check_live(NAME, from)?;
        if from.view() == to.view() {
            continue;
        }
        let shows_buffer = buffers.tensors.iter().any(|buffer| buffer.view().overlaps(&from.view()));
        let from = if shows_buffer {
            let copy = copied(rt, NAME, from)?;
            copies.push(copy);
            copy
        } else {
            *from
        };
        moves.push((from.view(), to.view()));
    }
    moves.into_iter().try_for_each(|(from, to)| copy(rt, from, to))
}
