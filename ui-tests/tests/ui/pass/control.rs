//! Control flow over host data: matches on a configuration, labels, `while`, `if let … else`, early errors.

#![deny(warnings)]

use graphable::prelude::*;

#[derive(Clone, Copy, PartialEq, ConfigValue)]
enum Norm {
    None,
    Rms { eps: f32 },
    Layer(f32),
}

#[derive(Params)]
struct Block {
    w: Param<f32>,
    gate: Option<Param<f32>>,
    #[config]
    norm: Norm,
}

fn mix<'s>(h: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
    ops::softmax(h, 0)
}

#[graphable]
fn decode(x: &Tensor<f32>, blocks: &[Block], #[key] skip: Option<usize>, #[key] turns: u8) -> Result<Tensor<f32>> {
    let mut h = x.clone();
    let mut left = turns;
    'turns: while left > 0 {
        left -= 1;
        for (i, block) in blocks.iter().enumerate() {
            if Some(i) == skip {
                continue 'turns;
            }
            h = match block.norm {
                Norm::None => h,
                Norm::Rms { eps } if eps > 0.0 => ops::scale(&h, 1.0 / (1.0 + eps))?,
                Norm::Rms { .. } => return Err(Error::Argument { op: "decode", reason: "no eps".into() }),
                Norm::Layer(by) => ops::scale(&h, by)?,
            };
            let Some(gate) = &block.gate else {
                h = ops::mul(&h, &block.w)?;
                continue;
            };
            let gated = ops::mul(&h, gate)?;
            let mixed = #[eager]
            mix(&gated)?;
            h = if let Norm::Layer(_) = block.norm { ops::add(&h, &mixed)? } else { mixed };
            if i + 1 == blocks.len() && left == 0 {
                break 'turns;
            }
        }
    }
    ops::neg(&h)
}

fn main() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let graph = DecodeGraph::builder().build(&mut rt)?;
    let block = |gate: bool, norm| -> Result<Block> {
        let gate = gate.then(|| Param::new(&rt, &[1], &[0.5])).transpose()?;
        Ok(Block { w: Param::new(&rt, &[1], &[2.0])?, gate, norm })
    };
    let blocks =
        [block(false, Norm::None)?, block(true, Norm::Layer(3.0))?, block(true, Norm::Rms { eps: 1.0 })?];
    for _ in 0..4 {
        let step = rt.step()?;
        let x = step.tensor(&[1], &[1.0])?;
        assert_eq!(step.read(&graph.call(&step, &x, &blocks, None, 1)?)?, [-1.0]);
        assert_eq!(step.read(&graph.call(&step, &x, &blocks, Some(1), 2)?)?, [-4.0]);
    }
    Ok(())
}
