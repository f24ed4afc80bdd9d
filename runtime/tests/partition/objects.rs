//! Trait objects in models, settings and parameters: what stands behind one is part of the key, with nothing more
//! from whoever wrote the trait than `: Params`.

use std::{rc::Rc, sync::Arc};

use graphable::{ConfigValue, Mode, graphable, prelude::*};

use crate::support::{attention, runtime};

trait Act: Params {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>>;
}

#[derive(Params)]
struct Neg {}
#[derive(Params)]
struct Exp {}
#[derive(Params)]
struct Scale {
    #[config]
    by: f32,
}
#[derive(Params)]
struct Shift {
    #[config]
    by: f32,
}
/// Another type of the same fields, generic and with a lifetime.
#[derive(Params)]
struct Twice<'a, A: Params> {
    inner: &'a A,
}

impl Act for Neg {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::neg(x)
    }
}
impl Act for Exp {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::exp(x)
    }
}
impl Act for Scale {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::scale(x, self.by)
    }
}
impl Act for Shift {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        ops::add(x, &ops::full_like(x, self.by)?)
    }
}
impl<A: Act> Act for Twice<'_, A> {
    fn act<'s>(&self, x: &Tensor<'s, f32>) -> Result<Tensor<'s, f32>> {
        self.inner.act(&self.inner.act(x)?)
    }
}

trait Policy: ConfigValue {
    fn factor(&self) -> f32;
}
#[derive(ConfigValue)]
struct Half;
#[derive(ConfigValue)]
struct Double;
impl Policy for Half {
    fn factor(&self) -> f32 {
        0.5
    }
}
impl Policy for Double {
    fn factor(&self) -> f32 {
        2.0
    }
}

/// A struct whose last field may be an object itself.
#[derive(Params)]
struct Tail<A: ?Sized + Params> {
    #[config]
    gain: f32,
    act: A,
}

#[derive(Params)]
struct Model {
    act: Box<dyn Act>,
    blocks: Vec<Box<dyn Act>>,
    maybe: Option<Arc<dyn Act>>,
    tail: Box<Tail<dyn Act>>,
    counted: Rc<dyn Act>,
    #[config]
    policy: Arc<dyn Policy>,
    #[config]
    counted_policy: Rc<dyn Policy>,
}

impl Model {
    fn new(act: impl Act + 'static) -> Self {
        Self {
            act: Box::new(act),
            blocks: vec![Box::new(Scale { by: 2.0 }), Box::new(Shift { by: 2.0 })],
            maybe: None,
            tail: Box::new(Tail { gain: 1.0, act: Scale { by: 3.0 } }),
            counted: Rc::new(Scale { by: 1.5 }),
            policy: Arc::new(Half),
            counted_policy: Rc::new(Half),
        }
    }

    /// What the graphs below compute, on the host.
    fn on_host(&self, apply: &dyn Fn(&dyn Act, f32) -> f32, x: f32) -> f32 {
        let mut h = apply(&*self.act, x);
        for block in &self.blocks {
            h = apply(&**block, h);
        }
        if let Some(maybe) = &self.maybe {
            h = apply(&**maybe, h);
        }
        let h = apply(&*self.counted, apply(&self.tail.act, h));
        h * self.policy.factor() * self.counted_policy.factor() * self.tail.gain
    }
}

fn apply(act: &dyn Act, x: f32) -> f32 {
    let mut rt = runtime();
    let step = rt.step().unwrap();
    let x = step.tensor(&[1], &[x]).unwrap();
    step.read(&act.act(&x).unwrap()).unwrap()[0]
}

#[graphable]
fn whole(x: &Tensor<f32>, model: &Model, #[dims(1)] _y: &Tensor<f32>) -> Result<Tensor<f32>> {
    let mut h = model.act.act(x)?;
    for block in &model.blocks {
        h = block.act(&h)?;
    }
    if let Some(maybe) = &model.maybe {
        h = maybe.act(&h)?;
    }
    h = model.counted.act(&model.tail.act.act(&h)?)?;
    ops::scale(&h, model.policy.factor() * model.counted_policy.factor() * model.tail.gain)
}

#[graphable]
fn cut(x: &Tensor<f32>, model: &Model) -> Result<Tensor<f32>> {
    let mut h = model.act.act(x)?;
    for block in &model.blocks {
        h = #[eager(support = Always)]
        attention(&h)?;
        h = block.act(&h)?;
    }
    if let Some(maybe) = &model.maybe {
        h = maybe.act(&h)?;
    }
    let a = #[eager(support = Always)]
    attention(&h)?;
    h = model.counted.act(&model.tail.act.act(&a)?)?;
    let policy = &model.policy;
    ops::scale(&h, policy.factor() * model.counted_policy.factor() * model.tail.gain)
}

#[graphable]
fn object(x: &Tensor<f32>, act: &dyn Act) -> Result<Tensor<f32>> {
    let a = #[eager(support = Always)]
    attention(x)?;
    act.act(&a)
}

/// Each model in turn, several times over, through one graph.
#[test]
fn replaced_objects_are_recorded_anew() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let whole = WholeGraph::builder().mode(mode).build(&mut rt).unwrap();
        let cut = CutGraph::builder().mode(mode).build(&mut rt).unwrap();
        let scale = &Scale { by: 2.0 };
        let mut models = vec![Model::new(Neg {}), Model::new(Exp {}), Model::new(Scale { by: 5.0 })];
        models.push(Model::new(Shift { by: 5.0 }));
        let mut other = Model::new(Neg {});
        other.blocks.swap(0, 1);
        models.push(other);
        let mut other = Model::new(Neg {});
        other.policy = Arc::new(Double);
        models.push(other);
        let mut other = Model::new(Neg {});
        other.tail = Box::new(Tail { gain: 1.0, act: Shift { by: 3.0 } });
        models.push(other);
        models.push(Model { counted: Rc::new(Shift { by: 1.5 }), ..Model::new(Neg {}) });
        models.push(Model { counted_policy: Rc::new(Double), ..Model::new(Neg {}) });
        for by in [Arc::new(Scale { by: 2.0 }) as Arc<dyn Act>, Arc::new(Shift { by: 2.0 })] {
            models.push(Model { maybe: Some(by), ..Model::new(Neg {}) });
        }
        models.push(Model {
            act: Box::new(Twice { inner: Box::leak(Box::new(Scale { by: 2.0 })) }),
            ..Model::new(Neg {})
        });
        models.push(Model {
            act: Box::new(Twice { inner: Box::leak(Box::new(Shift { by: 2.0 })) }),
            ..Model::new(Neg {})
        });
        let _ = scale;
        let expected: Vec<f32> = models.iter().map(|m| m.on_host(&apply, 1.0)).collect();
        for round in 0..5 {
            let before = rt.stats().recordings;
            for (i, model) in models.iter().enumerate() {
                let step = rt.step().unwrap();
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let y = whole.call(&step, &x, model, &x).unwrap();
                let z = cut.call(&step, &x, model).unwrap();
                let got = [step.read(&y).unwrap()[0], step.read(&z).unwrap()[0]];
                assert_eq!(got, [expected[i]; 2], "mode {mode}, round {round}, model {i}");
            }
            assert!(round < 3 || rt.stats().recordings == before, "mode {mode}: round {round} records");
        }
    }
}

#[test]
fn objects_as_parameters() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = ObjectGraph::builder().mode(mode).build(&mut rt).unwrap();
        let (scale, shift) = (Scale { by: 4.0 }, Shift { by: 4.0 });
        let acts: [(&dyn Act, f32); 4] =
            [(&Neg {}, -1.0), (&scale, 4.0), (&shift, 5.0), (&Twice { inner: &scale }, 16.0)];
        for _ in 0..4 {
            for (act, expected) in acts {
                let step = rt.step().unwrap();
                let x = step.tensor(&[1], &[1.0]).unwrap();
                let y = graph.call(&step, &x, act).unwrap();
                assert_eq!(step.read(&y).unwrap(), [expected], "mode {mode}");
            }
        }
    }
}

/// A model whose weights may be tied, and a body that looks at the handles.
#[derive(Params)]
struct Tied {
    weight: Rc<Param<f32>>,
    tied: Rc<Param<f32>>,
}

#[graphable]
fn tells_tied(x: &Tensor<f32>, model: &Tied) -> Result<Tensor<f32>> {
    let mut h = ops::neg(x)?;
    if Rc::ptr_eq(&model.weight, &model.tied) {
        h = ops::scale(&h, 10.0)?;
    }
    ops::mul(&h, &*model.weight)
}

/// Whether weights are tied is part of what a warm-up is for.
#[test]
fn tied_weights_are_told_apart() {
    for mode in [Mode::None, Mode::Piecewise, Mode::Full] {
        let mut rt = runtime();
        let graph = TellsTiedGraph::builder().mode(mode).build(&mut rt).unwrap();
        let param = |value: f32| Rc::new(Param::new(&rt, &[1], &[value]).unwrap());
        let (p, q) = (param(1.0), param(2.0));
        let model = |weight: &Rc<Param<f32>>, tied: &Rc<Param<f32>>| Tied {
            weight: weight.clone(),
            tied: tied.clone(),
        };
        let models = [model(&p, &p), model(&p, &q), model(&q, &q), model(&q, &p)];
        let expected = [-10.0, -1.0, -20.0, -2.0];
        for at in [0, 0, 0, 1, 1, 1, 0, 1, 2, 3, 2, 3, 2, 3, 0, 1] {
            let step = rt.step().unwrap();
            let x = step.tensor(&[1], &[1.0]).unwrap();
            let y = graph.call(&step, &x, &models[at]).unwrap();
            assert_eq!(step.read(&y).unwrap(), [expected[at]], "{mode}, model {at}");
        }
        assert_eq!(rt.stats().fallbacks, 0);
    }
}
