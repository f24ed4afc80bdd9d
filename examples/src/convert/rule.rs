//! In which type a tensor is written.

use crate::gguf::TensorType;

/// The types of the tensors of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// That of matrices.
    pub matrices: TensorType,
    /// That of the embedding, and of the matrix that leads to logits.
    pub embedding: TensorType,
}

impl Rule {
    /// The type of a tensor: vectors, such as the weights of norms, are F32; matrices are of the type that was asked for or, where its
    /// blocks do not divide the rows, of the one that [`TensorType::fitting`] gives.
    pub fn of(self, name: &str, shape: &[usize]) -> TensorType {
        match *shape {
            [_, width] => self.asked(name).fitting(width),
            _ => TensorType::F32,
        }
    }

    /// The type that was asked for a matrix, whether its blocks divide the rows or not.
    pub(super) fn asked(self, name: &str) -> TensorType {
        match name {
            "token_embd.weight" | "output.weight" => self.embedding,
            _ => self.matrices,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_floats_and_the_embedding_has_a_type_of_its_own() {
        let rule = Rule { matrices: TensorType::Q4_K, embedding: TensorType::Q6_K };
        assert_eq!(rule.of("blk.0.attn_norm.weight", &[256]), TensorType::F32);
        assert_eq!(rule.of("blk.0.attn_q.weight", &[3, 256]), TensorType::Q4_K);
        assert_eq!(rule.of("token_embd.weight", &[3, 256]), TensorType::Q6_K);
        assert_eq!(rule.of("output.weight", &[3, 32]), TensorType::Q8_0);
    }
}
