//! The kernels of additions at indices.

#[cfg(feature = "cuda")]
use crate::kernel::definition::{Definition, Kernel as _};

/// Kernels of the targets of entries, by the name of the operation, whose faults they report: `u32::MAX` for entries that
/// have none, because they are skipped or in the padding. `targets` has an element for each target, of value 0.
macro_rules! targets {
    ($($module:ident: $name:ident;)*) => {$(
        pub(super) mod $module {
            use crate::kernel;

            #[kernel(index)]
            pub(in super::super) fn $name(
                index: View<u32, 3>,
                targets: View<u32, 1>,
                [i, entry, j]: [i32; 3],
            ) -> u32 {
                let target = index.at_or([i, entry, j], 0xffff_ffff);
                if target == 0xffff_ffff { target } else { target + targets.at([target]) }
            }
        }
    )*};
}

targets! {
    scattered: scatter_add;
    indexed: index_add;
}

/// Kernels that add to an element the entries of its group, one after the other. Eight are read at a time, since none of these
/// reads waits for another.
macro_rules! sums {
    ($($module:ident $t:ident $zero:literal;)*) => {$(
        pub(super) mod $module {
            use crate::kernel;

            #[kernel(index)]
            pub(in super::super) fn scatter_add(
                x: View<$t, 3>,
                src: View<$t, 3>,
                order: View<u32, 3>,
                begins: View<u32, 3>,
                [i, target, j]: [i32; 3],
            ) -> $t {
                let first = begins.at([i, target, j]) as i32;
                let count = begins.at([i, target + 1, j]) as i32 - first;
                let mut sum = x.at([i, target, j]);
                for block in 0..src.dim(1) {
                    if block * 8 >= count {
                        break;
                    }
                    for k in 0..8 {
                        let at = block * 8 + k;
                        let entry = order.at_or([i, first + at, j], 0);
                        let value = src.at_or([i, entry as i32, j], $zero);
                        if at < count {
                            sum += value;
                        }
                    }
                }
                sum
            }
        }
    )*};
}

sums! {
    f32s f32 0.0;
    i32s i32 0;
    u32s u32 0;
    u8s u8 0;
    f64s f64 0.0;
    i64s i64 0;
    i8s i8 0;
}

/// The kernels of this file, for CI to compile.
#[cfg(feature = "cuda")]
pub(super) fn all() -> [&'static Definition; 6] {
    [
        scattered::scatter_add::DEFINITION,
        indexed::index_add::DEFINITION,
        f32s::scatter_add::DEFINITION,
        i32s::scatter_add::DEFINITION,
        u8s::scatter_add::DEFINITION,
        f64s::scatter_add::DEFINITION,
    ]
}
