//! What other programs computed: the files of `fixtures`, each beside the script that wrote it.

use std::collections::HashMap;

use graphable::{Step, Tensor, load::TensorMap};

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

    /// All tensors of the case, for a model that is loaded by their names.
    pub(crate) fn weights(&self) -> TensorMap {
        let mut weights = TensorMap::new();
        for (&name, array) in &self.0 {
            let data: Vec<f32> = array.data.iter().map(|&v| v as f32).collect();
            weights.insert(name, &array.shape, &data).unwrap();
        }
        weights
    }
}

/// The values of the input.
pub(crate) fn values(case: &Fixture) -> Vec<f32> {
    case.array("x").data.iter().map(|&v| v as f32).collect()
}
