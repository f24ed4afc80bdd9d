// A model as one writes it, for crates that compile it under their own rules. `Params`, `Tensor` and the
// other names of the runtime are in scope.

/// How a layer ends.
#[derive(Clone, Copy, PartialEq, ConfigValue)]
pub enum Activation {
    /// As it is.
    Linear,
    /// Scaled, then cut off below zero.
    Relu {
        /// The scale.
        scale: f32,
    },
}

/// Weights of one layer.
#[derive(Params)]
pub struct Layer {
    pub(crate) w: Param<f32>,
    pub(crate) bias: Option<Param<f32>>,
    #[config]
    pub(crate) activation: Activation,
}

weights! {
    /// Weights.
    Model { scale: Param<f32>, layers: Vec<Layer> }
}

/// What a layer gives.
#[derive(GraphOutput)]
pub struct Pair<'s> {
    pub(crate) first: Tensor<'s, f32>,
    pub(crate) second: Tensor<'s, f32>,
}

/// An ordinary helper.
#[graphable]
fn activate(h: &Tensor<f32>, activation: Activation) -> Result<Tensor<f32>> {
    match activation {
        Activation::Linear => ops::scale(h, 1.0),
        Activation::Relu { scale } => ops::relu(&ops::scale(h, scale)?),
    }
}

/// A helper with two results.
#[graphable]
fn pair(h: &Tensor<f32>) -> Result<Pair<'_>> {
    Ok(Pair { first: ops::neg(h)?, second: ops::scale(h, 2.0)? })
}

/// One layer, with a boundary.
#[graphable]
fn layer(h: &Tensor<f32>, layer: &Layer) -> Result<Tensor<f32>> {
    let q = ops::mul(h, &layer.w)?;
    let q = match &layer.bias {
        Some(bias) => ops::add(&q, bias)?,
        None => q,
    };
    let a = #[eager(support = UniformBatch)]
    pair(&q)?;
    activate(&ops::add(&a.first, &a.second)?, layer.activation)
}

/// The model.
///
/// # Errors
/// Shapes that do not fit.
#[graphable]
pub fn forward(
    #[host]
    #[dims(B, 2)]
    x: &Tensor<f32>,
    #[host] by: &Scalar<f32>,
    #[key] limit: usize,
    model: &Model,
) -> Result<Tensor<f32>> {
    if model.layers.is_empty() {
        return Err(Error::Argument { op: "forward", reason: "no layers".into() });
    }
    let mut h = ops::mul(x, by)?;
    let scaled = |t: &Tensor<f32>| ops::mul(t, &model.scale);
    for (i, one) in model.layers.iter().enumerate() {
        if i == limit {
            break;
        }
        h = #[piecewise]
        layer(&h, one)?;
        h = scaled(&h)?;
    }
    ops::scale(&h, model.eps)
}

#[graphable]
impl Model {
    /// A method that is a graph.
    ///
    /// # Errors
    /// Shapes that do not fit.
    pub fn mean(&self, #[host] x: &Tensor<f32>) -> Result<Tensor<f32>> {
        let scaled = |t: &Tensor<f32>| ops::mul(t, &self.scale);
        let y = scaled(x)?;
        let z = #[eager]
        pair(&y)?;
        let Some(first) = #[eager]
        Some(z.first.clone()) else {
            return Err(Error::Argument { op: "mean", reason: "nothing".into() });
        };
        ops::sub(&ops::add(&scaled(&y)?, &first)?, &ops::mul(&y, &self.scale)?)
    }
}

graph! {
    /// Made by a macro, without boundaries.
    ///
    /// # Errors
    /// Shapes that do not fit.
    whole(rows: f32, 1 + 1) => { ops::neg(rows) }
}

graph! {
    /// Made by a macro, with a boundary in the body that it was given.
    ///
    /// # Errors
    /// Shapes that do not fit.
    split(rows: f32, 2) => {
        let twice = ops::scale(rows, 2.0)?;
        let minus = #[eager] pair(&twice)?;
        ops::add(&minus.first, &twice)
    }
}

driven_graph!(woven, x, y, pair(&y)?.first, ops::scale(&y, 3.0));

decided_graph!(decided, h, ops::gt(&ops::sum(h, 0)?, 0.0)?, ops::neg(h)?);

/// Runs all of it, three times: warmed up, recorded, replayed.
///
/// # Errors
/// None, where everything is right.
///
/// # Panics
/// Where a value is wrong.
pub fn run() -> Result<()> {
    let mut rt = Runtime::new(Device::cpu())?;
    let model = Model {
        scale: Param::new(&rt, &[2], &[1.0, 10.0])?,
        layers: vec![
            Layer { w: Param::new(&rt, &[2], &[1.0, 2.0])?, bias: None, activation: Activation::Linear },
            Layer {
                w: Param::new(&rt, &[2], &[3.0, -1.0])?,
                bias: Some(Param::new(&rt, &[2], &[0.5, 0.0])?),
                activation: Activation::Relu { scale: 2.0 },
            },
        ],
        eps: 0.5,
    };
    let forward = ForwardGraph::builder().build(&mut rt)?;
    let mean = ModelMeanGraph::builder().build(&mut rt)?;
    let whole = WholeGraph::builder().build(&mut rt)?;
    let split = SplitGraph::builder().build(&mut rt)?;
    let woven = WovenGraph::builder().build(&mut rt)?;
    let decided = DecidedGraph::builder().build(&mut rt)?;
    for _ in 0..3 {
        let step = rt.step()?;
        let shape: &[usize] = &[1, 2];
        let x: (&[f32], &[usize]) = (&[1.0, 2.0], shape);
        // 2x, then (q, 2q - q = q): [2, 8] by `w`, [2, 80] by `scale`; [6.5, -80] by `w` and bias,
        // cut and doubled: [13, 0]; halved.
        let y = forward.call(&step, x.0, 2.0, 8, &model)?;
        assert_eq!(step.read(&y)?, [6.5, 0.0]);
        assert_eq!(step.read(&mean.call(&step, &model, x)?)?, [-1.0, -20.0]);
        assert_eq!(step.read(&whole.call(&step, x.0)?)?, [-1.0, -2.0]);
        assert_eq!(step.read(&split.call(&step, x.0)?)?, [0.0, 0.0]);
        assert_eq!(step.read(&woven.call(&step, x)?)?, [-6.0, -12.0]);
        // Two rounds make 4x of it; with -x, 3x; halved.
        let row: (&[f32], &[usize]) = (x.0, &[2]);
        assert_eq!(step.read(&decided.call(&step, row, true)?)?, [1.5, 3.0]);
        assert_eq!(step.read(&decided.call(&step, row, false)?)?, [-0.5, -1.0]);
    }
    assert_eq!(WovenGraph::PLAN.boundaries(), 1);
    assert!(rt.stats().replays > 0);
    Ok(())
}
