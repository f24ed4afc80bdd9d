//! The item around a function. An attribute macro is given only its own item, so it is looked up in the file.

use syn::{
    Generics, Ident, ImplItemFn, ItemImpl, ItemTrait, TraitItemFn,
    visit::{self, Visit},
};

/// The name that the function gets in a copy of its file.
const HERE: &str = "__graphable_here";

/// The item around an associated function.
#[derive(Clone)]
pub(crate) struct Around {
    pub(crate) kind: Kind,
    /// The generics of the item, as far as they are known.
    pub(crate) generics: Generics,
}

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
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
    let mut find = Find { inner: None, found: None };
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
    /// The `impl` or trait that is visited.
    inner: Option<Around>,
    found: Option<Around>,
}

impl Find {
    fn inside(&mut self, kind: Kind, generics: &Generics, visit: impl FnOnce(&mut Self)) {
        let outer = self.inner.replace(Around { kind, generics: generics.clone() });
        visit(self);
        self.inner = outer;
    }
}

impl<'ast> Visit<'ast> for Find {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let kind = if item.trait_.is_some() { Kind::Trait } else { Kind::Impl };
        self.inside(kind, &item.generics, |s| visit::visit_item_impl(s, item));
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        self.inside(Kind::Trait, &item.generics, |s| visit::visit_item_trait(s, item));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if function.sig.ident == HERE {
            self.found.clone_from(&self.inner);
        }
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if function.sig.ident == HERE {
            self.found.clone_from(&self.inner);
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
impl<'s, T> Norm for Layer<'s, T>
where
    T: Copy,
{
    /// ä
    fn norm() {}
}
trait Norm { fn norm() {} }
";

    /// Of the function in a line.
    fn of(line: usize) -> Option<(Kind, usize)> {
        let text = FILE.lines().nth(line - 1).unwrap();
        let at = text.find("fn ").unwrap() + 3;
        let name: String = text[at..].chars().take_while(|c| c.is_alphanumeric()).collect();
        let around = around_in(FILE, line, at + 1, &name)?;
        Some((around.kind, around.generics.params.len()))
    }

    #[test]
    fn functions_of_an_impl_or_a_trait_are_told_from_free_ones() {
        for (line, expected) in [
            (1, None),
            (3, None),
            (5, Some((Kind::Impl, 0))),
            (6, Some((Kind::Impl, 0))),
            (7, None),
            (16, Some((Kind::Trait, 2))),
            (18, Some((Kind::Trait, 0))),
        ] {
            assert_eq!(of(line), expected, "line {line}");
        }
    }

    #[test]
    fn nothing_is_said_of_a_file_that_changed() {
        assert!(around_in(FILE, 5, 12, "renamed").is_none());
        assert!(around_in(FILE, 500, 12, "own").is_none());
        assert!(around_in(FILE, 5, 500, "own").is_none());
        assert!(around_in(&format!("{FILE}}}"), 5, 12, "own").is_none());
        assert!(around_in(FILE, 0, 0, "own").is_none());
    }
}
