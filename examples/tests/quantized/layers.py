"""Writes small layers as the libraries pack them that people quantise with, and the values that these libraries read back.

    pip install torch numpy safetensors transformers compressed-tensors accelerate pillow
    pip download --no-deps --no-binary :all: --no-build-isolation autoawq==0.2.9 gptqmodel==7.7.0  # sources, unpacked beside this file
    python layers.py SOURCES .

`SOURCES` is the folder with both: the layers of AutoAWQ and GPTQModel need no GPU, but their packages compile kernels. Each file has the
tensors of layers by the names that checkpoints have, and `<layer>.values`, the values in f32. `floats.safetensors` also has `all`, the values
of every byte as torch reads it, and `rounded`, what torch rounds `exact` to.
"""

import importlib.util
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

SOURCES, OUT = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
ROWS, WIDTH = 32, 64
torch.manual_seed(18)


def module(path, name):
    spec = importlib.util.spec_from_file_location(name, SOURCES / path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def layer(rows=ROWS, width=WIDTH):
    linear = torch.nn.Linear(width, rows, bias=False, dtype=torch.float16)
    linear.weight.data = (torch.randn(rows, width) * 0.1).half()
    return linear


def grid(weight, group, least=0):
    """A scale and a zero point, `least` to 15, for each group of each row."""
    groups = weight.float().reshape(weight.shape[0], -1, group)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    scales = ((high - low) / 15).half()
    return scales, (-low / scales.float()).round().clamp(least, 15)


def save(name, tensors, config):
    save_file({key: value.detach().contiguous() for key, value in tensors.items()}, OUT / f"{name}.safetensors")
    (OUT / f"{name}.json").write_text(json.dumps({"quantization_config": config}) + "\n")


def awq():
    sys.path.insert(0, str(SOURCES / "autoawq-0.2.9"))
    gemm = module("autoawq-0.2.9/awq/modules/linear/gemm.py", "awq_gemm")
    from awq.utils.packing_utils import dequantize_gemm

    tensors = {}
    for name, group in [("a", 32), ("b", 32)]:
        linear = layer(32 if name == "a" else 64, WIDTH if name == "a" else 96)
        scales, zeros = grid(linear.weight.data, group)
        packed = gemm.WQLinear_GEMM.from_linear(linear, 4, group, scales=scales.T.contiguous(), zeros=zeros.T.contiguous())
        tensors |= {f"{name}.{key}": getattr(packed, key) for key in ["qweight", "qzeros", "scales"]}
        # It computes in f16, and the values are those of its integers in f32.
        values = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales.float(), 4, group)
        tensors[f"{name}.values"] = values.T.float()
    save("awq", tensors, dict(quant_method="awq", bits=4, group_size=32, zero_point=True, version="gemm", modules_to_not_convert=["lm_head"]))


def gptq(name, version, sorted_columns):
    sys.path.insert(0, str(SOURCES / "gptqmodel-7.7.0"))
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear

    linear, group = layer(32), 32
    scales, zeros = grid(linear.weight.data, group, 1)
    packed = TorchLinear(
        bits=4, group_size=group, sym=False, desc_act=sorted_columns, in_features=WIDTH, out_features=32, bias=False, register_buffers=True
    )
    index = torch.arange(WIDTH) // group
    if sorted_columns:
        index = index[torch.randperm(WIDTH)]
    packed.pack_original(linear, scales, zeros, index.to(torch.int32))
    packed.post_init()
    tensors = {f"layer.{key}": getattr(packed, key).clone() for key in ["qweight", "qzeros", "scales", "g_idx"]}
    values = packed.dequantize_weight().T.float()
    # The same with scales in f32, which the values in f16 are those of, rounded.
    packed.scales = packed.scales.float()
    exact = packed.dequantize_weight().T.float()
    assert torch.allclose(values, exact, atol=2e-3)
    if version == "gptq":
        # As GPTQModel saves it.
        from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module

        packed.scales = packed.scales.half()
        convert_gptq_v2_to_v1_format_module(packed, quantize_config=type("Config", (), dict(bits=4, pack_dtype=torch.int32))())
        tensors["layer.qzeros"] = packed.qzeros
    # A bias of zeros, as older versions write it for layers that have none.
    tensors["layer.bias"] = torch.zeros(32, dtype=torch.float16)
    tensors["layer.values"] = exact
    config = dict(quant_method="gptq", bits=4, group_size=group, desc_act=sorted_columns, sym=False, checkpoint_format=version)
    save(name, tensors, config)


def packed():
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32, unpack_from_int32

    tensors = {}
    for name in ["symmetric", "asymmetric"]:
        weight = layer().weight.data
        if name == "symmetric":
            scales = (weight.float().reshape(ROWS, -1, 32).abs().amax(-1) / 7).bfloat16()
            zeros = torch.zeros(scales.shape)
        else:
            scales, zeros = grid(weight, 32)
            scales, zeros = scales.bfloat16(), zeros - 8
            tensors[f"{name}.weight_zero_point"] = pack_to_int32(zeros.to(torch.int8), 4, packed_dim=0)
        wide = lambda of: of.float().repeat_interleave(32, dim=1)
        integers = (weight.float() / wide(scales) + wide(zeros)).round().clamp(-8, 7).to(torch.int8)
        tensors[f"{name}.weight_packed"] = pack_to_int32(integers, 4)
        tensors[f"{name}.weight_scale"] = scales
        tensors[f"{name}.weight_shape"] = torch.tensor([ROWS, WIDTH])
        read = unpack_from_int32(tensors[f"{name}.weight_packed"], 4, torch.Size([ROWS, WIDTH]))
        assert torch.equal(read, integers)
        # What blocks have: scales in half precision, which has these.
        assert torch.equal(scales.half().float(), scales.float())
        tensors[f"{name}.values"] = (integers.float() - wide(zeros)) * wide(scales)
    # One description of both: zero points may be missing.
    weights = dict(num_bits=4, type="int", symmetric=True, strategy="group", group_size=32)
    group = dict(weights=weights, input_activations=None, targets=["Linear"])
    save("packed", tensors, dict(quant_method="compressed-tensors", format="pack-quantized", config_groups=dict(group_0=group), ignore=["lm_head"]))


def floats():
    tensors = {"all": torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()}
    exact = torch.cat([torch.randn(500) * 10.0 ** torch.randint(-4, 3, (500,)), torch.arange(-64, 64) / 1024.0]).clamp(-448, 448)
    tensors |= {"exact": exact, "rounded": exact.to(torch.float8_e4m3fn).view(torch.uint8)}
    for name in ["tensor", "row"]:
        weight = layer().weight.data.float()
        most = weight.abs().amax() if name == "tensor" else weight.abs().amax(1, keepdim=True)
        scale = most / 448
        stored = (weight / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        tensors |= {f"{name}.weight": stored, f"{name}.weight_scale": scale, f"{name}.values": stored.float() * scale}
        tensors[f"{name}.floats"] = weight
    save("floats", tensors, dict(quant_method="fp8", activation_scheme="dynamic"))


def blocks():
    weight = torch.randn(ROWS, 128)
    each = weight.reshape(4, 8, 2, 64).abs().amax((1, 3)) / 448
    wide = each.repeat_interleave(8, 0).repeat_interleave(64, 1)
    stored = (weight / wide).to(torch.float8_e4m3fn)
    tensors = {"layer.weight": stored, "layer.weight_scale_inv": each, "layer.values": stored.float() * wide}
    save("blocks", tensors, dict(quant_method="fp8", fmt="e4m3", weight_block_size=[8, 64]))


awq()
gptq("gptq", "gptq", False)
gptq("gptq_v2", "gptq_v2", False)
gptq("sorted", "gptq", True)
packed()
floats()
blocks()
