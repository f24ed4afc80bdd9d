//! Values that outlive their step.

use std::{fmt, marker::PhantomData, ops::Range, sync::Arc};

use half::{bf16, f16};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    DType, Element, Error, Result, Scalar, Scope, Tensor,
    backend::{SharedMemory, View},
    tensor::{
        AsOperand, Operand,
        live_out::{Decoder, LiveOut},
        sealed::Sealed,
    },
    value::{
        entry::{Entries, Entry},
        key::KeyWriter,
        layout::{Layout, PaddedDims},
        live_in::LiveIn,
        owned::OwnerId,
        raw::RawTensor,
    },
};

use crate::value::persistent::{PersistentMemory, Piece};

/// A value that was copied out of its step: tensors, or a tuple, array, vector or `#[derive(GraphOutput)]`
/// struct of them.
///
/// Returned by [`Eager::keep`](crate::Eager::keep). It is not bound to the lifetime of a step and can be sent
/// to other threads; [`view`](Self::view) returns the value in a later step, without a copy. Views of one
/// storage remain views of one storage. Its memory keeps its address, so recordings that use it can be
/// replayed as long as it lives. When the last clone is dropped, the memory is freed after the work that uses
/// it, unless a value of the same size is kept in the next few steps.
///
/// It can be a parameter of a graph function, like a [`Param`](crate::Param), and a [`KeptTensor`] can be an
/// operand of operations.
///
/// ```
/// use graphable::{KeptTensor, prelude::*};
///
/// # fn main() -> Result<()> {
/// let mut rt = Runtime::new(Device::cpu())?;
/// let mut sum: Option<KeptTensor<f32>> = None;
/// for i in 0..3 {
///     let step = rt.step()?;
///     let x = step.tensor(&[2], &[1.0, i as f32])?;
///     let next = match &sum {
///         Some(sum) => ops::add(&x, sum)?,
///         None => x,
///     };
///     sum = Some(step.keep(&next)?);
/// }
/// let step = rt.step()?;
/// let sum = sum.unwrap().view(step.scope())?;
/// assert_eq!(step.read(&sum)?, [3.0, 3.0]);
/// # Ok(())
/// # }
/// ```
pub struct Kept<O> {
    pieces: Arc<[Piece]>,
    runtime: u64,
    _type: PhantomData<fn() -> O>,
}

/// A kept tensor with elements `T`.
pub type KeptTensor<T> = Kept<Tensor<'static, T>>;

impl<O> Kept<O> {
    pub(crate) fn new(pieces: Vec<Piece>, runtime: u64) -> Self {
        Self { pieces: pieces.into(), runtime, _type: PhantomData }
    }

    /// Returns the value in the step of `scope`, without a copy.
    ///
    /// # Errors
    /// Returns [`Error::DifferentRuntimes`] for a scope of another runtime.
    pub fn view<'s>(&self, scope: Scope<'s>) -> Result<O::At>
    where
        O: Keep<'s>,
    {
        scope.check("Kept::view", self.runtime)?;
        let rt = scope.rt;
        let mut adopted: FxHashMap<OwnerId, RawTensor> = FxHashMap::default();
        let mut entries = Entries::default();
        for piece in self.pieces.iter() {
            entries.push(match piece {
                Piece::Word(word) => Entry::Word(*word),
                Piece::Text(text) => Entry::Text(Arc::clone(text)),
                Piece::Size(dim) => Entry::Size(*dim),
                Piece::Tensor { memory, offset, dtype, layout } => {
                    // Each storage is one slot, so that its views are freed together.
                    let base = match adopted.get(&memory.owned().id) {
                        Some(&raw) => {
                            rt.retain(raw.slot, raw.epoch);
                            raw
                        }
                        None => {
                            let raw = rt.adopt(memory.owned(), *dtype, *layout);
                            adopted.insert(memory.owned().id, raw);
                            raw
                        }
                    };
                    let addr = memory.owned().memory.addr() + offset;
                    Entry::Tensor(RawTensor { dtype: *dtype, layout: *layout, addr, ..base })
                }
            });
        }
        Ok(LiveOut::decode(&mut Decoder::new(rt, entries)))
    }

    /// Returns the number of storages that it holds; views of one storage count once.
    pub fn storages(&self) -> usize {
        self.memory().len()
    }

    /// Returns the number of bytes of device memory that it holds.
    pub fn bytes(&self) -> u64 {
        self.memory().iter().map(|memory| memory.len()).sum()
    }

    fn memory(&self) -> Vec<&SharedMemory> {
        let mut seen: FxHashSet<OwnerId> = FxHashSet::default();
        let all = self.tensors().map(|(memory, ..)| memory.owned());
        all.filter(|owned| seen.insert(owned.id)).map(|owned| &owned.memory).collect()
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&Arc<PersistentMemory>, u64, DType, &Layout)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Tensor { memory, offset, dtype, layout } => Some((memory, *offset, *dtype, layout)),
            _ => None,
        })
    }
}

impl<T: Element> KeptTensor<T> {
    /// Returns the sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        self.tensors().next().map_or(&[], |(.., layout)| layout.shape())
    }

    /// Returns the size of one dimension; 1 beyond the rank.
    pub fn dim(&self, axis: usize) -> usize {
        self.shape().get(axis).copied().unwrap_or(1)
    }
}

impl<O> Clone for Kept<O> {
    /// Returns another handle of the same memory.
    fn clone(&self) -> Self {
        Self { pieces: Arc::clone(&self.pieces), runtime: self.runtime, _type: PhantomData }
    }
}

impl<O> fmt::Debug for Kept<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")?;
        let tensors = self.tensors().map(|(_, _, dtype, layout)| format!("{dtype}{layout:?}"));
        f.debug_list().entries(tensors).finish()
    }
}

impl<T> Sealed for KeptTensor<T> {}
impl<'s, T: Element> AsOperand<'s, T> for KeptTensor<T> {
    fn operand(&self, op: &'static str, scope: Scope<'s>) -> Result<Operand> {
        scope.check(op, self.runtime)?;
        match self.tensors().next() {
            Some((memory, offset, dtype, &layout)) => {
                let addr = memory.owned().memory.addr() + offset;
                Ok(Operand { view: View { addr, dtype, layout }, marks: PaddedDims::NONE })
            }
            None => Err(Error::NeverComputed { op }),
        }
    }
}

impl<O> LiveIn for Kept<O> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        for piece in self.pieces.iter() {
            match piece {
                Piece::Word(word) => k.word(*word),
                Piece::Text(text) => k.bytes(text.as_bytes()),
                Piece::Size(dim) => k.raw_size(*dim),
                Piece::Tensor { memory, offset, dtype, layout } => {
                    k.owned_at(memory.owned(), *offset, *dtype, layout);
                }
            }
        }
    }
}

/// A value that can be [kept](crate::Eager::keep) beyond its step.
///
/// Implemented for tensors, plain host values and containers of these; for structs by
/// `#[derive(GraphOutput)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be kept beyond its step",
    label = "not a value of tensors",
    note = "tensors, host values, and tuples, arrays and vectors of them can; add `#[derive(GraphOutput)]` to a struct"
)]
pub trait Keep<'t> {
    /// The same value in the step `'t`.
    type At: LiveOut<'t>;
}

impl<'t, T> Keep<'t> for Tensor<'_, T> {
    type At = Tensor<'t, T>;
}

impl<'t, T> Keep<'t> for Scalar<'_, T> {
    type At = Scalar<'t, T>;
}

impl<'t> Keep<'t> for Scope<'_> {
    type At = Scope<'t>;
}

macro_rules! host {
    ($($t:ty),*) => {$(
        impl<'t> Keep<'t> for $t {
            type At = $t;
        }
    )*};
}
host! {
    u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, bool, char, f32, f64, f16, bf16, DType,
    String, ()
}

macro_rules! containers {
    ($($container:ident)*) => {$(
        impl<'t, T: Keep<'t>> Keep<'t> for $container<T> {
            type At = $container<T::At>;
        }
    )*};
}
containers! { Option Vec Box Range }

impl<'t, T: Keep<'t>, const N: usize> Keep<'t> for [T; N] {
    type At = [T::At; N];
}

impl<'t, T: ?Sized> Keep<'t> for PhantomData<T> {
    type At = Self;
}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<'t, $first: Keep<'t>, $($rest: Keep<'t>),*> Keep<'t> for ($first, $($rest,)*) {
            type At = ($first::At, $($rest::At,)*);
        }
        tuples! { $($rest)* }
    };
    () => {};
}
tuples! { A B C D E F G H I J K L }
