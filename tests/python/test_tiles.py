"""`make` for other head dimensions and float16: src/transfer/tiles.def end to end.

A few rows with a few golden cases each; every row in both types, and all cases, when
KW_TEST_ALL=1. Capture runs in this process, so that PyTorch is loaded once."""

import itertools
import json
import os

import pytest

from kernelwright import capture, goldens
from kernelwright_cli import assert_refused, call, write_spec

ALL = os.environ.get("KW_TEST_ALL") == "1"
QUICK = [(64, 64, "causal", "f16"), (256, 256, "full", "bf16"), (192, 128, "causal", "bf16")]
ROWS = list(itertools.product([(64, 64), (96, 96), (128, 128), (256, 256), (192, 128)],
                              ["full", "causal"], ["bf16", "f16"]))
CASES = [(*dims, keys, dtype) for dims, keys, dtype in ROWS] if ALL else QUICK
LONG = {"bf16": "bfloat16", "f16": "float16"}
SPEC = """import torch


def attention(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])[None]
    s = (q @ k.mT * {d}**-0.5){mask}
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, d, dtype=torch.{dtype}) for d in ({d}, {d}, {v}))
    return q, k, v
"""


@pytest.mark.parametrize("d, v, keys, dtype", CASES)
def test_a_row_of_the_table_makes_a_kernel_that_holds(d, v, keys, dtype, tmp_path, monkeypatch):
    spec, captured, made = tmp_path / "attention.py", tmp_path / "captured", tmp_path / "made"
    mask = ".masked_fill(j > i, -torch.inf)" if keys == "causal" else ""
    spec.write_text(SPEC.format(d=d, v=v, mask=mask, dtype=LONG[dtype]))
    if not ALL:
        monkeypatch.setattr(goldens, "CASES", goldens.CASES[::8])
    capture.capture(spec, None, None, captured)
    run = call("make", captured, "--out", made)
    assert run.returncode == 0, run.stderr
    columns = {a["name"]: (a["dims"][-1], a["dtype"])
               for a in json.loads((made / "launch.json").read_text())["arguments"]
               if a["kind"] == "tensor_map"}
    assert columns == {"q": (d, dtype), "k": (d, dtype), "v": (v, dtype), "o": (v, dtype)}
    certificate = json.loads((made / "certificate.json").read_text())
    assert certificate["verdict"] == "holds" and certificate["resources"]["spill_bytes"] == 0


def test_a_head_dimension_without_tiles_is_refused_with_those_that_have_them(tmp_path):
    spec = write_spec(tmp_path, shape="2, 4, 96, 100")
    run = call("make", spec, cwd=tmp_path)
    assert_refused(run, "transfer.head_dim", f"{spec}:4:", "100", "64, 96, 128, 256",
                   "192 with 128 for v", "pad with zeros to 128")
    assert [p.name for p in tmp_path.iterdir()] == ["attention.py"]
