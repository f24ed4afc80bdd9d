//! Names of tensors in Hugging Face's files.

/// What transformers calls a tensor of the model, whose own names are those of GGUF files. With `tied` embeddings, the matrix
/// that leads to logits is the embedding.
pub fn hugging_face(name: &str, tied: bool) -> String {
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
        assert_eq!(hugging_face("blk.11.attn_q.bias", false), "model.layers.11.self_attn.q_proj.bias");
        assert_eq!(
            hugging_face("blk.0.ffn_norm.weight", true),
            "model.layers.0.post_attention_layernorm.weight"
        );
        assert_eq!(hugging_face("output.weight", false), "lm_head.weight");
        assert_eq!(hugging_face("output.weight", true), "model.embed_tokens.weight");
        assert_eq!(hugging_face("token_embd.weight", true), "model.embed_tokens.weight");
    }
}
