//! local
mod attention;
mod gemm;
mod matmul;
mod norm;
mod real;
mod rope;
