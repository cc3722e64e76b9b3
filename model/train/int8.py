"""Weights in 8 bits as compressed-tensors has them: of `X.weight` [rows, width] int8 codes, and `X.weight_scale` [rows, 1], float32; a weight is code * scale."""
import torch

# The group's own format counts: without one that library takes weights of 8 bits for packed where activations are not quantised.
CONFIG = {"quant_method": "compressed-tensors", "format": "int-quantized", "quantization_status": "compressed", "ignore": ["lm_head"], "kv_cache_scheme": None,
          "config_groups": {"group_0": {"targets": ["Linear"], "format": "int-quantized", "input_activations": None, "output_activations": None,
                                        "weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel", "dynamic": False, "group_size": None}}}}


def quantise(w):
    """Codes and scales of `w` [rows, width]: max|row| / 127, half to even. The scale of a row of zeros is 1, since none may be zero."""
    w = w.float()
    most = w.abs().amax(1, keepdim=True)
    scale = torch.where(most > 0, most / 127, torch.ones_like(most))
    return (w / scale).round().clamp(-127, 127).to(torch.int8), scale


def is_layer_matrix(k, v):
    """Whether a tensor of Hugging Face's layout is one of those that are stored so: the layers' matrices; embedding and norms are not."""
    return k.startswith("model.layers.") and v.dim() == 2


def dequantise(tensors):
    """`tensors` with float32 instead of codes and scales; the others as they are."""
    out = {}
    for k, v in tensors.items():
        if k + "_scale" in tensors:
            out[k] = v.float() * tensors[k + "_scale"].float()
        elif not k.endswith(".weight_scale"):
            out[k] = v
    return out
