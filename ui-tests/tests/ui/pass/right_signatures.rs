//! What docs/diagnostics.md shows instead of the wrong signatures.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g010 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }
}

mod g011 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] _n: usize) -> Result<Tensor<f32>> {
        Ok(x.clone())
    }
}

mod g012 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }
}

mod g013 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Layer {
        w: Param<f32>,
        calls: State<u32>,
    }

    #[graphable]
    impl Layer {
        fn forward(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
            let calls = ops::load(x.scope(), &self.calls)?;
            ops::store(&self.calls, &ops::add(&calls, &ops::ones_like(&calls)?)?)?;
            ops::mul(x, &self.w)
        }
    }
}

mod g014 {
    use graphable::prelude::*;

    #[graphable]
    trait Norm {
        fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>>;
    }

    #[derive(Params)]
    struct Layer {
        w: Param<f32>,
    }

    #[graphable]
    impl Norm for Layer {
        fn norm(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
            ops::mul(x, &self.w)
        }
    }

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        layer.norm(&a)
    }
}

mod g015 {
    use graphable::prelude::*;

    #[graphable]
    fn encode<N: Key + Into<u32>>(x: &Tensor<f32>, #[key] n: N) -> Result<Tensor<f32>> {
        ops::scale(x, n.into() as f32)
    }
}

mod g016 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, y: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(&ops::add(x, y)?, n as f32)
    }
}

mod g017 {
    use graphable::prelude::*;

    #[cfg(debug_assertions)]
    #[graphable]
    fn encode(x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }

    #[cfg(not(debug_assertions))]
    #[graphable]
    fn encode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::neg(x)
    }
}

mod g018 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>, #[key] sizes: [u32; 33]) -> Result<Tensor<f32>> {
        ops::scale(x, sizes[32] as f32)
    }
}

mod g019 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Layer {
        w: Param<f32>,
    }

    #[graphable]
    impl Layer {
        fn decode(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
            ops::mul(&self.scaled(x)?, &self.w)
        }

        fn scaled(&self, x: &Tensor<f32>) -> Result<Tensor<f32>> {
            ops::scale(x, 2.0)
        }
    }
}

fn main() {}
