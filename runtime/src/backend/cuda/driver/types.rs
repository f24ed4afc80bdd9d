//! The driver's plain types, in the layout of its C headers on 64-bit systems.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// 0 is success.
pub(super) type CUresult = c_int;
/// A device address.
pub(super) type CUdeviceptr = c_ulonglong;
/// Contexts, streams, events, modules, functions, graphs: all are opaque pointers.
pub(crate) type Handle = *mut c_void;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUlocation {
    /// 1: a device.
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUallocation {
    /// 1: pinned.
    pub(super) kind: c_int,
    pub(super) handle_types: c_int,
    pub(super) location: CUlocation,
    pub(super) metadata: *mut c_void,
    pub(super) flags: [u8; 8],
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUpool {
    /// 1: pinned.
    pub(super) kind: c_int,
    pub(super) handle_types: c_int,
    pub(super) location: CUlocation,
    pub(super) security: *mut c_void,
    pub(super) max_size: usize,
    pub(super) reserved: [u8; 56],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUaccess {
    pub(super) location: CUlocation,
    /// 3: read and write.
    pub(super) flags: c_int,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUinstantiate {
    pub(super) flags: c_ulonglong,
    pub(super) upload_stream: Handle,
    pub(super) error_node: Handle,
    pub(super) result: c_int,
}

/// `CUlaunchAttribute`, of which two kinds are used.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUattribute {
    /// 4: the width, height and depth of clusters. 6: whether the kernel may start while the one before it ends.
    pub(super) id: c_int,
    pub(super) pad: c_int,
    pub(super) value: c_int,
    pub(super) rest: [c_int; 15],
}

/// `CUgraphEdgeData`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CUedge {
    pub(super) from_port: u8,
    pub(super) to_port: u8,
    pub(super) kind: u8,
    pub(super) reserved: [u8; 5],
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUlaunch {
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) stream: Handle,
    pub(super) attributes: *const CUattribute,
    pub(super) count: c_uint,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CUkernelNode {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) params: *mut *mut c_void,
    pub(super) extra: *mut *mut c_void,
    pub(super) kernel: Handle,
    pub(super) context: Handle,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CUfillNode {
    pub(super) to: CUdeviceptr,
    pub(super) pitch: usize,
    pub(super) value: c_uint,
    pub(super) element: c_uint,
    /// Elements of a row.
    pub(super) width: usize,
    /// Rows.
    pub(super) height: usize,
}

/// `CUgraphNodeParams` of a conditional node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUconditional {
    /// 13: a conditional node.
    kind: c_int,
    reserved: [c_int; 3],
    handle: c_ulonglong,
    conditional_kind: c_int,
    /// The number of bodies.
    size: c_uint,
    /// Written: the bodies, in the driver's memory.
    pub(super) graphs: *const Handle,
    context: Handle,
    padding: [u64; 25],
    end: u64,
}

impl CUconditional {
    pub(super) fn new(handle: u64, conditional_kind: c_int, size: c_uint, context: Handle) -> Self {
        const CONDITIONAL: c_int = 13;
        Self {
            kind: CONDITIONAL,
            reserved: [0; 3],
            handle,
            conditional_kind,
            size,
            graphs: std::ptr::null(),
            context,
            padding: [0; 25],
            end: 0,
        }
    }
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct CUupdate {
    pub(super) result: c_int,
    pub(super) node: Handle,
    pub(super) from: Handle,
}

/// `CUlaunchAttributeValue`, as plain words.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CUattributeValue(pub(super) [u64; 8]);

#[cfg(test)]
mod tests {
    use cudarc::driver::sys;

    use super::*;

    /// Ours against the bindings of cudarc, which are generated from the headers.
    #[test]
    fn layouts_are_those_of_the_headers() {
        assert_eq!(size_of::<CUlocation>(), size_of::<sys::CUmemLocation>());
        assert_eq!(size_of::<CUallocation>(), size_of::<sys::CUmemAllocationProp>());
        assert_eq!(size_of::<CUaccess>(), size_of::<sys::CUmemAccessDesc>());
        assert_eq!(size_of::<CUinstantiate>(), size_of::<sys::CUDA_GRAPH_INSTANTIATE_PARAMS>());
        assert_eq!(size_of::<CUkernelNode>(), size_of::<sys::CUDA_KERNEL_NODE_PARAMS>());
        assert_eq!(size_of::<CUfillNode>(), size_of::<sys::CUDA_MEMSET_NODE_PARAMS>());
        assert_eq!(
            std::mem::offset_of!(CUfillNode, width),
            std::mem::offset_of!(sys::CUDA_MEMSET_NODE_PARAMS, width)
        );
        assert_eq!(size_of::<CUattribute>(), size_of::<sys::CUlaunchAttribute>());
        assert_eq!(size_of::<CUlaunch>(), size_of::<sys::CUlaunchConfig>());
        assert_eq!(
            std::mem::offset_of!(CUlaunch, attributes),
            std::mem::offset_of!(sys::CUlaunchConfig, attrs)
        );
        assert_eq!(
            std::mem::offset_of!(CUattribute, value),
            std::mem::offset_of!(sys::CUlaunchAttribute, value)
        );
        assert_eq!(size_of::<CUedge>(), size_of::<sys::CUgraphEdgeData>());
        assert_eq!(size_of::<CUconditional>(), size_of::<sys::CUgraphNodeParams>());
        assert_eq!(std::mem::offset_of!(CUconditional, handle), 16);
        assert_eq!(
            std::mem::offset_of!(CUconditional, conditional_kind) - 16,
            std::mem::offset_of!(sys::CUDA_CONDITIONAL_NODE_PARAMS, type_)
        );
        assert_eq!(
            std::mem::offset_of!(CUconditional, size) - 16,
            std::mem::offset_of!(sys::CUDA_CONDITIONAL_NODE_PARAMS, size)
        );
        assert_eq!(
            std::mem::offset_of!(CUconditional, graphs) - 16,
            std::mem::offset_of!(sys::CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out)
        );
        assert_eq!(
            std::mem::offset_of!(CUconditional, context) - 16,
            std::mem::offset_of!(sys::CUDA_CONDITIONAL_NODE_PARAMS, ctx)
        );
        assert_eq!(size_of::<CUupdate>(), size_of::<sys::CUgraphExecUpdateResultInfo>());
        assert_eq!(size_of::<CUattributeValue>(), size_of::<sys::CUlaunchAttributeValue>());
        assert_eq!(align_of::<CUattributeValue>(), align_of::<sys::CUlaunchAttributeValue>());
        assert_eq!(size_of::<CUpool>(), size_of::<sys::CUmemPoolProps>());
        assert_eq!(
            std::mem::offset_of!(CUpool, max_size),
            std::mem::offset_of!(sys::CUmemPoolProps, maxSize)
        );
        assert_eq!(
            std::mem::offset_of!(CUkernelNode, params),
            std::mem::offset_of!(sys::CUDA_KERNEL_NODE_PARAMS, kernelParams)
        );
        assert_eq!(
            std::mem::offset_of!(CUallocation, location),
            std::mem::offset_of!(sys::CUmemAllocationProp, location)
        );
    }
}
