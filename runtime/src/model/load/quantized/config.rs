//! The quantisation of weights, as `config.json` describes it.

use std::path::Path;

use serde_json::Value;

use crate::{Error, Result, quantized::float8};

/// The quantisation of a checkpoint's weights, as its `config.json` describes it: `quantization_config`, or `compression_config`.
///
/// Read are `quant_method` `fp8`, `awq`, `gptq`, and `compressed-tensors` with the formats `float-quantized`, `naive-quantized` and
/// `pack-quantized`. That activations are to be quantised, too, is not done: they stay what the model computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantization(pub(super) Method);

/// A method, with what tensors do not say themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Floats of 8 bits; scales of blocks of so many rows and columns, if it is not one for a row or a tensor.
    Float8 { block: Option<[usize; 2]> },
    /// Integers of 4 bits. So many elements of a row share a scale, if it is not the whole row.
    Int4 { layout: Layout, group: Option<usize> },
}

/// The layout of integers of 4 bits in tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Awq,
    Gptq {
        /// Set if zero points are stored less 1.
        less_one: bool,
        /// Set if all zero points are 8.
        symmetric: bool,
        /// Set if columns were sorted, so that the groups of neighbours differ.
        sorted: bool,
    },
    /// `pack-quantized` of compressed-tensors.
    Packed {
        symmetric: bool,
        sorted: bool,
    },
}

impl Layout {
    /// Set if tensors state the group of each column.
    pub(super) fn is_sorted(self) -> bool {
        match self {
            Self::Awq => false,
            Self::Gptq { sorted, .. } | Self::Packed { sorted, .. } => sorted,
        }
    }
}

impl Quantization {
    /// Floats of 8 bits with a scale for each tensor or row, which tensors tell by themselves.
    pub(super) const OF_TENSORS: Self = Self(Method::Float8 { block: None });

    /// Reads the contents of `config.json`; `None` if weights are not quantised. `path` is for errors.
    ///
    /// # Errors
    /// Returns [`Error::File`] if it is not JSON, and [`Error::Config`] for a method, a number of bits, a layout or a size of groups that
    /// is not read, with what is.
    pub fn from_config(path: impl AsRef<Path>, json: &[u8]) -> Result<Option<Self>> {
        let config: Value = serde_json::from_slice(json).map_err(|e| Error::File {
            path: path.as_ref().display().to_string(),
            reason: format!("is damaged, or not JSON: {e}; fetch it again"),
        })?;
        let found = ["quantization_config", "compression_config"].into_iter().map(|key| &config[key]);
        let Some(found) = found.into_iter().find(|found| !found.is_null()) else { return Ok(None) };
        let found = Found(found);
        let method = found.text("quant_method").unwrap_or("compressed-tensors");
        let method = match method {
            "fp8" => found.fp8()?,
            "awq" => found.awq()?,
            "gptq" => found.gptq()?,
            "compressed-tensors" => found.compressed_tensors()?,
            other => {
                return found.refuse("quant_method", other, "fp8, awq, gptq and compressed-tensors are read");
            }
        };
        Ok(Some(Self(method)))
    }
}

/// The quantisation that was found.
struct Found<'a>(&'a Value);

impl Found<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0[key].as_str()
    }

    fn refuse<T>(&self, key: &str, value: impl std::fmt::Display, reason: &str) -> Result<T> {
        Err(Error::Config { what: format!("`{key}` {value} of quantised weights"), reason: reason.into() })
    }

    /// The first of these keys that is there.
    fn any(&self, keys: [&str; 2]) -> &Value {
        keys.into_iter().map(|key| &self.0[key]).find(|value| !value.is_null()).unwrap_or(&Value::Null)
    }

    fn check_bits(&self, bits: &Value, expected: u64) -> Result<()> {
        match bits.as_u64() {
            Some(bits) if bits == expected => Ok(()),
            _ => self.refuse("bits", bits, &format!("this method is read with {expected} bits")),
        }
    }

    /// A size of groups; `None` stands for the whole row.
    fn group(&self, size: &Value) -> Result<Option<usize>> {
        match size.as_i64() {
            Some(-1) => Ok(None),
            Some(size @ 1..) if size % 32 == 0 => Ok(usize::try_from(size).ok()),
            _ => self.refuse(
                "group_size",
                size,
                "groups of a multiple of 32 are read, and -1, which is the whole row",
            ),
        }
    }

    fn fp8(&self) -> Result<Method> {
        if let Some(format) = self.text("fmt").filter(|format| *format != "e4m3") {
            return self.refuse("fmt", format, "e4m3 is read");
        }
        Ok(Method::Float8 { block: self.block(&self.0["weight_block_size"])? })
    }

    /// The rows and columns of a block, if there are blocks.
    fn block(&self, size: &Value) -> Result<Option<[usize; 2]>> {
        if size.is_null() {
            return Ok(None);
        }
        let sizes: Option<Vec<usize>> = size.as_array().and_then(|sizes| {
            sizes.iter().map(|size| size.as_u64().and_then(|size| size.try_into().ok())).collect()
        });
        match sizes.as_deref() {
            Some(&[rows, columns]) if rows > 0 && columns > 0 && columns % float8::ELEMENTS == 0 => {
                Ok(Some([rows, columns]))
            }
            _ => self.refuse(
                "weight_block_size",
                size,
                "two sizes are read, of which the second is a multiple of 64",
            ),
        }
    }

    fn awq(&self) -> Result<Method> {
        self.check_bits(self.any(["bits", "w_bit"]), 4)?;
        // AutoAWQ writes it in capitals, too.
        let version = self.text("version").unwrap_or("gemm").to_lowercase();
        if version != "gemm" {
            return self.refuse(
                "version",
                version,
                "weights in the layout `gemm` are read; save the model in it",
            );
        }
        Ok(Method::Int4 { layout: Layout::Awq, group: self.group(self.any(["group_size", "q_group_size"]))? })
    }

    fn gptq(&self) -> Result<Method> {
        self.check_bits(&self.0["bits"], 4)?;
        if self.0["is_marlin_format"] == true {
            return self.refuse("is_marlin_format", true, "weights in the layouts gptq and gptq_v2 are read");
        }
        let less_one = match self.text("checkpoint_format").unwrap_or("gptq") {
            "gptq" => true,
            "gptq_v2" => false,
            other => return self.refuse("checkpoint_format", other, "gptq and gptq_v2 are read"),
        };
        let [symmetric, sorted] = ["sym", "desc_act"].map(|key| self.0[key] == true);
        let layout = Layout::Gptq { less_one, symmetric, sorted };
        Ok(Method::Int4 { layout, group: self.group(&self.0["group_size"])? })
    }

    fn compressed_tensors(&self) -> Result<Method> {
        if let Some(sparse) = self.0["sparsity_config"]["format"].as_str().filter(|format| *format != "dense")
        {
            return self.refuse("sparsity_config.format", sparse, "dense weights are read");
        }
        let groups = self.0["config_groups"].as_object().map(|groups| groups.values().collect::<Vec<_>>());
        let methods: Vec<Method> = groups
            .unwrap_or_default()
            .into_iter()
            .map(|group| self.of_group(group))
            .collect::<Result<_>>()?;
        match methods.as_slice() {
            [first, rest @ ..] if rest.iter().all(|method| method == first) => Ok(*first),
            [] => self.refuse("config_groups", "(none)", "it says how weights are quantised"),
            _ => self.refuse("config_groups", "of several kinds", "one for all weights is read"),
        }
    }

    /// The quantisation of some weights in `config_groups`.
    fn of_group(&self, group: &Value) -> Result<Method> {
        let weights = &group["weights"];
        // Without a strategy, the size of groups tells it.
        let strategy = weights["strategy"].as_str().unwrap_or(match weights["group_size"].as_i64() {
            Some(-1) => "channel",
            Some(1..) => "group",
            _ => "tensor",
        });
        // A group may have a format of its own.
        let format = group["format"].as_str().or(self.text("format")).unwrap_or("");
        match (format, weights["type"].as_str().unwrap_or("int"), strategy) {
            ("float-quantized" | "naive-quantized", "float", "tensor" | "channel") => {
                self.check_bits(&weights["num_bits"], 8)?;
                Ok(Method::Float8 { block: None })
            }
            ("float-quantized" | "naive-quantized", "float", "block") => {
                self.check_bits(&weights["num_bits"], 8)?;
                Ok(Method::Float8 { block: self.block(&weights["block_structure"])? })
            }
            ("pack-quantized", "int", "group" | "channel") => {
                self.check_bits(&weights["num_bits"], 4)?;
                let whole_row = Value::from(-1);
                let size = if strategy == "group" { &weights["group_size"] } else { &whole_row };
                // By default they are; `actorder` of weights alone (`weight`, `static`) leaves columns in their groups.
                let symmetric = weights["symmetric"] != false;
                let sorted = weights["actorder"] == "group" || weights["actorder"] == true;
                Ok(Method::Int4 { layout: Layout::Packed { symmetric, sorted }, group: self.group(size)? })
            }
            (format, kind, strategy) => self.refuse(
                "format",
                format!("{format:?} with weights of type {kind} for each {strategy}"),
                "float-quantized with floats for each tensor, channel or block, and pack-quantized with integers for each group or \
                 channel are read",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Quantization>> {
        Quantization::from_config("config.json", text.as_bytes())
    }

    fn of(config: &str) -> Method {
        read(&format!(r#"{{"model_type":"llama","quantization_config":{config}}}"#)).unwrap().unwrap().0
    }

    #[test]
    fn methods_that_are_read() {
        assert_eq!(read(r#"{"model_type":"llama"}"#).unwrap(), None);
        assert_eq!(read(r#"{"quantization_config":null}"#).unwrap(), None);
        let float8 = |block| Method::Float8 { block };
        assert_eq!(
            of(r#"{"quant_method":"fp8","activation_scheme":"static","ignored_layers":["lm_head"]}"#),
            float8(None)
        );
        let blocks = r#"{"quant_method":"fp8","fmt":"e4m3","weight_block_size":[128,128]}"#;
        assert_eq!(of(blocks), float8(Some([128, 128])));
        let int4 = |layout, group| Method::Int4 { layout, group };
        let awq = r#"{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,"version":"GEMM"}"#;
        assert_eq!(of(awq), int4(Layout::Awq, Some(128)));
        assert_eq!(of(r#"{"quant_method":"awq","w_bit":4,"q_group_size":64}"#), int4(Layout::Awq, Some(64)));
        let gptq = r#"{"quant_method":"gptq","bits":4,"group_size":-1,"desc_act":false,"sym":true}"#;
        let layout = |less_one, symmetric, sorted| Layout::Gptq { less_one, symmetric, sorted };
        assert_eq!(of(gptq), int4(layout(true, true, false), None));
        let sorted = r#"{"quant_method":"gptq","bits":4,"group_size":32,"desc_act":true,"sym":false}"#;
        assert_eq!(of(sorted), int4(layout(true, false, true), Some(32)));
        let v2 = r#"{"quant_method":"gptq","bits":4,"group_size":32,"checkpoint_format":"gptq_v2"}"#;
        assert_eq!(of(v2), int4(layout(false, false, false), Some(32)));
        let floats = r#"{"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"group_0":{
            "weights":{"num_bits":8,"type":"float","strategy":"channel"},"targets":["Linear"]}}}"#;
        assert_eq!(of(floats), float8(None));
        let packed = r#"{"format":"pack-quantized","config_groups":{"group_0":{
            "weights":{"num_bits":4,"type":"int","strategy":"group","group_size":64}}}}"#;
        assert_eq!(of(packed), int4(Layout::Packed { symmetric: true, sorted: false }, Some(64)));
        let others = r#"{"format":"pack-quantized","config_groups":{"group_0":{
            "weights":{"num_bits":4,"type":"int","group_size":-1,"symmetric":false,"actorder":"group"}}}}"#;
        assert_eq!(of(others), int4(Layout::Packed { symmetric: false, sorted: true }, None));
    }

    #[test]
    fn what_is_not_read_is_named() {
        let refused = |config: &str, wanted: &str| {
            let error = read(&format!(r#"{{"quantization_config":{config}}}"#)).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Config { .. }) && text.contains(wanted), "{text}");
        };
        refused(r#"{"quant_method":"bitsandbytes","load_in_4bit":true}"#, "`quant_method` bitsandbytes");
        refused(r#"{"quant_method":"fp8","fmt":"e5m2"}"#, "`fmt` e5m2");
        refused(r#"{"quant_method":"fp8","weight_block_size":[128,32]}"#, "`weight_block_size` [128,32]");
        refused(r#"{"quant_method":"fp8","weight_block_size":[0,64]}"#, "`weight_block_size` [0,64]");
        refused(r#"{"quant_method":"fp8","weight_block_size":7}"#, "`weight_block_size` 7");
        refused(r#"{"quant_method":"awq","bits":8,"group_size":128}"#, "`bits` 8");
        refused(r#"{"quant_method":"awq","bits":4,"group_size":128,"version":"gemv"}"#, "`version` gemv");
        refused(r#"{"quant_method":"awq","bits":4}"#, "`group_size` null");
        refused(r#"{"quant_method":"gptq","bits":3,"group_size":128}"#, "`bits` 3");
        refused(r#"{"quant_method":"gptq","bits":4,"group_size":16}"#, "`group_size` 16");
        refused(r#"{"quant_method":"gptq","bits":4,"group_size":-2}"#, "`group_size` -2");
        refused(r#"{"quant_method":"gptq","bits":4,"group_size":64,"checkpoint_format":"marlin"}"#, "marlin");
        refused(r#"{"quant_method":"gptq","bits":4,"group_size":64,"is_marlin_format":true}"#, "marlin");
        let ct = |format: &str, weights: &str| {
            format!(
                r#"{{"quant_method":"compressed-tensors","format":"{format}","config_groups":{{"group_0":{{"weights":{weights}}}}}}}"#
            )
        };
        refused(&ct("int-quantized", r#"{"num_bits":8,"type":"int","strategy":"channel"}"#), "int-quantized");
        refused(&ct("pack-quantized", r#"{"num_bits":8,"type":"int","strategy":"channel"}"#), "`bits` 8");
        refused(&ct("float-quantized", r#"{"num_bits":4,"type":"float","strategy":"tensor"}"#), "`bits` 4");
        refused(r#"{"quant_method":"compressed-tensors","config_groups":{}}"#, "(none)");
        refused(r#"{"sparsity_config":{"format":"sparse-24-bitmask"}}"#, "sparse-24-bitmask");
        refused(r#""text""#, "(none)");
        assert!(matches!(read("{"), Err(Error::File { .. })));
    }
}
