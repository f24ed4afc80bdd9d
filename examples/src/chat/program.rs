//! From the text of a template to what the engine runs.
//!
//! The engine counts its steps, but not what a step makes: a text that is appended to itself sixty times is no text any more. So
//! every operation that makes one becomes a filter of ours ([`super::operations`]) that pays for it first.

use minijinja::{
    Error, ErrorKind, Value,
    machinery::{
        CodeGenerator, Instructions, Span, Token, WhitespaceConfig,
        ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt, UnaryOpKind},
        parse, tokenize,
    },
    syntax::SyntaxConfig,
};

use super::budget::{LENGTH, TAG, TAGS, invalid};

/// What templates are written for: transformers takes the line break after a block away, and the one at the end.
const SPACE: WhitespaceConfig =
    WhitespaceConfig { keep_trailing_newline: false, lstrip_blocks: true, trim_blocks: true };

/// The names of our filters; none of them can be a filter's in a template.
pub(super) const VALUE: &str = "(value)";
pub(super) const INPUT: &str = "(input)";
pub(super) const ATTRIBUTE: &str = "(attribute)";
pub(super) const ADD: &str = "(+)";
pub(super) const MULTIPLY: &str = "(*)";
pub(super) const REMAINDER: &str = "(%)";
pub(super) const JOIN: &str = "(~)";
pub(super) const SLICE: &str = "(slice)";

/// The template, if it is small enough to be compiled, with plain conditions in place of `{% generation %}`, which transformers marks
/// the answers of a conversation with.
///
/// # Errors
/// If it is too long, or a part of it is.
pub(super) fn checked(source: &str) -> Result<String, Error> {
    if source.len() > LENGTH {
        return Err(invalid(format!("it has {} bytes, and {LENGTH} are the most", source.len())));
    }
    // Every line break is one of Unix in Jinja.
    let source = &source.replace("\r\n", "\n").replace('\r', "\n");
    let mut plain = String::with_capacity(source.len());
    let (mut tags, mut length, mut copied) = (0, 0, 0);
    let mut opened = false;
    for token in tokenize(source, false, SyntaxConfig, SPACE) {
        let (token, span) = token?;
        length += 1;
        match token {
            Token::BlockStart | Token::VariableStart => (tags, length) = (tags + 1, 0),
            Token::Ident(word @ ("generation" | "endgeneration")) if opened => {
                plain.push_str(&source[copied..span.start_offset as usize]);
                plain.push_str(if word == "generation" { "if true" } else { "endif" });
                copied = span.end_offset as usize;
            }
            _ => {}
        }
        opened = matches!(token, Token::BlockStart);
        if length > TAG || tags > TAGS {
            let line = span.start_line;
            let reason =
                format!("line {line} is above {TAG} words and signs within braces, or {TAGS} braces");
            return Err(invalid(reason));
        }
    }
    plain.push_str(&source[copied..]);
    Ok(plain)
}

/// Compiles a template that was [`checked`].
///
/// # Errors
/// If it is not Jinja, or uses something that is not supported.
pub(super) fn compile(source: &str) -> Result<Instructions<'_>, Error> {
    let parsed = parse(source, "template", SyntaxConfig, SPACE)?;
    let mut generator = CodeGenerator::new("template", source);
    generator.compile_stmt(&statement(&parsed)?);
    Ok(generator.finish().0)
}

type Statements<'a> = Vec<Stmt<'a>>;

fn statements<'a>(all: &[Stmt<'a>]) -> Result<Statements<'a>, Error> {
    all.iter().map(statement).collect()
}

fn statement<'a>(of: &Stmt<'a>) -> Result<Stmt<'a>, Error> {
    Ok(match of {
        Stmt::Template(s) => {
            Stmt::Template(Spanned::new(ast::Template { children: statements(&s.children)? }, s.span()))
        }
        Stmt::EmitExpr(s) => Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: expr(&s.expr)? }, s.span())),
        // The text between blocks is paid for as values are.
        Stmt::EmitRaw(s) => {
            let text = constant(Value::from(s.raw), s.span());
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: text }, s.span()))
        }
        Stmt::ForLoop(s) => Stmt::ForLoop(Spanned::new(for_loop(s)?, s.span())),
        Stmt::IfCond(s) => {
            let true_body = statements(&s.true_body)?;
            let false_body = statements(&s.false_body)?;
            Stmt::IfCond(Spanned::new(ast::IfCond { expr: expr(&s.expr)?, true_body, false_body }, s.span()))
        }
        Stmt::WithBlock(s) => {
            let pair = |(to, from): &(Expr<'a>, Expr<'a>)| Ok((expr(to)?, expr(from)?));
            let assignments = s.assignments.iter().map(pair).collect::<Result<_, Error>>()?;
            Stmt::WithBlock(Spanned::new(
                ast::WithBlock { assignments, body: statements(&s.body)? },
                s.span(),
            ))
        }
        Stmt::Set(s) => Stmt::Set(Spanned::new(set(s)?, s.span())),
        Stmt::SetBlock(s) => {
            let filter = s.filter.as_ref().map(expr).transpose()?;
            let set = ast::SetBlock { target: target(&s.target)?, filter, body: statements(&s.body)? };
            Stmt::SetBlock(Spanned::new(set, s.span()))
        }
        Stmt::FilterBlock(s) => {
            let block = ast::FilterBlock { filter: expr(&s.filter)?, body: statements(&s.body)? };
            Stmt::FilterBlock(Spanned::new(block, s.span()))
        }
        Stmt::Macro(s) => Stmt::Macro(Spanned::new(macro_of(s)?, s.span())),
        Stmt::CallBlock(s) => {
            let call = Spanned::new(call(&s.call)?, s.call.span());
            let macro_decl = Spanned::new(macro_of(&s.macro_decl)?, s.macro_decl.span());
            Stmt::CallBlock(Spanned::new(ast::CallBlock { call, macro_decl }, s.span()))
        }
        Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
        Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
        Stmt::Do(s) => {
            let call = Spanned::new(call(&s.call)?, s.call.span());
            Stmt::Do(Spanned::new(ast::Do { call }, s.span()))
        }
        Stmt::AutoEscape(s) => return Err(unsupported("`autoescape`", s.span())),
        // A template has no others beside it.
        Stmt::Block(s) => return Err(unsupported("`block`", s.span())),
        Stmt::Extends(s) => return Err(unsupported("`extends`", s.span())),
        Stmt::Include(s) => return Err(unsupported("`include`", s.span())),
        Stmt::Import(s) => return Err(unsupported("`import`", s.span())),
        Stmt::FromImport(s) => return Err(unsupported("`from`", s.span())),
    })
}

fn for_loop<'a>(of: &ast::ForLoop<'a>) -> Result<ast::ForLoop<'a>, Error> {
    Ok(ast::ForLoop {
        target: target(&of.target)?,
        iter: filter(INPUT, Some(expr(&of.iter)?), vec![], of.iter.span()),
        filter_expr: of.filter_expr.as_ref().map(expr).transpose()?,
        recursive: of.recursive,
        body: statements(&of.body)?,
        else_body: statements(&of.else_body)?,
    })
}

fn set<'a>(of: &ast::Set<'a>) -> Result<ast::Set<'a>, Error> {
    let value = expr(&of.expr)?;
    let value = match &of.target {
        Expr::GetAttr(at) => filter(ATTRIBUTE, Some(value), vec![], at.span()),
        _ => value,
    };
    Ok(ast::Set { target: target(&of.target)?, expr: value })
}

fn macro_of<'a>(of: &ast::Macro<'a>) -> Result<ast::Macro<'a>, Error> {
    let args = of.args.iter().map(target).collect::<Result<_, _>>()?;
    let defaults = of.defaults.iter().map(expr).collect::<Result<_, _>>()?;
    Ok(ast::Macro { name: of.name, args, defaults, body: statements(&of.body)? })
}

/// What is assigned to: a name, several of them, or an attribute.
fn target<'a>(of: &Expr<'a>) -> Result<Expr<'a>, Error> {
    Ok(match of {
        Expr::List(s) => {
            let items = s.items.iter().map(target).collect::<Result<_, _>>()?;
            Expr::List(Spanned::new(ast::List { items }, s.span()))
        }
        other => expr(other)?,
    })
}

fn expr<'a>(of: &Expr<'a>) -> Result<Expr<'a>, Error> {
    Ok(match of {
        Expr::Var(s) => Expr::Var(Spanned::new(ast::Var { id: s.id }, s.span())),
        Expr::Const(s) => constant(s.value.clone(), s.span()),
        Expr::Slice(s) => slice(s)?,
        Expr::UnaryOp(s) => {
            // It is not `Copy`.
            let op = if matches!(s.op, UnaryOpKind::Not) { UnaryOpKind::Not } else { UnaryOpKind::Neg };
            Expr::UnaryOp(Spanned::new(ast::UnaryOp { op, expr: expr(&s.expr)? }, s.span()))
        }
        Expr::BinOp(s) => operation(s)?,
        Expr::Compare(s) => {
            let op = |op: &ast::CompareOp<'a>| Ok(ast::CompareOp { op: op.op, expr: paid(expr(&op.expr)?) });
            let ops = s.ops.iter().map(op).collect::<Result<_, Error>>()?;
            Expr::Compare(Spanned::new(ast::Compare { expr: paid(expr(&s.expr)?), ops }, s.span()))
        }
        Expr::IfExpr(s) => Expr::IfExpr(Spanned::new(condition(s)?, s.span())),
        Expr::Filter(s) => {
            let input = filter(INPUT, s.expr.as_ref().map(expr).transpose()?, vec![], s.span());
            let result = filter(s.name, Some(input), arguments(&s.args, s.span())?, s.span());
            paid(result)
        }
        Expr::Test(s) => {
            let (args, of) = (arguments(&s.args, s.span())?, expr(&s.expr)?);
            // One with arguments compares.
            let of = if args.is_empty() { of } else { paid(of) };
            let args = args.into_iter().map(paid_argument).collect();
            Expr::Test(Spanned::new(ast::Test { name: s.name, expr: of, args }, s.span()))
        }
        Expr::GetAttr(s) => {
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr: expr(&s.expr)?, name: s.name }, s.span()))
        }
        Expr::GetItem(s) => {
            let subscript_expr = expr(&s.subscript_expr)?;
            Expr::GetItem(Spanned::new(ast::GetItem { expr: expr(&s.expr)?, subscript_expr }, s.span()))
        }
        Expr::Call(s) => paid(Expr::Call(Spanned::new(call(s)?, s.span()))),
        Expr::List(s) => {
            let items = s.items.iter().map(expr).collect::<Result<_, _>>()?;
            paid(Expr::List(Spanned::new(ast::List { items }, s.span())))
        }
        Expr::Map(s) => {
            let keys = s.keys.iter().map(expr).collect::<Result<_, _>>()?;
            let values = s.values.iter().map(expr).collect::<Result<_, _>>()?;
            paid(Expr::Map(Spanned::new(ast::Map { keys, values }, s.span())))
        }
    })
}

fn slice<'a>(of: &Spanned<ast::Slice<'a>>) -> Result<Expr<'a>, Error> {
    let end = |end: &Option<Expr<'a>>| match end {
        Some(end) => expr(end).map(CallArg::Pos),
        None => Ok(CallArg::Pos(constant(Value::from(()), of.span()))),
    };
    let ends = vec![end(&of.start)?, end(&of.stop)?, end(&of.step)?];
    Ok(filter(SLICE, Some(expr(&of.expr)?), ends, of.span()))
}

fn condition<'a>(of: &ast::IfExpr<'a>) -> Result<ast::IfExpr<'a>, Error> {
    Ok(ast::IfExpr {
        test_expr: expr(&of.test_expr)?,
        true_expr: expr(&of.true_expr)?,
        false_expr: of.false_expr.as_ref().map(expr).transpose()?,
    })
}

fn operation<'a>(of: &Spanned<ast::BinOp<'a>>) -> Result<Expr<'a>, Error> {
    let (left, right) = (expr(&of.left)?, expr(&of.right)?);
    let name = match of.op {
        BinOpKind::Add => ADD,
        BinOpKind::Mul => MULTIPLY,
        BinOpKind::Rem => REMAINDER,
        BinOpKind::Concat => JOIN,
        op @ (BinOpKind::ScAnd | BinOpKind::ScOr) => {
            return Ok(Expr::BinOp(Spanned::new(ast::BinOp { op, left, right }, of.span())));
        }
        // Looking through a long list takes its time, so it is paid for as making the list is.
        op => {
            let (left, right) = (paid(left), paid(right));
            return Ok(Expr::BinOp(Spanned::new(ast::BinOp { op, left, right }, of.span())));
        }
    };
    Ok(filter(name, Some(left), vec![CallArg::Pos(right)], of.span()))
}

fn call<'a>(of: &ast::Call<'a>) -> Result<ast::Call<'a>, Error> {
    let function = match &of.expr {
        // A method takes its text apart as a filter does.
        Expr::GetAttr(s) => {
            let object = filter(INPUT, Some(expr(&s.expr)?), vec![], s.span());
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr: object, name: s.name }, s.span()))
        }
        other => expr(other)?,
    };
    Ok(ast::Call { expr: function, args: arguments(&of.args, of.expr.span())? })
}

fn arguments<'a>(of: &[CallArg<'a>], span: Span) -> Result<Vec<CallArg<'a>>, Error> {
    let argument = |arg: &CallArg<'a>| match arg {
        CallArg::Pos(value) => Ok(CallArg::Pos(expr(value)?)),
        CallArg::Kwarg(name, value) => Ok(CallArg::Kwarg(name, expr(value)?)),
        CallArg::PosSplat(_) | CallArg::KwargSplat(_) => Err(unsupported("a list as arguments (`*`)", span)),
    };
    of.iter().map(argument).collect()
}

fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(ast::Const { value }, span))
}

/// The value of an expression, paid for.
fn paid(value: Expr<'_>) -> Expr<'_> {
    let span = value.span();
    filter(VALUE, Some(value), vec![], span)
}

fn paid_argument(argument: CallArg<'_>) -> CallArg<'_> {
    match argument {
        CallArg::Pos(value) => CallArg::Pos(paid(value)),
        CallArg::Kwarg(name, value) => CallArg::Kwarg(name, paid(value)),
        other => other,
    }
}

fn filter<'a>(name: &'a str, of: Option<Expr<'a>>, args: Vec<CallArg<'a>>, span: Span) -> Expr<'a> {
    Expr::Filter(Spanned::new(ast::Filter { name, expr: of, args }, span))
}

fn unsupported(what: &str, span: Span) -> Error {
    let line = span.start_line;
    Error::new(ErrorKind::SyntaxError, format!("{what} in line {line} is not supported"))
}
