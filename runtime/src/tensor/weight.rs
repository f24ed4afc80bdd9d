//! Weights of either kind: floats, or blocks.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use super::{AsOperand, Operand, sealed::Sealed};
use crate::{
    BlockFormat, DType, Element, Error, Float, KeptTensor, Param, Result, Runtime, Scalar, Scope, State,
    Tensor,
    backend::{View, cpu::MappedFile},
    quantized::tiles,
    value::{
        key::KeyWriter,
        layout::Layout,
        live_in::{DeviceValue, LiveIn},
        owned::Owned,
    },
};

/// A weight for products with activations of type `T`: a [`Param`], or blocks in a [`BlockFormat`], which stay as they are.
///
/// [`ops::linear`](crate::ops::linear), [`ops::linear_bias`](crate::ops::linear_bias) and
/// [`ops::embedding`](crate::ops::embedding) take it, so one model of `Weight`s can have floats or blocks, whichever its source has:
/// see [`Loader::weight`](crate::load::Loader::weight). Like a parameter, it is memory with a stable address that segments read, a field of a `#[derive(Params)]` struct, and part of
/// [`Runtime::memory`](crate::Runtime::memory) with its real bytes, as it is of an estimate
/// ([`Runtime::estimate_memory`](crate::Runtime::estimate_memory)) whose plan makes it. Another weight is another key.
///
/// **Accuracy.** The values of blocks are exactly those of [`BlockFormat::dequantize`]. On the CPU, a product quantises its
/// activations as well, to 8 bits with a scale for every 32: each activation is off by at most about a 254th of the largest one
/// among these 32, unless the elements are floats ([`F8_E4M3`](BlockFormat::F8_E4M3)), which are multiplied with activations as they are.
/// (llama.cpp and candle quantise activations, too, but not always in groups of 32.) A row of activations with a value that is
/// not finite has NaN as each of its results there, if they are quantised. GPUs multiply activations as they are: up to 16 rows by the integers of the
/// blocks, and more by values that are rounded to `T`. docs/ACCURACY.md states the bounds.
///
/// ```
/// use graphable::{BlockFormat, Weight, prelude::*};
///
/// #[derive(Params)]
/// struct Layer {
///     weight: Weight<f32>,
/// }
///
/// #[graphable]
/// fn apply(layer: &Layer, x: &Tensor<f32>) -> Result<Tensor<f32>> {
///     ops::linear(x, &layer.weight)
/// }
///
/// let mut rt = Runtime::new(Device::cpu())?;
/// // Two rows of 32 elements: ones, and twos.
/// let values: Vec<f32> = (0..64).map(|i| if i < 32 { 1.0 } else { 2.0 }).collect();
/// let blocks = BlockFormat::Q8_0.quantize(&values)?;
/// let layer = Layer { weight: Weight::blocks(&rt, &[2, 32], BlockFormat::Q8_0, blocks)? };
/// assert_eq!((layer.weight.shape(), layer.weight.bytes()), (&[2, 32][..], 2 * 34));
///
/// let graph = ApplyGraph::builder().build(&mut rt)?;
/// for _ in 0..3 {
///     let step = rt.step()?;
///     let y = graph.call(&step, &layer, &step.tensor(&[1, 32], &[1.0; 32])?)?;
///     assert!(step.read(&y)?.iter().zip([32.0, 64.0]).all(|(y, exact)| (y - exact).abs() < 0.02));
/// }
/// # Ok::<(), Error>(())
/// ```
pub struct Weight<T>(Kind<T>);

enum Kind<T> {
    Floats(Param<T>),
    Blocks(Blocks<T>),
}

/// Rows of blocks in device memory.
struct Blocks<T> {
    owned: Arc<Owned>,
    format: BlockFormat,
    /// Rows, and elements of one.
    shape: [usize; 2],
    /// Rows, and bytes of one.
    layout: Layout,
    /// The size in the device's memory.
    bytes: usize,
    /// Set if they are in the order of the device, not in that of a file.
    is_in_tiles: bool,
    _type: PhantomData<fn() -> T>,
}

impl<T: Float> Weight<T> {
    /// Moves `blocks` to the device, as a weight of `shape`: rows, and the elements of a row. Rows are whole blocks, one after the
    /// other, as in a GGUF file.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if `shape` does not have two dimensions, if the elements of a block do not divide the second,
    /// and if `blocks` has another length than this takes; and errors of the device.
    pub fn blocks(
        rt: &Runtime,
        shape: &[usize],
        format: BlockFormat,
        blocks: impl Into<Vec<u8>>,
    ) -> Result<Self> {
        let (shape, layout) = layout_of("Weight::blocks", shape, format)?;
        let blocks = blocks.into();
        check_bytes("Weight::blocks", shape, format, layout.count(), blocks.len())?;
        if rt.blocks_in_tiles() {
            return Self::in_tiles(rt, shape, format, layout, &blocks);
        }
        let bytes = blocks.len();
        let owned = rt.allocate_constant(bytes as u64, Some(blocks.into()))?;
        Ok(Self::of(owned, shape, format, layout, bytes, false))
    }

    /// A weight in the memory of a device that has tiles, of which a piece at a time is on the host.
    fn in_tiles(
        rt: &Runtime,
        shape: [usize; 2],
        format: BlockFormat,
        layout: Layout,
        blocks: &[u8],
    ) -> Result<Self> {
        let too_large = || Error::TooLarge { shape: shape[..].into() };
        let bytes = tiles::bytes(format, shape).ok_or_else(too_large)?;
        let pieces = tiles::pieces(format, shape, blocks, tiles::AT_ONCE).ok_or_else(too_large)?;
        let owned = rt.allocate_constant_of(bytes as u64, Some(pieces.map(Cow::Owned)))?;
        Ok(Self::of(owned, shape, format, layout, bytes, true))
    }

    fn of(
        owned: Arc<Owned>,
        shape: [usize; 2],
        format: BlockFormat,
        layout: Layout,
        bytes: usize,
        is_in_tiles: bool,
    ) -> Self {
        Self(Kind::Blocks(Blocks { owned, format, shape, layout, bytes, is_in_tiles, _type: PhantomData }))
    }
}

impl<T: Float> Weight<T> {
    /// Creates a weight as [`blocks`](Self::blocks) does, of a part of a mapped file. A GPU gets a copy, as of
    /// blocks. The CPU uses it where it is mapped, without a copy, and keeps the file mapped while the weight
    /// or a recording uses it. Two weights of the same bytes are handles of one memory there. (If they begin at
    /// the same byte, but do not end at the same, the second is copied.) Parts that overlap are one memory of
    /// the machine, but [`MemoryStats::owned_bytes`](crate::MemoryStats::owned_bytes) counts each in full.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks); [`Error::Argument`] if `blocks` is not a part of `file`'s
    /// [bytes](crate::load::MappedFile::bytes).
    pub fn mapped(
        rt: &Runtime,
        shape: &[usize],
        format: BlockFormat,
        file: &Arc<MappedFile>,
        blocks: &[u8],
    ) -> Result<Self> {
        let (shape, layout) = layout_of("Weight::mapped", shape, format)?;
        check_bytes("Weight::mapped", shape, format, layout.count(), blocks.len())?;
        let range = match file.range(blocks) {
            Some(range) => range,
            None if blocks.is_empty() => 0..0,
            None => {
                let reason =
                    "the blocks are not a part of the file's bytes; take them from `MappedFile::bytes`"
                        .into();
                return Err(Error::Argument { op: "Weight::mapped", reason });
            }
        };
        if rt.blocks_in_tiles() {
            return Self::in_tiles(rt, shape, format, layout, blocks);
        }
        let bytes = blocks.len();
        let owned = rt.map_constant(file, range)?;
        Ok(Self::of(owned, shape, format, layout, bytes, false))
    }
}

/// The shape, and the layout of its bytes.
fn layout_of(op: &'static str, shape: &[usize], format: BlockFormat) -> Result<([usize; 2], Layout)> {
    let refuse = |reason| Err(Error::Argument { op, reason });
    let &[rows, width] = shape else {
        return refuse(format!(
            "the shape is {shape:?}; a weight in blocks has two dimensions, rows and their width"
        ));
    };
    let elements = format.elements();
    if !width.is_multiple_of(elements) {
        return refuse(format!(
            "the width of {shape:?} is {width}, which the {elements} elements of a block of {format} do not divide; keep this \
             weight in another format, or as a `Param`"
        ));
    }
    Layout::contiguous(shape)?;
    let bytes = format.row_bytes(width).ok_or_else(|| Error::TooLarge { shape: shape.into() })?;
    Ok(([rows, width], Layout::contiguous(&[rows, bytes])?))
}

fn check_bytes(
    op: &'static str,
    shape: [usize; 2],
    format: BlockFormat,
    expected: usize,
    found: usize,
) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let reason = format!("{shape:?} in {format} takes {expected} bytes, not {found}");
    Err(Error::Argument { op, reason })
}

impl<T: Element> Weight<T> {
    /// Returns the sizes in elements, outermost first.
    pub fn shape(&self) -> &[usize] {
        match &self.0 {
            Kind::Floats(param) => param.shape(),
            Kind::Blocks(blocks) => &blocks.shape,
        }
    }

    /// Returns the size of one dimension; 1 beyond the rank.
    pub fn dim(&self, axis: usize) -> usize {
        self.shape().get(axis).copied().unwrap_or(1)
    }

    /// Returns the format of its blocks; `None` if it is a parameter of floats.
    pub fn format(&self) -> Option<BlockFormat> {
        match &self.0 {
            Kind::Floats(_) => None,
            Kind::Blocks(blocks) => Some(blocks.format),
        }
    }

    /// Returns the parameter, if it is one of floats.
    pub fn param(&self) -> Option<&Param<T>> {
        match &self.0 {
            Kind::Floats(param) => Some(param),
            Kind::Blocks(_) => None,
        }
    }

    /// Returns the bytes that its elements take in the device's memory. A GPU fills rows of blocks up to a multiple of eight rows,
    /// and to an even number of blocks if these have 32 elements.
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Kind::Floats(param) => (param.layout.count() * T::DTYPE.size()) as u64,
            Kind::Blocks(blocks) => blocks.bytes as u64,
        }
    }

    /// Returns whether its blocks or floats are used from where a file is [mapped](Self::mapped). Nothing writes them then, and
    /// their memory is the file's. Floats are if a [`Loader`](crate::load::Loader::weight) found them there.
    pub fn is_mapped(&self) -> bool {
        self.owned().is_mapped
    }

    /// Returns whether the bytes of its blocks are in tiles, in the order of a device.
    pub(crate) fn is_in_tiles(&self) -> bool {
        matches!(&self.0, Kind::Blocks(blocks) if blocks.is_in_tiles)
    }

    /// Returns the memory of its blocks, their format, and the layout of their bytes; `None` if it is a parameter of floats.
    pub(crate) fn stored_blocks(&self) -> Option<(&Arc<Owned>, BlockFormat, Layout)> {
        match &self.0 {
            Kind::Floats(_) => None,
            Kind::Blocks(blocks) => Some((&blocks.owned, blocks.format, blocks.layout)),
        }
    }

    pub(crate) fn owned(&self) -> &Arc<Owned> {
        match &self.0 {
            Kind::Floats(param) => &param.owned,
            Kind::Blocks(blocks) => &blocks.owned,
        }
    }
}

impl<T> From<Param<T>> for Weight<T> {
    fn from(param: Param<T>) -> Self {
        Self(Kind::Floats(param))
    }
}

impl<T> Clone for Weight<T> {
    /// Returns another handle of the same memory.
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Kind::Floats(param) => Kind::Floats(param.clone()),
            Kind::Blocks(blocks) => Kind::Blocks(Blocks { owned: Arc::clone(&blocks.owned), ..*blocks }),
        })
    }
}

impl<T: Element> fmt::Debug for Weight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Floats(param) => write!(f, "Weight<{}>{:?}", T::DTYPE, param.layout),
            Kind::Blocks(blocks) => write!(f, "Weight<{}>{:?} in {}", T::DTYPE, blocks.shape, blocks.format),
        }
    }
}

impl<T: Element> LiveIn for Weight<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        match &self.0 {
            Kind::Floats(param) => {
                k.word(0);
                param.write_key(k);
            }
            Kind::Blocks(blocks) => {
                k.word(1 + blocks.format as u64);
                k.owned(&blocks.owned, DType::U8, &blocks.layout);
            }
        }
    }
}

// As of a parameter, eager code can choose by its location, and by its format, which is part of the key, too.
impl<T: Element> DeviceValue for Weight<T> {}

/// The weight of an operation: memory, and how its elements are stored.
#[derive(Clone, Copy, Debug)]
pub struct WeightOperand(pub(crate) Stored);

impl WeightOperand {
    /// An operand of floats.
    pub(crate) fn floats(operand: Operand) -> Self {
        Self(Stored::Floats(operand))
    }
}

/// The storage of a weight's elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stored {
    Floats(Operand),
    Blocks(BlockOperand),
}

/// A weight in blocks, as the input of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockOperand {
    pub(crate) format: BlockFormat,
    /// Rows, and elements of one.
    pub(crate) shape: [usize; 2],
    /// Rows, and bytes of one.
    pub(crate) view: View,
}

/// The weight of a product or the table of an embedding, for elements `T`: a [`Weight`], or any [operand](AsOperand).
///
/// A parameter of a function of yours that passes it on is `w: &(impl AsWeight<'s, T> + ?Sized)`, or `&Weight<T>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a weight for elements `{T}`",
    label = "expected a weight, tensor, scalar, parameter or state of `{T}`",
    note = "cast other element types with `ops::cast`; host values become tensors with `ops::full`"
)]
pub trait AsWeight<'s, T>: Sealed {
    /// Used by the operations.
    #[doc(hidden)]
    fn weight(&self, op: &'static str, scope: Scope<'s>) -> Result<WeightOperand>;
}

/// Every operand is a weight of floats.
macro_rules! floats {
    ($($t:ty),*) => {$(
        impl<'s, T: Element> AsWeight<'s, T> for $t {
            fn weight(&self, op: &'static str, scope: Scope<'s>) -> Result<WeightOperand> {
                self.operand(op, scope).map(WeightOperand::floats)
            }
        }
    )*};
}
floats! { Tensor<'s, T>, Scalar<'s, T>, Param<T>, State<T>, KeptTensor<T> }

impl<'s, T, W: AsWeight<'s, T> + ?Sized> AsWeight<'s, T> for &W {
    fn weight(&self, op: &'static str, scope: Scope<'s>) -> Result<WeightOperand> {
        (**self).weight(op, scope)
    }
}

impl<T> Sealed for Weight<T> {}
impl<'s, T: Element> AsWeight<'s, T> for Weight<T> {
    fn weight(&self, op: &'static str, scope: Scope<'s>) -> Result<WeightOperand> {
        scope.check(op, self.owned().runtime)?;
        Ok(WeightOperand(match &self.0 {
            Kind::Floats(param) => Stored::Floats(param.operand(op, scope)?),
            Kind::Blocks(blocks) => {
                let Blocks { owned, format, shape, layout, .. } = blocks;
                let view = View { addr: owned.memory.addr(), dtype: DType::U8, layout: *layout };
                Stored::Blocks(BlockOperand { format: *format, shape: *shape, view })
            }
        }))
    }
}
