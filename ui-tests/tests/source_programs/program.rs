//! Functions as trees of statements: rendered with and without the attributes that make boundaries, and cut down.

use std::fmt::Write as _;

/// A function of fixed parameters; see `template.rs`.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) seed: u64,
    /// Made by a macro that is given some of the names: `$a` and `a` are two variables.
    pub(crate) by_macro: bool,
    pub(crate) body: Vec<Stmt>,
}

/// A statement, or the value of a block.
#[derive(Clone)]
pub(crate) struct Stmt {
    /// `#[cfg(…)]` in front of it.
    pub(crate) condition: Option<&'static str>,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone)]
pub(crate) enum Part {
    /// Rust, with attributes of ours as `⟦eager⟧`, and what the device computes there, and the host without attributes, as
    /// `⟪ops::gt(q, 1)?¦q > 1⟫`.
    Text(String),
    Block(Vec<Stmt>),
}

/// Which of the two texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// With boundaries.
    Marked,
    /// Without: one segment.
    Plain,
}

impl Stmt {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { condition: None, parts: vec![Part::Text(text.into())] }
    }

    pub(crate) fn under(mut self, condition: &'static str) -> Self {
        // rustc takes an attribute before an assignment for one of its left side.
        let assigns = matches!(self.parts.first(), Some(Part::Text(text)) if {
            let head = text.split(['{', '⟦']).next().unwrap_or_default();
            let keyword = ["let ", "if ", "for ", "'", "return", "break"].iter().any(|k| head.starts_with(k));
            !keyword && (head.contains(" = ") || head.contains(" += "))
        });
        if assigns {
            self = Self { condition: None, parts: vec![Part::Block(vec![self])] };
        }
        self.condition = Some(condition);
        self
    }

    fn write(&self, form: Form, indent: usize, out: &mut String) {
        let pad = "    ".repeat(indent);
        if let Some(condition) = self.condition {
            let _ = writeln!(out, "{pad}#[cfg({condition})]");
        }
        out.push_str(&pad);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(&marked(text, form)),
                Part::Block(stmts) => {
                    out.push_str("{\n");
                    stmts.iter().for_each(|s| s.write(form, indent + 1, out));
                    let _ = write!(out, "{pad}}}");
                }
            }
        }
        out.push('\n');
    }

    fn count(&self) -> usize {
        let inside = |part: &Part| match part {
            Part::Text(_) => 0,
            Part::Block(stmts) => stmts.iter().map(Self::count).sum(),
        };
        1 + self.parts.iter().map(inside).sum::<usize>()
    }
}

/// The text with attributes written out, or left out.
fn marked(text: &str, form: Form) -> String {
    let mut parts = text.split('⟦');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (attribute, rest) = part.split_once('⟧').expect("attributes are closed");
        if form == Form::Marked {
            let _ = write!(out, "#[{attribute}] ");
        }
        out.push_str(rest);
    }
    let mut parts = out.split('⟪');
    let mut chosen = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (both, rest) = part.split_once('⟫').expect("alternatives are closed");
        let (device, host) = both.split_once('¦').expect("there are two");
        chosen.push_str(if form == Form::Marked { device } else { host });
        chosen.push_str(rest);
    }
    chosen
}

impl Program {
    /// The function's name, in either form.
    pub(crate) fn name(&self) -> String {
        format!("f{}", self.seed)
    }

    /// Returns whether a macro makes the function of a body that is its argument.
    fn is_argument(&self) -> bool {
        !self.by_macro && self.seed % 16 == 7
    }

    pub(crate) fn render(&self, form: Form) -> String {
        let mut body = String::new();
        self.body.iter().for_each(|s| s.write(form, 1, &mut body));
        let name = self.name();
        if self.is_argument() {
            let q = marked("⟪#[host] $q: &Scalar<i32>¦#[key] $q: i32⟫", form);
            return format!(
                "macro_rules! make_{name} {{ ($x:ident $y:ident $m:ident $kv:ident $n:ident $q:ident $body:expr) => {{\n\
                 #[graphable]\npub fn {name}($x: &Tensor<f32>, $y: &Tensor<f32>, $m: &Model, $kv: &Kv, #[key] $n: usize, {q}) \
                 -> Result<Tensor<f32>> {{ {} }}\n}} }}\nmake_{name}!(x y m kv n q {{\n{body}}});\n",
                // The places where a body may stand.
                [
                    "$body",
                    "return $body",
                    "($body)",
                    "let result = $body?; Ok(result)",
                    "let result = loop { break $body; }; result",
                    "let result = 'all: { break 'all $body; }; result",
                ][(self.seed / 16 % 6) as usize]
            );
        }
        // What the device decides by.
        let q = marked("⟪#[host] q: &Scalar<i32>¦#[key] q: i32⟫", form);
        let function = format!(
            "#[graphable]\npub fn {name}(x: &Tensor<f32>, y: &Tensor<f32>, m: &Model, kv: &Kv, #[key] n: usize, {q}) \
             -> Result<Tensor<f32>> {{\n{body}}}\n"
        );
        if self.by_macro {
            format!(
                "macro_rules! make_{name} {{ ($a:ident, $h:ident) => {{\n{function}}} }}\nmake_{name}!(a, h);\n"
            )
        } else {
            function
        }
    }

    /// Every program with one statement less, or with one block in place of its statement.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let count: usize = self.body.iter().map(Stmt::count).sum();
        let mut all = Vec::new();
        // From behind: what nothing depends on goes first.
        for at in (0..count).rev() {
            let mut body = self.body.clone();
            if remove(&mut body, &mut at.clone()) {
                all.push(Self { body, ..self.clone() });
            }
        }
        all
    }
}

/// Removes the statement of this number; the last one of the function stays.
fn remove(stmts: &mut Vec<Stmt>, at: &mut usize) -> bool {
    let mut i = 0;
    while i < stmts.len() {
        if *at == 0 {
            stmts.remove(i);
            return true;
        }
        *at -= 1;
        for part in &mut stmts[i].parts {
            if let Part::Block(inner) = part
                && remove(inner, at)
            {
                return true;
            }
        }
        i += 1;
    }
    false
}
