//! A launch of a user's kernel: its parameters, and what the driver says of it.

use smallvec::SmallVec;

use crate::{
    Error, Result,
    backend::{
        Launch, Operation as _, View,
        cuda::{
            custom::{CudaGrid, CudaKernel},
            kernels::Submit,
        },
    },
    base::rank::MAX_RANK,
    custom::{argument::Argument, operation::CustomOperation},
};

/// Submits the kernel with the arguments of `op`.
///
/// # Errors
/// Returns [`Error::Argument`] if they do not fit the kernel or the device, and the errors of [`Submit::submit_bytes`].
pub(in crate::custom) fn launch(
    kernel: &CudaKernel,
    gpu: &mut dyn Submit,
    op: &CustomOperation,
    launch: &Launch,
) -> Result<()> {
    let (name, entry) = (op.name(), kernel.entry());
    let grid = op.guarded(|| kernel.grid(&op.shapes(&launch.inputs, &launch.outputs)))?;
    grid.check(name)?;
    let packed: SmallVec<[Packed; 8]> = op.arguments().iter().map(|a| pack(a, op, launch)).collect();
    let list: SmallVec<[&[u8]; 8]> = packed.iter().map(Packed::bytes).collect();
    let refused = |error| refused(name, entry, grid, error);
    if let Some(sizes) = gpu.parameter_sizes(kernel.function(), grid).map_err(refused)? {
        check_parameters(name, entry, sizes, op.arguments(), &list)?;
    }
    gpu.submit_list(kernel.function(), grid, &list).map_err(refused)
}

/// Refuses arguments that are not as many or as large as the parameters of the kernel.
fn check_parameters(
    op: &'static str,
    entry: &str,
    sizes: &[usize],
    arguments: &[Argument],
    given: &[&[u8]],
) -> Result<()> {
    if sizes.len() != given.len() {
        let reason = format!(
            "`{entry}` has {}, and the call names {}; it names one argument for each parameter, in their order",
            counted(sizes.len(), "parameter"),
            counted(given.len(), "argument"),
        );
        return Err(Error::Argument { op, reason });
    }
    let wrong = sizes.iter().zip(given).position(|(&size, given)| size != given.len());
    let Some(at) = wrong else { return Ok(()) };
    let reason = format!(
        "parameter {at} (from 0) of `{entry}` has {}, and the call passes {} there, of {}; \
         name the arguments in the order of the parameters, or change its type",
        counted(sizes[at], "byte"),
        arguments[at].described(),
        counted(given[at].len(), "byte"),
    );
    Err(Error::Argument { op, reason })
}

/// Says what is wrong with the kernel, if that is why it could not be launched.
fn refused(op: &'static str, entry: &str, grid: CudaGrid, error: Error) -> Error {
    let Error::Device { call, reason, .. } = &error else { return error };
    let reason = match *call {
        "compile" => return Error::Compile { op, log: reason.clone() },
        "cuModuleLoadData" => format!("the driver does not load its code: {reason}"),
        "cuModuleGetFunction" => {
            format!("its source has no function `{entry}`; declare it `extern \"C\" __global__`")
        }
        "cuFuncSetAttribute" => {
            format!("a block cannot have {} bytes of shared memory: {reason}", grid.shared_bytes)
        }
        "cuLaunchKernelEx" => {
            format!("the device cannot run blocks of threads {:?}: {reason}", grid.threads)
        }
        _ => return error,
    };
    Error::Argument { op, reason }
}

/// Mirrors `graphable_view` of `graphable.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct PlainView {
    data: u64,
    rank: u64,
    shape: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}

/// `1 byte`, `2 bytes`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// One parameter.
enum Packed {
    Word([u8; 8], usize),
    View(PlainView),
}

impl Packed {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Word(bytes, len) => &bytes[..*len],
            Self::View(view) => bytemuck::bytes_of(view),
        }
    }
}

fn pack(argument: &Argument, op: &CustomOperation, launch: &Launch) -> Packed {
    let address = |addr: u64| Packed::Word(addr.to_ne_bytes(), 8);
    let of = |view: Option<&View>| address(view.map_or(0, |view| view.addr));
    match *argument {
        Argument::Input(i) => of(launch.inputs.get(usize::from(i))),
        Argument::View(i) => {
            Packed::View(launch.inputs.get(usize::from(i)).map_or_else(bytemuck::Zeroable::zeroed, plain))
        }
        Argument::Output(i) => of(launch.outputs.get(usize::from(i))),
        Argument::State(i) => of(launch.outputs.get(op.made() + usize::from(i))),
        Argument::Value { bytes, of } => Packed::Word(bytes, of.bytes()),
        Argument::RealSize(None) => address(0),
        Argument::RealSize(Some(i)) => of(launch.inputs.get(op.operands() + usize::from(i))),
        Argument::Workspace => address(launch.workspace),
    }
}

fn plain(view: &View) -> PlainView {
    let mut out = PlainView {
        data: view.addr,
        rank: view.layout.rank() as u64,
        shape: [1; MAX_RANK],
        strides: [0; MAX_RANK],
    };
    for (to, &n) in out.shape.iter_mut().zip(view.layout.shape()) {
        *to = n as u64;
    }
    for (to, &n) in out.strides.iter_mut().zip(view.layout.strides()) {
        *to = n as u64;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_says_of_a_kernel_names_the_operation() {
        let grid = CudaGrid::for_elements(1, 32).shared_bytes(1 << 20);
        let of = |call| Error::Device { device: "a GPU".into(), call, reason: "no".into() };
        assert!(matches!(
            refused("mine", "missing", grid, of("compile")),
            Error::Compile { op: "mine", log } if log == "no"
        ));
        for (call, reason) in [
            ("cuModuleLoadData", "mine: the driver does not load its code: no"),
            (
                "cuModuleGetFunction",
                "mine: its source has no function `missing`; declare it `extern \"C\" __global__`",
            ),
            ("cuFuncSetAttribute", "mine: a block cannot have 1048576 bytes of shared memory: no"),
            ("cuLaunchKernelEx", "mine: the device cannot run blocks of threads [32, 1, 1]: no"),
        ] {
            assert_eq!(refused("mine", "missing", grid, of(call)).to_string(), reason);
        }
        assert!(matches!(refused("mine", "missing", grid, of("cuMemcpy")), Error::Device { .. }));
    }

    #[test]
    fn arguments_must_be_as_many_and_as_large_as_the_parameters() {
        let (input, number) = (Argument::Input(0), Argument::value(7u32));
        let check = |sizes: &[usize], arguments: &[Argument], given: &[usize]| {
            let bytes: Vec<&[u8]> = given.iter().map(|&n| &[0; 128][..n]).collect();
            check_parameters("mine", "k", sizes, arguments, &bytes).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[8, 4, 8], &[input, number, Argument::Output(0)], &[8, 4, 8]), Ok(()));
        assert_eq!(check(&[], &[], &[]), Ok(()));
        assert_eq!(
            check(&[8], &[input, number], &[8, 4]).unwrap_err(),
            "mine: `k` has 1 parameter, and the call names 2 arguments; it names one argument for each parameter, \
             in their order"
        );
        assert_eq!(
            check(&[8, 8], &[input, number], &[8, 4]).unwrap_err(),
            "mine: parameter 1 (from 0) of `k` has 8 bytes, and the call passes a `u32` there, of 4 bytes; \
             name the arguments in the order of the parameters, or change its type"
        );
        let view = Argument::View(0);
        let error = check(&[8], &[view], &[size_of::<PlainView>()]).unwrap_err();
        assert!(error.contains("passes a `graphable_view` there, of 112 bytes"), "{error}");
    }
}
