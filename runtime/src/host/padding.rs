//! Spreading host values to the size of a bucket.

use crate::value::layout::Layout;

/// Spreads host rows to a larger inner shape, with zeros in between.
pub(crate) fn pad_rows(bytes: &[u8], element: usize, shape: &[usize], padded: &[usize]) -> Vec<u8> {
    let mut out = vec![0; padded.iter().product::<usize>() * element];
    let row = shape[shape.len() - 1] * element;
    if row == 0 || out.is_empty() {
        return out;
    }
    let layout = Layout::contiguous(padded).unwrap_or_else(|_| unreachable!("checked by the caller"));
    let mut index = vec![0; shape.len()];
    for chunk in bytes.chunks_exact(row) {
        let at = layout.offset_of(&index) * element;
        out[at..at + row].copy_from_slice(chunk);
        for axis in (0..shape.len() - 1).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    out
}
