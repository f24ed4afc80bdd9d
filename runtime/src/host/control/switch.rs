//! Any number of bodies, one of which runs.

use super::{
    carried::{Bodies, Carried, Description},
    node::Node,
    select::{SwitchCase as _, SwitchIndex, scalar},
};
use crate::{Error, Result, ops::control::choose_case};

/// Runs the body whose case contains `index`, or the default; returns its results.
///
/// `cases[i]` are the values for which body `i` runs; if a value is in several, the first one runs. `body` is called
/// once for each of them, in order, and then with `cases.len()` for the default, whatever the index is: it describes
/// the bodies. See [the module](crate::control) for what they can do.
///
/// ```
/// use graphable::prelude::*;
///
/// #[graphable]
/// fn activated(#[host] #[dims(B)] x: &Tensor<f32>, #[host] kind: &Scalar<u32>) -> Result<Tensor<f32>> {
///     control::switch(kind, &[&[0], &[1, 2]], |body| match body {
///         0 => ops::relu(x),
///         1 => ops::neg(x),
///         _ => Ok(x.clone()),
///     })
/// }
///
/// # fn main() -> Result<()> {
/// # let mut rt = Runtime::new(Device::cpu())?;
/// let activated = ActivatedGraph::builder().build(&mut rt)?;
/// for (kind, expected) in [(0, [3.0, 0.0]), (1, [-3.0, 1.0]), (2, [-3.0, 1.0]), (7, [3.0, -1.0])] {
///     let step = rt.step()?;
///     let y = activated.call(&step, &[3.0, -1.0], kind)?;
///     assert_eq!(step.read(&y)?, expected);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of the bodies; [`Error::BodiesDiffer`]; [`Error::Shape`] for an index that is not a single
/// value; [`Error::OutsideSegment`], and errors of the device.
pub fn switch<'s, I, R, E>(
    index: &I,
    cases: &[&[I::Case]],
    mut body: impl FnMut(usize) -> Result<R, E>,
) -> Result<R, E>
where
    I: SwitchIndex<'s> + ?Sized,
    R: Carried,
    E: From<Error>,
{
    const NAME: &str = "switch";
    let (scope, index) = scalar(NAME, index.tensor())?;
    let bits: Vec<Vec<u32>> = cases.iter().map(|case| case.iter().map(|v| v.bits()).collect()).collect();
    let bits: Vec<&[u32]> = bits.iter().map(Vec::as_slice).collect();
    let node = Node::open(NAME, choose_case(scope, index, &bits)?, cases.len() + 1, false)?;
    let results = node.body(0, || body(0), |results| Ok(node.take_out(results)?))?;
    let first = Description::of(&results);
    for other in 1..=cases.len() {
        let second = if other == cases.len() { "the default".into() } else { format!("body {other}") };
        let names = Bodies { control: NAME, first: "body 0", second: &second };
        node.body(other, || body(other), |results| Ok(node.copy_out(&results, &first, &names)?))?;
    }
    node.close(&first)?;
    Ok(results)
}
