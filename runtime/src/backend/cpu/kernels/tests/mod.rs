//! Operations against a naive reference in f64.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::testing::*;
use crate::DType;

mod elementwise;
