//! How most weights of a file are stored.

use graphable::DType;

/// How a tensor is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// As floats of a type.
    Floats(DType),
    /// In quantised blocks.
    Blocks,
    /// As something else.
    Other,
}

impl Stored {
    /// What elements of a type are.
    pub(super) fn of(dtype: DType) -> Self {
        if dtype.is_float() { Self::Floats(dtype) } else { Self::Other }
    }
}

/// How most elements of the matrices are stored. Of equal counts, the first kind is taken.
///
/// Vectors, such as the weights of norms, do not count: files of 16 bits often have them in f32.
pub(super) fn most<'a>(tensors: impl IntoIterator<Item = (Stored, &'a [usize])>) -> Stored {
    let mut counts: Vec<(Stored, u128)> = Vec::new();
    for (stored, shape) in tensors {
        if shape.len() < 2 {
            continue;
        }
        let elements = shape.iter().fold(1, |n: u128, &dim| n.saturating_mul(dim as u128));
        match counts.iter_mut().find(|(known, _)| *known == stored) {
            Some((_, count)) => *count = count.saturating_add(elements),
            None => counts.push((stored, elements)),
        }
    }
    let first = counts.first().copied().unwrap_or((Stored::Floats(DType::F32), 0));
    counts.into_iter().fold(first, |most, one| if one.1 > most.1 { one } else { most }).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_count_and_vectors_do_not() {
        let (f32, f16) = (Stored::Floats(DType::F32), Stored::Floats(DType::F16));
        let blocks = Stored::Blocks;
        assert_eq!(most([(f32, &[1000][..]), (f16, &[2, 3])]), f16);
        assert_eq!(most([(f32, &[2, 3][..]), (blocks, &[2, 2]), (blocks, &[2, 2])]), blocks);
        assert_eq!(most([(f32, &[2, 3][..]), (blocks, &[3, 2])]), f32);
        assert_eq!(most([(blocks, &[9][..])]), f32);
        assert_eq!(most([(f16, &[usize::MAX, usize::MAX, usize::MAX][..]), (f32, &[2, 2])]), f16);
    }
}
