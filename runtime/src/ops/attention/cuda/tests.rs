use super::*;
use crate::backend::cuda::kernels::testing::{Recorder, whole};

fn run(dtype: DType, q: [usize; 4], k: [usize; 4]) -> (Result<()>, Recorder, u64) {
    let mut gpu = Recorder::h200();
    let inputs = [whole(1 << 20, dtype, &q), whole(1 << 20, dtype, &k), whole(1 << 20, dtype, &k)];
    let outputs = [whole(1 << 20, dtype, &q)];
    let workspace = workspace_bytes(&DeviceProperties::h200(), &inputs);
    let op = Attention { mask: MaskKind::Causal, scale: 1.0 };
    let all = Launch {
        op: op.into(),
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        workspace: 64,
    };
    let result = launch(&mut gpu, &all, op);
    (result, gpu, workspace)
}

#[test]
fn a_long_cache_is_split_and_a_short_one_is_not() {
    let (result, gpu, workspace) = run(DType::Bf16, [1, 1, 32, 64], [1, 4096, 8, 64]);
    assert!(result.is_ok());
    assert_eq!(gpu.names(), ["attend_4", "attend_join"]);
    let splits = gpu.calls[0].1.blocks[0] / 8;
    assert!(splits > 1);
    assert_eq!(workspace, 32 * u64::from(splits) * 66 * 4);
    let (_, gpu, workspace) = run(DType::Bf16, [1, 1, 32, 64], [1, 60, 8, 64]);
    assert_eq!((gpu.names(), workspace), (vec!["attend_4"], 0));
}

#[test]
fn many_queries_go_to_tensor_cores_where_these_take_them() {
    for (dtype, size, name) in [
        (DType::Bf16, 64, "prefill_64"),
        (DType::F16, 128, "prefill_128"),
        (DType::Bf16, 80, "prefill_128"),
        (DType::F32, 64, "attend_8"),
        (DType::F16, 72, "attend_8"),
        (DType::F16, 256, "attend_8"),
    ] {
        let (_, gpu, _) = run(dtype, [8, 300, 8, size], [8, 300, 4, size]);
        assert_eq!(gpu.names(), [name]);
        if name.starts_with("prefill") {
            assert_eq!(gpu.calls[0].1.blocks, [8 * 8 * 5, 1, 1]);
        }
    }
}

#[test]
fn heads_that_are_too_large_are_refused() {
    let (result, gpu, _) = run(DType::F32, [1, 1, 1, 257], [1, 4, 1, 257]);
    assert!(matches!(result, Err(Error::Argument { op: "attention", .. })));
    assert!(gpu.calls.is_empty());
}
