//! Two bodies, one of which runs.

use super::{
    carried::{Bodies, Carried, Description},
    node::Node,
    select::{Predicate, scalar},
};
use crate::{Error, Result, ops::control::choose};

/// Runs `then` if `pred` is true on the device, and `otherwise` if it is false; returns the results of the one that
/// ran.
///
/// Both closures are called once, in this order, whatever the predicate is: they describe the bodies. See
/// [the module](crate::control) for what they can do.
///
/// ```
/// use graphable::prelude::*;
///
/// /// The rows, normalised if their sum is above 1.
/// #[graphable]
/// fn limited(#[host] #[dims(B)] x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     let sum = ops::sum(x, 0)?;
///     control::cond(&ops::gt(&sum, 1.0)?, || ops::div(x, &sum), || Ok(x.clone()))
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let limited = LimitedGraph::builder().build(&mut rt)?;
/// for (x, expected) in [([3.0, 1.0], [0.75, 0.25]), ([0.5, 0.25], [0.5, 0.25]), ([1.0, 1.0], [0.5, 0.5])] {
///     let step = rt.step()?;
///     let y = limited.call(&step, &x)?;
///     assert_eq!(step.read(&y)?, expected);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of the bodies; [`Error::BodiesDiffer`]; [`Error::Shape`] for a predicate that is not a single
/// value; [`Error::OutsideSegment`], and errors of the device.
pub fn cond<'s, P, R, E>(
    pred: &P,
    then: impl FnOnce() -> Result<R, E>,
    otherwise: impl FnOnce() -> Result<R, E>,
) -> Result<R, E>
where
    P: Predicate<'s> + ?Sized,
    R: Carried,
    E: From<Error>,
{
    const NAME: &str = "cond";
    let (scope, pred) = scalar(NAME, pred.tensor())?;
    let node = Node::open(NAME, choose(scope, pred)?, 2, false)?;
    let results = node.body(0, then, |results| Ok(node.take_out(results)?))?;
    let first = Description::of(&results);
    let names = Bodies { control: NAME, first: "the first body", second: "the second one" };
    node.body(1, otherwise, |other| Ok(node.copy_out(&other, &first, &names)?))?;
    node.close(&first)?;
    Ok(results)
}
