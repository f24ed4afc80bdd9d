//! What docs/diagnostics.md shows instead of the wrong derives.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g090 {
    use graphable::prelude::*;

    #[derive(Params)]
    struct Weights {
        a: Param<f32>,
    }

    #[derive(GraphOutput)]
    struct Two<'s> {
        a: Tensor<'s, f32>,
        b: Tensor<'s, f32>,
    }
}

mod g091 {
    use graphable::prelude::*;

    struct Config {
        width: usize,
        heads: usize,
    }

    #[derive(Params)]
    #[params(config = Config)]
    struct Model {
        #[param("w", shape = [config.width])]
        w: Param<f32>,
        #[config(config.heads)]
        heads: usize,
    }
}

mod g092 {
    use graphable::prelude::*;

    struct Config {
        layers: usize,
        eps: f32,
    }

    #[derive(Params)]
    #[params(config = Config)]
    struct Model {
        #[param("w", shape = [4])]
        w: Param<f32>,
        #[param("layers.{}", len = config.layers, shape = [4])]
        layers: Vec<Param<f32>>,
        #[config(config.eps)]
        eps: f32,
        #[state(shape = [4])]
        kv: State<f32>,
    }
}

mod g093 {
    use graphable::prelude::*;

    struct Config {
        layers: usize,
    }

    #[derive(Params)]
    #[params(config = Config)]
    struct Model {
        #[param("w", shape = [1])]
        w: Param<f32>,
        #[param("layers.{}", len = config.layers, shape = [1])]
        layers: Vec<Param<f32>>,
        #[param("b", optional, shape = [1])]
        b: Option<Param<f32>>,
    }
}

fn main() {}
