//! The operation that is launched.

use std::{
    hash::Hasher,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::backend::{
    HostLog, Launch, Operation, View,
    cpu::{Access, Fault},
};
#[cfg(feature = "cuda")]
use crate::{Result, backend::cuda::kernels::Submit};

/// `[elements, count?] -> [state]`, in place: elements go to the log behind those of its reading.
#[derive(Debug)]
pub(super) struct Append {
    /// Of the log whose state is the output: that identifies it, so it is not a parameter.
    pub(super) log: Arc<dyn HostLog>,
    /// Elements of a row, of which `count` says how many are real.
    pub(super) width: u32,
}

/// Writes the header: the number of the reading, and how many elements it was given.
fn header(number: u32, given: u32) -> u64 {
    u64::from(number) << 32 | u64::from(given)
}

/// The bits of elements of 1, 2 or 4 bytes.
fn bits<'a>(access: &Access<'a>, view: &View) -> Box<dyn Iterator<Item = u32> + 'a> {
    match view.dtype.size() {
        1 => Box::new(access.slice::<u8>(view).iter().map(|&bits| bits.into())),
        2 => Box::new(access.slice::<u16>(view).iter().map(|&bits| bits.into())),
        _ => Box::new(access.slice::<u32>(view).iter().copied()),
    }
}

fn put(words: &[AtomicU32], at: u32, bits: impl Iterator<Item = u32>) {
    for (word, bits) in words.get(at as usize..).unwrap_or_default().iter().zip(bits) {
        word.store(bits, Ordering::Release);
    }
}

impl Operation for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn parameters(&self, to: &mut dyn Hasher) {
        to.write_u32(self.width);
    }

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> Result<(), Fault> {
        let source = &launch.inputs[0];
        let elements = source.layout.count() as u32;
        let real = match launch.inputs.get(1) {
            Some(count) => elements.min((access.count(count) as u32).saturating_mul(self.width)),
            None => elements,
        };
        if let Some([number, given]) = access.slice_mut::<u32>(&launch.outputs[0]).first_chunk_mut() {
            put(self.log.words(), *given, bits(access, source).take(real as usize));
            *given = given.saturating_add(real);
            self.log.header().store(header(*number, *given), Ordering::Release);
        }
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        super::cuda::append(gpu, launch, self)
    }
}
