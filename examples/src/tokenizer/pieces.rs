//! Tokenizers of pieces, as SentencePiece makes them by BPE: spaces are U+2581, and what no piece covers is spelled in bytes.
//!
//! SentencePiece joins, of all neighbours whose sum is a piece, those whose sum has the highest score, until there are none. As
//! merges with ranks, which the `tokenizers` crate has, that is every way in which two pieces make a third, in the order of the
//! scores.

use std::collections::HashMap;

use tokenizers::{
    NormalizerWrapper, Tokenizer,
    models::bpe::{BPE, Vocab},
    normalizers::{Prepend, Replace, Sequence},
};

use super::{damaged, refused, spelling::SPACE};
use crate::Result;

/// Bytes of one piece. SentencePiece makes none of more than some dozens, and each is cut at every place.
const LONGEST: usize = 1 << 10;

/// A pair of pieces that make a third.
pub(super) type Merge = (String, String);

/// Every way in which two of these pieces, each with its score, make a third; in the order in which text is merged: by score, then as
/// transformers has it (`SentencePieceExtractor`), by the lengths of the two, the longer ones first.
///
/// # Errors
/// If a piece is too long to be one.
pub(super) fn merges(pieces: &[(&str, f32)]) -> Result<Vec<Merge>> {
    let ids: HashMap<&str, usize> = pieces.iter().enumerate().map(|(id, (piece, _))| (*piece, id)).collect();
    let mut merges = Vec::new();
    for (id, (piece, score)) in pieces.iter().enumerate() {
        if piece.len() > LONGEST {
            let n = piece.len();
            return Err(damaged(format!("a piece of {n} bytes is longer than any that a tokenizer has")));
        }
        for (at, _) in piece.char_indices().skip(1) {
            let (left, right) = piece.split_at(at);
            if let (Some(a), Some(b)) = (ids.get(left), ids.get(right)) {
                let lengths = (left.chars().count(), right.chars().count());
                merges.push((*score, lengths, [id, *a, *b], (left, right)));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(&b.2)));
    Ok(merges.into_iter().map(|(_, _, _, (left, right))| (left.to_owned(), right.to_owned())).collect())
}

/// A tokenizer of this vocabulary; `prefix` puts a space before each text and after each special token, and `unknown` is the name
/// of the token for what cannot be spelled.
///
/// # Errors
/// If the lists contradict each other.
pub(super) fn tokenizer(
    vocab: Vocab,
    merges: Vec<Merge>,
    prefix: bool,
    unknown: Option<&str>,
) -> Result<Tokenizer> {
    let bpe = BPE::builder().vocab_and_merges(vocab, merges).byte_fallback(true).fuse_unk(true);
    let bpe = unknown.into_iter().fold(bpe, |bpe, unknown| bpe.unk_token(unknown.into()));
    let mut encoder = Tokenizer::new(bpe.build().map_err(refused)?);
    let spaces = NormalizerWrapper::Replace(Replace::new(" ", SPACE).map_err(refused)?);
    let parts = match prefix {
        true => vec![NormalizerWrapper::Prepend(Prepend::new(SPACE.into())), spaces],
        false => vec![spaces],
    };
    encoder.with_normalizer(Some(Sequence::new(parts)));
    Ok(encoder)
}
