//! Every operation against an independent reference: naive loops in f64 on the host, over random
//! shapes, strided views, broadcasting and empty dimensions.

mod arrange;
mod attention;
mod attention_variants;
mod blocks_refused;
mod capturable;
mod compare;
mod context;
mod conv;
mod create;
mod custom;
#[allow(dead_code, reason = "not every test binary calls all of them")]
#[path = "../common/custom.rs"]
mod custom_ops;
#[path = "../common/device.rs"]
mod device;
mod doubles;
mod elementwise;
mod errors;
mod fixtures;
mod functions;
mod further_types;
mod fused;
mod gradient;
mod harness;
mod index;
mod indexed;
mod kernels;
mod lora;
mod losses;
mod matmul;
mod misuse;
mod models;
mod moe;
mod norm;
#[path = "../common/operations.rs"]
mod operations;
mod order;
mod pool;
mod quantized;
mod ragged;
mod random;
mod recurrent;
mod reduce;
mod reference;
mod rope;
mod rope_scaled;
mod rows;
#[allow(clippy::type_complexity, reason = "a model of a test returns all that it draws")]
mod sampling;
mod scalars;
mod scatter_add;
mod shape;
#[allow(unreachable_pub, reason = "an example's items are public where it stands")]
#[path = "../../../examples/src/small/mod.rs"]
mod small;
mod statistics;
mod training;
mod written;
