//! Names of tensors in Hugging Face's files.

use super::Config;

/// What transformers calls a tensor of the model, whose own names are those of GGUF files. With tied embeddings, the matrix
/// that leads to logits is the embedding.
pub fn hugging_face(name: &str, config: &Config) -> String {
    renamed(name, config.tied, config.post_norms)
}

fn renamed(name: &str, tied: bool, post_norms: bool) -> String {
    match name {
        "output.weight" if !tied => return "lm_head.weight".into(),
        "token_embd.weight" | "output.weight" => return "model.embed_tokens.weight".into(),
        "output_norm.weight" => return "model.norm.weight".into(),
        _ => {}
    }
    let mut parts = name.splitn(4, '.');
    let (Some("blk"), Some(layer), Some(part), Some(kind)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return name.into();
    };
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "attn_output" => "self_attn.o_proj",
        // Where what attention adds has a norm as well, that one has the name.
        "ffn_norm" if post_norms => "pre_feedforward_layernorm",
        "post_attention_norm" if post_norms => "post_attention_layernorm",
        "post_ffw_norm" if post_norms => "post_feedforward_layernorm",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        other => other,
    };
    format!("model.layers.{layer}.{part}.{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_transformers() {
        assert_eq!(renamed("blk.11.attn_q.bias", false, false), "model.layers.11.self_attn.q_proj.bias");
        assert_eq!(
            renamed("blk.0.ffn_norm.weight", true, false),
            "model.layers.0.post_attention_layernorm.weight"
        );
        assert_eq!(renamed("output.weight", false, false), "lm_head.weight");
        assert_eq!(renamed("output.weight", true, false), "model.embed_tokens.weight");
        assert_eq!(renamed("token_embd.weight", true, false), "model.embed_tokens.weight");
        for (name, theirs) in [
            ("ffn_norm", "pre_feedforward_layernorm"),
            ("post_attention_norm", "post_attention_layernorm"),
            ("post_ffw_norm", "post_feedforward_layernorm"),
        ] {
            let ours = format!("blk.0.{name}.weight");
            // A model without such norms must not find others under their names.
            assert!(
                name == "ffn_norm" || renamed(&ours, true, false) == format!("model.layers.0.{name}.weight")
            );
            let theirs = format!("model.layers.0.{theirs}.weight");
            assert_eq!(renamed(&format!("blk.0.{name}.weight"), true, true), theirs);
        }
    }
}
