use std::path::PathBuf;

use super::library;
use crate::backend::cuda::search;

#[test]
fn a_missing_library_is_named_with_the_remedy() {
    let places = search::places(&library::WANTED, &|name| {
        (name == "GRAPHABLE_CUDNN").then(|| "/no/such/libcudnn.so.9".into())
    });
    let reason = library::open(&places).unwrap_err();
    assert!(reason.contains("/no/such/libcudnn.so.9") && reason.contains("GRAPHABLE_CUDNN"), "{reason}");
}

#[test]
fn a_library_without_the_functions_is_named_with_the_function() {
    let other = ["libm.so.6", "libSystem.dylib", "msvcrt.dll"].map(PathBuf::from);
    let reason = library::open(&other).unwrap_err();
    assert!(reason.contains("cudnnGetVersion"), "{reason}");
}

/// With `GRAPHABLE_CUDNN`, on a machine without a GPU too.
#[test]
#[ignore = "needs libcudnn; name it by GRAPHABLE_CUDNN"]
fn the_library_has_all_functions() {
    let table = library::table().unwrap();
    assert_eq!(library::name_of(table, 3000), "CUDNN_STATUS_NOT_SUPPORTED");
}
