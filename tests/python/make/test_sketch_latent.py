"""Latent attention from a sketch: on every target, in steps of the scores and parts of the output; what is broken is refuted."""

import json
import re

import pytest

from kernelwright_cli import ROOT, call, cubin_check

EXAMPLE = ROOT / "examples/decode/mla_decode.py"
SKETCH = ROOT / "sketches/latent.tl"
TARGETS = {"sm_75": "rtx8000", "sm_80": "a100", "sm_86": "a10", "sm_89": "l40s", "sm_90a": "h200"}


def spec(folder, target):
    """The example; in f16 for Turing, which has no bf16."""
    file = folder / "mla_decode.py"
    text = EXAMPLE.read_text()
    file.write_text(text.replace("bfloat16", "float16") if target == "sm_75" else text)
    return file


def made(run, folder, target):
    assert run.returncode == 0, run.stdout + run.stderr
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    assert certificate["target"] == target
    line = rf"^sketch +sketches/latent.tl for {TARGETS[target]}, {target}: .*, 256 columns of the output"
    assert re.search(line, run.stderr, re.M), run.stderr
    return (folder / "kernel.tl").read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_make_from_the_sketch_holds_and_spills_nothing(target, tmp_path):
    run = call("make", spec(tmp_path, target), "--from", "sketch", "--target", target, "--check", "quick",
               "--out", tmp_path / "made")
    program = made(run, tmp_path / "made", target)
    assert "tiled" not in program and "q: in element[B, G, R, D]" in program  # heads are rows
    assert ("asynchronous copies: the values are columns of the keys" in run.stderr) == (target == "sm_90a")


@pytest.mark.parametrize("target, reason", [
    ("sm_75", "`cp_async_wait` is a copy under way, and sm_75 has none"),
    ("sm_89", "a CTA takes 212992 bytes of shared memory, sm_89 has 101376"),
])
def test_where_the_experts_text_does_not_fit_make_says_so_and_takes_the_sketch(target, reason, tmp_path):
    run = call("make", spec(tmp_path, target), "--target", target, "--check", "quick", "--out", tmp_path / "made")
    made(run, tmp_path / "made", target)
    assert f"kernels/sm80/latent_fwd.cu does not fit ({reason}); a sketch next" in run.stderr


def test_the_experts_text_stays_where_it_fits(tmp_path):
    run = call("make", EXAMPLE, "--target", "sm_80", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "sketch" not in run.stderr and "kernels/sm80/latent_fwd.cu" in run.stderr


MANY_QUERIES = """import torch


def latent(q, kv):
    i, j = (torch.arange(x.shape[2]) for x in (q, kv))
    scores = (q @ kv.mT * 0.135).masked_fill(j > i[:, None], -torch.inf)
    return scores.softmax(-1) @ kv[..., :512]


def example_inputs():
    return torch.randn(2, 4, 96, 576, dtype=torch.bfloat16), torch.randn(2, 1, 96, 576, dtype=torch.bfloat16)
"""


def test_many_queries_and_a_mask_which_the_experts_text_refuses(tmp_path):
    (tmp_path / "latent.py").write_text(MANY_QUERIES)
    run = call("make", tmp_path / "latent.py", "--target", "sm_80", "--check", "quick", "--out", tmp_path / "made")
    program = made(run, tmp_path / "made", "sm_80")
    assert "does not fit (the kernel takes the heads that share a key head as rows" in run.stderr
    assert "q: in element[B, H, M, D]" in program


@pytest.fixture(scope="module", params=["l40s", "t4"])
def checked(request, tmp_path_factory):
    """A folder with what capture wrote and a program that holds in every order."""
    folder = tmp_path_factory.mktemp(request.param)
    source = spec(folder, "sm_75" if request.param == "t4" else "")
    assert call("capture", source, "--out", folder / "captured").returncode == 0
    dtype = "f16" if request.param == "t4" else "bf16"
    for command in (["size", SKETCH, "--gpu", request.param, "--dtype", dtype, "--out", folder / "sized.tl"],
                    ["schedule", folder / "sized.tl", "--gpu", request.param, "--out", folder / "scheduled.tl"],
                    ["transfer", folder / "scheduled.tl", "--spec", folder / "captured", "--out", folder / "kernel.tl"],
                    ["check", folder / "kernel.tl", "--spec", folder / "captured"]):
        run = call(*command)
        assert run.returncode == 0, run.stdout + run.stderr
    return folder


BOTH = {
    "a step too few": ("range(STEPS", "range(STEPS - 1"),
    "the sum goes on from the block before": ("        fill s = 0.0\n", ""),
    "another part of the values": ("c.cut * CUT] -> v_s", "0] -> v_s"),
    "rows that no part writes": ("if c.cut == 0:", "if c.cut == CUTS:"),
}
COPIES = {
    "a copy that nobody waits for": ("            cp_async_wait 0\n", "            cp_async_wait 1\n"),
    "a slot that is still read": ("            cp_async_wait 0\n            sync_block\n", "            cp_async_wait 0\n"),
    "the next step into the slot of this": ("q_s[me][t + 1] by 1", "q_s[me][t] by 1"),
    "values before they have come": ("        cp_async_wait 0\n        sync_block\n        if n", "        if n"),
    "other columns of one operand": ("n * BN, (t + 1) * STEP]", "n * BN, t * STEP]"),
}
IN_TURN = {
    "copies over what is read": ("            sync_block\n            copy_tile_in q", "            copy_tile_in q"),
    "values before they have come": ("        sync_block\n        mma_add acc", "        mma_add acc"),
    "a product before its copies": ("            sync_block\n            mma_add_t", "            mma_add_t"),
}


def refuted(folder, was, slip):
    program = (folder / "kernel.tl").read_text()
    assert was in program, program
    (folder / "slip.tl").write_text(program.replace(was, slip))
    run = call("check", folder / "slip.tl", "--spec", folder / "captured")
    assert run.returncode == 1, run.stdout + run.stderr


@pytest.mark.parametrize("slip", BOTH)
def test_a_slip_is_refuted(checked, slip):
    refuted(checked, *BOTH[slip])


@pytest.mark.parametrize("checked", ["l40s"], indirect=True)
@pytest.mark.parametrize("slip", COPIES)
def test_a_slip_with_copies_under_way_is_refuted(checked, slip):
    refuted(checked, *COPIES[slip])


@pytest.mark.parametrize("checked", ["t4"], indirect=True)
@pytest.mark.parametrize("slip", IN_TURN)
def test_a_slip_with_copies_in_turn_is_refuted(checked, slip):
    refuted(checked, *IN_TURN[slip])


def test_the_output_before_its_store_is_done_breaks_a_law(checked):
    program = (checked / "kernel.tl").read_text()
    (checked / "slip.tl").write_text(program.replace("    sync_warpgroup me\n    copy_tile_out", "    copy_tile_out"))
    run = call("check", checked / "slip.tl", "--spec", checked / "captured")
    assert run.returncode == 2 and "copy_tile_out.C5" in run.stderr
