//! What other programs computed: the files of `fixtures`, each beside the script that wrote it.

use std::collections::HashMap;

use graphable::{Param, Runtime, Step, Tensor};

use crate::reference::Array;

/// The tensors of a case, by name.
pub(crate) struct Fixture(HashMap<&'static str, Array>);

impl Fixture {
    /// A case of a file.
    pub(crate) fn new(file: &'static str, case: &str) -> Self {
        let mut lines = file.lines().skip_while(|line| line.strip_prefix("case ") != Some(case));
        assert!(lines.next().is_some(), "no case {case}");
        let tensors = lines.take_while(|line| !line.starts_with("case ")).map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            let (sizes, values) = rest.split_once(' ').unwrap();
            let shape = sizes.split(',').map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
            let data: Vec<f64> = values.split(' ').map(|v| v.parse().unwrap()).collect();
            assert_eq!(data.len(), shape.iter().product::<usize>(), "{case}: {name}");
            (name, Array { shape, data })
        });
        Self(tensors.collect())
    }

    /// A tensor's values.
    pub(crate) fn array(&self, name: &str) -> &Array {
        &self.0[name]
    }

    /// A tensor, as an input.
    pub(crate) fn tensor<'s>(&self, step: &Step<'s>, name: &str) -> Tensor<'s, f32> {
        let array = self.array(name);
        let data: Vec<f32> = array.data.iter().map(|&v| v as f32).collect();
        step.tensor(&array.shape[..], &data).unwrap()
    }
}

/// A tensor of the case as a parameter.
pub(crate) fn param(rt: &Runtime, case: &Fixture, name: &str) -> Param<f32> {
    let array = case.array(name);
    let data: Vec<f32> = array.data.iter().map(|&v| v as f32).collect();
    Param::new(rt, &array.shape, &data).unwrap()
}

/// The values of the input.
pub(crate) fn values(case: &Fixture) -> Vec<f32> {
    case.array("x").data.iter().map(|&v| v as f32).collect()
}
