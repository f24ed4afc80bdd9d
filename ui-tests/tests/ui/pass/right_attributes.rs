//! What docs/diagnostics.md shows instead of the wrong attributes.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g001 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager(support = UniformBatch)]
        ops::neg(x)?;
        ops::exp(&a)
    }
}

mod g002 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] tokens: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(tokens)?;
        ops::exp(&a)
    }
}

mod g003 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>, #[key] n: u32) -> Result<Tensor<f32>> {
        let a = #[eager]
        ops::neg(x)?;
        ops::scale(&a, n as f32)
    }
}

mod g004 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[host]
        let rank = x.rank();
        let a = #[eager]
        ops::neg(x)?;
        ops::scale(&a, rank as f32)
    }
}

mod g005 {
    use graphable::prelude::*;

    #[graphable(helper)]
    fn twice(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        ops::add(x, x)
    }

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = #[eager(support = Always)]
        ops::neg(x)?;
        twice(&a)
    }
}

mod g006 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[key]
        let n: usize = #[eager(cx)]
        {
            cx.item(x)? as usize
        };
        ops::scale(x, n as f32)
    }
}

mod g007 {
    use graphable::prelude::*;

    #[graphable(helper)]
    fn scaled(x: &Tensor<f32>, n: usize) -> Result<Tensor<f32>> {
        ops::scale(x, n as f32)
    }

    #[graphable]
    fn layer(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        #[eager]
        ops::neg(x)
    }
}

mod g008 {
    use graphable::prelude::*;

    #[graphable]
    fn decode(#[host] x: &Tensor<f32>, #[key] n: usize) -> Result<Tensor<f32>> {
        let h = ops::neg(x)?;
        let y = ops::exp(&h)?;
        ops::scale(&y, n as f32)
    }
}

mod g009 {
    use graphable::prelude::*;

    fn look(x: &Tensor<f32>) -> Result<()> {
        ops::neg(x).map(drop)
    }

    #[graphable]
    fn decode(x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let a = ops::neg(x)?;
        // Over the line above, to the beginning of the block.
        #[eager(early)]
        look(x)?;
        let b = ops::exp(&a)?;
        // Over the computation of the block's value.
        #[eager(late)]
        look(&a)?;
        ops::neg(&b)
    }
}

fn main() {}
