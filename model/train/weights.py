"""Names of the weights in the Hugging Face layout (Qwen3ForCausalLM) and in ours."""
import json, os


def to_hf(k):
    """Our name to Hugging Face's."""
    if k == "embed.weight":
        return "model.embed_tokens.weight"
    if k == "norm.weight":
        return "model.norm.weight"
    p = k.split(".")
    if p[2] in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm"):
        p.insert(2, "self_attn")
    elif p[2] in ("gate_proj", "up_proj", "down_proj"):
        p.insert(2, "mlp")
    return "model." + ".".join(p)


def from_hf(k):
    """Hugging Face's name to ours."""
    k = k.removeprefix("model.").replace("self_attn.", "").replace("mlp.", "")
    return k.replace("embed_tokens", "embed")


def shape_of(name):
    """The network's shape (model.CFG's fields) of a folder in the Hugging Face layout, or of a checkpoint."""
    import checkpoint
    if not os.path.isdir(name):
        return checkpoint.read(name)["cfg"]
    with open(name + "/config.json") as f:
        c = json.load(f)
    return {"hidden": c["hidden_size"], "layers": c["num_hidden_layers"], "heads": c["num_attention_heads"], "kv_heads": c["num_key_value_heads"], "head_dim": c["head_dim"], "ffn": c["intermediate_size"],
            "vocab": c["vocab_size"], "theta": c["rope_theta"], "context": c["max_position_embeddings"]}


def load_weights(name):
    """State of the model, float32, from a folder with model.safetensors or from a checkpoint."""
    import checkpoint
    if os.path.isdir(name):
        from safetensors.torch import load_file
        import int8
        return {from_hf(k): v.float() for k, v in int8.dequantise(load_file(name + "/model.safetensors")).items()}
    return checkpoint.read(name)["model"]
