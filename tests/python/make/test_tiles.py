"""`make` for other head dimensions and float16: kernels/sm90/tiles.json end to end.

A few rows with a few golden cases each; every row in both types, and all cases, when
KW_TEST_ALL=1. Capture runs in this process, so that PyTorch is loaded once."""

import itertools
import json
import os

import pytest

from kernelwright.capture import capture, goldens
from kernelwright_cli import assert_refused, call, cubin_check

ALL = os.environ.get("KW_TEST_ALL") == "1"
QUICK = [(64, 64, "causal", "f16"), (256, 256, "causal", "bf16"), (192, 128, "causal", "bf16")]
ROWS = list(itertools.product([(64, 64), (96, 96), (128, 128), (256, 256), (192, 128)],
                              ["full", "causal"], ["bf16", "f16"]))
CASES = [(*dims, keys, dtype) for dims, keys, dtype in ROWS] if ALL else QUICK
LONG = {"bf16": "bfloat16", "f16": "float16"}
SPEC = """import torch


def attention(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
    s = q @ k.mT * {d}**-0.5
    return ({score}).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, d, dtype=torch.{dtype}) for d in ({d}, {d}, {v}))
    return q, k, v
"""


def captured(folder, d, v, dtype, score):
    """The specification's file, and the folder of its capture."""
    spec = folder / "attention.py"
    spec.write_text(SPEC.format(d=d, v=v, score=score, dtype=LONG[dtype]))
    with pytest.MonkeyPatch.context() as patch:
        if not ALL:
            patch.setattr(goldens, "CASES", goldens.CASES[::16])
        capture.capture_file(spec, None, None, folder / "captured")
    return spec, folder / "captured"


def make(folder, *spec, target="sm_90a"):
    """The folder that `make` wrote, and what it said."""
    made = folder / "made"
    run = call("make", captured(folder, *spec)[1], "--target", target, "--out", made)
    assert run.returncode == 0, run.stderr
    certificate = json.loads((made / "certificate.json").read_text())
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    return made, run.stderr


@pytest.mark.parametrize("d, v, keys, dtype", CASES)
def test_a_row_of_the_table_makes_a_kernel_that_holds(d, v, keys, dtype, tmp_path):
    score = "s.masked_fill(j > i, -torch.inf)" if keys == "causal" else "s"
    made, said = make(tmp_path, d, v, dtype, score)
    assert "roomier" not in said
    columns = {a["name"]: (a["dims"][-1], a["dtype"])
               for a in json.loads((made / "launch.json").read_text())["arguments"]
               if a["kind"] == "tensor_map"}
    assert columns == {"q": (d, dtype), "k": (d, dtype), "v": (v, dtype), "o": (v, dtype)}


def test_a_score_that_needs_more_registers_gets_roomier_tiles(tmp_path):
    made, said = make(tmp_path, 96, 96, "bf16", "20 * torch.tanh(s / 20)")
    assert said.count("roomier") == 1 and said.count("\ntransfer ") == 2
    assert "BM = 384, BN = 96" in (made / "kernel.cu").read_text()


def test_the_ampere_class_text_has_tiles_with_more_registers_too(tmp_path):
    scattered = "s.masked_fill((j > i) | (((i * j) % 11 + (i * 5 + j * 7) % 13) % 5 > 2), -torch.inf)"
    made, said = make(tmp_path, 64, 64, "bf16", scattered, target="sm_80")
    assert said.count("roomier") == 1
    assert "D = 64, BN = 96" in (made / "kernel.cu").read_text()
    # i * j fits 32 bits up to there, and no launch goes beyond
    assert "only for M <= 46340 and N <= 46340" in said
    assert json.loads((made / "launch.json").read_text())["requires"][-2:] == [["<=", "M", 46340], ["<=", "N", 46340]]


def test_a_window_of_the_ampere_class_text_starts_past_key_0(tmp_path):
    window = "s.masked_fill((i - j).abs() > 20, -torch.inf)"
    made, said = make(tmp_path, 256, 256, "f16", window, target="sm_89")
    assert "if (n > keys.first) kw::cp_async" in (made / "kernel.cu").read_text()


def test_a_head_dimension_without_tiles_is_refused_with_those_that_have_them(tmp_path):
    spec, folder = captured(tmp_path, 100, 100, "bf16", "s")
    run = call("make", folder, "--out", tmp_path / "made")
    assert_refused(run, "transfer.head_dim", f"{spec.name}:4:", "100", "64, 96, 128, 256",
                   "192 with 128 for v", "pad with zeros to 128")
    assert not (tmp_path / "made").exists()
