//! The names that the lints look for.

/// Methods with which other tensor libraries, slices and iterators return elements to the host.
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

/// Operations whose result size depends on values.
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

/// Those of them that an `#[eager(cx)]` region provides.
pub(super) const ON_EAGER: [&str; 5] =
    ["nonzero", "masked_select", "unique", "repeat_interleave", "bincount"];

/// Methods that modify a tensor in place, besides those that end in `_`.
pub(super) const IN_PLACE: [&str; 6] =
    ["copy_from", "copy_from_slice", "index_put", "set_item", "slice_set", "fill"];
