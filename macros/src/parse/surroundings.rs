//! The item around a function. An attribute macro is given only its own item, so it is looked up in the file.

use syn::{
    Ident, ImplItemFn, ItemImpl, TraitItemFn,
    visit::{self, Visit},
};

/// The name that the function gets in a copy of its file.
const HERE: &str = "__graphable_here";

/// The item around an associated function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Around {
    Impl,
    /// A trait, or an `impl` of one.
    Trait,
}

/// Returns the item around the function of this name; `None` for a free function, and if the file cannot be read or was
/// changed since.
#[cfg(not(graphable_library))]
pub(crate) fn around(name: &Ident) -> Option<Around> {
    if !proc_macro::is_available() {
        return None;
    }
    // At the margin, nothing is around it, as code is usually written. Most functions are there, and the file is not read.
    if proc_macro::Span::call_site().column() == 1 {
        return None;
    }
    let at = name.span().unwrap();
    let text = std::fs::read_to_string(at.local_file()?).ok()?;
    around_in(&text, at.line(), at.column(), &name.to_string())
}

/// Tokens of the library have no file.
#[cfg(graphable_library)]
pub(crate) fn around(_: &Ident) -> Option<Around> {
    None
}

/// As [`around`], of the function whose name is at this line and column, both counted from 1.
#[cfg_attr(graphable_library, allow(dead_code, reason = "only a macro has files"))]
fn around_in(text: &str, line: usize, column: usize, name: &str) -> Option<Around> {
    let lines: Vec<&str> = text.split_inclusive('\n').take(line).collect();
    let (own, above) = lines.split_last().filter(|(_, above)| above.len() + 1 == line)?;
    if !may_be_associated(above, own) {
        return None;
    }
    let (at, _) = own.char_indices().nth(column.checked_sub(1)?)?;
    let at = above.iter().map(|line| line.len()).sum::<usize>() + at;
    let rest = text[at..].strip_prefix(name)?;
    let file = syn::parse_file(&format!("{}{HERE}{rest}", &text[..at])).ok()?;
    let mut find = Find { inner: Around::Impl, found: None };
    find.visit_file(&file);
    find.found
}

/// Returns whether the file is worth parsing: most functions are at its top, in a module or in another function, as
/// indentation shows.
fn may_be_associated(above: &[&str], own: &str) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let encloses = |line: &&&str| !line.trim().is_empty() && indent(line) < indent(own);
    let in_own = ["impl", "trait"].iter().any(|word| own.contains(word));
    let Some(opener) = above.iter().rev().find(encloses) else { return in_own || indent(own) > 0 };
    let qualifiers = ["const", "async", "unsafe"];
    let mut words = opener.split_whitespace().skip_while(|w| w.starts_with("pub") || qualifiers.contains(w));
    in_own || !words.next().is_some_and(|word| ["mod", "fn"].contains(&word))
}

/// Looks for the function [`HERE`] among associated functions.
struct Find {
    /// The type or trait whose functions are visited.
    inner: Around,
    found: Option<Around>,
}

impl<'ast> Visit<'ast> for Find {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let inner = if item.trait_.is_some() { Around::Trait } else { Around::Impl };
        let outer = std::mem::replace(&mut self.inner, inner);
        visit::visit_item_impl(self, item);
        self.inner = outer;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if function.sig.ident == HERE {
            self.found = Some(self.inner);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if function.sig.ident == HERE {
            self.found = Some(Around::Trait);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
fn free() {}
mod inner {
    fn free() {}
    impl Layer {
        fn own() {}
        fn outer() {
            fn free() {}
        }
    }
}
impl<T> Norm for Layer<T>
where
    T: Copy,
{
    /// ä
    fn norm() {}
}
trait Norm { fn norm() {} }
";

    /// Of the function in a line.
    fn of(line: usize) -> Option<Around> {
        let text = FILE.lines().nth(line - 1).unwrap();
        let at = text.find("fn ").unwrap() + 3;
        let name: String = text[at..].chars().take_while(|c| c.is_alphanumeric()).collect();
        around_in(FILE, line, at + 1, &name)
    }

    #[test]
    fn functions_of_an_impl_or_a_trait_are_told_from_free_ones() {
        for (line, expected) in [
            (1, None),
            (3, None),
            (5, Some(Around::Impl)),
            (6, Some(Around::Impl)),
            (7, None),
            (16, Some(Around::Trait)),
            (18, Some(Around::Trait)),
        ] {
            assert_eq!(of(line), expected, "line {line}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_file_that_changed() {
        assert_eq!(around_in(FILE, 5, 12, "renamed"), None);
        assert_eq!(around_in(FILE, 500, 12, "own"), None);
        assert_eq!(around_in(FILE, 5, 500, "own"), None);
        assert_eq!(around_in(&format!("{FILE}}}"), 5, 12, "own"), None);
        assert_eq!(around_in(FILE, 0, 0, "own"), None);
    }
}
