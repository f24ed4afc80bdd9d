use super::*;
use crate::{backend::cuda::kernels::testing::Recorder, value::layout::Layout};

fn props() -> DeviceProperties {
    DeviceProperties::h200()
}

const WORKSPACE: u64 = 0x7000;

fn view(addr: u64, dtype: DType, shape: &[usize], strides: &[usize]) -> View {
    View { addr, dtype, layout: Layout::strided(shape, strides).unwrap() }
}

fn dense(addr: u64, dtype: DType, shape: &[usize]) -> View {
    View { addr, dtype, layout: Layout::contiguous(shape).unwrap() }
}

fn submitted(inputs: &[View], output: View) -> Vec<(Kernel, Grid, Params)> {
    let mut gpu = Recorder::h200();
    launch(&mut gpu, inputs, &output, WORKSPACE).unwrap();
    (0..gpu.calls.len()).map(|i| (gpu.calls[i].0, gpu.calls[i].1, gpu.params(i))).collect()
}

/// `x [m, k]` times a weight `[n, k]`.
fn linear(dtype: DType, m: usize, k: usize, n: usize) -> ([View; 2], View) {
    let x = dense(0x1000, dtype, &[m, k]);
    ([x, view(0x2000, dtype, &[k, n], &[1, k])], dense(0x3000, dtype, &[m, n]))
}

#[test]
fn a_decoding_step_streams_the_weight() {
    let (inputs, y) = linear(DType::Bf16, 1, 576, 49152);
    let [(kernel, grid, p)] = submitted(&inputs, y)[..] else { panic!("one kernel") };
    assert_eq!(kernel, Kernel::of(&SOURCE, DType::Bf16, "gemv_nk_8_2_2_3"));
    // Two groups of 8 columns in a block.
    assert_eq!((grid.blocks, p.split), ([3072, 1, 1], 1));
    assert_eq!((p.a, p.w, p.y, p.bias), (0x1000, 0x2000, 0x3000, 0));
    assert_eq!((p.m, p.n, p.k, p.w_col), (1, 49152, 576, 576));
}

#[test]
fn few_columns_have_a_block_for_each_group() {
    let (inputs, y) = linear(DType::F16, 12, 4096, 60);
    let [(kernel, grid, _)] = submitted(&inputs, y)[..] else { panic!("one kernel") };
    assert_eq!(kernel.name, "gemv_nk_16_1_3_2");
    assert_eq!(grid.blocks, [8, 1, 1]);
    assert_eq!(workspace_bytes(&props(), &inputs, &y), 0);
}

/// The names are those of the source, and every row and column has a block.
#[test]
fn there_is_a_kernel_for_every_number_of_rows() {
    let text = include_str!("../matmul.cu");
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for m in 1..=16 {
            for n in [8, 64, 4096, 200_000] {
                let v = Variant::of(132, dtype, m, n);
                let entry = format!("\nGEMV_NK({}, {}, {}, {})\n", v.rows, v.groups, v.ahead, v.resident);
                assert!(text.contains(&entry), "{dtype} {m} rows: {v:?}");
                assert!(v.name.ends_with(&format!("_{}_{}_{}_{}", v.rows, v.groups, v.ahead, v.resident)));
                assert!(m.div_ceil(v.rows) * v.rows >= m && v.blocks(m, n) * v.columns() >= n);
                assert!(dtype == DType::F32 || m <= v.rows, "the weights of 16 bits are read once: {v:?}");
            }
        }
    }
}

/// What decides is the type, the shape, strides and alignment: so a product has the same bits in every run and on every
/// device.
#[test]
fn a_product_of_few_rows_is_never_the_library_s() {
    let own = |inputs: &[View], y: &View| MatMulKernels.takes(inputs, y);
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for m in 1..=20 {
            let (inputs, y) = linear(dtype, m, 576, 1536);
            assert_eq!(own(&inputs, &y), m <= 16, "{dtype} {m}");
        }
    }
    let (inputs, y) = linear(DType::I32, 1, 64, 64);
    assert!(!own(&inputs, &y));
    // A right side with N contiguous.
    let inputs = [dense(0x1000, DType::F16, &[3, 2048]), dense(0x2000, DType::F16, &[2048, 512])];
    assert!(!own(&inputs, &dense(0x3000, DType::F16, &[3, 512])));
}

#[test]
fn a_plain_right_side_is_cut_between_blocks() {
    let inputs = [dense(0x1000, DType::F16, &[3, 2048]), dense(0x2000, DType::F16, &[2048, 512])];
    let y = dense(0x3000, DType::F16, &[3, 512]);
    let [(first, grid, p), (second, _, q)] = submitted(&inputs, y)[..] else { panic!("two kernels") };
    assert_eq!((first.name, second.name), ("gemv_kn_4", "gemv_sum"));
    // 64 columns per block; each block has at least 128 of K.
    assert_eq!((grid.blocks, p.split), ([8, 1, 16], 16));
    assert_eq!((p.partial, q.partial, q.split), (WORKSPACE, WORKSPACE, 16));
    assert_eq!(workspace_bytes(&props(), &inputs, &y), 16 * 3 * 512 * 4);
}

#[test]
fn what_cannot_be_loaded_in_vectors_goes_in_tiles() {
    let tiled = |inputs: &[View], y: View| {
        assert_eq!(submitted(inputs, y)[0].0.name, "matmul_tiled");
        assert!(!is_thin(&props(), inputs, &y));
    };
    // Rows of the weight start at odd elements.
    let (inputs, y) = linear(DType::F32, 1, 257, 130);
    tiled(&inputs, y);
    // The weight itself does.
    let (mut inputs, y) = linear(DType::F16, 1, 256, 128);
    inputs[1].addr += 2;
    tiled(&inputs, y);
    // Integers, and many rows.
    let (inputs, y) = linear(DType::I32, 1, 256, 128);
    tiled(&inputs, y);
    let (inputs, y) = linear(DType::F16, 17, 256, 128);
    tiled(&inputs, y);
    // Nothing to sum: the bias alone.
    let (inputs, y) = linear(DType::F32, 2, 0, 16);
    tiled(&inputs, y);
}

#[test]
fn tiles_cover_every_product_of_the_batch() {
    let a = view(0x1000, DType::U8, &[3, 2, 65, 7], &[910, 455, 7, 1]);
    let b = view(0x2000, DType::U8, &[3, 2, 7, 129], &[0, 903, 129, 1]);
    let y = dense(0x3000, DType::U8, &[3, 2, 65, 129]);
    let [(_, grid, p)] = submitted(&[a, b], y)[..] else { panic!("one kernel") };
    assert_eq!(grid, Grid::line(2 * 3 * 6, 256));
    assert_eq!((p.batches, p.batch_rank, p.split), (6, 2, 1));
    assert_eq!((p.shape, p.w_batch), ([3, 2, 1, 1], [0, 903, 0, 0]));
    assert_eq!((p.a_batch, p.y_batch), ([910, 455, 0, 0], [16770, 8385, 0, 0]));
}

#[test]
fn a_bias_is_read_as_it_lies() {
    let (inputs, y) = linear(DType::F32, 2, 64, 32);
    let bias = view(0x4000, DType::F32, &[2, 32], &[0, 3]);
    let [(_, _, p)] = submitted(&[inputs[0], inputs[1], bias], y)[..] else { panic!("one kernel") };
    assert_eq!((p.bias, p.bias_row, p.bias_col), (0x4000, 0, 3));
}

#[test]
fn one_query_per_sequence_is_a_matrix_of_queries() {
    // [4, 1, 64] against one weight: the batch becomes rows.
    let x = dense(0x1000, DType::F16, &[4, 1, 64]);
    let w = view(0x2000, DType::F16, &[4, 64, 32], &[0, 1, 64]);
    let [(kernel, grid, p)] = submitted(&[x, w], dense(0x3000, DType::F16, &[4, 1, 32]))[..] else {
        panic!("one kernel")
    };
    assert_eq!((kernel.name, grid.blocks[1]), ("gemv_nk_8_1_4_2", 1));
    assert_eq!((p.m, p.batches, p.a_row, p.y_row), (4, 1, 64, 32));
}

#[test]
fn an_empty_result_needs_no_kernel() {
    let (inputs, y) = linear(DType::F32, 0, 4, 4);
    assert!(submitted(&inputs, y).is_empty());
}

#[test]
fn the_parameters_are_as_large_as_in_the_kernel() {
    // 17 words, 5 arrays of 4, two halves.
    assert_eq!(size_of::<Params>(), (17 + 5 * 4 + 1) * 8);
}
