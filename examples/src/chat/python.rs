//! Values as Python writes them.

use minijinja::{
    Error, Value,
    value::{Kwargs, ValueKind},
};

use super::budget::{Budget, invalid};

/// What `str` makes of a value.
pub(super) fn text(of: &Value) -> String {
    match of.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let mut text = String::new();
            repr(of, &mut text);
            text
        }
    }
}

/// Appends what `repr` makes of a value.
fn repr(of: &Value, to: &mut String) {
    match of.kind() {
        ValueKind::String => quoted(of.as_str().unwrap_or_default(), to),
        ValueKind::Number => to.push_str(&number(of)),
        ValueKind::Seq | ValueKind::Iterable => {
            let entries = of.try_iter().into_iter().flatten();
            list(['[', ']'], entries, to, |entry, to| repr(&entry, to));
        }
        ValueKind::Map => {
            let keys = of.try_iter().into_iter().flatten();
            list(['{', '}'], keys, to, |key, to| {
                repr(&key, to);
                to.push_str(": ");
                repr(&of.get_item(&key).unwrap_or_default(), to);
            });
        }
        _ => to.push_str(&of.to_string()),
    }
}

fn list(
    [open, close]: [char; 2],
    entries: impl Iterator<Item = Value>,
    to: &mut String,
    mut write: impl FnMut(Value, &mut String),
) {
    to.push(open);
    for (i, entry) in entries.enumerate() {
        to.push_str(if i == 0 { "" } else { ", " });
        write(entry, to);
    }
    to.push(close);
}

/// A text within quotes: single ones, unless it has some and no double ones.
fn quoted(text: &str, to: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    to.push(quote);
    for c in text.chars() {
        match c {
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            c if c == quote => to.extend(['\\', c]),
            c if printable(c) => to.push(c),
            c => to.push_str(&match u32::from(c) {
                n @ ..0x100 => format!("\\x{n:02x}"),
                n @ ..0x10000 => format!("\\u{n:04x}"),
                n => format!("\\U{n:08x}"),
            }),
        }
    }
    to.push(quote);
}

fn printable(c: char) -> bool {
    // An accent is printable behind a letter.
    c == ' ' || !(c.is_whitespace() || format!("a{c}").escape_debug().any(|c| c == '{') && c != '{')
}

/// A number; a float has the fewest digits that say which one it is, and an exponent if it is long.
fn number(of: &Value) -> String {
    let Some(float) = f64::try_from(of.clone()).ok().filter(|_| !of.is_integer()) else {
        return of.to_string();
    };
    if !float.is_finite() {
        return if float.is_nan() {
            "nan"
        } else if float > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{float:?}"),
    }
}

/// How `json.dumps` writes.
struct Json<'a> {
    budget: &'a Budget,
    /// Spaces of a level, if each entry has a line of its own.
    indent: Option<usize>,
    between: String,
    after_key: String,
    ascii: bool,
    sorted: bool,
}

/// What `json.dumps` makes of a value, as transformers calls it for `tojson`: nothing is escaped that need not be.
pub(super) fn json(budget: &Budget, of: &Value, options: &Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let indent = indent.map(|spaces| spaces.min(64));
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (between, after_key) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }.into(), ": ".into()),
        Some([between, after_key]) => (between.clone(), after_key.clone()),
        Some(_) => return Err(invalid("`separators` of `tojson` are two texts".into())),
    };
    let ascii = options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false);
    let sorted = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut text = String::new();
    Json { budget, indent, between, after_key, ascii, sorted }.write(of, 0, &mut text)?;
    Ok(text)
}

impl Json<'_> {
    fn write(&self, of: &Value, level: usize, to: &mut String) -> Result<(), Error> {
        match of.kind() {
            ValueKind::None => to.push_str("null"),
            ValueKind::Bool => to.push_str(if of.is_true() { "true" } else { "false" }),
            ValueKind::Number => to.push_str(&match number(of).as_str() {
                "nan" => "NaN".into(),
                "inf" => "Infinity".into(),
                "-inf" => "-Infinity".into(),
                other => other.to_owned(),
            }),
            ValueKind::String => self.string(of.as_str().unwrap_or_default(), to)?,
            ValueKind::Seq | ValueKind::Iterable => {
                let entries: Vec<Value> = of.try_iter()?.collect();
                self.list(['[', ']'], &entries, level, to, |entry, to| self.write(entry, level + 1, to))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = of.try_iter()?.collect();
                if self.sorted {
                    keys.sort();
                }
                self.list(['{', '}'], &keys, level, to, |key, to| {
                    match key.as_str() {
                        Some(key) => self.string(key, to)?,
                        None => {
                            let mut plain = String::new();
                            self.write(key, level + 1, &mut plain)?;
                            self.string(&plain, to)?;
                        }
                    }
                    to.push_str(&self.after_key);
                    self.write(&of.get_item(key)?, level + 1, to)
                })?;
            }
            kind => return Err(invalid(format!("a value of type {kind} has no JSON"))),
        }
        Ok(())
    }

    fn list(
        &self,
        [open, close]: [char; 2],
        entries: &[Value],
        level: usize,
        to: &mut String,
        write: impl Fn(&Value, &mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        to.push(open);
        for (i, entry) in entries.iter().enumerate() {
            to.push_str(if i == 0 { "" } else { &self.between });
            self.line(level + 1, to)?;
            write(entry, to)?;
        }
        if !entries.is_empty() {
            self.line(level, to)?;
        }
        to.push(close);
        Ok(())
    }

    fn line(&self, level: usize, to: &mut String) -> Result<(), Error> {
        let spaces = self.indent.map(|indent| indent * level);
        self.budget.pay((spaces.unwrap_or(0) + self.between.len() + self.after_key.len() + 1) as u64)?;
        if let Some(spaces) = spaces {
            to.push('\n');
            to.extend(std::iter::repeat_n(' ', spaces));
        }
        Ok(())
    }

    fn string(&self, text: &str, to: &mut String) -> Result<(), Error> {
        self.budget.pay(2 * text.len() as u64)?;
        to.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => to.extend(['\\', c]),
                '\n' => to.push_str("\\n"),
                '\r' => to.push_str("\\r"),
                '\t' => to.push_str("\\t"),
                '\u{8}' => to.push_str("\\b"),
                '\u{c}' => to.push_str("\\f"),
                c if c < ' ' || self.ascii && !c.is_ascii() => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        to.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                // Python escapes it with everything that is not ASCII only.
                c => to.push(c),
            }
        }
        to.push('"');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_by_python() {
        for (value, wanted) in [
            (Value::from(1e20), "1e+20"),
            (Value::from(1e-7), "1e-07"),
            (Value::from(1.5), "1.5"),
            (Value::from(2.0), "2.0"),
            (Value::from(-3), "-3"),
            (Value::from(123456789012345680.0), "1.2345678901234568e+17"),
            (
                Value::from(vec!["a'b", "\"'", "\n\u{7f}\u{2028}é", "e\u{301}{"]),
                "[\"a'b\", '\"\\'', '\\n\\x7f\\u2028é', 'e\u{301}{']",
            ),
            (Value::from(vec![Value::from(true), Value::from(())]), "[True, None]"),
        ] {
            assert_eq!(text(&value), wanted);
        }
    }
}
