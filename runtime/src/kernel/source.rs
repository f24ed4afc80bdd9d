//! A kernel's functions as text for GPUs: its own, after those that it calls.

use std::{any::TypeId, fmt::Write as _};

use super::definition::{Compute, Definition, Number, Uses};

/// The functions of a kernel and of all kernels that it calls, each once, and the name of its own.
#[derive(Debug, Default)]
pub(super) struct Functions {
    pub(super) text: String,
    /// If one of them has values of `f64`, `i64` or `i8`.
    #[cfg(feature = "cuda")]
    pub(super) further: bool,
    written: Vec<(TypeId, String)>,
}

/// Returns the text of a kernel, for people.
pub fn cuda_source(definition: &Definition) -> String {
    let mut functions = Functions::default();
    functions.add(definition);
    functions.text
}

impl Functions {
    /// Writes a function, unless it is there, and returns its name.
    pub(super) fn add(&mut self, definition: &Definition) -> String {
        if let Some((_, name)) = self.written.iter().find(|(id, _)| *id == definition.id) {
            return name.clone();
        }
        let mut uses = Uses::default();
        (definition.uses)(&mut uses);
        #[cfg(feature = "cuda")]
        {
            let mut constants = uses.constants.iter();
            self.further |= definition.further || constants.any(|number| number.compute.is_further());
        }
        // The macro refuses kernels that call each other in a circle.
        let callees: Vec<String> = uses.kernels.iter().map(|callee| self.add(callee)).collect();
        let plain: String =
            definition.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = format!("{plain}_{}", self.written.len());
        self.written.push((definition.id, name.clone()));
        let mut rest = definition.text;
        while let Some((before, behind)) = rest.split_once("${") {
            self.text.push_str(before);
            let (place, after) = behind.split_once('}').unwrap_or((behind, ""));
            self.text.push_str(&filled(place, &name, &callees, &uses));
            rest = after;
        }
        let _ = writeln!(self.text, "{rest}");
        name
    }
}

/// Returns the contents of a placeholder.
fn filled(place: &str, name: &str, callees: &[String], uses: &Uses) -> String {
    let (kind, number) = place.split_at_checked(1).unwrap_or((place, ""));
    let (number, part) = number.split_once('.').unwrap_or((number, ""));
    let number: usize = number.parse().unwrap_or_default();
    let callee = uses.kernels.get(number);
    match kind {
        "f" => name.to_owned(),
        // Qualified: a variable may have the name of a function.
        "c" => callees.get(number).map(|name| format!("::{name}")).unwrap_or_default(),
        "p" => {
            let of = callee.and_then(|callee| callee.inputs.get(part.parse::<usize>().ok()?));
            of.map(|(_, compute)| compute.name().to_owned()).unwrap_or_default()
        }
        "r" => callee.map(|callee| result(callee.outputs, part)).unwrap_or_default(),
        "k" => uses.constants.get(number).map(constant).unwrap_or_default(),
        // As the index of a row or of a view, no integer is taken for another.
        "i" => callee.map(|callee| index(part_of(callee.outputs, part))).unwrap_or_default(),
        "j" => uses.constants.get(number).map(|n| index(Some(n.compute))).unwrap_or_default(),
        "t" => uses.constants.get(number).map(|n| n.compute.name().to_owned()).unwrap_or_default(),
        _ => String::new(),
    }
}

/// The type of a result, or of one part of it.
pub(super) fn result(outputs: &[Compute], part: &str) -> String {
    let part = part.parse::<usize>().ok().and_then(|part| outputs.get(part));
    match (part, outputs) {
        (Some(one), _) | (None, [one]) => one.name().to_owned(),
        (None, all) => {
            let names: Vec<&str> = all.iter().map(|compute| compute.name()).collect();
            format!("Tuple{}<{}>", all.len(), names.join(", "))
        }
    }
}

/// The type of a result that is one value, or of one part of it.
fn part_of(outputs: &[Compute], part: &str) -> Option<Compute> {
    match outputs {
        [one] => Some(*one),
        all => all.get(part.parse::<usize>().ok()?).copied(),
    }
}

/// The function that makes an index of an integer.
fn index(compute: Option<Compute>) -> String {
    (if compute == Some(Compute::I64) { "to_index" } else { "to_u32" }).to_owned()
}

/// A constant as an expression of its type.
fn constant(Number { compute, bits }: &Number) -> String {
    match compute {
        Compute::F32 => {
            let bits = *bits as u32;
            let value = f32::from_bits(bits);
            match value.is_finite() {
                true => format!("({value:?}f)"),
                false => format!("__uint_as_float({bits:#x}u)"),
            }
        }
        Compute::F64 => {
            let value = f64::from_bits(*bits);
            match value.is_finite() {
                true => format!("({value:?})"),
                false => format!("__longlong_as_double({bits:#x}ll)"),
            }
        }
        Compute::I64 if *bits == 1 << 63 => "(-9223372036854775807ll - 1)".to_owned(),
        Compute::I64 => format!("({}ll)", bits.cast_signed()),
        Compute::I8 => format!("(i8)({})", *bits as i8),
        Compute::I32 if *bits == 1 << 31 => "(-2147483647 - 1)".to_owned(),
        Compute::I32 => format!("({})", *bits as i32),
        // No constant is a random number.
        Compute::U32 | Compute::Random => format!("{bits}u"),
        Compute::U16 => format!("(u16){bits}"),
        Compute::U8 => format!("(u8){bits}"),
        Compute::Bool => (*bits != 0).to_string(),
    }
}
