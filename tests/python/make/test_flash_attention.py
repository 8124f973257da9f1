"""The real test: FlashAttention 2.8.3's own forward kernel, lifted, given prefix-LM's mask, and patched.

The sources are fetched; the answers are ours, written by hand (examples/foreign/flash_attn_2_8/answers).
On a GPU the result is proven by tests/gpu/day.sh.
"""

import json
import shutil
import subprocess

import flash_attention
import pytest
from foreign_kernel import answer
from kernelwright_cli import ROOT, call

HERE = ROOT / "examples/foreign/flash_attn_2_8"
pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return flash_attention.fetch(tmp_path_factory.mktemp("flash"))


@pytest.fixture(scope="module")
def lifted(sources, tmp_path_factory):
    top = tmp_path_factory.mktemp("lifted")
    api = answer(top / "answers", [(HERE / f"answers/00{n}.answer.json").read_text() for n in (1, 2, 3)])
    run = call("foreign", "lift", HERE / "kernel.json", "--sources", sources, "--spec", ROOT / "examples/full.py",
               "--out", top / "lift", "--api", api)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "any number of key blocks" in run.stderr  # of the schedules
    return top / "lift"


def test_every_line_of_the_kernel_is_said_or_left_out_with_a_reason(lifted):
    lift = json.loads((lifted / "lift.json").read_text())
    said = {region for part in lift["parts"] for region in part["regions"]}
    left = {one["region"] for one in lift["left_out"]}
    assert said | left == {region["name"] for region in lift["regions"]} and not said & left


def test_each_barrier_that_it_has_is_needed(lifted, tmp_path):
    """The check of the lift could fail: without any one of the kernel's barriers it does."""
    lines = (lifted / "kernel.tl").read_text().splitlines(keepends=True)
    barriers = [n for n, line in enumerate(lines) if line.strip() == "sync_block"]
    found = []
    for n in barriers:
        program = tmp_path / "one_less.tl"
        program.write_text("".join(lines[:n] + lines[n + 1 :]))
        run = call("check", program, "--spec", ROOT / "examples/full.py")
        found.append((run.returncode, run.stdout + run.stderr))
    # Before the output is staged and before it leaves a law asks for it; between two tiles of V the
    # first run does.
    assert [code for code, _ in found] == [2, 1, 2], found
    assert "error[store.C4]" in found[0][1] and found[1][1].startswith("refuted") and "a sync stands" in found[2][1], found


def test_prefix_lm_is_a_patch_on_its_own_files_that_compiles(sources, lifted, tmp_path):
    program = tmp_path / "prefix_lm.tl"
    spec = ROOT / "examples/prefix_lm.py"
    run = call("transfer", lifted / "kernel.tl", "--spec", spec, "--target", "sm_80", "--keep-order", "--out", program)
    assert run.returncode == 0, run.stderr
    api = answer(tmp_path / "answers", [(HERE / "answers/lower.answer.json").read_text()])
    out = tmp_path / "out"
    run = call("foreign", "lower", lifted, "--program", program, "--spec", spec, "--sources", sources,
               "--out", out, "--api", api, timeout=900)  # fmt: skip
    assert run.returncode == 3 and "-6 +47 lines in 3 files" in run.stderr, run.stderr
    assert "not proven" in run.stderr
    launch = json.loads((out / "launch.json").read_text())
    assert launch["arguments"][-1] == {
        "name": "prefix", "kind": "pointer", "offset": 472, "dtype": "i32", "dims": ["B"], "access": "read",
    }  # fmt: skip
    patched = tmp_path / "patched/csrc/flash_attn/src"
    shutil.copytree(sources / "csrc/flash_attn/src", patched)
    subprocess.run(["git", "apply", out / "kernel.patch"], cwd=tmp_path / "patched", check=True)
    assert "prefix_ptr" in (patched / "flash.h").read_text()
