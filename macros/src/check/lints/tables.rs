//! The names that the lints look for.

/// Methods by which other tensor libraries, slices and iterators give elements to the host.
pub(super) const READS: [&str; 31] = [
    "item",
    "to_vec",
    "to_vec0",
    "to_vec1",
    "to_vec2",
    "to_vec3",
    "into_vec",
    "to_scalar",
    "into_scalar",
    "to_data",
    "into_data",
    "as_slice",
    "to_slice",
    "as_ptr",
    "tolist",
    "numpy",
    "cpu",
    "to_cpu",
    "to_host",
    "to_array",
    "into_array",
    "iter",
    "into_iter",
    "iter_mut",
    "first",
    "last",
    "read",
    "read_to_host",
    "to_string",
    "into_raw",
    "data",
];

/// Operations whose result has as many elements as the values say.
pub(super) const DATA_DEPENDENT: [&str; 11] = [
    "nonzero",
    "argwhere",
    "masked_select",
    "boolean_mask",
    "unique",
    "unique_consecutive",
    "unique_dim",
    "repeat_interleave",
    "bincount",
    "histogram",
    "compress",
];

/// Those of them that an `#[eager(cx)]` region has.
pub(super) const ON_EAGER: [&str; 5] =
    ["nonzero", "masked_select", "unique", "repeat_interleave", "bincount"];

/// Methods that change a tensor in place, beside those that end in `_`.
pub(super) const IN_PLACE: [&str; 6] =
    ["copy_from", "copy_from_slice", "index_put", "set_item", "slice_set", "fill"];

/// Names of what waits for the device.
pub(super) const SYNCHRONISES: [&str; 9] = [
    "synchronize",
    "device_synchronize",
    "block_until_ready",
    "wait_idle",
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
    "cuEventSynchronize",
];

/// Methods that nothing but cells, locks and atomics have.
pub(super) const INTERIOR: [&str; 15] = [
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "fetch_max",
    "fetch_min",
    "compare_exchange",
    "compare_exchange_weak",
    "lock",
    "try_lock",
    "borrow_mut",
    "try_borrow_mut",
    "with_borrow",
    "with_borrow_mut",
];

/// Methods that show a static to have a changing inside.
pub(super) const INTERIOR_OF_STATIC: [&str; 7] = ["load", "store", "swap", "set", "replace", "with", "read"];
