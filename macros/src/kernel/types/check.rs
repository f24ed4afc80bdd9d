//! Checks of types once all of them are known.

use proc_macro2::Span;

use super::table::{Inferred, Types};
use crate::{
    diag::{Code, Errors},
    kernel::{
        methods::Class,
        model::{Float, Scalar, TypeId},
    },
};

/// A question about a type.
pub(super) struct Check {
    pub(super) ty: TypeId,
    pub(super) what: What,
    pub(super) span: Span,
}

pub(super) enum What {
    /// It is a number type that can hold this value.
    Holds(i128),
    /// It can hold this value, as a float.
    Reaches(Float),
    /// It is known which float type it is.
    IsDetermined,
    /// An operator, or whatever has this name, can be used on it.
    IsOf(Class, &'static str),
    /// It has a method.
    Has(Class, &'static str),
    CanBeCompared,
    CanBeMatched,
    /// `as` converts it.
    BecomesBy(Scalar),
    /// It can be a value of a row.
    IsElement,
}

/// The error for a type that does not meet a check.
struct Refusal {
    code: Code,
    message: String,
    help: String,
}

impl Refusal {
    fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }
}

pub(super) fn check(types: &Types, checks: &[Check], errors: &mut Errors) {
    for Check { ty, what, span } in checks {
        let refusal = match types.get(*ty) {
            Inferred::Scalar(scalar) => of_scalar(what, *scalar),
            Inferred::Float => of_float(what),
            ty @ (Inferred::Tuple(_) | Inferred::Unit | Inferred::Row(_)) => of_several(what, ty),
            // Nothing is known, or rustc knows it.
            _ => None,
        };
        if let Some(Refusal { code, message, help }) = refusal {
            errors.push_span(code, *span, message, &help);
        }
    }
}

fn of_scalar(what: &What, scalar: Scalar) -> Option<Refusal> {
    let name = scalar.name();
    Some(match what {
        What::Holds(value) if !holds(scalar, *value) => {
            let message = format!("`{value}` is out of range for `{name}`");
            Refusal::new(Code::KernelLiteral, message, "write a number that the type has, or another type")
        }
        What::Reaches(value) if !reaches(scalar, *value) => {
            let message = format!("the number is too large for an `{name}`");
            Refusal::new(Code::KernelLiteral, message, smaller(scalar, *value))
        }
        What::IsOf(class, of) if !is_of(scalar, *class) => {
            let message = format!("{of} of kernels is not defined for `{name}`");
            Refusal::new(Code::KernelMismatch, message, convert(*class, scalar))
        }
        What::Has(class, method) if !is_of(scalar, *class) => {
            let message = format!("`{name}` has no method `{method}`");
            Refusal::new(Code::KernelMismatch, message, convert(*class, scalar))
        }
        What::CanBeMatched if scalar.is_float() => match_on_floats(),
        What::CanBeMatched | What::CanBeCompared if scalar == Scalar::Random => {
            let message = "a random number is not a value that can be compared";
            Refusal::new(Code::KernelMismatch, message, OF_RANDOM)
        }
        What::BecomesBy(to) if [scalar, *to].contains(&Scalar::Random) => {
            let message = format!("`as` does not convert `{name}` to `{}`", to.name());
            Refusal::new(
                Code::KernelMismatch,
                message,
                if *to == Scalar::Random { TO_RANDOM } else { OF_RANDOM },
            )
        }
        What::BecomesBy(to) if !becomes(scalar, *to) => {
            let to = to.name();
            let message = format!("`as` does not convert `{name}` to `{to}`");
            Refusal::new(Code::KernelMismatch, message, bridge(name, to))
        }
        _ => return None,
    })
}

/// The help for a random number where a value is needed.
const OF_RANDOM: &str = "write what it is to become, such as `r.uniform()`, `r.normal()` or `r.bits()`";

/// The help where a random number is needed.
const TO_RANDOM: &str = "take the random number as a parameter: `r: Random`";

/// For a float whose type is not known.
fn of_float(what: &What) -> Option<Refusal> {
    match what {
        // One error: `IsDetermined` has it.
        What::Holds(_) | What::Reaches(_) => None,
        What::CanBeMatched => Some(match_on_floats()),
        What::IsDetermined
        | What::IsOf(..)
        | What::Has(..)
        | What::BecomesBy(_)
        | What::IsElement
        | What::CanBeCompared => {
            let help = "write its type, as in `0.5f32`: Rust would choose `f64` here";
            Some(Refusal::new(Code::KernelLiteral, "the type of this float is not known", help))
        }
    }
}

/// For what is not one value.
fn of_several(what: &What, ty: &Inferred) -> Option<Refusal> {
    match what {
        What::IsOf(..) | What::Has(..) | What::CanBeCompared | What::CanBeMatched | What::BecomesBy(_) => {
            let help = "name the parts: `let (a, b) = …;`";
            Some(Refusal::new(Code::KernelMismatch, "this is not one value", help))
        }
        What::IsElement if matches!(ty, Inferred::Unit) => {
            let help = "end the closure with its value, without a `;`";
            Some(Refusal::new(Code::KernelMismatch, "the closure has no value", help))
        }
        What::IsElement | What::Holds(_) | What::Reaches(_) | What::IsDetermined => None,
    }
}

fn match_on_floats() -> Refusal {
    let help = "write comparisons: `if x < 1.0 { … } else { … }`";
    Refusal::new(Code::KernelPattern, "a `match` on floats", help)
}

fn holds(scalar: Scalar, value: i128) -> bool {
    match scalar {
        Scalar::I32 => i32::try_from(value).is_ok(),
        Scalar::I64 => i64::try_from(value).is_ok(),
        Scalar::I8 => i8::try_from(value).is_ok(),
        Scalar::U32 => u32::try_from(value).is_ok(),
        Scalar::U8 => u8::try_from(value).is_ok(),
        Scalar::F32 | Scalar::F64 | Scalar::Bool | Scalar::Random => true,
    }
}

fn reaches(scalar: Scalar, value: Float) -> bool {
    match scalar {
        Scalar::F32 => value.single.is_finite(),
        Scalar::F64 => value.double.is_finite(),
        _ => true,
    }
}

/// Returns the help for a float that is too large for a type.
fn smaller(scalar: Scalar, value: Float) -> String {
    let name = scalar.name();
    let help = format!("write `{name}::INFINITY`, or `{name}::MAX` for the largest number");
    match scalar {
        // What a kernel takes that is called is an `f32` until its suffix says another type.
        Scalar::F32 if value.double.is_finite() => {
            format!("{help}; where an `f64` is meant, write `{:?}f64`", value.double)
        }
        _ => help,
    }
}

fn is_of(scalar: Scalar, class: Class) -> bool {
    match class {
        Class::F32 => scalar == Scalar::F32,
        Class::Float => scalar.is_float(),
        Class::Integer => scalar.is_integer(),
        Class::Number => !matches!(scalar, Scalar::Bool | Scalar::Random),
        Class::Signed => scalar.is_float() || scalar.is_signed_integer(),
        Class::SignedInteger => scalar.is_signed_integer(),
        Class::I32 => scalar == Scalar::I32,
        Class::Counter => scalar.is_integer() && scalar != Scalar::I64,
        Class::Unsigned => matches!(scalar, Scalar::U32 | Scalar::U8),
        Class::Bits => !scalar.is_float() && scalar != Scalar::Random,
        Class::Random => scalar == Scalar::Random,
    }
}

fn becomes(from: Scalar, to: Scalar) -> bool {
    match (from, to) {
        (Scalar::Bool, to) => !to.is_float(),
        (_, Scalar::Bool) => false,
        _ => true,
    }
}

/// Returns the help for a type that does not belong to a class.
fn convert(class: Class, scalar: Scalar) -> String {
    match (class, scalar) {
        (Class::Random, _) => TO_RANDOM.to_owned(),
        (_, Scalar::Random) => OF_RANDOM.to_owned(),
        (Class::Signed, Scalar::U32 | Scalar::U8) => {
            "write `0 - x`, which wraps, or convert it first: `x as i32`".to_owned()
        }
        (Class::Number | Class::Signed, Scalar::Bool) => {
            "convert it first: `f32::from(b)`, or `b as u32`".to_owned()
        }
        (Class::Counter, Scalar::I64) => "convert it first: `n as i32`".to_owned(),
        (Class::F32, Scalar::F64) => "convert it first: `x as f32`".to_owned(),
        (Class::Integer | Class::Bits | Class::Counter, Scalar::F64) => {
            "convert it first: `x as i64`".to_owned()
        }
        (Class::Integer | Class::Bits | Class::Counter, Scalar::F32) => {
            "convert it first: `x as i32`, or `x.to_bits()` for its bits".to_owned()
        }
        (Class::Integer | Class::Counter, Scalar::Bool) => "convert it first: `b as u32`".to_owned(),
        (Class::Unsigned, _) => "convert it first: `x as u32`".to_owned(),
        _ => "convert it first, with `as`".to_owned(),
    }
}

/// Returns how to convert one type to another.
pub(super) fn bridge(left: &str, right: &str) -> String {
    let pair = [left, right];
    let has = |name: &str| pair.contains(&name);
    if has("()") {
        "end the block with its value, without a `;`".to_owned()
    } else if has("Random") {
        OF_RANDOM.to_owned()
    } else if has("bool") && has("f64") {
        "write `f64::from(b)` for the number of a bool, or `x != 0.0` for the bool of a number".to_owned()
    } else if has("bool") && has("f32") {
        "write `f32::from(b)` for the number of a bool, or `x != 0.0` for the bool of a number".to_owned()
    } else if has("bool") {
        "write `b as u32` for the number of a bool, or `n != 0` for the bool of a number".to_owned()
    } else if (has("f32") || has("f64")) && has("an integer") {
        "write the number as a float, `1.0` instead of `1`".to_owned()
    } else if pair.iter().all(|name| name.starts_with("a row")) {
        "convert the values: `x.map(|v| v as f32)`".to_owned()
    } else if pair.iter().any(|name| name.starts_with("a row")) {
        "reduce the row to a value, `x.sum()`, or return a row: `x.map(|v| v * scale)`".to_owned()
    } else if pair
        .iter()
        .any(|name| name.starts_with('(') || name.contains("tuple") || name.contains("a value"))
    {
        "name the parts of a tuple: `let (a, b) = f(x);`".to_owned()
    } else {
        format!(
            "convert one of them, as in `x as {}`",
            if has("f64") {
                "f64"
            } else if has("f32") {
                "f32"
            } else {
                right
            }
        )
    }
}

/// A type as a message names it.
pub(super) fn named(ty: &str) -> String {
    if ty.starts_with('a') && ty.contains(' ') { ty.to_owned() } else { format!("`{ty}`") }
}
