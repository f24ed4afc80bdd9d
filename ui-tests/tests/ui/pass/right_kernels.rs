//! What docs/diagnostics.md shows instead of what kernels do not have.

#![deny(warnings)]
#![allow(dead_code, reason = "they are compiled, and read")]

mod g110 {
    use graphable::prelude::*;

    #[kernel]
    fn double(x: f32) -> f32 {
        x + x
    }
}

mod g111 {
    use graphable::prelude::*;

    #[kernel]
    fn scaled(x: f32) -> f32 {
        x * 0.1
    }
}

mod g112 {
    use graphable::prelude::*;

    #[kernel]
    fn square(y: f32) -> f32 {
        y * y
    }

    #[kernel]
    fn twice(x: f32) -> f32 {
        square(square(x))
    }
}

mod g113 {
    use graphable::prelude::*;

    #[kernel]
    fn halvings(x: f32) -> u32 {
        let mut x = x;
        let mut n = 0;
        for _ in 0..32 {
            if x <= 1.0 {
                break;
            }
            x *= 0.5;
            n += 1;
        }
        n
    }
}

mod g114 {
    use graphable::prelude::*;

    #[kernel]
    fn rooted(x: f32) -> f32 {
        x.sqrt().round()
    }
}

mod g115 {
    use graphable::prelude::*;

    #[kernel]
    fn sign(n: i32) -> i32 {
        match n {
            0 => 0,
            _ => if n < 0 { -1 } else { 1 },
        }
    }
}

mod g116 {
    use graphable::prelude::*;

    #[kernel]
    fn scaled(y: f32, x: i32, by: u32) -> f32 {
        let m = x + by as i32;
        y * x as f32 + 2.0 * y + m as f32
    }
}

mod g117 {
    use graphable::prelude::*;

    #[kernel]
    fn chosen(n: u32) -> u32 {
        let limit = 0.5f32;
        if 0.3 > limit { n } else { 0 }
    }
}

mod g118 {
    use graphable::prelude::*;

    #[kernel]
    fn factorial(n: u32) -> u32 {
        let (mut product, mut left) = (1, n);
        for _ in 0..32 {
            if left == 0 {
                break;
            }
            product *= left;
            left -= 1;
        }
        product
    }
}

mod g119 {
    use graphable::prelude::*;

    #[kernel(rows)]
    fn shares(x: Row<f32>) -> Row<f32> {
        let total = x.sum();
        x.map(|v| v / total)
    }
}

fn main() {}
