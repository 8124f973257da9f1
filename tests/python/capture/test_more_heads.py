"""Of which numbers of heads a captured function is the same."""

import pathlib

import pytest

from kernelwright.capture import load, more_heads, trace

SPEC = """import torch

def attention(q, k, v{more}):
    heads, groups = q.shape[1], k.shape[1]
    k, v = (x.repeat_interleave({ratio}, dim=1) for x in (k, v))
    s = (q @ k.mT).float() * {scale}
    {then}
    return {out}

def example_inputs():
    q = torch.randn(1, 8, 64, 64, dtype=torch.bfloat16)
    k, v = (torch.randn(1, 2, 64, 64, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v{example}
"""
WORDS = {"more": "", "ratio": "heads // groups", "scale": "0.125", "then": "", "out": "s.softmax(-1).to(v.dtype) @ v", "example": ""}
WINDOW = "s = s.masked_fill(torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2]) >= 32 * heads, -torch.inf)"


@pytest.mark.parametrize("change, alike", [
    ({}, "any"), ({"more": ", slopes", "then": "s = s + slopes[:, None, None]", "example": ", torch.rand(8)"}, "any"),
    ({"more": ", gain", "then": "s = s * gain[0]", "example": ", torch.rand(64)"}, "any"),  # D, and no head count
    ({"scale": "heads * 0.01"}, "own"), ({"scale": "4 * (heads * 64) ** -0.5"}, "own"), ({"then": WINDOW}, "own"),
    ({"then": "s = s + torch.arange(8.0)[:, None, None]"}, "own"),  # raises with sixteen
    ({"scale": "0.5 / (heads // groups)"}, "grouped"), ({"ratio": "4"}, "grouped")])
def test_a_head_count_that_is_computed_with_is_seen(change, alike, tmp_path):
    file = tmp_path / "attention.py"
    file.write_text(SPEC.format(**WORDS | change))
    spec = load.load(pathlib.Path(file), None)
    assert more_heads.alike(spec, trace.trace(spec, trace.convert(spec, None))) == alike


def test_shared_keys_and_one_head_are_alike(tmp_path):
    for heads, groups in ((8, 1), (1, 1)):
        file = tmp_path / "attention.py"
        text = SPEC.format(**WORDS).replace("(1, 8, 64", f"(1, {heads}, 64").replace("(1, 2, 64", f"(1, {groups}, 64")
        file.write_text(text)
        spec = load.load(pathlib.Path(file), None)
        assert more_heads.alike(spec, trace.trace(spec, trace.convert(spec, None))) == "any"
