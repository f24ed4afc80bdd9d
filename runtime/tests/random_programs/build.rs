//! Graph objects, as a macro would have specified them; the specifications live as long as the test.

use std::sync::Arc;

use graphable::{
    __private::{
        Dim, DimsSpec, FunctionSpec, GraphObject, InputKind, InputSpec, Options, Plan, PlanItem, Site,
        Support,
    },
    DType, Result, Runtime, Schedule,
    backend::faulty::FaultPlan,
};

use crate::{
    fills::Fills,
    program::{Elem, Func, Kind, Size, Stmt, Ty},
    run::Setup,
};

static SYMBOLS: [&str; 1] = ["B"];
static NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// A graph object, and what makes another one of the same function.
pub(crate) struct Built {
    pub(crate) function: GraphObject,
    pub(crate) sites: Vec<&'static Site>,
    pub(crate) fills: Fills,
    plan: &'static Plan,
}

/// A function, with sites and a plan of its own.
pub(crate) fn build(
    rt: &mut Runtime,
    func: &Func,
    setup: Setup,
    gives_up: bool,
    faults: &Arc<FaultPlan>,
) -> Result<Built> {
    let sites: Vec<&'static Site> = (0..func.sites)
        .map(|index| {
            let line = index as u32 + 1;
            &*Box::leak(Box::new(Site {
                function: "random",
                index,
                file: "program",
                first_line: line,
                last_line: line,
            }))
        })
        .collect();
    let mut items = Vec::new();
    plan_items(&func.body, &sites, &mut items);
    let plan: &'static Plan = Box::leak(Box::new(Plan {
        function: "random",
        file: "program",
        items: Vec::leak(items),
        host_statement: None,
    }));
    Ok(Built { function: object(rt, func, setup, gives_up, plan)?, sites, fills: Fills::new(faults), plan })
}

/// A graph object of a function.
fn object(
    rt: &mut Runtime,
    func: &Func,
    setup: Setup,
    gives_up: bool,
    plan: &'static Plan,
) -> Result<GraphObject> {
    let inputs: Vec<InputSpec> = func
        .inputs
        .iter()
        .enumerate()
        .map(|(i, input)| InputSpec {
            name: NAMES[i],
            kind: match input.kind {
                Kind::Host => InputKind::HostTensor,
                Kind::Scalar => InputKind::HostScalar,
                Kind::Device => InputKind::DeviceTensor,
            },
            dtype: dtype(input.ty.elem),
            dims: if func.dims || func.buckets.is_some() {
                DimsSpec::Some(dims(&input.ty))
            } else {
                DimsSpec::Unspecified
            },
        })
        .collect();
    let mut options = Options::default();
    options.mode(setup.mode);
    options.audit_every(setup.audit_every);
    options.limits(|l| l.max_moves = setup.moves);
    // A live-in that comes to be copied would be an error, too.
    options.deny_fallback(setup.moves == usize::MAX && !gives_up);
    if let Some(sizes) = &func.buckets {
        options.bucket("B", Schedule::new(sizes.iter().copied()));
    }
    let symbols: &[&str] = if func.dims || func.buckets.is_some() { &SYMBOLS } else { &[] };
    let spec = FunctionSpec { name: "random", plan, symbols, inputs: inputs.into() };
    GraphObject::new(rt, spec, options)
}

/// Another graph object of a function.
pub(crate) fn another(
    rt: &mut Runtime,
    built: &Built,
    func: &Func,
    setup: Setup,
    gives_up: bool,
) -> Result<Built> {
    let function = object(rt, func, setup, gives_up, built.plan)?;
    Ok(Built { function, sites: built.sites.clone(), fills: built.fills.another(), plan: built.plan })
}

/// Drops the graph object, and makes another one.
pub(crate) fn rebuild(
    rt: &mut Runtime,
    built: &mut Built,
    func: &Func,
    setup: Setup,
    gives_up: bool,
) -> Result<()> {
    built.function = object(rt, func, setup, gives_up, built.plan)?;
    built.fills = built.fills.another();
    Ok(())
}

fn plan_items(body: &[Stmt], sites: &[&'static Site], items: &mut Vec<PlanItem>) {
    for stmt in body {
        match stmt {
            Stmt::Segment(b) => {
                items.push(PlanItem::Segment { site: sites[b.site], live_ins: &[], live_outs: &[] });
            }
            Stmt::Eager { block, capturable } => items.push(PlanItem::Boundary {
                site: sites[block.site],
                call: "eager",
                support: if *capturable { Support::Always } else { Support::Never },
                moved: None,
            }),
            Stmt::Read { site, .. } => {
                items.push(PlanItem::Boundary {
                    site: sites[*site],
                    call: "read",
                    support: Support::Never,
                    moved: None,
                });
            }
            Stmt::Loop { body, .. } => plan_items(body, sites, items),
            Stmt::If { then, other, .. } => {
                plan_items(then, sites, items);
                plan_items(other, sites, items);
            }
            Stmt::Drop(_) | Stmt::Copy { .. } => {}
        }
    }
}

fn dtype(elem: Elem) -> DType {
    match elem {
        Elem::F32 => DType::F32,
        Elem::Bf16 => DType::Bf16,
        Elem::U32 => DType::U32,
        Elem::Bool => DType::Bool,
        Elem::F64 => DType::F64,
        Elem::I64 => DType::I64,
        Elem::I8 => DType::I8,
    }
}

fn dims(ty: &Ty) -> &'static [Dim] {
    let dims: Vec<Dim> = ty
        .dims
        .iter()
        .map(|d| match d {
            Size::B => Dim::Symbol(0),
            Size::N(n) => Dim::Const(*n),
            Size::V => unreachable!("inputs have sizes of their own"),
        })
        .collect();
    Vec::leak(dims)
}
