use super::super::operation::{Case, Choose, Switch};
use crate::{DType, backend::cpu::kernels::testing::*};

#[test]
fn a_predicate_chooses_the_first_body_or_the_second() {
    for (pred, body) in [(1.0, 0.0), (0.0, 1.0)] {
        let mut y = Array::output(DType::U32, &[]);
        run(Choose, &[&Array::contiguous(DType::Bool, &[], &[pred])], &mut y).unwrap();
        assert_eq!(y.values(), [body]);
    }
}

#[test]
fn an_index_chooses_its_case_or_the_default() {
    let table = || [(5u32, 0), (u32::MAX, 2), (7, 2)].map(|(value, body)| Case { value, body }).into();
    for (dtype, index, body) in [
        (DType::U32, 5.0, 0.0),
        (DType::U32, 7.0, 2.0),
        (DType::I32, -1.0, 2.0),
        (DType::I32, 0.0, 9.0),
        (DType::U32, 6.0, 9.0),
    ] {
        let mut y = Array::output(DType::U32, &[]);
        let op = Switch { table: table(), default: 9 };
        run(op, &[&Array::contiguous(dtype, &[], &[index])], &mut y).unwrap();
        assert_eq!(y.values(), [body], "{index}");
    }
}
