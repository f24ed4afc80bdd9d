//! What docs/diagnostics.md shows instead of tensors that outlive their step.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g100 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::neg(x)
    }

    fn run(rt: &mut Runtime, graph: &DecodeGraph) -> Result<Vec<f32>> {
        let step = rt.step()?;
        let y = graph.call(&step, &[1.0])?;
        let values = step.read(&y)?;
        drop(y);
        let next = rt.step()?;
        next.read(&graph.call(&next, &values)?)
    }
}

mod g101 {
    use graphable::prelude::*;

    fn run(rt: &mut Runtime) -> Result<Vec<f32>> {
        let mut sums = Vec::new();
        for i in 0..3 {
            let step = rt.step()?;
            let x = step.tensor(&[1], &[i as f32])?;
            sums.extend(step.read(&ops::neg(&x)?)?);
        }
        Ok(sums)
    }
}

mod g102 {
    use graphable::prelude::*;

    fn peek(cx: &Eager<'_>, x: &Tensor<f32>) -> Result<f32> {
        cx.item(x)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[key]
        let large: bool = #[eager(cx)]
        {
            peek(cx, x)? > 10.0
        };
        ops::scale(x, if large { 0.1 } else { 1.0 })
    }
}

mod g103 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] y: &Tensor<f32>, kept: &State<f32>) -> Result<Tensor<f32>> {
        ops::store(kept, y)?;
        ops::exp(y)
    }
}

mod g104 {
    use graphable::prelude::*;

    #[graphable]
    fn helper(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::relu(x)
    }

    #[graphable]
    mod model {
        use graphable::prelude::*;

        #[derive(Clone, GraphOutput)]
        struct Halves {
            left: Tensor<f32>,
            right: Tensor<f32>,
        }

        fn halves(x: &Tensor<f32>, at: usize) -> Result<Halves> {
            let [left, right] = ops::split_at(x, 0, &[at])?.try_into().unwrap_or_else(|_| unreachable!());
            Ok(Halves { left, right })
        }
    }
}

fn main() {}

mod g105 {
    use graphable::prelude::*;

    #[graphable]
    fn halved(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::scale(x, 0.5)
    }
}
