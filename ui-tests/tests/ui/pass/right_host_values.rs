//! What docs/diagnostics.md shows instead of host values that would freeze.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g020 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
        ops::mul(&ops::scale(x, n as f32)?, by)
    }
}

mod g021 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, y: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        ops::add(&a, y)
    }
}

mod g022 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(
        x: &Tensor<f32>,
        #[key] sizes: Vec<usize>,
        #[host] weights: &Tensor<f32>,
        #[key] name: &str,
    ) -> Result<Tensor<f32>> {
        let y = ops::mul(x, weights)?;
        ops::scale(&y, (sizes.len() + name.len()) as f32)
    }
}

mod g023 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[host] temperature: &Scalar<f32>) -> Result<Tensor<f32>> {
        ops::div(x, temperature)
    }
}

mod g024 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }
}

mod g025 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[host] by: &Scalar<f32>) -> Result<Tensor<f32>> {
        ops::mul(x, by)
    }
}

mod g026 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Cache {
        rows: State<f32>,
    }

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>, cache: &Cache) -> Result<Tensor<f32>> {
        ops::store(&cache.rows, x)?;
        ops::exp(x)
    }
}

mod g027 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let zeros = ops::zeros::<f32>(x.scope(), &[n])?;
        ops::add(x, &zeros)
    }
}

fn main() {}
