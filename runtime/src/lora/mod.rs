//! Low-rank adapters in slots: loaded and dropped without a new recording, several in one batch.
//!
//! An adapter adds `scale · B (A x)` to what a linear layer makes of `x`, with two thin matrices `A` and `B` (LoRA, Hu et al. 2021,
//! arXiv:2106.09685). A [`Lora`] has room for a number of adapters of one layer, in parameters that are written in place
//! ([`Param::write_rows`]): a recording contains the memory of all slots, and the slot of each row is a value on the device. The layer's
//! own weight is not touched, so it may be of floats or in blocks.
//!
//! ```
//! use graphable::{
//!     load::TensorMap,
//!     lora::{self, Lora, Peft, Room},
//!     prelude::*,
//! };
//!
//! #[derive(Params)]
//! struct Layer {
//!     weight: Param<f32>, // [1, 2]
//!     lora: Lora<f32>,
//! }
//!
//! #[graphable]
//! fn apply(
//!     #[host] #[dims(T, 2)] x: &Tensor<f32>,
//!     #[host] #[dims(T)] slots: &Tensor<u32>, // of each row
//!     layer: &Layer,
//! ) -> Result<Tensor<f32>> {
//!     let routes = lora::route(slots, layer.lora.room())?; // once, for all layers
//!     let y = ops::linear(x, &layer.weight)?;
//!     layer.lora.add(&y, x, &routes)
//! }
//!
//! fn main() -> Result<()> {
//!     let mut rt = Runtime::new(Device::cpu())?;
//!     let weight = Param::new(&rt, &[1, 2], &[1.0f32, 1.0])?;
//!     let layer = Layer { weight, lora: Lora::new(&rt, Room { slots: 2, rank: 4 }, [1, 2])? };
//!     let graph = ApplyGraph::builder().bucket("T", Schedule::new([4])).build(&mut rt)?;
//!     graph.capture_all(&mut rt, &layer)?;
//!     let recorded = rt.stats().recordings;
//!
//!     // What PEFT saves, of rank 1: it makes 2 · 10 · (x₀ - x₁).
//!     let mut file = TensorMap::new(); // or `SafeTensors::open("adapter_model.safetensors")?`
//!     file.insert("base_model.model.layer.lora_A.weight", &[1, 2], &[1.0f32, -1.0])?;
//!     file.insert("base_model.model.layer.lora_B.weight", &[1, 1], &[10.0f32])?;
//!     let adapter = Peft::new(&file, 2.0);
//!
//!     let step = rt.step()?;
//!     adapter.load(&step, 1, [("layer", &layer.lora)])?;
//!     let x = [3.0, 1.0, 3.0, 1.0, 3.0, 1.0];
//!     let y = graph.call(&step, &x, &[1, lora::NO_ADAPTER, 0], &layer)?;
//!     assert_eq!(step.read(&y)?, [44.0, 4.0, 4.0]); // Slot 0 is empty.
//!     assert_eq!(step.stats().recordings, recorded);
//!     Ok(())
//! }
//! ```

mod peft;

use std::fmt;

use crate::{
    Eager, Error, Float, Param, ParamVisitor, Params, Result, Runtime, Tensor,
    ops::{self, MoeRoutes},
    value::{
        key::KeyWriter,
        live_in::{DeviceValue, LiveIn},
    },
};

pub use self::peft::Peft;

/// The slot of a row to which no adapter adds anything.
pub const NO_ADAPTER: u32 = u32::MAX;

/// The number of adapters for which there is room, and their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Room {
    /// The number of slots.
    pub slots: usize,
    /// The largest rank of an adapter.
    pub rank: usize,
}

/// Slots for the adapters of one linear layer, whose elements are `T`.
///
/// A field of a `#[derive(Params)]` struct. A slot that holds no adapter adds zeros.
pub struct Lora<T> {
    /// `[slots, rank, in]`.
    a: Param<T>,
    /// `[slots, out, rank]`, with the scales.
    b: Param<T>,
}

impl<T: Float> Lora<T> {
    /// Makes empty slots for adapters of a layer with a weight of this `shape`, `[out, in]`.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] without a slot or a rank, and errors of the device.
    pub fn new(rt: &Runtime, room: Room, shape: [usize; 2]) -> Result<Self> {
        let (Room { slots, rank }, [out, width]) = (room, shape);
        if slots == 0 || rank == 0 {
            let reason =
                format!("{slots} slots for adapters of rank {rank}; at least one of rank 1 is needed");
            return Err(Error::Argument { op: "Lora::new", reason });
        }
        Ok(Self { a: Param::zeros(rt, &[slots, rank, width])?, b: Param::zeros(rt, &[slots, out, rank])? })
    }

    /// Returns its number of slots, and the largest rank.
    pub fn room(&self) -> Room {
        Room { slots: self.a.dim(0), rank: self.a.dim(1) }
    }

    /// Returns the shape of the layer's weight, `[out, in]`.
    pub fn shape(&self) -> [usize; 2] {
        [self.b.dim(1), self.a.dim(2)]
    }

    /// Puts an adapter into a slot, in the order of the stream: `a` is `[rank, in]`, `b` is `[out, rank]`, both row-major, and the layer
    /// gets `scale` times their product. Nothing is recorded anew. `b` is multiplied by `scale` in f64 before it is rounded to `T`.
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if there is no such slot, no room for the rank, or the lengths do not fit, and the errors of
    /// [`Param::write_rows`].
    pub fn put(
        &self,
        cx: &Eager<'_>,
        slot: usize,
        rank: usize,
        [a, b]: [&[f64]; 2],
        scale: f64,
    ) -> Result<()> {
        self.padded("Lora::put", slot, rank, [a, b], scale)?.write(cx)
    }

    /// Empties a slot, in the order of the stream.
    ///
    /// # Errors
    /// Returns the errors of [`put`](Self::put).
    pub fn clear(&self, cx: &Eager<'_>, slot: usize) -> Result<()> {
        self.padded("Lora::clear", slot, 0, [&[], &[]], 1.0)?.write(cx)
    }

    /// Adds what the adapters make of `x`, `[T, in]`, to what the layer made of it, `y`, `[T, out]`: row `t` gets that of the slot to
    /// which [`route`] sends it. Rows without an adapter are equal to those of `y`.
    ///
    /// The inner products are summed in f32 and rounded to `T`, as those of [`ops::grouped_mm_nt`] are, first `A x`, then `B (A x)`.
    /// Padding of `T` propagates.
    ///
    /// # Errors
    /// Returns [`Error::Shape`] if shapes do not fit, or `routes` are of another number of slots; [`Error::PaddedMix`] if `T` is padded
    /// differently.
    pub fn add<'s>(
        &self,
        y: &Tensor<'s, T>,
        x: &Tensor<'s, T>,
        routes: &MoeRoutes<'s>,
    ) -> Result<Tensor<'s, T>> {
        let name = |error: Error| error.of_operation("Lora::add");
        let rows = ops::moe_permute(x, routes).map_err(name)?;
        let low = ops::grouped_mm_nt(&rows, &self.a, routes.ends()).map_err(name)?;
        let high = ops::grouped_mm_nt(&low, &self.b, routes.ends()).map_err(name)?;
        let ones = ops::full(x.scope(), (x.dim(0), 1), T::from_f64(1.0)).map_err(name)?;
        let added = ops::moe_unpermute(&high, &ones, routes).map_err(name)?;
        ops::add(y, &added).map_err(name)
    }

    /// The new contents of a slot, with zeros up to the largest rank.
    fn padded(
        &self,
        op: &'static str,
        slot: usize,
        rank: usize,
        [a, b]: [&[f64]; 2],
        scale: f64,
    ) -> Result<Slot<'_, T>> {
        let (Room { slots, rank: most }, [out, width]) = (self.room(), self.shape());
        let refuse = |reason| Err(Error::Argument { op, reason });
        if slot >= slots {
            return refuse(format!("slot {slot} of {slots}"));
        }
        if rank > most {
            return refuse(format!(
                "an adapter of rank {rank}, where the largest is {most}; make room for it (`Room::rank`)"
            ));
        }
        if (a.len(), b.len()) != (rank * width, out * rank) || !scale.is_finite() {
            return refuse(format!(
                "A has {} elements, B has {}, and the scale is {scale}; for a layer of {:?}, rank {rank} takes {} and {}, and a \
                 finite scale",
                a.len(),
                b.len(),
                [out, width],
                rank * width,
                out * rank
            ));
        }
        let mut rows: Vec<T> = a.iter().map(|&v| T::from_f64(v)).collect();
        rows.resize(most * width, T::from_f64(0.0));
        let mut columns = vec![T::from_f64(0.0); out * most];
        for (to, from) in columns.chunks_exact_mut(most).zip(b.chunks_exact(rank.max(1))) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = T::from_f64(from * scale));
        }
        Ok(Slot { lora: self, slot, a: rows, b: columns })
    }
}

/// The contents for a slot.
struct Slot<'l, T> {
    lora: &'l Lora<T>,
    slot: usize,
    a: Vec<T>,
    b: Vec<T>,
}

impl<T: Float> Slot<'_, T> {
    fn write(&self, cx: &Eager<'_>) -> Result<()> {
        let rows = self.slot..self.slot + 1;
        self.lora.a.write_rows(cx, rows.clone(), &self.a)?;
        self.lora.b.write_rows(cx, rows, &self.b)
    }
}

/// Orders the rows of a batch by the slots of their adapters, `[T]`, for [`Lora::add`] of all layers with this many slots.
///
/// [`NO_ADAPTER`] stands for no slot. Any other number that is not a slot is a fault, which the next read reports, and counts as no slot. Padding of
/// `T` propagates, and has no adapter.
///
/// # Errors
/// Returns the errors of [`ops::moe_route`].
pub fn route<'s>(slots: &Tensor<'s, u32>, room: Room) -> Result<MoeRoutes<'s>> {
    let name = |error: Error| error.of_operation("lora::route");
    let slots = ops::unsqueeze(slots, 1).map_err(name)?;
    ops::moe_route(&slots, room.slots).map_err(name)
}

impl<T> Clone for Lora<T> {
    /// Returns another handle of the same slots.
    fn clone(&self) -> Self {
        Self { a: self.a.clone(), b: self.b.clone() }
    }
}

impl<T: Float> fmt::Debug for Lora<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lora").field("room", &self.room()).field("shape", &self.shape()).finish()
    }
}

impl<T: Float> LiveIn for Lora<T> {
    #[inline]
    fn write_key(&self, k: &mut KeyWriter) {
        self.a.write_key(k);
        self.b.write_key(k);
    }
}

// Its parameters are.
impl<T: Float> DeviceValue for Lora<T> {}

impl<T: Float> Params for Lora<T> {
    fn visit_params(&self, v: &mut ParamVisitor) {
        v.field("lora_a", |v| self.a.visit_params(v));
        v.field("lora_b", |v| self.b.visit_params(v));
    }
}
