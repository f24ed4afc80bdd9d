use super::*;
use crate::{
    DType, Numerics,
    backend::cuda::kernels::testing::{Recorder, view, whole},
    ops::quantized::operation::QuantizedEmbedding,
};

const W: u64 = 0x4000_0000;
const Y: u64 = 0x8000_0000;
const WORKSPACE: u64 = 0x10_0000_0000;

/// The launch of a product, and its workspace.
fn launched(format: BlockFormat, x: View, n: usize) -> (Recorder, u64) {
    let [m, k] = [x.layout.shape()[0], x.layout.shape()[1]];
    let blocks = whole(W, DType::U8, &[n, format.row_bytes(k).unwrap()]);
    let (op, y) = (QuantizedLinear::new(format, Numerics::default()), whole(Y, x.dtype, &[m, n]));
    let mut gpu = Recorder::h200();
    let bytes = workspace(&op, &mut gpu, &[x, blocks], &y).unwrap();
    let inputs = [x, blocks].into_iter().collect();
    let launch = Launch { op: op.into(), inputs, outputs: [y].into_iter().collect(), workspace: WORKSPACE };
    linear(&op, &mut gpu, &launch).unwrap();
    (gpu, bytes)
}

#[test]
fn few_rows_are_multiplied_as_they_are() {
    for &format in BlockFormat::ALL {
        for dtype in [DType::F32, DType::F16, DType::Bf16] {
            for m in 1..=FEW_ROWS {
                let (gpu, bytes) = launched(format, whole(0x1000, dtype, &[m, 512]), 300);
                assert_eq!((gpu.names(), bytes), (vec!["fused_product"], 0), "{format} {dtype} {m}");
            }
        }
    }
}

/// Without an inner dimension there is nothing to expand: results are the bias, or zeros.
#[test]
fn a_width_of_zero_is_a_kernel_of_any_number_of_rows() {
    let (gpu, bytes) = launched(BlockFormat::Q8_0, whole(0x1000, DType::F32, &[100, 0]), 300);
    assert_eq!((gpu.names(), bytes), (vec!["fused_product"], 0));
}

/// Runs of columns, each expanded and multiplied, whatever the size of the weight.
#[test]
fn many_rows_are_multiplied_by_floats_in_a_bounded_workspace() {
    for (format, dtype, k, n) in [
        (BlockFormat::Q4_1, DType::Bf16, 2048, 128_256),
        (BlockFormat::Q6_K, DType::F32, 8192, 4099),
        (BlockFormat::Q8_0, DType::F16, 96, 7),
    ] {
        let (gpu, bytes) = launched(format, whole(0x1000, dtype, &[FEW_ROWS + 1, k]), n);
        assert!(bytes <= (MOST_EXPANDED + COLUMNS * k * dtype.size()) as u64 + ALIGN, "{format} {bytes}");
        let mut next = 0;
        for (i, pair) in gpu.calls.chunks(2).enumerate() {
            let [(expand, ..), (product, ..)] = pair else { panic!("both") };
            assert_eq!(expand.name, kernels(format).expand);
            assert_ne!(product.name, expand.name);
            let p: ExpandParams = gpu.params(2 * i);
            assert_eq!((p.y, p.k), (WORKSPACE, k as u64));
            // The first block of row `next`, which begins a tile.
            assert_eq!(p.w - W, tiles::bytes(format, [next, k]).unwrap() as u64);
            assert!(next.is_multiple_of(TILE));
            assert!(p.rows * p.k * dtype.size() as u64 <= bytes);
            let of_a_row = (tiles::units(format, k) as u32, k.div_ceil(SPAN) as u32);
            assert_eq!((p.tiles, (p.units, p.spans)), (p.rows.div_ceil(8), of_a_row));
            next += p.rows as usize;
        }
        assert_eq!(next, n, "{format}");
    }
}

/// Rows that do not begin where 16 bytes can be loaded, or whose elements are apart.
#[test]
fn other_activations_are_copied_first() {
    let dtype = DType::F16;
    for x in [
        view(0x1002, dtype, &[3, 64], &[64, 1]),
        view(0x1000, dtype, &[3, 64], &[68, 1]),
        view(0x1000, dtype, &[3, 64], &[1, 8]),
    ] {
        let (gpu, bytes) = launched(BlockFormat::Q8_0, x, 5);
        assert_eq!((gpu.names(), bytes), (vec!["contiguous", "fused_product"], 512));
        let p: GatherParams = gpu.params(0);
        assert_eq!((p.x, p.y, p.m, p.k), (x.addr, WORKSPACE, 3, 64));
        assert_eq!([p.row, p.col], [x.layout.strides()[0] as u64, x.layout.strides()[1] as u64]);
    }
    // One row may be anywhere in a matrix.
    let (gpu, bytes) = launched(BlockFormat::Q8_0, view(0x1000, dtype, &[1, 64], &[3, 1]), 5);
    assert_eq!((gpu.names(), bytes), (vec!["fused_product"], 0));
}

#[test]
fn rows_of_a_table_are_read_by_four_lanes_a_unit() {
    let op = QuantizedEmbedding { format: BlockFormat::Q4_0, counts: PickCounts::NONE };
    let (ids, table) = (whole(0x100, DType::U32, &[2, 3]), whole(W, DType::U8, &[50, 54]));
    let run = Recorder::of(op, &[ids, table], &[whole(Y, DType::Bf16, &[2, 3, 96])]);
    let p: RowsParams = run.params(0);
    assert_eq!((run.names(), p.n, p.k, p.units, p.w, p.y), (vec!["rows_Q4_0"], 6, 96, 2, W, Y));
}
