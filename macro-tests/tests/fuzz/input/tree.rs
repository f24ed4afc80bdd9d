//! Mutations of token trees, which know nothing of Rust's grammar.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use super::{choices::Choices, phrases};

/// Tokens that can be changed in place.
#[derive(Clone)]
pub(crate) enum Tree {
    Leaf(TokenTree),
    Group(Delimiter, Vec<Tree>),
}

pub(crate) fn trees(tokens: TokenStream) -> Vec<Tree> {
    let tree = |token| match token {
        TokenTree::Group(g) => Tree::Group(g.delimiter(), trees(g.stream())),
        other => Tree::Leaf(other),
    };
    tokens.into_iter().map(tree).collect()
}

pub(crate) fn tokens(trees: Vec<Tree>) -> TokenStream {
    let token = |tree| match tree {
        Tree::Leaf(token) => token,
        Tree::Group(delimiter, inner) => TokenTree::Group(Group::new(delimiter, tokens(inner))),
    };
    trees.into_iter().map(token).collect()
}

/// The number of tokens, groups included.
pub(crate) fn size(trees: &[Tree]) -> usize {
    let one = |tree: &Tree| match tree {
        Tree::Leaf(_) => 1,
        Tree::Group(_, inner) => 1 + size(inner),
    };
    trees.iter().map(one).sum()
}

/// The lists in `trees`: itself, and what each group holds.
fn lists(trees: &[Tree]) -> usize {
    let one = |tree: &Tree| match tree {
        Tree::Leaf(_) => 0,
        Tree::Group(_, inner) => lists(inner),
    };
    1 + trees.iter().map(one).sum::<usize>()
}

/// The `n`-th list.
fn list<'t>(trees: &'t mut Vec<Tree>, n: &mut usize) -> Option<&'t mut Vec<Tree>> {
    if *n == 0 {
        return Some(trees);
    }
    *n -= 1;
    for tree in trees {
        if let Tree::Group(_, inner) = tree
            && let Some(found) = list(inner, n)
        {
            return Some(found);
        }
    }
    None
}

fn idents(trees: &[Tree], found: &mut Vec<Ident>) {
    for tree in trees {
        match tree {
            Tree::Leaf(TokenTree::Ident(ident)) => found.push(ident.clone()),
            Tree::Leaf(_) => {}
            Tree::Group(_, inner) => idents(inner, found),
        }
    }
}

/// A phrase as tokens. All phrases are Rust tokens: a test says so.
pub(crate) fn phrase(text: &str) -> Vec<Tree> {
    text.parse().map(trees).unwrap_or_default()
}

/// Any phrase.
fn any(c: &mut Choices<'_>) -> Vec<Tree> {
    const KINDS: [&[&str]; 6] = [
        phrases::PIECES,
        phrases::ATTRIBUTES,
        phrases::STATEMENTS,
        phrases::EXPRESSIONS,
        phrases::PATTERNS,
        phrases::TYPES,
    ];
    c.of(&KINDS).and_then(|kind| c.of(kind)).map(|text| phrase(text)).unwrap_or_default()
}

/// Phrases one after another, some in groups.
pub(crate) fn soup(c: &mut Choices<'_>, length: usize, depth: usize) -> Vec<Tree> {
    let mut all = Vec::new();
    for _ in 0..length {
        if depth > 0 && c.once_in(4) {
            let delimiter = delimiter(c);
            let length = c.below(8);
            all.push(Tree::Group(delimiter, soup(c, length, depth - 1)));
        } else {
            all.extend(any(c));
        }
    }
    all
}

fn delimiter(c: &mut Choices<'_>) -> Delimiter {
    match c.below(4) {
        0 => Delimiter::Brace,
        1 => Delimiter::Parenthesis,
        2 => Delimiter::Bracket,
        // What a `macro_rules!` fragment arrives in.
        _ => Delimiter::None,
    }
}

/// One change somewhere in `trees`; parts of `other` may come in.
pub(crate) fn mutate(trees: &mut Vec<Tree>, other: &[Tree], c: &mut Choices<'_>) {
    let mut names = Vec::new();
    idents(trees, &mut names);
    let mut n = c.below(lists(trees));
    let Some(list) = list(trees, &mut n) else { return };
    let at = c.below(list.len() + 1);
    let end = (at + 1 + c.below(4)).min(list.len());
    match c.below(13) {
        0 => drop(list.drain(at.min(end)..end)),
        1 => {
            let again = list[at.min(end)..end].to_vec();
            list.splice(at..at, again);
        }
        2 if at + 1 < list.len() => list.swap(at, at + 1),
        3 if at < list.len() => {
            let to = c.below(list.len());
            list.swap(at, to);
        }
        4 => {
            let new = any(c);
            list.splice(at..at, new);
        }
        5 => {
            let new = any(c);
            list.splice(at.min(end)..end, new);
        }
        6 => {
            let inner = list.drain(at.min(end)..end).collect();
            let delimiter = delimiter(c);
            list.insert(at, Tree::Group(delimiter, inner));
        }
        7 => {
            if let Some(Tree::Group(_, inner)) = list.get_mut(at) {
                let inner = std::mem::take(inner);
                list.splice(at..=at, inner);
            }
        }
        8 => {
            let mut other = other.to_vec();
            let mut n = c.below(lists(&other));
            if let Some(from) = self::list(&mut other, &mut n) {
                let start = c.below(from.len() + 1);
                let stop = (start + 1 + c.below(16)).min(from.len());
                list.splice(at..at, from[start.min(stop)..stop].iter().cloned());
            }
        }
        9 | 10 => {
            let new = c.of(&names).cloned();
            if let (Some(Tree::Leaf(TokenTree::Ident(ident))), Some(new)) = (list.get_mut(at), new) {
                *ident = new;
            }
        }
        11 => {
            if let Some(Tree::Leaf(TokenTree::Ident(ident))) = list.get_mut(at) {
                *ident = raw(ident);
            }
        }
        _ => {
            // A statement's start, mostly.
            let starts = list.iter().enumerate().filter(|(_, t)| ends_statement(t)).map(|(i, _)| i + 1);
            let starts: Vec<usize> = std::iter::once(0).chain(starts).collect();
            let at = c.of(&starts).copied().unwrap_or(0);
            let kinds = [phrases::ATTRIBUTES, phrases::STATEMENTS];
            let new = c.of(&kinds).and_then(|kind| c.of(kind)).map(|text| phrase(text)).unwrap_or_default();
            list.splice(at..at, new);
        }
    }
}

fn ends_statement(tree: &Tree) -> bool {
    match tree {
        Tree::Leaf(TokenTree::Punct(p)) => p.as_char() == ';',
        Tree::Group(Delimiter::Brace, _) => true,
        _ => false,
    }
}

/// `r#name`, for names that may be written so.
fn raw(ident: &Ident) -> Ident {
    let text = ident.to_string();
    let never = ["_", "self", "Self", "super", "crate", "$crate"];
    if text.starts_with("r#") || never.contains(&text.as_str()) {
        return ident.clone();
    }
    Ident::new_raw(&text, Span::call_site())
}
