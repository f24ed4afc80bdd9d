//! Programs as Rust text.

mod index;
mod rows;

use std::fmt::Write as _;

use crate::{
    interpret,
    program::{Argument, Expr, Function, Program, Statement, Ty, Value},
};

/// Constants of every function.
const ITEMS: &str = "const SLOPE: f32 = 0.1;\nconst STEEP: f64 = 0.1;\n";

/// A module with the kernels, and a function that prints what they compute.
pub(crate) fn module(program: &Program) -> String {
    let mut text = format!("pub mod p{} {{\nuse super::*;\n", program.seed);
    for function in &program.functions {
        text += &kernel(program, function);
    }
    text += &run(program);
    text + "}\n"
}

fn kernel(program: &Program, function: &Function) -> String {
    if let Some(row) = &function.row {
        return rows::kernel(program, function, row);
    }
    if let Some(index) = &function.index {
        return index::kernel(program, function, index);
    }
    let values = (0..function.inputs).map(|i| format!("p{i}: {}", function.variables[i].name()));
    let randoms = (0..function.randoms.len()).map(|i| format!("r{i}: Random"));
    let parameters: Vec<String> = values.chain(randoms).collect();
    let outputs = tuple(function.outputs.iter().map(|ty| ty.name().to_owned()).collect());
    let mut text =
        format!("#[kernel]\npub fn {}({}) -> {outputs} {{\n", function.name, parameters.join(", "));
    text += ITEMS;
    let writer = Writer { program, function };
    writer.statements(&function.body, &mut Vec::new(), &mut text);
    let results = function.results.iter().map(|result| writer.value(result)).collect();
    text + &tuple(results) + "\n}\n"
}

fn tuple(parts: Vec<String>) -> String {
    if let [one] = &parts[..] { one.clone() } else { format!("({})", parts.join(", ")) }
}

/// The element type of tensors.
fn stored(program: &Program, ty: Ty) -> &'static str {
    if ty == Ty::F32 { program.float } else { ty.name() }
}

fn run(program: &Program) -> String {
    let last = program.last();
    let mut text = "pub fn run(rt: &mut Runtime) -> Result<()> {\n".to_owned();
    let state = last.index.as_ref().and_then(|index| index.state.as_ref()).zip(last.outputs.last());
    if let Some((sizes, ty)) = state {
        let _ = writeln!(text, "let state = State::<{}>::zeros(rt, &{sizes:?})?;", stored(program, *ty));
    }
    let generators: Vec<usize> = (0..2).filter(|generator| last.randoms.contains(generator)).collect();
    for generator in &generators {
        let seed = interpret::seed(program, *generator);
        let _ = writeln!(text, "let rng{generator} = Rng::new(rt, {seed})?;");
    }
    text += "let step = &rt.step()?;\n";
    for generator in &generators {
        let _ = writeln!(text, "draw(step, &rng{generator}, {})?;", interpret::BEFORE[*generator]);
    }
    let mut arguments = Vec::new();
    for (i, argument) in program.arguments.iter().enumerate() {
        let ty = last.variables[i];
        match argument {
            Argument::Number(bits) => arguments.push(match ty {
                Ty::F32 => format!("f32::from_bits({bits}u32)"),
                Ty::F64 => format!("f64::from_bits({bits}u64)"),
                ty => literal(Value::of(ty, *bits), true),
            }),
            Argument::Tensor(view) => {
                let ty = stored(program, ty);
                let _ = writeln!(
                    text,
                    "let x{i} = input::<{ty}>(step, {}, {i}, &{:?}, &{:?}, {:?})?;",
                    program.seed, view.shape, view.axes, view.cut
                );
                arguments.push(format!("&x{i}"));
            }
        }
    }
    arguments.extend(last.randoms.iter().map(|generator| format!("&rng{generator}")));
    if let Some(back) = last.row.as_ref().and_then(|row| row.back) {
        arguments.push((program.shape.len() + 1 - back).to_string());
    }
    if let Some(index) = &last.index {
        if index.views.is_empty() {
            arguments.insert(0, "step.scope()".to_owned());
        }
        if state.is_some() {
            arguments.push("&state".to_owned());
        }
        arguments.push(format!("{:?}", program.shape));
    }
    let results: Vec<String> = (0..last.outputs.len()).map(|i| format!("y{i}")).collect();
    let types: Vec<String> =
        last.outputs.iter().map(|ty| format!("Tensor<'_, {}>", stored(program, *ty))).collect();
    // Where only numbers are floats, nothing says which type floats are stored in.
    let inputs = program.arguments.iter().zip(&last.variables);
    let floats = inputs.clone().any(|(_, ty)| *ty == Ty::F32);
    let known = inputs.clone().any(|(a, ty)| *ty == Ty::F32 && matches!(a, Argument::Tensor(_)));
    let generics = match floats && !known && !last.outputs.contains(&Ty::F32) {
        true => format!("::<{}>", program.float),
        false => String::new(),
    };
    if state.is_some() {
        let (name, arguments) = (&last.name, arguments.join(", "));
        let (seed, load) = (program.seed, "ops::load(step.scope(), &state)?");
        let _ = writeln!(text, "{name}{generics}({arguments})?;\nfault(step, {seed})?;\nlet y = {load};");
        let _ = writeln!(text, "show(step, {seed}, 0, &y)?;");
        return text + "Ok(())\n}\n";
    }
    let _ = writeln!(
        text,
        "let {}: {} = {}{generics}({})?;",
        tuple(results.clone()),
        tuple(types),
        last.name,
        arguments.join(", ")
    );
    for (i, result) in results.iter().enumerate() {
        let _ = writeln!(text, "show(step, {}, {i}, &{result})?;", program.seed);
    }
    text + "Ok(())\n}\n"
}

struct Writer<'a> {
    program: &'a Program,
    function: &'a Function,
}

impl Writer<'_> {
    /// If the function writes a state.
    fn writes(&self) -> bool {
        self.function.index.as_ref().is_some_and(|index| index.state.is_some())
    }

    fn name(&self, variable: usize) -> &str {
        &self.function.names[variable]
    }

    fn statements(&self, statements: &[Statement], loops: &mut Vec<usize>, text: &mut String) {
        for statement in statements {
            self.statement(statement, loops, text);
        }
    }

    fn block(&self, statements: &[Statement], loops: &mut Vec<usize>) -> String {
        let mut text = "{\n".to_owned();
        self.statements(statements, loops, &mut text);
        text + "}"
    }

    fn statement(&self, statement: &Statement, loops: &mut Vec<usize>, text: &mut String) {
        let line = match statement {
            // Every other one without its type: it follows from the value.
            Statement::Let(variable, value) => {
                let ty = if variable % 2 == 0 || !typed(value) {
                    format!(": {}", self.function.variables[*variable].name())
                } else {
                    String::new()
                };
                let word = if self.function.fixed.contains(variable) { "let" } else { "let mut" };
                format!("{word} {}{ty} = {};", self.name(*variable), self.value(value))
            }
            Statement::Parts(variables, value) => {
                let names: Vec<&str> = variables.iter().map(|variable| self.name(*variable)).collect();
                format!("let ({}) = {};", names.join(", "), self.value(value))
            }
            Statement::Row(row, pipe) => format!("let {} = {};", self.name(*row), self.pipe(pipe)),
            Statement::Folded(variables, fold) => {
                let names: Vec<&str> = variables.iter().map(|variable| self.name(*variable)).collect();
                format!("let ({}) = {};", names.join(", "), self.fold(fold))
            }
            Statement::Assign(variable, op, value) => {
                format!("{} {op}= {};", self.name(*variable), self.value(value))
            }
            Statement::If(condition, then, other) => {
                let mut line = format!("if {} {}", self.value(condition), self.block(then, loops));
                if !other.is_empty() {
                    let _ = write!(line, " else {}", self.block(other, loops));
                }
                line
            }
            Statement::For(counted) => {
                let ty = self.function.variables[counted.counter].name();
                let dots = if counted.inclusive { "..=" } else { ".." };
                let to = match counted.size {
                    Some((view, axis)) => format!("{}.dim({axis})", self.name(view)),
                    None => counted.to.to_string(),
                };
                let range = format!("{}{ty}{dots}{to}", counted.from);
                let range = if counted.reversed { format!("({range}).rev()") } else { range };
                let label = loops.len();
                loops.push(label);
                let body = self.block(&counted.body, loops);
                loops.pop();
                format!("'l{label}: for {} in {range} {body}", self.name(counted.counter))
            }
            Statement::Break(0) => "break;".to_owned(),
            Statement::Continue(0) => "continue;".to_owned(),
            Statement::Break(out) => format!("break 'l{};", loops.len() - 1 - out),
            Statement::Continue(out) => format!("continue 'l{};", loops.len() - 1 - out),
            Statement::Set(set) => self.set(set),
            Statement::Return(values) if self.writes() => format!("{}; return;", self.ends(values)),
            Statement::Return(values) => format!("return {};", self.ends(values)),
        };
        text.push_str(&line);
        text.push('\n');
    }

    /// Whether the macro knows its type, which is not said by another kernel.
    fn known(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Cast(..) | Expr::From(..) => true,
            Expr::Variable(variable) => *variable < self.function.inputs,
            _ => false,
        }
    }

    fn value(&self, expr: &Expr) -> String {
        match expr {
            Expr::Literal(value) => literal(*value, true),
            Expr::Constant(path, _) => (*path).to_owned(),
            Expr::Variable(variable) => self.name(*variable).to_owned(),
            Expr::Unary(op, value) => format!("({op}({}))", self.value(value)),
            Expr::Binary(op, left, right) => {
                // A number beside something that has a type needs no suffix.
                let plain = typed(left) && !matches!(*op, "<<" | ">>");
                let right = match &**right {
                    Expr::Literal(value) if plain => {
                        literal(*value, value.ty() == Ty::F64 && !self.known(left))
                    }
                    other => self.value(other),
                };
                format!("({} {op} {right})", self.value(left))
            }
            Expr::Cast(value, to) => format!("(({}) as {})", self.value(value), to.name()),
            Expr::From(to, value) => format!("{}::from({})", to.name(), self.value(value)),
            Expr::Method("from_bits", all) => format!("f32::from_bits({})", self.value(&all[0])),
            Expr::Method(name, all) => {
                let rest: Vec<String> = all[1..].iter().map(|one| self.value(one)).collect();
                format!("({}).{name}({})", self.value(&all[0]), rest.join(", "))
            }
            Expr::Call(function, all) => {
                let all: Vec<String> = all
                    .iter()
                    .map(|one| match one {
                        // An `f64` needs one there.
                        Expr::Literal(value) => literal(*value, value.ty() == Ty::F64),
                        other => self.value(other),
                    })
                    .collect();
                format!("{}({})", self.program.functions[*function].name, all.join(", "))
            }
            Expr::If(condition, then, other) => {
                format!(
                    "(if {} {{ {} }} else {{ {} }})",
                    self.value(condition),
                    self.value(then),
                    self.value(other)
                )
            }
            Expr::Row(reduction) => self.reduction(reduction),
            Expr::View(view, read) => self.read(*view, read),
            Expr::Random(at, method, bound) => {
                let bound = bound.as_ref().map(|bound| self.value(bound));
                format!("r{at}.{method}({})", bound.unwrap_or_default())
            }
            Expr::Match(value, arms, rest) => {
                let mut text = format!("(match {} {{\n", self.value(value));
                for (ranges, arm) in arms {
                    let ranges: Vec<String> = ranges
                        .iter()
                        .map(|(low, high)| match low.bits() == high.bits() {
                            true => literal(*low, false),
                            false => format!("{}..={}", literal(*low, false), literal(*high, false)),
                        })
                        .collect();
                    let _ = writeln!(text, "{} => {},", ranges.join(" | "), self.value(arm));
                }
                text + &format!("_ => {},\n}})", self.value(rest))
            }
            Expr::Block(statements, value) => {
                let mut text = "{\n".to_owned();
                self.statements(statements, &mut Vec::new(), &mut text);
                text + &self.value(value) + "\n}"
            }
        }
    }
}

/// Whether rustc knows its type without looking around.
fn typed(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) => false,
        Expr::If(_, then, _) => typed(then),
        Expr::Match(_, _, rest) => typed(rest),
        Expr::Block(_, value) | Expr::Unary(_, value) => typed(value),
        Expr::Binary(_, left, _) => typed(left),
        _ => true,
    }
}

fn literal(value: Value, suffix: bool) -> String {
    let text = match value {
        Value::Bool(v) => return v.to_string(),
        Value::F32(v) => format!("{v:?}"),
        Value::F64(v) => format!("{v:?}"),
        Value::I32(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::I8(v) => v.to_string(),
        Value::U32(v) => v.to_string(),
        Value::U8(v) => v.to_string(),
    };
    let text = if suffix { text + value.ty().name() } else { text };
    // A method binds closer than a sign.
    if suffix && text.starts_with('-') { format!("({text})") } else { text }
}
