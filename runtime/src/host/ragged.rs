//! Values whose number depends on values; they exist only outside segments.

use std::fmt;

use crate::{
    Dim, Eager, Element, Error, IntoDim, Result, Scalar, Tensor,
    backend::View,
    memory::COPY,
    ops,
    value::layout::{Layout, PaddedDims},
};

/// The result of an operation whose size depends on device values.
///
/// It cannot enter a segment: a recording has fixed sizes. [`pad_to`](Self::pad_to) makes a tensor of
/// a fixed size from it, with the real size in device memory.
pub struct Ragged<'s, T> {
    values: Tensor<'s, T>,
}

impl<T> Clone for Ragged<'_, T> {
    fn clone(&self) -> Self {
        Self { values: self.values.clone() }
    }
}

impl<T> fmt::Debug for Ragged<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ragged({:?})", self.values)
    }
}

impl<'s, T: Element> Ragged<'s, T> {
    /// Returns the number of rows: the size of the first dimension.
    pub fn len(&self) -> usize {
        self.values.size(0)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the sizes, outermost first, without padding.
    pub fn shape(&self) -> &[usize] {
        self.values.sizes()
    }

    /// Returns the values on the host, row-major.
    ///
    /// # Errors
    /// Returns the errors of [`Eager::read`].
    pub fn read(&self, cx: &Eager<'s>) -> Result<Vec<T>> {
        cx.read(&self.values)
    }

    /// Returns `n` rows, of which those after the end are filled with `fill`, and the number of real rows in
    /// device memory.
    ///
    /// The tensor has a fixed size and may enter a segment. `n` may be the size of a tensor, as in
    /// `pad_to(x.dim(0), 0.0)`: the result is then padded to a bucket if that tensor is.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[3], &[1u32, 2, 1])?;
    /// let (values, count) = step.unique(&x)?.pad_to(4, 0)?;
    /// assert_eq!(step.read(&values)?, [1, 2, 0, 0]);
    /// assert_eq!(step.item(&count)?, 2);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Argument`] if there are more than `n` rows, and [`Error::PaddedSize`] for a size
    /// computed from a padded one.
    pub fn pad_to(&self, n: impl IntoDim<'s>, fill: T) -> Result<(Tensor<'s, T>, Scalar<'s, u32>)> {
        let (len, scope, n) = (self.len(), self.values.scope(), n.into_dim());
        let symbol = scope.resolve_dim("pad_to", n)?.symbol;
        let room =
            symbol.and_then(|symbol| scope.rt.core.borrow().call.real_size(symbol)).unwrap_or(n.raw.size);
        let count = match u32::try_from(len) {
            Ok(count) if len <= room => count,
            _ => {
                let reason = format!("{len} rows do not fit in {room}; pad to at least {len}");
                return Err(Error::Argument { op: "pad_to", reason });
            }
        };
        let mut shape: Vec<Dim<'s>> = self.values.sizes().iter().map(|&n| n.into()).collect();
        shape[0] = n;
        let out = ops::full(scope, shape, fill)?;
        if self.values.raw.layout.count() > 0 {
            let front = View { layout: Layout::contiguous(self.values.sizes())?, ..out.raw.view() };
            scope.launch(COPY, &[self.values.view("pad_to")?], &[front])?;
        }
        Ok((out, Scalar::from_tensor(ops::full(scope, (), count)?)?))
    }
}

/// The maximum number of bins of [`Eager::bincount`].
const MAX_BINS: u32 = 1 << 28;

/// Operations whose result has a size that depends on values. They wait for the device and work on the host;
/// their results do not include padding.
impl<'s> Eager<'s> {
    /// Returns the coordinates of the elements that are not zero (NaN is not zero), in row-major order, as
    /// `[N, rank]`.
    ///
    /// Reads `x` on the host.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[2, 2], &[0u32, 5, 0, 7])?;
    /// assert_eq!(step.nonzero(&x)?.read(&step)?, [0, 1, 1, 1]); // (0, 1) and (1, 1)
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], and errors of the read.
    pub fn nonzero<T: Element>(&self, x: &Tensor<'s, T>) -> Result<Ragged<'s, u32>> {
        let (values, real) = self.real_part("nonzero", x)?;
        let mut coordinates = Vec::new();
        let mut n = 0;
        for (place, _) in values.iter().enumerate().filter(|(_, v)| v.to_f64() != 0.0) {
            n += 1;
            let start = coordinates.len();
            let mut rest = place;
            for &size in real.shape().iter().rev() {
                coordinates.push((rest % size) as u32);
                rest /= size;
            }
            coordinates[start..].reverse();
        }
        self.upload(&[n, x.rank()], &coordinates)
    }

    /// Returns the elements of `x` whose `mask` is true, in row-major order, as `[N]`. `mask` broadcasts to
    /// `x`.
    ///
    /// Reads both on the host.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[3], &[1.0f32, 2.0, 3.0])?;
    /// let mask = step.tensor(&[3], &[true, false, true])?;
    /// assert_eq!(step.masked_select(&x, &mask)?.read(&step)?, [1.0, 3.0]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`]; [`Error::Shape`] if `mask` does not broadcast to `x`;
    /// [`Error::PaddedMix`] if `mask` is padded where `x` is not; and errors of the read.
    pub fn masked_select<T: Element>(
        &self,
        x: &Tensor<'s, T>,
        mask: &Tensor<'s, bool>,
    ) -> Result<Ragged<'s, T>> {
        const NAME: &str = "masked_select";
        self.check(NAME)?;
        let mask = ops::broadcast_as(NAME, mask, x.sizes(), x.raw.marks)?;
        let (keep, _) = self.real_part_as(NAME, &mask, x.raw.marks)?;
        let (values, _) = self.real_part(NAME, x)?;
        let picked: Vec<T> = values.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(v, _)| v).collect();
        self.upload(&[picked.len()], &picked)
    }

    /// Returns the distinct elements of `x`, ascending, as `[N]`. All NaNs count as one element, which comes
    /// last.
    ///
    /// Reads `x` on the host.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[4], &[3u32, 1, 3, 2])?;
    /// assert_eq!(step.unique(&x)?.read(&step)?, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`], and errors of the read.
    pub fn unique<T: Element>(&self, x: &Tensor<'s, T>) -> Result<Ragged<'s, T>> {
        let (mut values, _) = self.real_part("unique", x)?;
        let is_nan = |v: &T| v.to_f64().is_nan();
        values.sort_by(|a, b| {
            is_nan(a)
                .cmp(&is_nan(b))
                .then(a.to_f64().total_cmp(&b.to_f64()))
                .then(a.to_i64().cmp(&b.to_i64()))
        });
        values.dedup_by(|a, b| a == b || is_nan(a) && is_nan(b));
        self.upload(&[values.len()], &values)
    }

    /// Repeats row `i` of `x` (along axis 0) `repeats[i]` times, for each row in order.
    ///
    /// Reads both on the host.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[2], &[7u32, 8])?;
    /// let repeats = step.tensor(&[2], &[1u32, 3])?;
    /// assert_eq!(step.repeat_interleave(&x, &repeats)?.read(&step)?, [7, 8, 8, 8]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`]; [`Error::Shape`] if `repeats` does not have one number for
    /// each row; [`Error::TooLarge`]; [`Error::PaddedMix`] if `repeats` is padded and `x` is not; and errors
    /// of the read.
    pub fn repeat_interleave<T: Element>(
        &self,
        x: &Tensor<'s, T>,
        repeats: &Tensor<'s, u32>,
    ) -> Result<Ragged<'s, T>> {
        const NAME: &str = "repeat_interleave";
        self.check(NAME)?;
        if x.rank() == 0 || repeats.sizes() != &x.sizes()[..1] {
            let reason = "there must be one number of repeats for each row of the first: `[N]` for `[N, ..]`";
            return Err(self.scope().shape_error(NAME, &[x.into(), repeats.into()], reason));
        }
        let rows = PaddedDims::NONE.with(0, x.raw.marks.get(0));
        ops::broadcast_as(NAME, repeats, &x.sizes()[..1], rows)?;
        let (repeats, _) = self.real_part_as(NAME, repeats, rows)?;
        let (values, real) = self.real_part(NAME, x)?;
        let mut shape = real.shape().to_vec();
        let row: usize = shape[1..].iter().product();
        shape[0] =
            repeats.iter().try_fold(0usize, |sum, &n| sum.checked_add(n as usize)).unwrap_or(usize::MAX);
        let count = Layout::contiguous(&shape)?.count();
        let mut out = Vec::new();
        out.try_reserve_exact(count).map_err(|_| Error::TooLarge { shape: shape.clone() })?;
        for (i, &n) in repeats.iter().enumerate() {
            for _ in 0..n {
                out.extend_from_slice(&values[i * row..(i + 1) * row]);
            }
        }
        self.upload(&shape, &out)
    }

    /// Counts how often each number from 0 to the largest occurs in `x`, as `[largest + 1]` (`[0]` for an
    /// empty `x`).
    ///
    /// Reads `x` on the host.
    ///
    /// ```
    /// # use graphable::prelude::*;
    /// # let mut rt = Runtime::new(Device::cpu())?;
    /// # let step = rt.step()?;
    /// let x = step.tensor(&[4], &[3u32, 1, 3, 0])?;
    /// assert_eq!(step.bincount(&x)?.read(&step)?, [1, 1, 0, 2]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::CapabilityInSegment`]; [`Error::Argument`] for a number of 2^28 or above; and errors
    /// of the read.
    pub fn bincount(&self, x: &Tensor<'s, u32>) -> Result<Ragged<'s, u32>> {
        let (values, _) = self.real_part("bincount", x)?;
        let largest = values.iter().max().copied();
        if let Some(largest) = largest.filter(|&n| n >= MAX_BINS) {
            let reason = format!("{largest} would take as many bins; values must be below {MAX_BINS}");
            return Err(Error::Argument { op: "bincount", reason });
        }
        let mut counts = vec![0u32; largest.map_or(0, |n| n as usize + 1)];
        for &value in &values {
            counts[value as usize] += 1;
        }
        self.upload(&[counts.len()], &counts)
    }

    /// Returns the real elements on the host, and their layout.
    fn real_part<T: Element>(&self, name: &'static str, x: &Tensor<'s, T>) -> Result<(Vec<T>, Layout)> {
        self.real_part_as(name, x, x.raw.marks)
    }

    /// Like [`real_part`](Self::real_part), for a tensor that is padded according to `marks`.
    fn real_part_as<T: Element>(
        &self,
        name: &'static str,
        x: &Tensor<'s, T>,
        marks: PaddedDims,
    ) -> Result<(Vec<T>, Layout)> {
        let (pending, shape) = self.start_read_as(name, x, marks)?;
        Ok((pending.wait()?, shape))
    }

    fn upload<T: Element>(&self, shape: &[usize], data: &[T]) -> Result<Ragged<'s, T>> {
        Ok(Ragged { values: self.tensor(shape, data)? })
    }
}
