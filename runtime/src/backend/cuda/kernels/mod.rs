//! Tools for the CUDA code of operations. A source ([`SourceFile`]) is a `.cu` file next to the code that
//! launches it, with [`submit`]. It reads views as a [`DeviceView`] (`offset_of` in `common.cuh`: any strides), or, with
//! fewer divisions, as a [`Walk`] over several views at once (`locate`), counted in words if the elements do not matter
//! ([`Move`], [`for_word`]). Tests record launches with `testing`.
//!
//! Every kernel takes one parameter, a plain struct, whose Rust counterpart is in the file that launches it.
//! Sources need no toolkit header.

mod convolution;
mod host_upload;
mod moves;
mod product;
mod submit;
#[cfg(test)]
pub(crate) mod testing;
mod unit;
mod view;
mod walk;

pub(crate) use convolution::{Convolution, ConvolutionAddresses, Fourier, Order};
pub(crate) use host_upload::UploadSizeClass;
pub(crate) use moves::{Move, for_word, line};
pub(crate) use product::{Product, ProductKernels};
pub(crate) use submit::{Submit, submit};
pub(super) use unit::Types;
pub(crate) use unit::{Grid, Header, Kernel, SourceFile, Unit, element};
pub(crate) use view::{DeviceView, FaultSink};
pub(crate) use walk::{Dim, Dims, THREADS, Walk};

/// Shared by every source.
pub(crate) const COMMON: &str = include_str!("common.cuh");

/// The header that sources of users may include.
pub(crate) const FOR_USERS: &str = include_str!("graphable.cuh");
