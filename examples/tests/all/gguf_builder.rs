//! Writes GGUF files, so that the reader can be tested on small ones.

/// A metadata value to write.
pub(crate) enum Meta {
    U32(u32),
    F32(f32),
    Bool(bool),
    Str(String),
    Strs(Vec<String>),
    I32s(Vec<i32>),
    /// Any type, by its code, and what follows it.
    Raw(u32, Vec<u8>),
}

impl From<&str> for Meta {
    fn from(s: &str) -> Self {
        Self::Str(s.into())
    }
}

/// Collects metadata and tensors.
#[derive(Default)]
pub(crate) struct Builder {
    metadata: Vec<(String, Meta)>,
    tensors: Vec<(String, Vec<usize>, u32, Vec<u8>)>,
}

impl Builder {
    pub(crate) fn meta(mut self, key: &str, value: impl Into<Meta>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Gives a key another value, or adds it.
    pub(crate) fn replace(mut self, key: &str, value: Meta) -> Self {
        self.metadata.retain(|(k, _)| k != key);
        self.meta(key, value)
    }

    pub(crate) fn drop_tensor(&mut self, name: &str) {
        let before = self.tensors.len();
        self.tensors.retain(|t| t.0 != name);
        assert_eq!(self.tensors.len() + 1, before, "{name}");
    }

    /// A tensor with a row-major shape, a type number and stored bytes.
    pub(crate) fn tensor(mut self, name: &str, shape: &[usize], code: u32, stored: Vec<u8>) -> Self {
        self.tensors.push((name.into(), shape.to_vec(), code, stored));
        self
    }

    pub(crate) fn f32(self, name: &str, shape: &[usize], data: &[f32]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len());
        self.tensor(name, shape, 0, data.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    pub(crate) fn build(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        let u32 = |out: &mut Vec<u8>, v: u32| out.extend(v.to_le_bytes());
        let u64 = |out: &mut Vec<u8>, v: usize| out.extend((v as u64).to_le_bytes());
        let string = |out: &mut Vec<u8>, s: &str| {
            u64(out, s.len());
            out.extend(s.as_bytes());
        };
        u32(&mut out, 3);
        u64(&mut out, self.tensors.len());
        u64(&mut out, self.metadata.len());
        for (key, value) in &self.metadata {
            string(&mut out, key);
            match value {
                Meta::U32(v) => {
                    u32(&mut out, 4);
                    u32(&mut out, *v);
                }
                Meta::F32(v) => {
                    u32(&mut out, 6);
                    out.extend(v.to_le_bytes());
                }
                Meta::Bool(v) => {
                    u32(&mut out, 7);
                    out.push(u8::from(*v));
                }
                Meta::Str(v) => {
                    u32(&mut out, 8);
                    string(&mut out, v);
                }
                Meta::Strs(v) => {
                    u32(&mut out, 9);
                    u32(&mut out, 8);
                    u64(&mut out, v.len());
                    v.iter().for_each(|s| string(&mut out, s));
                }
                Meta::I32s(v) => {
                    u32(&mut out, 9);
                    u32(&mut out, 5);
                    u64(&mut out, v.len());
                    v.iter().for_each(|i| out.extend(i.to_le_bytes()));
                }
                Meta::Raw(code, bytes) => {
                    u32(&mut out, *code);
                    out.extend(bytes);
                }
            }
        }
        let mut offset = 0;
        for (name, shape, code, stored) in &self.tensors {
            string(&mut out, name);
            u32(&mut out, shape.len() as u32);
            shape.iter().rev().for_each(|&d| u64(&mut out, d));
            u32(&mut out, *code);
            u64(&mut out, offset);
            offset = (offset + stored.len()).next_multiple_of(32);
        }
        for (_, _, _, stored) in &self.tensors {
            out.resize(out.len().next_multiple_of(32), 0);
            out.extend(stored);
        }
        out
    }
}
