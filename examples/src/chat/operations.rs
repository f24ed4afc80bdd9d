//! The operations, filters, methods and functions that make texts and lists, each of which pays for what it makes; and those that
//! chat templates expect and the engine does not have.

use std::sync::Arc;

use minijinja::{
    Environment, Error, FormatStyle, State, Value, context, filters, format_filter,
    value::{Kwargs, Rest, ValueKind, from_args},
};
use minijinja_contrib::pycompat;

use super::{
    budget::{Budget, ENTRY, invalid, is_namespace},
    clock, program, python,
};

/// Characters of a refusal that are shown.
const REASON: usize = 500;

/// Filters that may be applied to each entry of a list: what they make of a text is about as long, or paid for. Others would
/// multiply before anything is.
const OF_ENTRIES: [&str; 18] = [
    "abs",
    "capitalize",
    "default",
    "d",
    "first",
    "float",
    "indent",
    "int",
    "last",
    "length",
    "lower",
    "replace",
    "round",
    "string",
    "title",
    "tojson",
    "trim",
    "upper",
];

/// Puts everything into the environment of a rendering.
pub(super) fn install(env: &mut Environment<'_>, budget: &Arc<Budget>) {
    // Python's Jinja does not have them, and they show what is computed late.
    for name in ["zip", "chain", "pprint"] {
        env.remove_filter(name);
    }
    env.remove_global("debug");
    // Python iterates over nothing else, and texts are sequences there.
    env.add_test("iterable", |value: Value| !value.is_none() && value.try_iter().is_ok());
    env.add_test("sequence", |value: Value| {
        value.as_str().is_some() || is_list(&value) || value.kind() == ValueKind::Map
    });
    operators(env, budget);
    text_filters(env, budget);
    list_filters(env, budget);
    env.add_function("raise_exception", |reason: String| -> Result<String, Error> {
        // It goes to a terminal.
        let mut shown: String = reason.chars().take(REASON).flat_map(char::escape_debug).collect();
        if reason.chars().nth(REASON).is_some() {
            shown.push('…');
        }
        Err(invalid(format!("it refuses the messages: {shown}")))
    });
    let paid = budget.clone();
    env.add_function("strftime_now", move |format: String| -> Result<String, Error> {
        paid.pay_for(format.len(), ENTRY)?;
        clock::strftime(&format, clock::now())
    });
    let paid = budget.clone();
    env.set_unknown_method_callback(move |state, value, name, args| method(&paid, state, value, name, args));
    let paid = budget.clone();
    env.set_formatter(move |out, _, value| {
        let value = paid.take(value.clone())?;
        if !value.is_undefined() {
            out.write_str(&python::text(&value))?;
        }
        Ok(())
    });
}

/// What the operators of a template have become.
fn operators(env: &mut Environment<'_>, budget: &Arc<Budget>) {
    let paid = budget.clone();
    env.add_filter(program::VALUE, move |value: Value| paid.take(value));
    let paid = budget.clone();
    env.add_filter(program::INPUT, move |value: Value| paid.affords_elements(&value).map(|()| value));
    env.add_filter(program::ATTRIBUTE, |value: Value| match is_namespace(&value) {
        true => Err(invalid("it puts a namespace into another one".into())),
        false => Ok(value),
    });
    let paid = budget.clone();
    env.add_filter(program::ADD, move |a: Value, b: Value| add(&paid, &a, &b));
    let paid = budget.clone();
    env.add_filter(program::MULTIPLY, move |a: Value, b: Value| multiply(&paid, &a, &b));
    let paid = budget.clone();
    env.add_filter(program::REMAINDER, move |a: Value, b: Value| match a.as_str() {
        // Python's format.
        Some(text) if is_list(&b) => {
            format(&paid, FormatStyle::Printf, text, &b.try_iter()?.collect::<Vec<_>>())
        }
        Some(text) => format(&paid, FormatStyle::Printf, text, &[b]),
        None => arithmetic("a % b", &a, &b),
    });
    let paid = budget.clone();
    env.add_filter(program::JOIN, move |a: Value, b: Value| {
        let (a, b) = (paid.take(a)?, paid.take(b)?);
        let text = |value: Value| if value.is_undefined() { String::new() } else { python::text(&value) };
        Ok::<_, Error>(text(a) + &text(b))
    });
    let paid = budget.clone();
    env.add_filter(program::SLICE, move |of: Value, start: Value, stop: Value, step: Value| {
        paid.affords_elements(&of)?;
        paid.take(slice(&of, &start, &stop, &step)?)
    });
}

fn text_filters(env: &mut Environment<'_>, budget: &Arc<Budget>) {
    let paid = budget.clone();
    env.add_filter("string", move |value: Value| Ok::<_, Error>(python::text(&paid.take(value)?)));
    let paid = budget.clone();
    env.add_filter("replace", move |of: Value, old: String, new: String, count: Option<i64>| {
        replace(&paid, &python::text(&paid.take(of)?), &old, &new, count.unwrap_or(-1))
    });
    let paid = budget.clone();
    env.add_filter("join", move |of: Value, between: Option<String>, options: Kwargs| {
        let between =
            between.map_or_else(|| options.get::<Option<String>>("d"), |between| Ok(Some(between)))?;
        let attribute: Option<String> = options.get("attribute")?;
        options.assert_all_used()?;
        join(&paid, &of, &between.unwrap_or_default(), attribute.as_deref())
    });
    let paid = budget.clone();
    env.add_filter("indent", move |of: Value, args: Rest<Value>| indent(&paid, &of, &args));
    let paid = budget.clone();
    env.add_filter("format", move |of: String, args: Rest<Value>| {
        format(&paid, FormatStyle::Printf, &of, &args)
    });
    let paid = budget.clone();
    env.add_filter("tojson", move |of: Value, options: Kwargs| python::json(&paid, &of, &options));
}

fn list_filters(env: &mut Environment<'_>, budget: &Arc<Budget>) {
    let paid = budget.clone();
    env.add_filter("batch", move |state: &State<'_, '_>, of: Value, count: usize, fill: Option<Value>| {
        paid.pay_for(count, ENTRY)?;
        filters::batch(state, of, count, fill)
    });
    let paid = budget.clone();
    env.add_filter("slice", move |state: &State<'_, '_>, of: Value, count: usize, fill: Option<Value>| {
        paid.pay_for(count, ENTRY)?;
        filters::slice(state, of, count, fill)
    });
    env.add_filter("map", |state: &State<'_, '_>, of: Value, args: Rest<Value>| {
        match args.first().and_then(Value::as_str) {
            Some(name) if !OF_ENTRIES.contains(&name) => {
                let reason =
                    format!("`map` with `{name}` is not supported, only with {}", OF_ENTRIES.join(", "));
                Err(invalid(reason))
            }
            _ => filters::map(state, of, args),
        }
    });
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn add(budget: &Budget, a: &Value, b: &Value) -> Result<Value, Error> {
    if is_list(a) && is_list(b) {
        return budget.take(a.try_iter()?.chain(b.try_iter()?).collect());
    }
    budget.take(arithmetic("a + b", a, b)?)
}

fn multiply(budget: &Budget, a: &Value, b: &Value) -> Result<Value, Error> {
    let repeats = |value: &Value| value.as_str().is_some() || is_list(value);
    let (of, count) = if repeats(b) { (b, a) } else { (a, b) };
    // As Python has it, less than once is not at all.
    let Some(count) = count.as_i64().filter(|_| repeats(of)).map(|count| count.max(0) as usize) else {
        return arithmetic("a * b", a, b);
    };
    match of.as_str() {
        Some(text) => {
            budget.pay_for(count, text.len() as u64)?;
            Ok(text.repeat(count).into())
        }
        None => {
            let entries: Vec<Value> = of.try_iter()?.collect();
            budget.pay_for(count, (entries.len() as u64).saturating_mul(ENTRY))?;
            budget.take(
                (0..if entries.is_empty() { 0 } else { count })
                    .flat_map(|_| entries.iter().cloned())
                    .collect(),
            )
        }
    }
}

/// What the engine makes of an expression of `a` and `b`.
fn arithmetic(expression: &str, a: &Value, b: &Value) -> Result<Value, Error> {
    Environment::empty().compile_expression(expression)?.eval(context! { a, b })
}

/// `of[start:stop:step]` of a text or a list, as Python has it.
fn slice(of: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value, Error> {
    let number = |value: &Value| match value.is_none() {
        true => Ok(None),
        false => i64::try_from(value.clone()).map(Some),
    };
    let step = number(step)?.unwrap_or(1);
    if step == 0 {
        return Err(invalid("a slice has the step 0".into()));
    }
    let entries: Vec<Value> = match of.as_str() {
        Some(text) => text.chars().map(Value::from).collect(),
        None if is_list(of) => of.try_iter()?.collect(),
        None => return Err(invalid(format!("value of type {} cannot be sliced", of.kind()))),
    };
    let length = entries.len() as i64;
    // The first place that is taken at most, and the one behind the last.
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let place = |given: Option<i64>, otherwise: i64| match given {
        None => otherwise,
        Some(at) => (if at < 0 { at.saturating_add(length) } else { at }).clamp(low, high),
    };
    let (start, stop) = (number(start)?, number(stop)?);
    let (start, stop) = match step > 0 {
        true => (place(start, 0), place(stop, length)),
        false => (place(start, length - 1), place(stop, -1)),
    };
    let mut taken = Vec::new();
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        taken.push(entries[at as usize].clone());
        at = at.saturating_add(step);
    }
    Ok(match of.as_str() {
        Some(_) => taken.iter().filter_map(Value::as_str).collect::<String>().into(),
        None => taken.into(),
    })
}

fn replace(budget: &Budget, text: &str, old: &str, new: &str, count: i64) -> Result<Value, Error> {
    let found = text.matches(old).count();
    let found = usize::try_from(count).map_or(found, |count| found.min(count));
    budget.pay(text.len() as u64)?;
    budget.pay_for(found, new.len() as u64)?;
    Ok(text.replacen(old, new, found).into())
}

fn join(budget: &Budget, of: &Value, between: &str, attribute: Option<&str>) -> Result<Value, Error> {
    let mut text = String::new();
    for (i, entry) in of.try_iter()?.enumerate() {
        if i > 0 {
            budget.pay(between.len() as u64)?;
            text.push_str(between);
        }
        let entry = attribute.map_or(Ok(entry.clone()), |name| entry.get_attr(name))?;
        let entry = budget.take(entry)?;
        if !entry.is_undefined() {
            text.push_str(&python::text(&entry));
        }
    }
    Ok(text.into())
}

fn indent(budget: &Budget, of: &Value, args: &[Value]) -> Result<Value, Error> {
    let (width, first, blank, options): (Option<usize>, Option<bool>, Option<bool>, Kwargs) =
        from_args(args)?;
    let width = width.map_or_else(|| options.get("width"), |width| Ok(Some(width)))?.unwrap_or(4);
    let first = first.map_or_else(|| options.get("first"), |first| Ok(Some(first)))?.unwrap_or(false);
    let blank = blank.map_or_else(|| options.get("blank"), |blank| Ok(Some(blank)))?.unwrap_or(false);
    options.assert_all_used()?;
    let text = python::text(&budget.take(of.clone())?);
    budget.pay_for(text.matches('\n').count() + 1, width as u64)?;
    let space = " ".repeat(width);
    // A line break at the end has an empty line behind it.
    let lines = text.lines().chain(text.ends_with('\n').then_some(""));
    let mut indented = String::new();
    for (i, line) in lines.enumerate() {
        indented.push_str(if i == 0 { "" } else { "\n" });
        if if i == 0 { first } else { blank || !line.is_empty() } {
            indented.push_str(&space);
        }
        indented.push_str(line);
    }
    Ok(indented.into())
}

/// A text with values in it; the widths that it asks for are paid for, and each value as often as it may come.
fn format(budget: &Budget, style: FormatStyle, of: &str, args: &[Value]) -> Result<Value, Error> {
    let given = args.iter().filter_map(Value::as_i64).map(i64::unsigned_abs).max().unwrap_or(0);
    let has_names = matches!(style, FormatStyle::Printf);
    // The engine panics beyond it.
    let most = u64::from(u16::MAX);
    for directive in directives(has_names, of) {
        if has_names && directive.starts_with('(') && !directive.contains(')') {
            return Err(invalid("a format has a name without its closing bracket".into()));
        }
        let digits = directive.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
        let stars = directive.matches('*').map(|_| given);
        for width in digits.map(|digits| digits.parse().unwrap_or(u64::MAX)).chain(stars) {
            budget.pay(width)?;
            if width > most {
                return Err(invalid(format!("a format has a width or a precision above {most}")));
            }
        }
    }
    let places = of.matches(['%', '{']).count() as u64;
    for arg in args {
        let bytes = python::text(&budget.take(arg.clone())?).len() as u64;
        budget.pay(bytes.saturating_mul(places))?;
    }
    format_filter(style, of, args).map(Value::from)
}

/// What stands between a sign that a value follows, `%` or `{`, and its end: numbers elsewhere in a text are no widths.
fn directives(has_percent: bool, of: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = of;
    while let Some((_, behind)) = rest.split_once(if has_percent { '%' } else { '{' }) {
        let end = match has_percent {
            true => {
                // A name in brackets first, which may have any letters.
                let name = if behind.starts_with('(') {
                    behind.find(')').map_or(behind.len(), |at| at + 1)
                } else {
                    0
                };
                let last = |c: char| c.is_alphabetic() || c == '%';
                behind[name..].find(last).map_or(behind.len(), |at| name + at)
            }
            false => behind.find(['}', '{']).unwrap_or(behind.len()),
        };
        found.push(&behind[..end]);
        // The second sign of a doubled one begins nothing.
        let skipped = usize::from(end == 0 && behind.starts_with(if has_percent { '%' } else { '{' }));
        rest = &behind[end + skipped..];
    }
    found
}

/// Methods of Python's texts, lists and dictionaries.
fn method(
    budget: &Budget,
    state: &State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return pycompat::unknown_method_callback(state, value, name, args);
    };
    match name {
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(args)?;
            replace(budget, text, old, new, count.unwrap_or(-1))
        }
        "join" => {
            let (of,): (&Value,) = from_args(args)?;
            join(budget, of, text, None)
        }
        "format" => format(budget, FormatStyle::StrFormat, text, args),
        "count" => {
            let (of,): (&str,) = from_args(args)?;
            Ok(text.matches(of).count().into())
        }
        "find" | "index" => found(name, text, args, |of, part| of.find(part)),
        "rfind" | "rindex" => found(name, text, args, |of, part| of.rfind(part)),
        "title" => {
            let () = from_args(args)?;
            Ok(title(text).into())
        }
        _ => pycompat::unknown_method_callback(state, value, name, args),
    }
}

/// The place of a part of a text in characters, as Python counts and slices are taken; the engine's methods count bytes.
fn found(
    name: &str,
    text: &str,
    args: &[Value],
    search: impl Fn(&str, &str) -> Option<usize>,
) -> Result<Value, Error> {
    let (part, start, end): (&str, Option<i64>, Option<i64>) = from_args(args)?;
    let length = text.chars().count() as i64;
    let place = |at: i64| if at < 0 { at.saturating_add(length).max(0) } else { at };
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(length)).min(length));
    let byte = |at: i64| text.char_indices().nth(at as usize).map_or(text.len(), |(byte, _)| byte);
    let within = if start <= end { Some(&text[byte(start)..byte(end)]) } else { None };
    match within.and_then(|within| Some(start as usize + within[..search(within, part)?].chars().count())) {
        Some(at) => Ok(at.into()),
        None if name.ends_with("index") => {
            Err(invalid("a text does not have the part that is looked for".into()))
        }
        None => Ok((-1).into()),
    }
}

/// Every letter that follows none in upper case, and all others in lower case.
fn title(text: &str) -> String {
    let mut titled = String::with_capacity(text.len());
    let mut within = false;
    for c in text.chars() {
        match within {
            true => titled.extend(c.to_lowercase()),
            false => titled.extend(c.to_uppercase()),
        }
        within = c.is_alphabetic();
    }
    titled
}
