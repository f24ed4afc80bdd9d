use super::super::operation::{BeginLoop, Case, Choose, NextRound, Switch};
use crate::{
    DType,
    backend::{cpu::Fault, cpu::kernels::testing::*},
};
