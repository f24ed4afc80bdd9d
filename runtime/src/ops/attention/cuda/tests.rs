use proptest::prelude::*;

use super::{
    super::operation::Variant,
    plan::MOST_SHARED,
    prefill::{GROUPS, GROUPS_VARIANT, PREFILL, PREFILL_VARIANT, PREFILL_WIDE},
    *,
};
use crate::backend::cuda::kernels::testing::{Recorder, SHARED_EVERYWHERE, whole};

/// Bytes of shared memory that a block may have on a device of compute capability 9.0.
const SHARED_OF_GROUPS: u32 = 232_448;

/// A device of this compute capability with the multiprocessors of an H200.
fn device(capability: (u32, u32)) -> Recorder {
    Recorder::with(DeviceProperties { capability, ..DeviceProperties::h200() })
}

fn run(dtype: DType, q: [usize; 4], k: [usize; 4]) -> (Result<()>, Recorder, u64) {
    with(Variant::default(), dtype, q, k)
}

fn with(variant: Variant, dtype: DType, q: [usize; 4], k: [usize; 4]) -> (Result<()>, Recorder, u64) {
    on(Recorder::h200(), variant, dtype, q, k)
}

fn on(
    gpu: Recorder,
    variant: Variant,
    dtype: DType,
    q: [usize; 4],
    k: [usize; 4],
) -> (Result<()>, Recorder, u64) {
    let inputs = [whole(1 << 20, dtype, &q), whole(1 << 20, dtype, &k), whole(1 << 20, dtype, &k)];
    let outputs = [whole(1 << 20, dtype, &q)];
    let op = Attention { mask: MaskKind::Causal, scale: 1.0, variant };
    let workspace = workspace_bytes(gpu.props(), &inputs, &op);
    let all = Launch {
        op: op.into(),
        inputs: inputs.into_iter().collect(),
        outputs: outputs.into_iter().collect(),
        workspace: 64,
    };
    let mut gpu = gpu.allowing(SHARED_OF_GROUPS);
    let result = launch(&mut gpu, &all, op);
    for (kernel, grid, _) in &gpu.calls {
        let is_of_groups = [&GROUPS, &GROUPS_VARIANT].contains(&kernel.unit.source);
        assert!(is_of_groups || grid.shared <= SHARED_EVERYWHERE, "{kernel:?} {grid:?}");
    }
    (result, gpu, workspace)
}

#[test]
fn a_long_cache_is_split_and_a_short_one_is_not() {
    let (result, gpu, workspace) = run(DType::Bf16, [1, 1, 32, 64], [1, 4096, 8, 64]);
    assert!(result.is_ok());
    // The blocks of a cluster have a part each, and need no memory for it. All rows of a key head are in one block, so keys are
    // read once.
    assert_eq!((gpu.names(), workspace), (vec!["attend_64_8"], 0));
    assert_eq!((gpu.calls[0].1.blocks, gpu.calls[0].1.cluster), ([8 * 8, 1, 1], 8));
    let (_, gpu, _) = run(DType::Bf16, [1, 1, 32, 64], [1, 32_768, 8, 64]);
    assert_eq!((gpu.calls[0].1.blocks, gpu.calls[0].1.cluster), ([8 * 16, 1, 1], 16));
    let (_, gpu, workspace) = run(DType::Bf16, [1, 1, 32, 64], [1, 60, 8, 64]);
    assert_eq!((gpu.names(), gpu.calls[0].1.cluster, workspace), (vec!["attend_64_8"], 1, 0));
    // Many sequences have enough blocks.
    let (_, gpu, _) = run(DType::Bf16, [8, 1, 32, 64], [8, 4096, 8, 64]);
    assert_eq!((gpu.calls[0].1.blocks, gpu.calls[0].1.cluster), ([64 * 2, 1, 1], 2));
    let (_, gpu, _) = run(DType::Bf16, [64, 1, 32, 64], [64, 4096, 8, 64]);
    assert_eq!((gpu.calls[0].1.blocks, gpu.calls[0].1.cluster), ([64 * 8, 1, 1], 1));
    // What heads of common sizes do not suit.
    let (_, gpu, workspace) = run(DType::Bf16, [1, 1, 32, 60], [1, 4096, 8, 60]);
    assert_eq!((gpu.names(), gpu.calls[0].1.cluster, workspace), (vec!["attend_1"], 8, 0));
    let (_, gpu, _) = run(DType::Bf16, [8, 1, 32, 264], [8, 4096, 8, 264]);
    assert_eq!((gpu.names(), gpu.calls[0].1.cluster), (vec!["attend_1"], 2));
}

#[test]
fn devices_without_clusters_add_the_parts_in_another_kernel() {
    for (dtype, size, name) in
        [(DType::Bf16, 60, "attend_4"), (DType::Bf16, 64, "attend_64_8"), (DType::F32, 64, "attend_64_4")]
    {
        let (result, gpu, workspace) =
            on(device((8, 0)), Variant::default(), dtype, [1, 1, 32, size], [1, 4096, 8, size]);
        assert!(result.is_ok());
        assert_eq!(gpu.names(), [name, "attend_join"]);
        assert!(gpu.calls.iter().all(|(_, grid, _)| grid.cluster == 1));
        let splits = gpu.calls[0].1.blocks[0] / 8;
        assert!(splits > 1);
        assert_eq!(workspace, 32 * u64::from(splits) * (size as u64 + 2) * 4);
    }
}

#[test]
fn clusters_of_16_need_a_whole_device_that_takes_them() {
    for (capability, multiprocessors, cluster) in
        [((9, 0), 132, 16), ((9, 0), 16, 2), ((10, 0), 148, 8), ((12, 0), 170, 8)]
    {
        let gpu =
            Recorder::with(DeviceProperties { capability, multiprocessors, ..DeviceProperties::h200() });
        let (_, gpu, _) = on(gpu, Variant::default(), DType::F32, [4, 1, 9, 64], [4, 8192, 3, 64]);
        assert_eq!((gpu.names(), gpu.calls[0].1.cluster), (vec!["attend_64_4"], cluster), "{capability:?}");
    }
}

#[test]
fn a_cluster_has_fewer_blocks_where_shared_memory_is_small() {
    let (result, gpu, _) = run(DType::Bf16, [6, 1, 64, 256], [6, 512, 8, 256]);
    assert!(result.is_ok());
    assert_eq!(
        (gpu.names(), gpu.calls[0].1.blocks, gpu.calls[0].1.cluster),
        (vec!["attend_8"], [6 * 8 * 4, 1, 1], 4)
    );
    assert!(gpu.calls[0].1.shared as usize <= MOST_SHARED);
}

proptest! {
    /// Every row is in one block, every part of the keys in one, a cluster is as large as the device takes, and has the memory.
    #[test]
    fn plans_are_whole(
        batches in 1usize..70, times in 1usize..9, group in 1usize..9, key_heads in 1usize..26,
        keys in 0usize..5000, size in 1usize..40, size_v in 1usize..40, dtype in 0usize..3, wide in any::<[bool; 2]>(),
        multiprocessors in 8u32..200,
    ) {
        let dtype = [DType::F32, DType::F16, DType::Bf16][dtype];
        let z = Sizes { batches, times, keys, key_heads, group, size: size * 4, size_v: size_v * 4 };
        for capability in [(8, 0), (9, 0), (12, 0)] {
            let props = DeviceProperties { capability, multiprocessors, ..DeviceProperties::h200() };
            let plan = Plan::new(&props, dtype, &z, wide[0], wide[1]);
            prop_assert_eq!(plan.chunks, z.rows().div_ceil(plan.rows));
            prop_assert!(plan.splits >= 1 && plan.blocks_of_cluster() <= props.largest_cluster());
            prop_assert!(plan.blocks_of_cluster() == 1 || plan.shared_bytes(&z) <= MOST_SHARED);
            if plan.kind != Kind::Any {
                prop_assert!(wide[1] && (plan.kind == Kind::Floats) == (dtype == DType::F32));
                prop_assert!([z.size, z.size_v].iter().all(|size| (16..=128).contains(size)));
            }
        }
    }
}

/// Of which those of compute capability 9.0 have other ones.
#[test]
fn many_queries_go_to_tensor_cores_where_these_take_them() {
    for (dtype, size, name, of_groups) in [
        (DType::Bf16, 64, "prefill_64", "prefill_groups_64"),
        (DType::F16, 128, "prefill_128", "prefill_groups_128"),
        (DType::Bf16, 80, "prefill_128", "prefill_groups_128"),
        (DType::F32, 64, "attend_8", "attend_8"),
        (DType::F16, 72, "attend_8", "attend_8"),
        (DType::F16, 256, "prefill_256", "prefill_256"),
        (DType::F16, 272, "attend_1", "attend_1"),
    ] {
        for capability in [(8, 0), (9, 0), (10, 0), (12, 0)] {
            let name = if capability == (9, 0) { of_groups } else { name };
            let (q, k) = ([8, 300, 8, size], [8, 300, 4, size]);
            let (_, gpu, _) = on(device(capability), Variant::default(), dtype, q, k);
            assert_eq!(gpu.names(), [name], "{capability:?}");
            if name.starts_with("prefill") {
                let blocks = if name.contains("groups") { 132 } else { 8 * 8 * 5 };
                assert_eq!(gpu.calls[0].1.blocks, [blocks, 1, 1]);
            }
        }
    }
}

/// Where there are many, so that a device is busy with fewer of them.
#[test]
fn blocks_of_plain_attention_are_taller() {
    for (times, name, blocks) in [
        (2048, "prefill_128_tall", 8 * 8 * 16),
        (896, "prefill_128_tall", 8 * 8 * 7),
        (768, "prefill_128", 8 * 8 * 12),
    ] {
        for capability in [(8, 0), (10, 0)] {
            let (q, k) = ([8, times, 8, 128], [8, times, 4, 128]);
            let (_, gpu, _) = on(device(capability), Variant::default(), DType::Bf16, q, k);
            assert_eq!(gpu.names(), [name]);
            assert_eq!(gpu.calls[0].1.blocks, [blocks, 1, 1]);
        }
    }
}

/// So that a row has the same bits however many there are.
#[test]
fn one_kernel_with_warpgroups_takes_any_number_of_queries() {
    let window = Variant { window: Some((3, 0)), ..Variant::default() };
    for times in (1..=300).chain([896, 2048, 32_768]) {
        for (variant, source) in [(Variant::default(), &GROUPS), (window, &GROUPS_VARIANT)] {
            let (result, gpu, _) = with(variant, DType::Bf16, [1, times, 8, 128], [1, times, 4, 128]);
            assert!(result.is_ok());
            assert_eq!(gpu.calls[0].0.unit.source == source, times > DECODE_TIMES, "{times} queries");
            assert_eq!(gpu.names()[0] == "prefill_groups_128", times > DECODE_TIMES);
        }
    }
}

proptest! {
    /// Every query is in one part of the work, of which each block takes some, and there is no more memory than such a device has.
    #[test]
    fn blocks_with_warpgroups_share_all_queries(
        batches in 1usize..20, times in (DECODE_TIMES + 1)..2000, group in 1usize..9, key_heads in 1usize..9,
        size in 1usize..9, size_v in 1usize..9, half in any::<bool>(), multiprocessors in 8u32..200,
    ) {
        let (heads, size, size_v) = (key_heads * group, size * 16, size_v * 16);
        let dtype = if half { DType::F16 } else { DType::Bf16 };
        let inputs = [[batches, times, heads, size], [batches, times, key_heads, size], [batches, times, key_heads, size_v]];
        let inputs = inputs.map(|shape| whole(1 << 20, dtype, &shape));
        let op = Attention { mask: MaskKind::Causal, scale: 1.0, variant: Variant::default() };
        let all = Launch {
            op: op.into(),
            inputs: inputs.into_iter().collect(),
            outputs: [whole(1 << 20, dtype, &[batches, times, heads, size_v])].into_iter().collect(),
            workspace: 0,
        };
        let props = DeviceProperties { multiprocessors, ..DeviceProperties::h200() };
        let mut gpu = Recorder::with(props).allowing(SHARED_OF_GROUPS);
        launch(&mut gpu, &all, op).unwrap();
        let (large, chunks) = (size.max(size_v) > 64, times.div_ceil(128));
        prop_assert_eq!(gpu.names(), [if large { "prefill_groups_128" } else { "prefill_groups_64" }]);
        let (params, grid) = (gpu.params::<Params>(0), gpu.calls[0].1);
        let parts = (batches * heads * chunks) as u32;
        prop_assert_eq!((params.splits, params.chunks), (parts, chunks as u32));
        prop_assert_eq!(grid.blocks, [parts.min(multiprocessors), 1, 1]);
        // Keys and values, barriers, queries, results.
        let (room, shared) = if large { (128, 230_400) } else { (64, 132_096) };
        prop_assert_eq!(4 * 128 * room * 2 + 1024 + 4 * 64 * room * 2 + 2 * 64 * 128 * 2, shared);
        prop_assert_eq!((grid.threads, grid.cluster, grid.shared), (384, 1, shared));
    }
}

#[test]
fn heads_that_are_too_large_are_refused() {
    assert!(run(DType::F32, [1, 1, 1, 1024], [1, 4, 1, 1024]).0.is_ok());
    let (result, gpu, _) = run(DType::F32, [1, 1, 1, 1025], [1, 4, 1, 1025]);
    assert!(matches!(result, Err(Error::Argument { op: "attention", .. })));
    assert!(gpu.calls.is_empty());
}

#[test]
fn only_variants_have_kernels_of_variants() {
    let variants = [
        Variant { window: Some((3, 0)), ..Variant::default() },
        Variant { soft_cap: Some(50.0), ..Variant::default() },
        Variant { alibi: AlibiKind::Standard, ..Variant::default() },
    ];
    let keys = [1, 4096, 2, 64];
    for (dtype, q, plain, changed) in [
        (DType::Bf16, [1, 1, 6, 64], &TILES, &TILES_VARIANT),
        (DType::F32, [1, 1, 6, 64], &FLOATS, &FLOATS_VARIANT),
        (DType::F32, [1, 64, 6, 64], &DECODE, &DECODE_VARIANT),
        (DType::Bf16, [1, 64, 6, 64], &GROUPS, &GROUPS_VARIANT),
    ] {
        let gpu = run(dtype, q, keys).1;
        assert!(
            gpu.calls.iter().all(|(kernel, _, params)| (kernel.unit.source, params.len()) == (plain, 216))
        );
        for variant in variants {
            let gpu = with(variant, dtype, q, keys).1;
            assert!(
                gpu.calls
                    .iter()
                    .all(|(kernel, _, params)| (kernel.unit.source, params.len()) == (changed, 312))
            );
        }
    }
    let other = |variant| on(device((10, 0)), variant, DType::Bf16, [1, 64, 6, 64], keys).1;
    for (gpu, source, bytes) in [
        (other(Variant::default()), &PREFILL, 216),
        (other(variants[0]), &PREFILL_VARIANT, 312),
        (other(variants[1]), &PREFILL_VARIANT, 312),
        (other(variants[2]), &PREFILL_VARIANT, 312),
    ] {
        let (kernel, _, params) = &gpu.calls[0];
        assert_eq!((gpu.calls.len(), kernel.unit.source, params.len()), (1, source, bytes));
    }
    // One kernel for large heads, and fewer rows of a block for variants.
    let queries = [16, 9, 6, 64];
    assert_eq!(run(DType::F32, queries, [16, 60, 2, 64]).1.names()[0], "attend_8");
    assert_eq!(with(variants[0], DType::F32, queries, [16, 60, 2, 64]).1.names()[0], "attend_4");
    let gpu = run(DType::Bf16, [1, 64, 6, 256], [1, 64, 2, 256]).1;
    assert!(gpu.calls[0].0.unit.source == &PREFILL_WIDE && gpu.calls[0].2.len() == 312);
    let gpu = run(DType::F32, [1, 9, 6, 300], [1, 9, 2, 300]).1;
    assert!(gpu.calls[0].0.unit.source == &DECODE_WIDE && gpu.calls[0].2.len() == 312);
}

#[test]
fn slopes_of_alibi_depend_on_the_power_of_two_below() {
    let extra = Extra { limits: None, bias: None, slopes: None, sinks: None, real: None };
    let variant = Variant { alibi: AlibiKind::Standard, ..Variant::default() };
    let op = Attention { mask: MaskKind::Causal, scale: 1.0, variant };
    for (heads, power) in [(1, 1), (8, 8), (12, 8), (16, 16), (31, 16)] {
        assert_eq!(Added::new(&op, &extra, heads).alibi, power);
    }
}
