use super::{
    super::operation::{Reduction, Softmax},
    *,
};
use crate::{
    DType,
    backend::{
        Op, Operation,
        cuda::kernels::testing::{Recorder, whole},
    },
};

fn run(op: impl Into<Op>, x: View, out: &[usize]) -> Recorder {
    let mut gpu = Recorder::h200();
    let y = whole(1 << 20, x.dtype, out);
    let launch = Launch {
        op: op.into(),
        inputs: [x].into_iter().collect(),
        outputs: [y].into_iter().collect(),
        workspace: 64,
    };
    launch.op.operation().launch_cuda(&mut gpu, &launch).unwrap();
    gpu
}

#[test]
fn pieces_cover_a_slice_and_blocks_cover_the_slices() {
    for dtype in [DType::F32, DType::Bf16, DType::U8] {
        for (shape, axis) in [
            (vec![1, 128_256], 1),
            (vec![512, 128_256], 1),
            (vec![100_000, 3], 0),
            (vec![7], 0),
            (vec![4, 0], 1),
            (vec![9, 5, 70], 1),
        ] {
            let x = whole(1 << 20, dtype, &shape);
            let plan = Plan::new(&DeviceProperties::h200(), &x, axis);
            let n = shape[axis] as u64;
            assert!(plan.lanes.is_power_of_two() && plan.lanes <= THREADS);
            assert!(plan.splits * plan.chunk >= n && (plan.splits - 1) * plan.chunk < n.max(1), "{plan:?}");
            assert!((plan.chunk * dtype.size() as u64).is_multiple_of(16));
            let blocks = u64::from(plan.grid(1).blocks[0]) * u64::from(THREADS / plan.lanes);
            assert!(blocks >= plan.count, "{plan:?}");
            let workspace = workspace_bytes(&DeviceProperties::h200(), &x, Along::reduce(Reduce::Max, axis));
            assert_eq!(workspace, if plan.splits > 1 { plan.count * plan.splits * 16 } else { 0 });
        }
    }
}

#[test]
fn few_long_slices_take_two_launches() {
    let max = || Reduction { kind: Reduce::Max, axis: 1 };
    let gpu = run(max(), whole(1 << 20, DType::Bf16, &[1, 128_256]), &[1]);
    assert_eq!(gpu.names(), ["reduce_max", "reduce_max_join"]);
    assert!(gpu.calls[0].1.blocks[1] >= 32);
    let gpu = run(max(), whole(1 << 20, DType::Bf16, &[512, 128_256]), &[512]);
    assert_eq!(gpu.names(), ["reduce_max"]);
    let columns = whole(1 << 20, DType::F32, &[100_000, 1]);
    let gpu = run(Softmax { axis: 0, log: true }, columns, &[100_000, 1]);
    assert_eq!(gpu.names(), ["log_softmax_piece", "log_softmax_spread"]);
}

#[test]
fn floats_are_added_and_rows_of_them_normalised_by_kernels_of_rows() {
    let x = || whole(1 << 20, DType::Bf16, &[7, 4096]);
    let sum = |axis| Reduction { kind: Reduce::Sum, axis };
    assert_eq!(run(Softmax { axis: 1, log: false }, x(), &[7, 4096]).names(), ["softmax_0_rows"]);
    for (axis, out) in [(0, 4096), (1, 7)] {
        assert_eq!(run(sum(axis), x(), &[out]).names(), ["sum_0_rows"]);
    }
    assert_eq!(run(sum(1), whole(1 << 20, DType::I32, &[7, 4096]), &[7]).names(), ["reduce_sum"]);
}

#[test]
fn kernels_of_rows_have_no_workspace() {
    fn workspace(op: &dyn Operation, dtype: DType, shape: &[usize]) -> u64 {
        let mut gpu = Recorder::h200();
        op.cuda_workspace(&mut gpu, &[whole(1 << 20, dtype, shape)], &[], false).unwrap()
    }
    let long = [1, 128_256];
    for op in [&Softmax { axis: 1, log: true } as &dyn Operation, &Reduction { kind: Reduce::Sum, axis: 1 }] {
        assert_eq!(workspace(op, DType::F32, &long), 0);
    }
    // What the passes of `reduce.cu` compute has some: integers, columns of softmax, other reductions.
    assert!(workspace(&Reduction { kind: Reduce::Sum, axis: 1 }, DType::I32, &long) > 0);
    assert!(workspace(&Softmax { axis: 0, log: false }, DType::F32, &[100_000, 1]) > 0);
    assert!(workspace(&Reduction { kind: Reduce::Max, axis: 1 }, DType::Bf16, &long) > 0);
}

#[test]
fn rows_that_are_not_aligned_are_read_by_elements() {
    let aligned = whole(1 << 20, DType::F16, &[3, 64]);
    assert!(Plan::new(&DeviceProperties::h200(), &aligned, 1).vector);
    assert!(!Plan::new(&DeviceProperties::h200(), &View { addr: aligned.addr + 2, ..aligned }, 1).vector);
    assert!(!Plan::new(&DeviceProperties::h200(), &whole(1 << 20, DType::F16, &[3, 63]), 1).vector);
    assert!(!Plan::new(&DeviceProperties::h200(), &aligned, 0).vector);
}
