//! Mixtures of experts: tokens in the order of their experts, and products with each expert's weights. Which token goes to which
//! expert is known to the device alone, so one recording serves every choice.

use self::kernels as k;
#[cfg(feature = "cuda")]
use crate::kernel::definition::Definition;
use crate::{
    Element, Error, Float, GraphOutput, Result, Tensor,
    kernel::{call::Call, definition::Kernel as _},
    ops::{
        broadcast_to, cast,
        check::{meet, refuse},
        composed::composed,
        div, embedding, full, narrow,
        order::Groups,
        reshape,
    },
    value::layout::Layout,
};

mod grouped;
mod kernels;

pub use grouped::{grouped_mm, grouped_mm_nt};

/// The routes of tokens, each to `K` experts: the choices in the order of their experts.
///
/// Made by [`moe_route`]. The choices have places, which are those of `[T, K]` in row-major order.
#[derive(Clone, Debug, GraphOutput)]
pub struct MoeRoutes<'s> {
    tokens: Tensor<'s, u32>,
    places: Tensor<'s, u32>,
    ends: Tensor<'s, u32>,
}

impl<'s> MoeRoutes<'s> {
    /// Returns the token of the choice at each place, `[T, K]`.
    pub fn tokens(&self) -> &Tensor<'s, u32> {
        &self.tokens
    }

    /// Returns the place of each choice, `[T, K]`.
    pub fn places(&self) -> &Tensor<'s, u32> {
        &self.places
    }

    /// Returns where the choices of each expert end, `[E]`: those of expert `e` are at the places from `ends[e - 1]`, or 0, to
    /// `ends[e]`.
    pub fn ends(&self) -> &Tensor<'s, u32> {
        &self.ends
    }
}

/// Orders the choices of `choices`, `[T, K]` numbers of `experts` experts, by expert; those of one expert keep their order.
///
/// Corresponds to `torch.argsort` of the choices with `stable=True`, and `torch.bincount` for where each expert begins; in vLLM it is a part of `moe_permute`.
///
/// `choices` are for example the indices that [`topk`](super::topk) returns for the logits of a router. A choice of
/// `u32::MAX` stands for no expert; any other number that is not an expert is a fault, which the next read reports, and counts as none.
/// Choices without an expert come last. Padding of `T` propagates, and goes to no expert.
///
/// A layer whose experts are matrices, and whose tokens each go to two:
///
/// ```
/// use graphable::prelude::*;
///
/// #[derive(Params)]
/// struct Experts {
///     router: Param<f32>, // [experts, width]
///     up: Param<f32>,     // [experts, inner, width]
///     down: Param<f32>,   // [experts, width, inner]
/// }
///
/// #[graphable]
/// fn mixture(#[host] #[dims(T, 2)] x: &Tensor<f32>, model: &Experts) -> Result<Tensor<f32>> {
///     let (logits, choices) = ops::topk(&ops::linear(x, &model.router)?, 2, 1)?;
///     let weights = ops::softmax(&logits, 1)?;
///     let routes = ops::moe_route(&choices, 3)?;
///     let h = ops::moe_permute(x, &routes)?; // [T, 2, width]
///     let h = ops::relu(&ops::grouped_mm_nt(&h, &model.up, routes.ends())?)?;
///     let h = ops::grouped_mm_nt(&h, &model.down, routes.ends())?;
///     ops::moe_unpermute(&h, &weights, &routes)
/// }
///
/// fn main() -> Result<()> {
///     let mut rt = Runtime::new(Device::cpu())?;
///     let model = Experts {
///         router: Param::new(&rt, &[3, 2], &[9.0f32, 0.0, 9.0, 9.0, 0.0, 9.0])?,
///         up: Param::new(&rt, &[3, 1, 2], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?,
///         down: Param::new(&rt, &[3, 2, 1], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0])?,
///     };
///     let graph = MixtureGraph::builder().bucket("T", Schedule::new([4])).mode(Mode::Full).build(&mut rt)?;
///     for x in [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]] {
///         let step = rt.step()?;
///         let y = graph.call(&step, &x, &model)?;
///         let want = if x[0] == 1.0 { [0.5, 0.0] } else { [0.5, 1.0] };
///         assert_eq!(step.read(&y)?, want);
///     }
///     assert_eq!(rt.stats().recordings, 1);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if `choices` does not have two dimensions, or more than 2^30 elements; [`Error::Argument`] for no
/// expert, or more than 2^30; [`Error::PaddedMix`] if `K` is padded. Later, at a read:
/// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange).
pub fn moe_route<'s>(choices: &Tensor<'s, u32>, experts: usize) -> Result<MoeRoutes<'s>> {
    const NAME: &str = "moe_route";
    let scope = choices.scope();
    if experts == 0 || experts > 1 << 30 {
        let reason = format!("{experts} experts; from 1 to {} are possible", 1 << 30);
        return Err(Error::Argument { op: NAME, reason });
    }
    let &[tokens, each] = choices.sizes() else {
        let reason = "the choices must be `[T, K]`, `K` experts for each token";
        return Err(scope.shape_error(NAME, &[choices.into()], reason));
    };
    refuse(NAME, scope, choices.raw.marks, [1])?;
    let all = broadcast_to(&full(scope, [1], 0u32)?, [experts])?;
    let mut call = Call::new(k::moe_route::DEFINITION, choices)?;
    call.argument::<u32>(&all)?;
    // The padding has numbers as well, so nothing is padding until the choices are in order.
    let numbers: Tensor<'s, u32> = call.launch_indexed([tokens, each])?;
    let numbers = reshape(&numbers, [1, tokens * each])?;
    let Groups { order, begins } = Groups::of(NAME, &numbers, 1, experts)?;
    let mut call = Call::new(k::moe_places::DEFINITION, &numbers)?;
    call.argument::<u32>(&order)?;
    call.key(usize::BITS - (tokens * each).leading_zeros());
    let places: Tensor<'s, u32> = call.launch_indexed([1, tokens * each])?;
    // In order, the choices of the padding are at the end, and so in its rows again.
    let layout = Layout::contiguous(&[tokens, each])?;
    let as_choices = |x: &Tensor<'s, u32>| x.alias(layout, 0, choices.raw.marks);
    Ok(MoeRoutes {
        tokens: as_choices(&div(&order, each as u32)?),
        places: as_choices(&places),
        ends: reshape(&narrow(&begins, 1, 1, experts)?, [experts])?,
    })
}

/// Returns the rows of `x`, `[T, D]`, in the order of the experts that they go to: `[T, K, D]`, whose rows,
/// counted through `T` and `K`, are at the places of `routes`.
///
/// Corresponds to `moe_permute` of vLLM.
///
/// Padding of `T` and `D` propagates.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let routes = ops::moe_route(&step.tensor(&[3, 1], &[1u32, 0, 1])?, 2)?;
/// let x = step.tensor(&[3, 1], &[10.0f32, 20.0, 30.0])?;
/// assert_eq!(step.read(&ops::moe_permute(&x, &routes)?)?, [20.0, 10.0, 30.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if `x` does not have two dimensions and a row for each token; [`Error::PaddedMix`] if `T` is padded
/// differently.
pub fn moe_permute<'s, T: Element>(x: &Tensor<'s, T>, routes: &MoeRoutes<'s>) -> Result<Tensor<'s, T>> {
    const NAME: &str = "moe_permute";
    let tokens = &routes.tokens;
    if x.rank() == 2 {
        meet(NAME, x.scope(), 0, x.raw.marks.get(0), tokens.raw.marks.get(0))?;
    }
    if x.rank() != 2 || x.size(0) != tokens.size(0) {
        let reason = "the input must be `[T, D]`, a row for each token of the second, `[T, K]`";
        return Err(x.scope().shape_error(NAME, &[x.into(), tokens.into()], reason));
    }
    composed(NAME, || embedding(tokens, x))
}

/// Returns for each token the sum of the rows of its choices, each multiplied by its weight: from `x`,
/// `[T, K, D]` at the places of `routes`, and `weights`, `[T, K]`, to `[T, D]`.
///
/// Corresponds to `moe_unpermute` of vLLM.
///
/// The rows are added in the order of the choices, in f32, and the sum is rounded once. Padding of `T` and `D` propagates.
/// Choices without an expert count with their rows, which [`grouped_mm`] makes 0: give them the weight 0 if anything follows it.
///
/// ```
/// # use graphable::prelude::*;
/// # let mut rt = Runtime::new(Device::cpu())?;
/// # let step = rt.step()?;
/// let routes = ops::moe_route(&step.tensor(&[2, 2], &[1u32, 0, 0, 1])?, 2)?;
/// let x = step.tensor(&[2, 1], &[10.0f32, 20.0])?;
/// let h = ops::moe_permute(&x, &routes)?;
/// let weights = step.tensor(&[2, 2], &[0.5f32, 0.25, 0.0, 1.0])?;
/// assert_eq!(step.read(&ops::moe_unpermute(&h, &weights, &routes)?)?, [7.5, 20.0]);
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Returns [`Error::Shape`] if the shapes do not fit; [`Error::PaddedMix`] if `K` is padded, or `T` differently.
pub fn moe_unpermute<'s, T: Float, W: Float>(
    x: &Tensor<'s, T>,
    weights: &Tensor<'s, W>,
    routes: &MoeRoutes<'s>,
) -> Result<Tensor<'s, T>> {
    const NAME: &str = "moe_unpermute";
    let (scope, places) = (x.scope(), &routes.places);
    if x.rank() == 3 && weights.rank() == 2 {
        for marks in [x.raw.marks, weights.raw.marks] {
            meet(NAME, scope, 0, marks.get(0), places.raw.marks.get(0))?;
            refuse(NAME, scope, marks, [1])?;
        }
    }
    if x.rank() != 3 || x.sizes()[..2] != *places.sizes() || weights.sizes() != places.sizes() {
        let reason = "the input must be `[T, K, D]` and the weights `[T, K]`, as the third";
        return Err(scope.shape_error(NAME, &[x.into(), weights.into(), places.into()], reason));
    }
    if T::DTYPE == W::DTYPE {
        return unpermuted(x, weights, places);
    }
    // The floats of a kernel of indices are of one type.
    let sums: Tensor<'s, f32> = unpermuted(&cast::<_, f32>(x)?, &cast::<_, f32>(weights)?, places)?;
    cast(&sums)
}

/// Adds the rows of each token; `x` and `weights` have elements of one type.
fn unpermuted<'s, T: Float, W: Float>(
    x: &Tensor<'s, T>,
    weights: &Tensor<'s, W>,
    places: &Tensor<'s, u32>,
) -> Result<Tensor<'s, T>> {
    let mut call = Call::new(k::moe_unpermute::DEFINITION, x)?;
    call.argument::<W>(weights)?;
    call.argument::<u32>(places)?;
    call.launch_indexed([x.dim(0), x.dim(2)])
}

/// The kernels of this folder that are written in Rust, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn kernels() -> impl Iterator<Item = &'static Definition> {
    k::all().into_iter()
}
