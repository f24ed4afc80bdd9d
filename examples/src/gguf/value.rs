//! Metadata values.

use super::{GgufError, cursor::Cursor};

/// Arrays may hold arrays; a damaged file must not recurse without end.
const MAX_DEPTH: u32 = 4;

/// Elements of one array. Values take up to 32 times the bytes of the file, so what a damaged header takes for an array must not
/// be as long as the weights; vocabularies and their merges have less than a million elements.
const MAX_ELEMENTS: usize = 1 << 22;

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Any unsigned integer type.
    Unsigned(u64),
    /// Any signed integer type.
    Signed(i64),
    /// `f32` or `f64`.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// UTF-8 text.
    String(String),
    /// Values of one type.
    Array(Vec<Value>),
}

impl Value {
    pub(super) fn read(c: &mut Cursor<'_>, key: &str) -> Result<Self, GgufError> {
        let code = c.u32("the type of a metadata value")?;
        Self::read_as(c, key, code, 0)
    }

    fn read_as(c: &mut Cursor<'_>, key: &str, code: u32, depth: u32) -> Result<Self, GgufError> {
        const WHAT: &str = "a metadata value";
        Ok(match code {
            0 => Self::Unsigned(u8::from_le_bytes(c.array(WHAT)?).into()),
            1 => Self::Signed(i8::from_le_bytes(c.array(WHAT)?).into()),
            2 => Self::Unsigned(u16::from_le_bytes(c.array(WHAT)?).into()),
            3 => Self::Signed(i16::from_le_bytes(c.array(WHAT)?).into()),
            4 => Self::Unsigned(c.u32(WHAT)?.into()),
            5 => Self::Signed(i32::from_le_bytes(c.array(WHAT)?).into()),
            6 => Self::Float(f32::from_le_bytes(c.array(WHAT)?).into()),
            7 => Self::Bool(u8::from_le_bytes(c.array(WHAT)?) != 0),
            8 => Self::String(c.string(WHAT)?),
            9 => {
                if depth == MAX_DEPTH {
                    return Err(GgufError::TooDeep { key: key.into() });
                }
                let element = c.u32("the element type of an array")?;
                let size = min_size(element)
                    .ok_or_else(|| GgufError::UnknownValueType { key: key.into(), code: element })?;
                let n = c.count("an array", size)?;
                if n > MAX_ELEMENTS {
                    return Err(GgufError::TooLong {
                        what: format!("the array of metadata `{key}`"),
                        len: n,
                        unit: "elements",
                        most: MAX_ELEMENTS,
                    });
                }
                // Their number is only a claim until they are read.
                let mut items = Vec::new();
                for _ in 0..n {
                    items.push(Self::read_as(c, key, element, depth + 1)?);
                }
                Self::Array(items)
            }
            10 => Self::Unsigned(c.u64(WHAT)?),
            11 => Self::Signed(i64::from_le_bytes(c.array(WHAT)?)),
            12 => Self::Float(f64::from_le_bytes(c.array(WHAT)?)),
            _ => return Err(GgufError::UnknownValueType { key: key.into(), code }),
        })
    }

    /// The value, if it is a whole number that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(v) => Some(v),
            Self::Signed(v) => v.try_into().ok(),
            _ => None,
        }
    }

    /// The value, if it is a floating-point number.
    pub fn as_f32(&self) -> Option<f32> {
        match *self {
            Self::Float(v) => Some(v as f32),
            _ => None,
        }
    }

    /// The value, if it is a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The value, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }

    /// What kind of value it is, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Unsigned(_) => "an unsigned integer",
            Self::Signed(_) => "a signed integer",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "a truth value",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
        }
    }
}

/// Fewest bytes that a value of this type takes; `None` for unknown types.
fn min_size(code: u32) -> Option<usize> {
    Some(match code {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => 12,
        _ => return None,
    })
}
