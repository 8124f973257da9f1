"""kernelwright.flex: mods mean what they mean to PyTorch's own FlexAttention, and can be captured."""

import json
import subprocess

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention

import kernelwright
from kernelwright.capture import capture, live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright_cli import ROOT

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")
DOCUMENTS = torch.tensor([[0] * 40 + [1] * 56, [0] * 7 + [1] * 20 + [2] * 69], dtype=torch.int32)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def same_document(b, h, q_idx, kv_idx):
    return DOCUMENTS[b, q_idx] == DOCUMENTS[b, kv_idx]


def slopes(score, b, h, q_idx, kv_idx):
    return score + SLOPES[h] * (kv_idx - q_idx)


def softcap(score, b, h, q_idx, kv_idx):
    return 20.0 * torch.tanh(score / 20.0)


MODS = {"causal": (None, causal), "documents": (None, same_document), "slopes": (slopes, causal),
        "softcap": (softcap, None), "both_masks": (None, and_masks(causal, same_document))}


def operands(dtype, key_heads=4):
    torch.manual_seed(1)
    return [torch.randn(2, heads, 96, 64, dtype=dtype) for heads in (4, key_heads, key_heads)]


@pytest.mark.parametrize("name", MODS)
def test_it_computes_what_flex_attention_computes(name):
    score_mod, mask_mod = MODS[name]
    q, k, v = operands(torch.float32)
    mask = mask_mod and create_block_mask(mask_mod, 2, 4, 96, 96, device="cpu")
    want = flex_attention(q, k, v, score_mod=score_mod, block_mask=mask)
    torch.testing.assert_close(kernelwright.flex(score_mod, mask_mod)(q, k, v), want)


def test_scale_and_grouped_heads_are_flex_attentions():
    q, k, v = operands(torch.float32, key_heads=2)
    want = flex_attention(q, k, v, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(kernelwright.flex(scale=0.3, enable_gqa=True)(q, k, v), want)


def form_of(folder, function, values):
    """What capture's other half understands of it."""
    places = Dependencies(function).places
    spec, _ = live_function.user_spec(function, values, places)
    capture.write(capture.capture(spec, source=b"# tests\n"), folder)
    run = subprocess.run([ROOT / "build/kernelwright", "capture", folder, "--form"], text=True,
                         capture_output=True)
    assert run.returncode == 0, run.stderr
    return run.stdout, json.loads((folder / "graph.json").read_text())["arguments"]


def test_tensors_that_a_mod_reaches_become_arguments(tmp_path):
    form, arguments = form_of(tmp_path / "captured", kernelwright.flex(slopes, same_document),
                              operands(torch.bfloat16))
    assert [a["name"] for a in arguments] == ["q", "k", "v", "DOCUMENTS", "SLOPES"]
    assert "DOCUMENTS[b, i] == DOCUMENTS[b, j]" in form and "SLOPES[h]" in form


def test_a_mod_that_is_no_function_is_refused():
    with pytest.raises(kernelwright.ArgumentError, match="mask_mod is of the type Tensor"):
        kernelwright.flex(mask_mod=torch.ones(3))
