//! The order of blocks in the memory of a GPU: the bytes of the blocks, in an order in which threads that work together read
//! neighbouring bytes, in aligned words as wide as there are.
//!
//! Rows of the weight, of which a product has a column each, are in tiles of [`TILE`]; behind the last row are rows of zeros.
//! A row is cut into units: two blocks of 32 elements, or one of 64 or 256; behind the last block of an odd number is one of zeros. A
//! tile has its first unit of all rows, then its second, and so on. A unit of a tile has one [`Field`] of the format after the
//! other, those of the rows beside each other. Four lanes share a row: words 0, 4, 8, … of a [`Field::Lanes`] are those of lane 0.
//! Lanes have their words in pieces of up to 16 bytes: first the first pieces of all lanes of all rows, then the second ones.
//! Words of integers are changed such that kernels take fewer instructions to make floats of them: see [`Words`].
//!
//! `ops/quantized/blocks.cuh` reads it.

use std::ops::Range;

use rayon::prelude::*;

use super::BlockFormat;

/// Rows of a tile.
pub(crate) const TILE: usize = 8;
/// Lanes that share a row.
const LANES: usize = 4;
/// Bytes of a word.
const WORD: usize = 4;
/// Words of the largest piece.
const PIECE: usize = 4;
/// Elements of a unit of a format of small blocks.
const PAIR: usize = 64;

/// A part of a block: its first byte, and how many there are.
#[derive(Clone, Copy, Debug)]
enum Field {
    /// Words that four lanes share.
    Lanes(usize, usize),
    /// Bytes that all lanes read.
    Row(usize, usize),
}

use Field::{Lanes, Row};

/// What becomes of the words of lanes, and makes them what they were.
#[derive(Clone, Copy, Debug)]
enum Words {
    /// Floats of 8 bits remain as they are.
    Kept,
    /// The second and the third byte change places: the first two elements are in the halves of the word by one mask.
    Swapped,
    /// The sign of each byte is flipped besides, so that bytes are 128 more without a sign.
    Unsigned,
}

impl Words {
    const fn of(format: BlockFormat) -> Self {
        match format {
            BlockFormat::F8_E4M3 => Self::Kept,
            BlockFormat::Q8_0 => Self::Unsigned,
            _ => Self::Swapped,
        }
    }

    /// Changes a word, or makes it what it was.
    const fn change(self, [a, b, c, d]: [u8; WORD]) -> [u8; WORD] {
        const SIGN: u8 = 0x80;
        match self {
            Self::Kept => [a, b, c, d],
            Self::Swapped => [a, c, b, d],
            Self::Unsigned => [a ^ SIGN, c ^ SIGN, b ^ SIGN, d ^ SIGN],
        }
    }
}

/// The fields of a format, in the order of their alignment: every byte of a block is in one.
const fn fields(format: BlockFormat) -> &'static [Field] {
    match format {
        BlockFormat::Q4_0 | BlockFormat::IQ4_NL => &[Lanes(2, 16), Row(0, 2)],
        BlockFormat::Q4_1 => &[Lanes(4, 16), Row(0, 4)],
        BlockFormat::Q5_0 => &[Lanes(6, 16), Row(2, 4), Row(0, 2)],
        BlockFormat::Q5_1 => &[Lanes(8, 16), Row(4, 4), Row(0, 4)],
        BlockFormat::Q8_0 => &[Lanes(2, 32), Row(0, 2)],
        BlockFormat::Q2_K => &[Lanes(16, 64), Row(0, 16), Row(80, 4)],
        BlockFormat::Q3_K => &[Lanes(32, 64), Lanes(0, 32), Row(96, 12), Row(108, 2)],
        BlockFormat::Q4_K => &[Lanes(16, 128), Row(0, 16)],
        BlockFormat::Q5_K => &[Lanes(48, 128), Lanes(16, 32), Row(0, 16)],
        BlockFormat::Q6_K => &[Lanes(0, 128), Lanes(128, 64), Row(192, 16), Row(208, 2)],
        BlockFormat::F8_E4M3 => &[Lanes(4, 64), Row(0, 4)],
        BlockFormat::INT4 => &[Lanes(3, 16), Row(0, 2), Row(2, 1)],
    }
}

/// Blocks of a unit.
const fn blocks_of_unit(format: BlockFormat) -> usize {
    if format.elements() < PAIR { PAIR / format.elements() } else { 1 }
}

/// Returns the units of a row of `width` elements.
pub(crate) const fn units(format: BlockFormat, width: usize) -> usize {
    (width / format.elements()).div_ceil(blocks_of_unit(format))
}

/// Returns the bytes of `shape`, rows and their width, in tiles; `None` if they are more than there can be.
pub(crate) fn bytes(format: BlockFormat, [rows, width]: [usize; 2]) -> Option<usize> {
    let row = units(format, width).checked_mul(blocks_of_unit(format) * format.bytes())?;
    rows.div_ceil(TILE).checked_mul(TILE)?.checked_mul(row)
}

/// Returns the rows of `blocks`, which are those of `shape`, in tiles. `None` if the result is larger than there can be.
pub(crate) fn arrange(format: BlockFormat, shape: [usize; 2], blocks: &[u8]) -> Option<Vec<u8>> {
    let (count, row) = (units(format, shape[1]), format.row_bytes(shape[1])?);
    let mut all = vec![0; bytes(format, shape)?];
    if all.is_empty() {
        return Some(all);
    }
    let unit = TILE * blocks_of_unit(format) * format.bytes();
    all.par_chunks_mut(count * unit).zip(blocks.par_chunks(TILE * row)).for_each(|(tile, rows)| {
        for (i, row) in rows.chunks_exact(row).enumerate() {
            let of_unit = blocks_of_unit(format) * format.bytes();
            for (unit, blocks) in tile.chunks_exact_mut(unit).zip(row.chunks(of_unit)) {
                place(format, i, blocks, unit);
            }
        }
    });
    Some(all)
}

/// Bytes of a weight that are put in tiles at a time, or more if eight rows have more.
pub(crate) const AT_ONCE: usize = 8 << 20;

/// Returns the rows of `blocks`, which are those of `shape`, in tiles, of which at most some `most` bytes are made at a time: together they
/// are what [`arrange`] returns. `None` if that is larger than there can be.
pub(crate) fn pieces(
    format: BlockFormat,
    [rows, width]: [usize; 2],
    blocks: &[u8],
    most: usize,
) -> Option<impl Iterator<Item = Vec<u8>>> {
    bytes(format, [rows, width])?;
    let row = format.row_bytes(width)?;
    let at_once = (most / (TILE * row).max(1)).max(1) * TILE;
    let pieces = (0..if row == 0 { 0 } else { rows }).step_by(at_once);
    Some(pieces.filter_map(move |first| {
        let end = rows.min(first + at_once);
        arrange(format, [end - first, width], &blocks[first * row..end * row])
    }))
}

/// Returns the blocks of `shape`, row by row, of which `tiles` are the bytes in tiles: the inverse of [`arrange`]. `None` if `tiles`
/// has another length.
pub(crate) fn restore(format: BlockFormat, shape: [usize; 2], tiles: &[u8]) -> Option<Vec<u8>> {
    let (count, row) = (units(format, shape[1]), format.row_bytes(shape[1])?);
    if bytes(format, shape)? != tiles.len() {
        return None;
    }
    let mut all = vec![0; shape[0].checked_mul(row)?];
    if all.is_empty() {
        return Some(all);
    }
    let unit = TILE * blocks_of_unit(format) * format.bytes();
    all.par_chunks_mut(TILE * row).zip(tiles.par_chunks(count * unit)).for_each(|(rows, tile)| {
        for (i, row) in rows.chunks_exact_mut(row).enumerate() {
            let of_unit = blocks_of_unit(format) * format.bytes();
            for (unit, blocks) in tile.chunks_exact(unit).zip(row.chunks_mut(of_unit)) {
                for_pieces(format, i, blocks.len(), |words, of_blocks, of_unit| {
                    copy(words, &unit[of_unit], &mut blocks[of_blocks]);
                });
            }
        }
    });
    Some(all)
}

/// Puts the blocks of row `row` of a tile, of which there may be fewer than a unit has, into a unit.
fn place(format: BlockFormat, row: usize, blocks: &[u8], unit: &mut [u8]) {
    for_pieces(format, row, blocks.len(), |words, of_blocks, of_unit| {
        copy(words, &blocks[of_blocks], &mut unit[of_unit]);
    });
}

/// Copies a piece, and changes it if it is a word.
fn copy(words: Words, from: &[u8], to: &mut [u8]) {
    match (from, &mut *to) {
        (&[a, b, c, d], [_, _, _, _]) => to.copy_from_slice(&words.change([a, b, c, d])),
        _ => to.copy_from_slice(from),
    }
}

/// Calls `f` with the places of each piece of the blocks of a row, of `len` bytes: among these, and in the unit of a tile. And with what
/// becomes of a piece of one word.
fn for_pieces(
    format: BlockFormat,
    row: usize,
    len: usize,
    mut f: impl FnMut(Words, Range<usize>, Range<usize>),
) {
    let each = blocks_of_unit(format);
    let mut area = 0;
    for field in fields(format) {
        let (Lanes(at, bytes) | Row(at, bytes)) = *field;
        for b in 0..len / format.bytes() {
            let from = b * format.bytes() + at;
            match field {
                Row(..) => {
                    let to = area + (row * each + b) * bytes;
                    f(Words::Kept, from..from + bytes, to..to + bytes);
                }
                Lanes(..) => {
                    // Words of a lane in a block, in a unit, and in a piece.
                    let of_block = bytes / (LANES * WORD);
                    let piece = (of_block * each).min(PIECE);
                    for i in 0..bytes / WORD {
                        let (lane, mine) = (i % LANES, b * of_block + i / LANES);
                        let (number, within) = (mine / piece, mine % piece);
                        let to = area + (((number * TILE + row) * LANES + lane) * piece + within) * WORD;
                        let from = from + i * WORD;
                        f(Words::of(format), from..from + WORD, to..to + WORD);
                    }
                }
            }
        }
        area += TILE * each * bytes;
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

    use super::{super::testing, *};

    #[test]
    fn every_byte_of_a_block_is_in_one_field() {
        for &format in BlockFormat::ALL {
            let mut seen = vec![0; format.bytes()];
            for field in fields(format) {
                let (Lanes(at, bytes) | Row(at, bytes)) = *field;
                seen[at..at + bytes].iter_mut().for_each(|seen| *seen += 1);
            }
            assert!(seen.iter().all(|seen| *seen == 1), "{format} {seen:?}");
        }
    }

    /// The data that a kernel reads: word `word` of lane `lane` of row `row`, or byte `word` of the row, of each field, in each unit. Of the
    /// four bytes of a word of integers, the second and the third are in each other's place, and Q8_0 has 128 more in each.
    fn read(format: BlockFormat, width: usize, tiles: &[u8], row: usize) -> Vec<u8> {
        let (each, count) = (blocks_of_unit(format), units(format, width));
        let size = TILE * each * format.bytes();
        let mut blocks = vec![0; count * each * format.bytes()];
        for (unit, to) in blocks.chunks_exact_mut(each * format.bytes()).enumerate() {
            let mut area = (row / TILE * count + unit) * size;
            for field in fields(format) {
                let (Lanes(at, bytes) | Row(at, bytes)) = *field;
                for b in 0..each {
                    for i in 0..bytes {
                        let (from, more) = match field {
                            Row(..) => ((row % TILE * each + b) * bytes + i, 0),
                            Lanes(..) => {
                                let (lane, word) = (i / 4 % 4, b * (bytes / 16) + i / 16);
                                let piece = (bytes / 16 * each).min(4) * 4;
                                let order =
                                    if format == BlockFormat::F8_E4M3 { [0, 1, 2, 3] } else { [0, 2, 1, 3] };
                                let byte = word * 4 + order[i % 4];
                                let from =
                                    byte / piece * 32 * piece + (row % 8 * 4 + lane) * piece + byte % piece;
                                (from, if format == BlockFormat::Q8_0 { 128 } else { 0 })
                            }
                        };
                        to[b * format.bytes() + at + i] = tiles[area + from].wrapping_sub(more);
                    }
                }
                area += TILE * each * bytes;
            }
        }
        blocks
    }

    #[test]
    fn tiles_have_the_blocks_of_all_rows_and_zeros() {
        let mut rng = StdRng::seed_from_u64(1);
        for case in 0..40 {
            for &format in BlockFormat::ALL {
                let (rows, count) = (rng.random_range(0..20), rng.random_range(0..6));
                let width = count * format.elements();
                let blocks = testing::blocks(&mut rng, format, rows * count);
                let tiles = arrange(format, [rows, width], &blocks).unwrap();
                assert_eq!(Some(tiles.len()), bytes(format, [rows, width]));
                assert_eq!(
                    restore(format, [rows, width], &tiles),
                    Some(blocks.clone()),
                    "{case} {format} {rows} {width}"
                );
                let pieces = pieces(format, [rows, width], &blocks, rng.random_range(0..4000)).unwrap();
                assert!(pieces.flatten().eq(tiles.iter().copied()), "{case} {format} {rows} {width}");
                assert_eq!(restore(format, [rows + 8, width.max(64)], &tiles), None);
                for row in 0..rows.next_multiple_of(TILE) {
                    // Of zeros that were never blocks, Q8_0 has -128, of a scale of 0.
                    let zero = if format == BlockFormat::Q8_0 { 128 } else { 0 };
                    let mut stored =
                        vec![zero; units(format, width) * blocks_of_unit(format) * format.bytes()];
                    if format == BlockFormat::Q8_0 {
                        stored.chunks_exact_mut(34).for_each(|block| block[..2].fill(0));
                    }
                    if row < rows {
                        let of_row = format.row_bytes(width).unwrap();
                        stored[..of_row].copy_from_slice(&blocks[row * of_row..][..of_row]);
                    }
                    assert_eq!(
                        read(format, width, &tiles, row),
                        stored,
                        "{case} {format} {rows} {width} {row}"
                    );
                }
            }
        }
    }

    /// Whole tiles of whole units take what the blocks take.
    #[test]
    fn only_what_is_filled_up_takes_more() {
        for &format in BlockFormat::ALL {
            assert_eq!(bytes(format, [24, 512]), Some(24 * format.row_bytes(512).unwrap()));
            assert_eq!(bytes(format, [1, 512]), Some(8 * format.row_bytes(512).unwrap()));
            assert_eq!((bytes(format, [0, 512]), bytes(format, [5, 0])), (Some(0), Some(0)));
            assert_eq!(bytes(format, [usize::MAX, 512]), None);
        }
        assert_eq!(bytes(BlockFormat::Q8_0, [8, 96]), Some(8 * 4 * 34), "of three blocks, as of four");
    }

    /// Words of every width are where they can be loaded at once.
    #[test]
    fn fields_begin_at_multiples_of_sixteen_bytes() {
        for &format in BlockFormat::ALL {
            let mut at = 0_usize;
            for field in fields(format) {
                assert!(at.is_multiple_of(16), "{format}");
                let (Lanes(_, bytes) | Row(_, bytes)) = *field;
                at += TILE * blocks_of_unit(format) * bytes;
            }
            assert!(at.is_multiple_of(16), "{format}");
        }
    }
}
