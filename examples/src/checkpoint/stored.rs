//! Which float type most weights of a file have.

use graphable::DType;

/// The float type that most elements of the matrices are stored as; `None` if most are stored in quantised blocks. Of equal
/// counts, the first type is taken.
///
/// Vectors, such as the weights of norms, do not count: files of 16 bits often have them in f32.
pub(super) fn most<'a>(tensors: impl IntoIterator<Item = (Option<DType>, &'a [usize])>) -> Option<DType> {
    let mut counts: Vec<(Option<DType>, u128)> = Vec::new();
    for (dtype, shape) in tensors {
        if shape.len() < 2 {
            continue;
        }
        let elements = shape.iter().fold(1, |n: u128, &dim| n.saturating_mul(dim as u128));
        match counts.iter_mut().find(|(known, _)| *known == dtype) {
            Some((_, count)) => *count = count.saturating_add(elements),
            None => counts.push((dtype, elements)),
        }
    }
    let first = counts.first().copied().unwrap_or((Some(DType::F32), 0));
    counts.into_iter().fold(first, |most, one| if one.1 > most.1 { one } else { most }).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_count_and_vectors_do_not() {
        let (f32, f16) = (Some(DType::F32), Some(DType::F16));
        assert_eq!(most([(f32, &[1000][..]), (f16, &[2, 3])]), f16);
        assert_eq!(most([(f32, &[2, 3][..]), (None, &[2, 2]), (None, &[2, 2])]), None);
        assert_eq!(most([(f32, &[2, 3][..]), (None, &[3, 2])]), f32);
        assert_eq!(most([(None, &[9][..])]), f32);
        assert_eq!(most([(f16, &[usize::MAX, usize::MAX, usize::MAX][..]), (f32, &[2, 2])]), f16);
    }
}
