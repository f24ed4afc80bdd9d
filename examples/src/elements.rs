//! Floats as files store them: whole slices at a time, by functions of libraries, which have vector instructions and are compiled with
//! optimisation in debug builds, too. The bytes of files are little-endian, and are taken for the machine's own.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use graphable::DType;
use half::{bf16, f16, slice::HalfFloatSliceExt, vec::HalfFloatVecExt};

#[cfg(target_endian = "big")]
compile_error!("the examples read and write little-endian files without swapping bytes");

/// Elements that are converted at a time: no copy of a whole tensor is made for it.
const PIECE: usize = 1024;

/// Values of a float type as `f32`; `None` if it is not one of 16 or 32 bits. A rest of bytes shorter than an element is ignored.
pub(crate) fn floats(stored: &[u8], dtype: DType) -> Option<Vec<f32>> {
    Some(match dtype {
        DType::F32 => {
            let mut values = vec![0.0; stored.len() / size_of::<f32>()];
            copy(stored, &mut values);
            values
        }
        DType::F16 => widened(stored, |piece: &[f16], to| piece.convert_to_f32_slice(to)),
        DType::Bf16 => widened(stored, |piece: &[bf16], to| piece.convert_to_f32_slice(to)),
        _ => return None,
    })
}

/// Elements of 16 bits as `f32`.
fn widened<T: Pod>(stored: &[u8], widen: impl Fn(&[T], &mut [f32])) -> Vec<f32> {
    let mut values = vec![0.0; stored.len() / size_of::<T>()];
    let mut piece = [T::zeroed(); PIECE];
    for (stored, to) in stored.chunks(size_of_val(&piece)).zip(values.chunks_mut(PIECE)) {
        let piece = &mut piece[..to.len()];
        copy(stored, piece);
        widen(piece, to);
    }
    values
}

/// Fills `elements` from bytes at any address, of which there may be more.
fn copy<T: Pod>(stored: &[u8], elements: &mut [T]) {
    let bytes = cast_slice_mut(elements);
    bytes.copy_from_slice(&stored[..bytes.len()]);
}

/// Appends the bytes of `values`, rounded to the nearest of a float type; of any other than those of 16 bits, as `f32`.
pub(crate) fn push_floats(values: &[f32], dtype: DType, bytes: &mut Vec<u8>) {
    match dtype {
        DType::F16 => bytes.extend_from_slice(cast_slice(&Vec::<f16>::from_f32_slice(values))),
        DType::Bf16 => bytes.extend_from_slice(cast_slice(&Vec::<bf16>::from_f32_slice(values))),
        _ => bytes.extend_from_slice(cast_slice(values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the conversion of one value, whose bytes are in the order that files have.
    #[test]
    fn slices_are_converted_as_single_values_are() {
        let values: Vec<f32> = (0..2500).map(|i| (i as f32 - 1200.0).powi(3) * 3e-5).collect();
        let single = |dtype| -> Vec<u8> {
            match dtype {
                DType::F16 => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
                DType::Bf16 => values.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(),
                _ => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            }
        };
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            let mut bytes = vec![7];
            push_floats(&values, dtype, &mut bytes);
            assert_eq!(bytes[1..], single(dtype), "{dtype}");
            // At an address that is not a multiple of their size, too, and with a rest.
            bytes.push(1);
            let read = floats(&bytes[1..], dtype).unwrap();
            let rounded: Vec<f32> = match dtype {
                DType::F16 => values.iter().map(|v| f16::from_f32(*v).to_f32()).collect(),
                DType::Bf16 => values.iter().map(|v| bf16::from_f32(*v).to_f32()).collect(),
                _ => values.clone(),
            };
            assert_eq!(read, rounded, "{dtype}");
        }
        assert_eq!(floats(&[0; 8], DType::I32), None);
    }
}
