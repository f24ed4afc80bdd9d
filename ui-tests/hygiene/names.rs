// A function between items, parameters and locals that are named like what generated code uses.

/// Names that generated code must not pick up.
#[allow(dead_code, missing_docs, reason = "they are only in the way")]
mod taken {
    pub(super) struct Result;
    pub(super) struct Option;
    pub(super) struct Some;
    pub(super) struct Ok;
    pub(super) struct Err;
    pub(super) struct Vec;
    pub(super) struct PhantomData;
    pub(super) struct Runtime;
    pub(super) struct Step;
    pub(super) struct Eager;
    pub(super) struct Piecewise;
    pub(super) struct Region;
    pub(super) struct GraphCall;
    pub(super) struct GraphObject;
    pub(super) struct Inputs;
    pub(super) struct Options;
    pub(super) struct Plan;
    pub(super) struct PlanItem;
    pub(super) struct Site;
    pub(super) struct Support;
    pub(super) struct Mode;
    pub(super) struct Schedule;
    pub(super) struct RegionResult;
    pub(super) struct FromEager;
    pub(super) struct InPiecewise;
    pub(super) trait Clone {}
    pub(super) trait Copy {}
    pub(super) trait Debug {}
    pub(super) trait Default {}
    pub(super) trait Fn {}
    pub(super) trait From {}
    pub(super) trait Into {}
    pub(super) trait LiveIn {}
    pub(super) trait LiveOut {}
    pub(super) trait Params {}
    pub(super) trait Sized {}
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod bytemuck {}
    pub(super) mod graphable {}
    pub(super) fn segment() {}
    pub(super) fn eager() {}
    pub(super) fn line() {}
    pub(super) fn file() {}
}
#[allow(unused_imports, reason = "they are only in the way")]
use taken::*;

/// Its parameters and locals have names of generated code.
#[::graphable::graphable]
fn taken_names(
    #[host] step: &::graphable::Tensor<f32>,
    #[host] rt: &::graphable::Scalar<f32>,
    #[key] progress: bool,
    inputs: &::graphable::Param<f32>,
) -> ::graphable::Result<::graphable::Tensor<f32>> {
    let frame = ::graphable::ops::mul(step, rt)?;
    let function = if progress { frame } else { ::graphable::ops::neg(&frame)? };
    let region = #[eager]
    ::graphable::ops::scale(&function, 2.0)?;
    let value = ::graphable::ops::add(&region, inputs)?;
    let block = |cx: &::graphable::Tensor<f32>| ::graphable::ops::mul(cx, &region);
    let k = block(&value)?;
    ::graphable::ops::add(&k, &value)
}

/// Runs it.
///
/// # Errors
/// None, where everything is right.
///
/// # Panics
/// Where a value is wrong.
pub fn run() -> ::graphable::Result<()> {
    let mut rt = ::graphable::Runtime::new(::graphable::Device::cpu())?;
    let inputs = ::graphable::Param::new(&rt, &[2], &[1.0, -1.0])?;
    let graph = TakenNamesGraph::builder().build(&mut rt)?;
    for _ in 0..3 {
        let step = rt.step()?;
        let shape: &[usize] = &[2];
        let x: (&[f32], &[usize]) = (&[1.0, 2.0], shape);
        // region = [6, 12], value = [7, 11], k = [42, 132].
        assert_eq!(step.read(&graph.call(&step, x, 3.0, true, &inputs)?)?, [49.0, 143.0]);
    }
    ::core::result::Result::Ok(())
}
