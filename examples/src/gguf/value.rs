//! Metadata values.

use super::{GgufError, cursor::Cursor};

/// The codes of the types that are not numbers.
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Arrays may hold arrays; a damaged file must not recurse without end.
const MAX_DEPTH: u32 = 4;

/// Elements of one array. Vocabularies and their merges have less than a million; what a damaged header takes for an array must not
/// be as long as the weights.
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
    /// An array of numbers or truth values of one type, at least one.
    Numbers(Numbers),
    /// An array of strings or of arrays, or an empty one.
    Array(Vec<Value>),
}

/// Numbers or truth values as the file stores them: as [`Value`]s they would take up to 32 times its bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    ty: Number,
    /// A multiple of the type's size.
    bytes: Vec<u8>,
}

impl Numbers {
    /// The elements.
    pub fn iter(&self) -> impl Iterator<Item = Value> {
        self.bytes.chunks_exact(self.ty.size()).filter_map(|bytes| self.ty.decode(bytes))
    }
}

/// How a number or a truth value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    U64,
    I64,
    F64,
}

impl Number {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::U16,
            3 => Self::I16,
            4 => Self::U32,
            5 => Self::I32,
            6 => Self::F32,
            7 => Self::Bool,
            10 => Self::U64,
            11 => Self::I64,
            12 => Self::F64,
            _ => return None,
        })
    }

    /// Bytes.
    fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The value of so many bytes, little endian; `None` for another number of bytes.
    fn decode(self, bytes: &[u8]) -> Option<Value> {
        Some(match self {
            Self::U8 => Value::Unsigned(u8::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I8 => Value::Signed(i8::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::U16 => Value::Unsigned(u16::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I16 => Value::Signed(i16::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::U32 => Value::Unsigned(u32::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::I32 => Value::Signed(i32::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::F32 => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?).into()),
            Self::Bool => Value::Bool(u8::from_le_bytes(bytes.try_into().ok()?) != 0),
            Self::U64 => Value::Unsigned(u64::from_le_bytes(bytes.try_into().ok()?)),
            Self::I64 => Value::Signed(i64::from_le_bytes(bytes.try_into().ok()?)),
            Self::F64 => Value::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        })
    }
}

impl Value {
    pub(super) fn read(c: &mut Cursor<'_>, key: &str) -> Result<Self, GgufError> {
        let code = c.u32("the type of a metadata value")?;
        Self::read_as(c, key, code, 0)
    }

    fn read_as(c: &mut Cursor<'_>, key: &str, code: u32, depth: u32) -> Result<Self, GgufError> {
        const WHAT: &str = "a metadata value";
        let unknown = |code| GgufError::UnknownValueType { key: key.into(), code };
        if let Some(ty) = Number::from_code(code) {
            return ty.decode(c.take(ty.size(), WHAT)?).ok_or_else(|| unknown(code));
        }
        match code {
            STRING => c.string(WHAT).map(Self::String),
            ARRAY if depth == MAX_DEPTH => Err(GgufError::TooDeep { key: key.into() }),
            ARRAY => {
                let element = c.u32("the element type of an array")?;
                let size = min_size(element).ok_or_else(|| unknown(element))?;
                let n = c.count("an array", size)?;
                if n > MAX_ELEMENTS {
                    return Err(GgufError::TooLong {
                        what: format!("the array of metadata `{key}`"),
                        len: n,
                        unit: "elements",
                        most: MAX_ELEMENTS,
                    });
                }
                if let Some(ty) = Number::from_code(element).filter(|_| n > 0) {
                    return Ok(Self::Numbers(Numbers { ty, bytes: c.take(n * size, WHAT)?.to_vec() }));
                }
                // Their number is only a claim until they are read.
                let mut items = Vec::new();
                for _ in 0..n {
                    items.push(Self::read_as(c, key, element, depth + 1)?);
                }
                Ok(Self::Array(items))
            }
            _ => Err(unknown(code)),
        }
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

    /// The elements, if it is an array of whole numbers, none negative.
    pub fn integers(&self) -> Option<Vec<u64>> {
        match self {
            Self::Numbers(v) => v.iter().map(|v| v.as_u64()).collect(),
            Self::Array(v) => v.iter().map(Self::as_u64).collect(),
            _ => None,
        }
    }

    /// The elements, if it is an array of floating-point numbers.
    pub fn floats(&self) -> Option<Vec<f32>> {
        match self {
            Self::Numbers(v) => v.iter().map(|v| v.as_f32()).collect(),
            Self::Array(v) => v.iter().map(Self::as_f32).collect(),
            _ => None,
        }
    }

    /// The elements, if it is an array of text.
    pub fn strings(&self) -> Option<Vec<&str>> {
        match self {
            Self::Array(v) => v.iter().map(Self::as_str).collect(),
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
            Self::Numbers(_) | Self::Array(_) => "an array",
        }
    }
}

/// Fewest bytes that a value of this type takes; `None` for unknown types.
fn min_size(code: u32) -> Option<usize> {
    match code {
        STRING => Some(8),
        ARRAY => Some(12),
        _ => Number::from_code(code).map(Number::size),
    }
}
