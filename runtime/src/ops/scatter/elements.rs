//! Elements placed by a kernel that writes a state: the kernel computes them and their places, and these are written.

use super::super::prelude::*;
use super::cpu;
#[cfg(feature = "cuda")]
use super::cuda;
use crate::{AsOperand as _, Element, Error, Result, State, Tensor, backend::View, value::layout::Layout};

/// `[places: u32 N, values: N] -> [state: R]`, in place. Value `i` goes to element `places[i] - 1`, if `places[i]` is not 0. Of
/// elements given twice, the last wins.
#[derive(Debug, Hash)]
struct WriteElements {
    /// The kernel.
    name: &'static str,
}

impl Operation for WriteElements {
    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self, mut to: &mut dyn Hasher) {
        self.hash(&mut to);
    }

    fn writes_in_place(&self) -> bool {
        true
    }

    fn run_cpu(&self, access: &Access<'_>, launch: &Launch) -> std::result::Result<(), Fault> {
        cpu::write_elements(access, launch);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_workspace(&self, _: &mut dyn Submit, inputs: &[View], _: &[View], _: bool) -> Result<u64> {
        Ok(cuda::places::workspace_bytes(&inputs[0]))
    }

    #[cfg(feature = "cuda")]
    fn launch_cuda(&self, gpu: &mut dyn Submit, launch: &Launch) -> Result<()> {
        cuda::write_elements(gpu, launch)
    }
}

/// Writes each of `values` to the element of `state` that `places` names, counted from 1; 0 is none. If an element is given
/// twice, the last value, row-major, wins.
///
/// # Errors
/// Returns [`Error::Shape`] if the state has more elements than a place can name.
pub(crate) fn write<'s, T: Element>(
    name: &'static str,
    state: &State<T>,
    places: &Tensor<'s, u32>,
    values: &Tensor<'s, T>,
) -> Result<()> {
    let scope = places.scope();
    let target = state.operand(name, scope)?.view;
    let (elements, count) = (target.layout.count(), places.raw.layout.count());
    if u32::try_from(elements.max(count)).is_err() {
        let reason = "a kernel writes states of fewer than 2^32 elements, by fewer than 2^32 elements";
        return Err(Error::shape(name, &[target.layout.shape()], reason));
    }
    if count == 0 || elements == 0 {
        return Ok(());
    }
    let flat = |view: View, count: usize| -> Result<View> {
        Ok(View { layout: Layout::contiguous(&[count])?, ..view })
    };
    let inputs = [flat(places.view(name)?, count)?, flat(values.view(name)?, count)?];
    scope.launch(WriteElements { name }.into(), &inputs, &[flat(target, elements)?])
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use crate::{
        DType,
        backend::{
            Op,
            cuda::kernels::testing::{Recorder, whole},
        },
    };

    #[test]
    fn elements_are_written_by_their_size_after_a_table_of_many() {
        for (dtype, kernel) in [
            (DType::F64, "elements_8"),
            (DType::F32, "elements_4"),
            (DType::Bf16, "elements_2"),
            (DType::Bool, "elements_1"),
        ] {
            for (count, before) in [(2048, 0), (2049, 2)] {
                let (places, values) = (whole(0x100, DType::U32, &[count]), whole(0x9000, dtype, &[count]));
                let op = Op::from(WriteElements { name: "put" });
                let run = Recorder::of(op, &[places, values], &[whole(0x8000_0000, dtype, &[70_000])]);
                let names: Vec<&str> = run.calls.iter().map(|call| call.0.name).collect();
                let all = ["places_clear", "places_enter", kernel];
                assert_eq!(names, all[2 - before..]);
            }
        }
    }
}
