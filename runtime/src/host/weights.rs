//! Weights, from and to the host, in the order of the stream.

use std::{ops::Range, sync::Arc};

use super::tiled_weights::Tiles;
use crate::{
    BlockFormat, Contents, DType, Eager, Element, Error, Float, Param, PendingRead, Result, Tensor, Weight,
    backend::{HostCopy, View},
    base::dtype::{from_bytes, to_bytes},
    record::Overwrite,
    tensor::contents::Source,
    value::{layout::Layout, owned::Owned},
};

impl<T: Element> Param<T> {
    /// Overwrites all elements in place. The parameter stays what it is, at its address, so nothing is recorded anew; making
    /// another parameter would evict the recordings made with this one.
    ///
    /// The write is in the order of the stream: work that was launched before sees the old elements, and work that is launched after
    /// it the new ones, whichever graph it is part of. Nothing waits for it, and data of the host may be changed at once. It may lie
    /// between calls, or in an `#[eager(cx)]` region between two segments. A tensor does not change, so the write is refused while one
    /// of the step is a view of the parameter ([`Scope::view`](crate::Scope::view)); a view that was [kept](Eager::keep) is one of the
    /// parameter, whatever that holds by then.
    ///
    /// ```
    /// use graphable::prelude::*;
    ///
    /// #[derive(Params)]
    /// struct Layer {
    ///     weight: Param<f32>,
    /// }
    ///
    /// #[graphable]
    /// fn apply(#[host] #[dims(B, 2)] x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    ///     ops::linear(x, &layer.weight)
    /// }
    ///
    /// # fn main() -> Result<()> {
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// let layer = Layer { weight: Param::zeros(&rt, &[1, 2])? };
    /// let graph = ApplyGraph::builder().build(&mut rt)?;
    /// for by in [1.0, 2.0, 3.0, 4.0] {
    ///     let step = rt.step()?;
    ///     layer.weight.write(&step, &[by, 10.0 * by])?;
    ///     let y = graph.call(&step, &[1.0, 1.0], &layer)?;
    ///     assert_eq!(step.read(&y)?, [11.0 * by]);
    /// }
    /// assert_eq!(rt.stats().recordings, 1);
    ///
    /// // What training computed on the device stays there.
    /// let step = rt.step()?;
    /// let better = ops::scale(&step.scope().view(&layer.weight)?, 0.5)?;
    /// layer.weight.write(&step, &better)?;
    /// assert_eq!(layer.weight.read(&step)?.wait()?, [2.0, 20.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Argument`] for host data of another length, and while a tensor is a view of the parameter;
    /// [`Error::Shape`] for a tensor of another shape; [`Error::PaddedMix`] for a padded one; [`Error::CapabilityInSegment`],
    /// [`Error::DifferentRuntimes`], [`Error::NeverComputed`]; and errors of the device, after which the parameter holds its old
    /// elements, or the new ones.
    pub fn write<'a>(&self, cx: &Eager<'_>, contents: impl Into<Contents<'a, T>>) -> Result<()>
    where
        T: 'a,
    {
        Place::of("Param::write", &self.owned, T::DTYPE, self.layout).write(cx, contents.into())
    }

    /// Overwrites the rows `rows`, counted along the first dimension, as [`write`](Self::write) overwrites all. The contents are those
    /// rows alone.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// let table = Param::zeros(&rt, &[4, 2])?;
    /// let step = rt.step()?;
    /// table.write_rows(&step, 1..3, &[1.0f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(table.read(&step)?.wait()?, [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`write`](Self::write), and [`Error::Argument`] for rows that do not exist.
    pub fn write_rows<'a>(
        &self,
        cx: &Eager<'_>,
        rows: Range<usize>,
        contents: impl Into<Contents<'a, T>>,
    ) -> Result<()>
    where
        T: 'a,
    {
        let all = Place::of("Param::write_rows", &self.owned, T::DTYPE, self.layout);
        all.rows(rows)?.write(cx, contents.into())
    }

    /// Starts to read all elements, row-major, as they are behind all work that was launched so far. Waits for nothing;
    /// [`PendingRead::wait`] does.
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], [`Error::DifferentRuntimes`], and errors of the device.
    pub fn read(&self, cx: &Eager<'_>) -> Result<PendingRead<T>> {
        Place::of("Param::read", &self.owned, T::DTYPE, self.layout).read(cx)
    }
}

impl<T: Float> Weight<T> {
    /// Overwrites all blocks in place, as [`Param::write`] overwrites elements: nothing is recorded anew. `blocks` are all bytes, rows
    /// of whole blocks one after the other, or a tensor of `[rows, bytes of a row]`. A weight of floats is written through its
    /// [`param`](Self::param).
    ///
    /// A GPU has blocks in an order of its own, in tiles of eight rows, which the host makes: it takes bytes of the host, and no tensor or
    /// pinned memory.
    ///
    /// ```
    /// use graphable::{BlockFormat, Weight, prelude::*};
    ///
    /// let mut rt = Runtime::new(Device::cpu())?;
    /// let format = BlockFormat::Q8_0;
    /// let weight = Weight::<f32>::blocks(&rt, &[1, 32], format, format.quantize(&[0.0; 32])?)?;
    /// let step = rt.step()?;
    /// let blocks = format.quantize(&[1.0; 32])?;
    /// weight.write_blocks(&step, format, &blocks)?;
    /// assert_eq!(weight.read_blocks(&step)?.wait()?, blocks); // as a GGUF file has them
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::BlockFormat`] if the weight is not in blocks of `format`: its format is part of recordings. Returns
    /// [`Error::ReadOnly`] if the weight is [used where it is mapped](Self::is_mapped). On a GPU, returns [`Error::Argument`] if the
    /// contents are a tensor or pinned memory. Also returns the errors of [`Param::write`].
    pub fn write_blocks<'a>(
        &self,
        cx: &Eager<'_>,
        format: BlockFormat,
        blocks: impl Into<Contents<'a, u8>>,
    ) -> Result<()> {
        self.write_rows_of_blocks(cx, "Weight::write_blocks", None, format, blocks.into())
    }

    /// Overwrites the blocks of the rows `rows`, as [`write_blocks`](Self::write_blocks) overwrites all. On a GPU, the rows must be
    /// whole tiles: they begin at a multiple of 8, and end at a multiple of 8 or at the last row.
    ///
    /// # Errors
    /// Returns the errors of [`write_blocks`](Self::write_blocks). Returns [`Error::Argument`] if the rows do not exist, or if they are
    /// not whole tiles of a GPU.
    pub fn write_block_rows<'a>(
        &self,
        cx: &Eager<'_>,
        rows: Range<usize>,
        format: BlockFormat,
        blocks: impl Into<Contents<'a, u8>>,
    ) -> Result<()> {
        self.write_rows_of_blocks(cx, "Weight::write_block_rows", Some(rows), format, blocks.into())
    }

    /// Overwrites some rows, or all.
    fn write_rows_of_blocks(
        &self,
        cx: &Eager<'_>,
        op: &'static str,
        rows: Option<Range<usize>>,
        format: BlockFormat,
        contents: Contents<'_, u8>,
    ) -> Result<()> {
        let all = self.place(op, Some(format))?;
        let rows = rows.unwrap_or(0..self.dim(0));
        let place = all.rows(rows.clone())?;
        match self.tiles() {
            Some(tiles) => tiles.write(cx, &place, rows, contents),
            None => place.write(cx, contents),
        }
    }

    /// Starts to read all blocks, as [`Param::read`] reads elements: the bytes of its rows, one after the other, which a GGUF file
    /// stores like this. A weight of floats is read through its [`param`](Self::param).
    ///
    /// # Errors
    /// Returns [`Error::BlockFormat`] if the weight is not in blocks, and the errors of [`Param::read`].
    pub fn read_blocks(&self, cx: &Eager<'_>) -> Result<PendingRead<u8>> {
        let place = self.place("Weight::read_blocks", None)?;
        match self.tiles() {
            Some(tiles) => tiles.read(cx, &place),
            None => place.read(cx),
        }
    }

    /// Returns the order of its blocks, if it is not that of a file.
    fn tiles(&self) -> Option<Tiles> {
        let (_, format, _) = self.stored_blocks().filter(|_| self.is_in_tiles())?;
        Some(Tiles { format, shape: [self.dim(0), self.dim(1)] })
    }

    /// Returns the memory of its blocks, which are to be of `format` if one is given.
    fn place(&self, op: &'static str, format: Option<BlockFormat>) -> Result<Place<'_>> {
        let refuse = |expected: String, found: String| Err(Error::BlockFormat { op, expected, found });
        let given = format.map_or_else(|| "blocks".to_owned(), |format| format.to_string());
        let Some((owned, own, layout)) = self.stored_blocks() else {
            return refuse(format!("floats ({})", T::DTYPE), given);
        };
        if format.is_some_and(|format| format != own) {
            return refuse(own.to_string(), given);
        }
        Ok(Place::of(op, owned, DType::U8, layout))
    }
}

/// Rows of a weight, for one call.
pub(super) struct Place<'w> {
    pub(super) op: &'static str,
    pub(super) owned: &'w Arc<Owned>,
    pub(super) view: View,
}

impl<'w> Place<'w> {
    pub(super) fn of(op: &'static str, owned: &'w Arc<Owned>, dtype: DType, layout: Layout) -> Self {
        Self { op, owned, view: View { addr: owned.memory.addr(), dtype, layout } }
    }

    fn rows(self, rows: Range<usize>) -> Result<Self> {
        let View { addr, dtype, layout } = self.view;
        let refuse = |reason| Err(Error::Argument { op: self.op, reason });
        let Some((&all, row)) = layout.shape().split_first() else {
            return refuse("the parameter has one element, and no rows; use `write`".into());
        };
        if rows.start > rows.end || rows.end > all {
            return refuse(format!("rows {}..{} of {all}", rows.start, rows.end));
        }
        let row_bytes = row.iter().product::<usize>() * dtype.size();
        let view = View {
            addr: addr + (rows.start * row_bytes) as u64,
            dtype,
            layout: layout.with_dim(0, rows.len()),
        };
        Ok(Self { view, ..self })
    }

    pub(super) fn write<T: Element>(&self, cx: &Eager<'_>, Contents(source): Contents<'_, T>) -> Result<()> {
        let Self { op, owned, view } = *self;
        let rt = cx.rt;
        cx.scope().check(op, owned.runtime)?;
        cx.check(op)?;
        rt.refused_sizes.check()?;
        if owned.is_mapped {
            return Err(Error::ReadOnly { op });
        }
        let with = match source {
            Source::Host(data) => {
                self.check_count(data.len())?;
                Overwrite::Bytes(to_bytes(data))
            }
            Source::Tensor(tensor) => self.of_tensor(cx, tensor)?,
            Source::Pinned(part) => {
                cx.scope().check(op, part.runtime())?;
                self.check_count(part.len())?;
                let (offset, bytes) = part.bytes();
                if T::DTYPE == DType::Bool {
                    // The buffer may contain any byte, and operations take 0 and 1.
                    let values = from_bytes::<bool>(&part.memory().bytes()?[offset..offset + bytes]);
                    Overwrite::Bytes(to_bytes(&values))
                } else {
                    let from = part.memory().lend();
                    Overwrite::Pinned(HostCopy { to: view.addr, from, offset, bytes, zeros: 0 })
                }
            }
        };
        rt.views.check_launch(op, &[], &[view])?;
        if view.layout.count() == 0 {
            return Ok(());
        }
        let mut core = rt.core.borrow_mut();
        if core.memory.has_view_of(owned.memory.addr()) {
            let reason = "a tensor of this step is a view of the parameter, and tensors do not change; drop it first, or compute another \
                       one from it (`ops::scale(&view, 1.0)`)";
            return Err(Error::Argument { op, reason: reason.into() });
        }
        core.launcher().overwrite(op, &view, with)
    }

    pub(super) fn check_count(&self, given: usize) -> Result<()> {
        let count = self.view.layout.count();
        if given == count {
            return Ok(());
        }
        let shape = self.view.layout.shape();
        let reason = format!("{shape:?} has {count} elements, the data {given}");
        Err(Error::Argument { op: self.op, reason })
    }

    fn of_tensor<T: Element>(&self, cx: &Eager<'_>, tensor: &Tensor<'_, T>) -> Result<Overwrite> {
        let Self { op, view, .. } = *self;
        if !std::ptr::eq(cx.rt, tensor.rt) {
            return Err(Error::DifferentRuntimes { op });
        }
        let given = tensor.view(op)?;
        (0..tensor.rank()).try_for_each(|axis| cx.scope().refuse_padded(op, tensor.raw.marks, axis))?;
        if tensor.sizes() != view.layout.shape() {
            let reason = "what is written must have the shape of what it overwrites";
            return Err(Error::shape(op, &[view.layout.shape(), tensor.sizes()], reason));
        }
        cx.rt.views.check_launch(op, &[given], &[])?;
        Ok(Overwrite::Tensor(tensor.raw))
    }

    pub(super) fn read<T: Element>(&self, cx: &Eager<'_>) -> Result<PendingRead<T>> {
        let Self { op, owned, view } = *self;
        cx.scope().check(op, owned.runtime)?;
        let tensor = Tensor::<T>::from_raw(cx.rt, cx.rt.adopt(owned, view.dtype, view.layout));
        cx.start_read(op, &tensor)
    }
}
