//! Makes the macros' source an ordinary library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=graphable_library");
}
