use std::{fs, path::PathBuf};

use super::{cache::Cache, key::Side, *};
use crate::{
    DType,
    backend::{
        View,
        cuda::{
            disk::{CacheFolder, Disk},
            search,
        },
    },
    value::layout::Layout,
};

fn view(addr: u64, shape: &[usize], strides: &[usize]) -> View {
    View { addr, dtype: DType::F16, layout: Layout::strided(shape, strides).unwrap() }
}

fn dense(addr: u64, shape: &[usize]) -> View {
    View { addr, dtype: DType::F16, layout: Layout::contiguous(shape).unwrap() }
}

fn key(inputs: &[View], output: View) -> Option<Key> {
    Key::of(&Problem::new(inputs, &output).unwrap())
}

/// `x [m, k]` times a weight `[n, k]`.
fn linear(m: usize, k: usize, n: usize) -> ([View; 2], View) {
    ([dense(0x1000, &[m, k]), view(0x2000, &[k, n], &[1, k])], dense(0x3000, &[m, n]))
}

fn plain(ld: i64) -> Side {
    Side { transposed: false, ld, stride: 0 }
}

#[test]
fn a_linear_layer_is_a_product_with_a_transposed_weight() {
    let (inputs, y) = linear(64, 576, 1536);
    let key = key(&inputs, y).unwrap();
    assert_eq!((key.m, key.n, key.k, key.batch), (64, 1536, 576, 1));
    assert_eq!(key.a, plain(576));
    assert_eq!(key.b, Side { transposed: true, ld: 576, stride: 0 });
    assert_eq!(key.y, plain(1536));
    assert_eq!(key.align, [256; 4]);
}

#[test]
fn slices_and_transposes_are_leading_dimensions() {
    // A slice of a wider projection, a transposed left side.
    let a = view(0x1000, &[8, 16], &[1, 40]);
    let b = view(0x2000, &[16, 24], &[100, 1]);
    let key = key(&[a, b], dense(0x3000, &[8, 24])).unwrap();
    assert_eq!((key.a, key.b), (Side { transposed: true, ld: 40, stride: 0 }, plain(100)));
}

#[test]
fn the_batch_is_folded_into_rows_or_into_one_stride() {
    let a = dense(0x1000, &[2, 3, 8, 16]);
    let shared = view(0x2000, &[2, 3, 16, 4], &[0, 0, 4, 1]);
    let folded = key(&[a, shared], dense(0x3000, &[2, 3, 8, 4])).unwrap();
    assert_eq!((folded.m, folded.batch), (48, 1));
    let own = dense(0x2000, &[2, 3, 16, 4]);
    let merged = key(&[a, own], dense(0x3000, &[2, 3, 8, 4])).unwrap();
    assert_eq!((merged.m, merged.batch), (8, 6));
    assert_eq!((merged.a.stride, merged.b.stride, merged.y.stride), (128, 64, 32));
    // Heads inside a row: two strides, which the library does not have.
    let heads = view(0x1000, &[2, 3, 8, 16], &[8 * 48, 16, 48, 1]);
    assert!(key(&[heads, own], dense(0x3000, &[2, 3, 8, 4])).is_none());
}

#[test]
fn what_the_library_cannot_do_is_not_asked() {
    let (inputs, y) = linear(4, 8, 8);
    // Both strides of the right side are above 1; rows that repeat; no columns side by side.
    assert!(key(&[inputs[0], view(0x2000, &[8, 8], &[16, 2])], y).is_none());
    assert!(key(&[view(0x1000, &[4, 8], &[0, 1]), inputs[1]], y).is_none());
    assert!(key(&inputs, view(0x3000, &[4, 8], &[1, 4])).is_none());
    // Integers; nothing to sum; nothing to write.
    let whole = |v: View| View { dtype: DType::I32, ..v };
    assert!(key(&inputs.map(whole), whole(y)).is_none());
    let (inputs, y) = linear(4, 0, 8);
    assert!(key(&inputs, y).is_none());
    let (inputs, y) = linear(0, 8, 8);
    assert!(key(&inputs, y).is_none());
}

#[test]
fn strides_of_a_single_row_or_column_do_not_matter() {
    let (inputs, y) = linear(1, 8, 16);
    let odd = view(0x1000, &[1, 8], &[3, 1]);
    assert_eq!(key(&[odd, inputs[1]], y), key(&inputs, y));
    let column = view(0x2000, &[8, 1], &[1, 5]);
    let x = dense(0x1000, &[4, 8]);
    let y = dense(0x3000, &[4, 1]);
    let b = key(&[x, column], y).unwrap().b;
    assert_eq!(b, plain(1));
}

#[test]
fn a_bias_is_one_contiguous_row() {
    let (inputs, y) = linear(4, 8, 16);
    let with = |strides: &[usize]| key(&[inputs[0], inputs[1], view(0x4000, &[4, 16], strides)], y);
    assert!(with(&[0, 1]).unwrap().bias);
    assert!(with(&[0, 2]).is_none());
    assert!(with(&[16, 1]).is_none());
    assert!(!key(&inputs, y).unwrap().bias);
}

#[test]
fn a_bias_in_16_bits_is_the_librarys_where_rows_are_aligned() {
    let of = |k: usize, n: usize, bias: u64, dtype: DType| {
        let (inputs, y) = linear(4, k, n);
        let [x, w, b, y] =
            [inputs[0], inputs[1], view(bias, &[4, n], &[0, 1]), y].map(|view| View { dtype, ..view });
        key(&[x, w, b], y).is_some()
    };
    assert!(of(8, 16, 0x4000, DType::F16) && of(8, 16, 0x4010, DType::Bf16));
    assert!(
        !of(8, 12, 0x4000, DType::Bf16) && !of(12, 8, 0x4000, DType::F16) && !of(8, 16, 0x4008, DType::Bf16)
    );
    assert!(of(5, 6, 0x4004, DType::F32));
    // Rows that begin at such multiples and end elsewhere.
    let narrowed = [view(0x1000, &[4, 5], &[8, 1]), view(0x2000, &[5, 8], &[1, 8])];
    let bias = view(0x4000, &[4, 8], &[0, 1]);
    assert!(key(&[narrowed[0], narrowed[1], bias], dense(0x3000, &[4, 8])).is_none());
    let (inputs, y) = linear(4, 5, 6);
    assert!(key(&inputs, y).is_some(), "without a bias there is one rounding");
}

#[test]
fn alignment_is_part_of_the_key_in_classes() {
    let (inputs, y) = linear(4, 8, 16);
    let at = |addr: u64| key(&[View { addr, ..inputs[0] }, inputs[1]], y).unwrap();
    assert_eq!(at(0x1000), at(0x5100));
    assert_eq!(at(0x1010), at(0x1080));
    assert_eq!([0x1100, 0x1010, 0x1008, 0x1002].map(|addr| at(addr).align[0]), [256, 16, 8, 2]);
    let texts: std::collections::HashSet<String> =
        [0x1100, 0x1010, 0x1008, 0x1002].map(|addr| at(addr).text()).into();
    assert_eq!(texts.len(), 4);
}

/// A separate folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("graphable-blas-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn cache(&self, device: &str, version: usize) -> Cache {
        Cache::new(&Disk::new(&CacheFolder::At(self.0.clone()), None), device, version).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.0.join("products")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const ALGO: Choice = Choice::Library(Algo([1, 2, 3, 4, 5, 6, 7, u64::MAX]));

#[test]
fn choices_survive_on_disk_per_device_and_version() {
    let folder = Folder::new("survive");
    let cache = folder.cache("GPU", 130_002);
    assert_eq!(cache.read("k"), None);
    cache.write("k", &ALGO, 12.5);
    cache.write("own", &Choice::Own, 2.5);
    let again = folder.cache("GPU", 130_002);
    assert_eq!((again.read("k"), again.read("own")), (Some(ALGO), Some(Choice::Own)));
    assert_eq!(again.read("other"), None);
    assert_eq!(folder.cache("GPU", 130_003).read("k"), None);
    assert_eq!(folder.cache("another GPU", 130_002).read("k"), None);
    assert_eq!(folder.files().len(), 2, "no temporary file remains");
}

#[test]
fn a_corrupt_choice_is_ignored_and_replaced() {
    let folder = Folder::new("corrupt");
    let cache = folder.cache("GPU", 1);
    cache.write("k", &ALGO, 1.0);
    let file = folder.files().remove(0);
    let good = fs::read(&file).unwrap();
    for bad in [&good[..good.len() / 2], b"", b"\xff\xfe", br#"{"key":"another","algo":null,"micros":1.0}"#] {
        fs::write(&file, bad).unwrap();
        assert_eq!(cache.read("k"), None);
    }
    cache.write("k", &Choice::Own, 1.0);
    assert_eq!(cache.read("k"), Some(Choice::Own));
}

#[test]
fn writers_at_once_leave_one_whole_choice() {
    let folder = Folder::new("writers");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = folder.cache("GPU", 1);
            scope.spawn(move || {
                for i in 0..50 {
                    cache.write("k", &Choice::Library(Algo([thread, i, 0, 0, 0, 0, 0, 0])), 1.0);
                    assert!(cache.read("k").is_some());
                }
            });
        }
    });
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_no_error() {
    let folder = Folder::new("file");
    fs::write(&folder.0, b"a file").unwrap();
    let cache = folder.cache("GPU", 1);
    cache.write("k", &ALGO, 1.0);
    assert_eq!(cache.read("k"), None);
    fs::remove_file(&folder.0).unwrap();
}

fn plans(workspaces: &[u64]) -> Vec<Plan> {
    let (inputs, y) = linear(4, 8, 16);
    let key = key(&inputs, y).unwrap();
    let plan = |(i, &workspace): (usize, &u64)| Plan {
        key,
        choice: Choice::Library(Algo([i as u64; 8])),
        workspace,
        tuned: false,
    };
    workspaces.iter().enumerate().map(plan).collect()
}

fn failure() -> Error {
    Error::Device { device: "cuda:0".into(), call: "test", reason: "no".into() }
}

#[test]
fn the_fastest_wins_and_ties_go_to_the_smaller_workspace() {
    let pick = |times: &[f32], workspaces: &[u64]| {
        let plans = plans(workspaces);
        let mut times = times.iter();
        let (plan, _) = fastest(&plans, &mut |_| Ok(*times.next().unwrap())).unwrap();
        plans.iter().position(|p| *p == plan).unwrap()
    };
    assert_eq!(pick(&[3.0, 2.0, 4.0], &[0, 9, 0]), 1);
    assert_eq!(pick(&[2.0, 2.001, 2.1], &[9, 5, 0]), 1);
    assert_eq!(pick(&[2.0, 2.0], &[5, 5]), 0);
    assert_eq!(pick(&[f32::NAN, 2.0], &[0, 5]), 1);
}

#[test]
fn candidates_that_fail_are_out() {
    let plans = plans(&[0, 1]);
    let mut calls = 0;
    let (plan, micros) = fastest(&plans, &mut |_| {
        calls += 1;
        if calls == 1 { Err(failure()) } else { Ok(7.0) }
    })
    .unwrap();
    assert_eq!((plan, micros), (plans[1], 7.0));
    assert!(matches!(fastest(&plans, &mut |_| Err(failure())), Err(Error::Device { call: "test", .. })));
    assert!(matches!(fastest(&[], &mut |_| Ok(1.0)), Err(Error::Device { .. })));
    let mut calls = 0;
    let lost = fastest(&plans, &mut |_| {
        calls += 1;
        Err(Error::ContextLost { device: "cuda:0".into(), reason: "gone".into() })
    });
    assert!(matches!(lost, Err(Error::ContextLost { .. })));
    assert_eq!(calls, 1, "nothing more is tried on a lost device");
}

#[test]
fn a_missing_library_is_named_with_the_remedy() {
    let places = search::places(&library::WANTED, &|name| {
        (name == "GRAPHABLE_CUBLASLT").then(|| "/no/such/libcublasLt.so".into())
    });
    let reason = library::open(&places).unwrap_err();
    assert!(reason.contains("/no/such/libcublasLt.so") && reason.contains("GRAPHABLE_CUBLASLT"), "{reason}");
}

#[test]
fn a_library_without_the_functions_is_named_with_the_function() {
    let other = ["libm.so.6", "libSystem.dylib", "msvcrt.dll"].map(PathBuf::from);
    let reason = library::open(&other).unwrap_err();
    assert!(reason.contains("cublasLtCreate"), "{reason}");
}

/// With `GRAPHABLE_CUBLASLT`, on a machine without a GPU too.
#[test]
#[ignore = "needs libcublasLt; name it by GRAPHABLE_CUBLASLT"]
fn the_library_has_all_functions() {
    let table = library::table().unwrap();
    assert_eq!(library::name_of(table, 15), "CUBLAS_STATUS_NOT_SUPPORTED");
}

#[test]
fn the_switches_are_part_of_the_key_where_they_matter() {
    use crate::Numerics;
    let (inputs, y) = linear(64, 512, 256);
    let of = |dtype: DType| key(&inputs.map(|x| View { dtype, ..x }), View { dtype, ..y }).unwrap();
    let all = || Numerics::default().tf32(true).reduced_precision_reduction(true).deterministic(true);
    let single = of(DType::F32);
    assert_eq!(single.with_numerics(Numerics::default(), true), single);
    let tf32 = single.with_numerics(Numerics::default().tf32(true), true);
    assert!(tf32 != single && tf32.text() == format!("{} tf32", single.text()));
    assert_eq!(single.with_numerics(Numerics::default().tf32(true), false), single, "no such tensor cores");
    assert_eq!(single.with_numerics(Numerics::default().reduced_precision_reduction(true), true), single);
    for dtype in [DType::F16, DType::Bf16] {
        let half = of(dtype);
        assert_eq!(half.with_numerics(Numerics::default().tf32(true), true), half);
        let reduced = half.with_numerics(Numerics::default().reduced_precision_reduction(true), true);
        assert!(reduced != half && reduced.text() == format!("{} reduced", half.text()));
        assert_ne!(half.with_numerics(all(), true), reduced, "the deterministic mode has plans of its own");
    }
    assert_ne!(single.with_numerics(all(), true), tf32);
}

#[test]
fn the_library_is_asked_for_what_the_switches_allow() {
    use crate::Numerics;
    let (inputs, y) = linear(64, 512, 256);
    let of = |dtype: DType| key(&inputs.map(|x| View { dtype, ..x }), View { dtype, ..y }).unwrap();
    let all = Numerics::default().tf32(true).reduced_precision_reduction(true);
    // CUBLAS_COMPUTE_32F and CUBLAS_COMPUTE_32F_FAST_TF32.
    assert_eq!(calls::compute_type(&of(DType::F32)), 68);
    assert_eq!(calls::compute_type(&of(DType::F32).with_numerics(all, true)), 77);
    assert_eq!(calls::compute_type(&of(DType::Bf16).with_numerics(all, true)), 68);
    // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, and CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE; never in place (1).
    assert_eq!(calls::reductions(&of(DType::Bf16)), 2);
    assert_eq!(calls::reductions(&of(DType::Bf16).with_numerics(all, true)), 6);
    assert_eq!(calls::reductions(&of(DType::F32).with_numerics(all, true)), 2);
}
