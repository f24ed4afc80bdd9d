//! What an arm of control flow of the device changes and moves among the variables around it.
//!
//! Every arm is described once, so a value that arms move is moved by a copy in each of them, and what they assign is
//! carried out of the node.

use std::collections::{BTreeSet, HashSet};

use syn::{Block, Expr, Ident, Local, Member, Stmt, UnOp, visit_mut::VisitMut};

use crate::{
    facts::{
        assigned,
        uses::{self, Use},
    },
    model::{Changed, End, How, ReadByArms},
    parse::{
        scopes::{self, Binding, OwnNames, Scoped},
        syntax,
    },
};

/// The effects of code on the variables around it.
pub(crate) struct Effects {
    pub(crate) changed: Vec<Changed>,
    pub(crate) read: ReadByArms,
}

/// Returns the effects of an expression; `reads_first` states that it may read everything before it assigns, as the rounds
/// of a loop do.
pub(crate) fn effects(expr: &Expr, reads_first: bool) -> Effects {
    let uses = uses::of_expr(expr);
    let anew = if reads_first { HashSet::new() } else { assigned::by_stmt(&Stmt::Expr(expr.clone(), None)) };
    let mut places = Places::default();
    places.visit_expr_mut(&mut expr.clone());
    let mut changed: Vec<Changed> = Vec::new();
    for Assigned { base, place, is_name } in places.assigned {
        let name = base.to_string();
        // Another variable of that name may be an arm's own. Methods count as `touched`, also those that only read.
        let is_outer = |u: &Use| if is_name { u.assigned } else { u.touched || u.through };
        if !uses.get(&name).is_some_and(is_outer) {
            continue;
        }
        let how = match place {
            Place::Whole if anew.contains(&name) => How::Anew,
            Place::Whole => How::Whole,
            Place::Elements => How::Elements,
            Place::Through => How::Through,
            Place::Field(path) => How::Fields(vec![path]),
        };
        match changed.iter_mut().find(|c| c.ident == base) {
            Some(known) => known.add(how),
            None => {
                let taken = places.taken.contains(&name);
                let moved = |u: &Use| u.by_value || u.parted() || u.taken || u.handed_on || taken;
                let moved = uses.get(&name).is_some_and(moved);
                changed.push(Changed { ident: base, how, moved, end: End::Leaves });
            }
        }
    }
    let others = |(name, _): &&(String, Use)| name != "self" && !changed.iter().any(|c| c.ident == name);
    let (mut moved, mut parted) = (Vec::new(), Vec::new());
    for (name, u) in uses.0.iter().filter(others) {
        if u.by_value {
            moved.push(u.ident.clone());
        } else if u.parted() || u.taken || u.handed_on || places.taken.contains(name) {
            parted.push(u.ident.clone());
        }
    }
    Effects { changed, read: ReadByArms { moved, parted } }
}

impl Changed {
    /// Adds another assignment to the same variable.
    fn add(&mut self, how: How) {
        match (&mut self.how, how) {
            (How::Anew | How::Whole, _) => {}
            (mine, how @ (How::Anew | How::Whole)) => *mine = how,
            (How::Fields(paths), How::Fields(more)) => paths.extend(more),
            (How::Through, _) => {}
            (mine, How::Through) => *mine = How::Through,
            (mine, _) => *mine = How::Elements,
        }
        if let How::Fields(paths) = &mut self.how {
            // A field inside another one that is assigned is carried with it.
            let texts: Vec<Vec<String>> = paths.iter().map(|path| text(path)).collect();
            let mut kept = BTreeSet::new();
            let inside =
                |path: &Vec<String>| texts.iter().any(|q| q.len() < path.len() && path.starts_with(q));
            paths.retain(|path| !inside(&text(path)) && kept.insert(text(path)));
        }
    }
}

fn text(path: &[Member]) -> Vec<String> {
    let member = |m: &Member| match m {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    path.iter().map(member).collect()
}

/// The part of a variable on the left side of an assignment.
enum Place {
    Whole,
    Elements,
    Through,
    Field(Vec<Member>),
}

/// The left side of an assignment.
struct Assigned {
    base: Ident,
    place: Place,
    /// Set if it is the name alone.
    is_name: bool,
}

/// The places of variables around code that it assigns, in order, and the variables that methods or closures in it may take.
#[derive(Default)]
struct Places {
    assigned: Vec<Assigned>,
    taken: HashSet<String>,
    own: OwnNames,
}

impl Places {
    fn target(&mut self, place: &Expr) {
        match place {
            Expr::Tuple(t) => t.elems.iter().for_each(|e| self.target(e)),
            Expr::Array(a) => a.elems.iter().for_each(|e| self.target(e)),
            Expr::Struct(s) => s.fields.iter().for_each(|f| self.target(&f.expr)),
            Expr::Call(c) => c.args.iter().for_each(|e| self.target(e)),
            other => {
                let is_name = syntax::plain_name(syntax::bare(other)).is_some();
                let outer = part(other).filter(|(base, _)| !self.own.has(base));
                self.assigned.extend(outer.map(|(base, place)| Assigned { base, place, is_name }));
            }
        }
    }

    fn taken(&mut self, name: &Ident) {
        if !self.own.has(name) {
            self.taken.insert(name.to_string());
        }
    }
}

/// The variable that a place belongs to, and which part of it the place is.
fn part(place: &Expr) -> Option<(Ident, Place)> {
    match place {
        Expr::Paren(p) => part(&p.expr),
        Expr::Group(g) => part(&g.expr),
        Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => match part(&u.expr)? {
            (base, Place::Whole) => Some((base, Place::Through)),
            // What a field or an element holds in a box.
            inner => Some(inner),
        },
        Expr::Field(f) => {
            let (base, place) = part(&f.base)?;
            let place = match (place, syntax::bare(&f.base)) {
                (Place::Whole, Expr::Path(_)) => Place::Field(vec![f.member.clone()]),
                (Place::Field(mut path), Expr::Field(_)) => {
                    path.push(f.member.clone());
                    Place::Field(path)
                }
                // A field of an element.
                (place, _) => place,
            };
            Some((base, place))
        }
        Expr::Index(i) => match part(&i.expr)? {
            (base, Place::Whole) => Some((base, Place::Elements)),
            inner => Some(inner),
        },
        other => Some((syntax::plain_name(other)?.clone(), Place::Whole)),
    }
}

impl Scoped for Places {
    type Names = usize;
    fn begin(&mut self) -> usize {
        self.own.count()
    }
    fn end(&mut self, around: usize) {
        self.own.return_to(around);
    }
    fn bind(&mut self, binding: &Binding<'_>) {
        self.own.bind(binding);
    }
}

impl VisitMut for Places {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Assign(a) => self.target(&a.left),
            Expr::Binary(b) if syntax::is_assign(&b.op) => self.target(&b.left),
            Expr::MethodCall(m) if uses::consumes(&m.method) => {
                syntax::plain_name(&m.receiver).into_iter().for_each(|name| self.taken(name));
            }
            Expr::Closure(c) if c.capture.is_some() => {
                uses::of_expr(expr).0.iter().for_each(|(_, u)| self.taken(&u.ident));
            }
            _ => {}
        }
        scopes::visit_expr(self, expr);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        scopes::visit_block(self, block);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        scopes::visit_local(self, local);
    }

    fn visit_item_mut(&mut self, _: &mut syn::Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(code: &str) -> Vec<String> {
        let effects = effects(&syn::parse_str(code).unwrap(), false);
        effects.changed.iter().map(|c| c.ident.to_string()).collect()
    }

    #[test]
    fn variables_of_arms_are_not_those_around() {
        let shadowed =
            "if true { let k = x.dim(0); let mut x = neg(x)?; x = scale(&x, k)?; x } else { x.clone() }";
        assert_eq!(changed(shadowed), [""; 0]);
        assert_eq!(changed("if true { let mut x = neg(x)?; (x) = exp(&x)?; y = x; }"), ["y"]);
        let all = "if true { (a) = f(); (b, [c]) = g(); d[0] = h(); *e = i(); s.t = j(); n += 1; }";
        assert_eq!(changed(all), ["a", "b", "c", "d", "e", "s", "n"]);
    }
}
