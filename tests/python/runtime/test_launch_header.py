"""launch.h and the runtime agree for every head dimension and element type, not only for those of the
kernel's text: the plans of its TL with other constants. Both kernels of the corpus."""

import json
import subprocess

import pytest

from agreement import agreement_of, assert_agree
from kernelwright_cli import ROOT

CORPUS = {"sm_90a": "sm90", "sm_80": "sm80"}


def plan(folder, target, element, columns):
    """launch.json and launch.h of the target's kernel with other constants."""
    text = (ROOT / f"tests/corpus/{CORPUS[target]}_attention_fwd.tl").read_text()
    for old, new in [("element bf16\n", f"element {element}\n"), *columns]:
        assert old in text
        text = text.replace(old, new, 1)
    program = folder / "kernel.tl"
    program.write_text(text)
    return subprocess.run([str(ROOT / "build/tests/launch_plan"), program, target, folder,
                           "made_here"], text=True, capture_output=True)


def of_hopper(d, v):
    return [("param D = 128, V = 128", f"param D = {d}, V = {v}"), ("Q_SLOTS = 2", "Q_SLOTS = 1")]


# The kernel with a pre-pass, whose words the caller makes room for.
LISTED = [("    scale: f32", "    visits: scratch[B * (3 + N)]\n    scale: f32"),
          ("kernel attention_fwd", """lists attention_lists, threads 64, w of ceil_div(M, 64):
    list_blocks visits[w * (3 + N)] for n in range(0, N), groups r to s of 1:
        return true, false
kernel attention_fwd""")]


@pytest.mark.parametrize("target, element, columns", [
    ("sm_90a", "bf16", LISTED),
    ("sm_90a", "f16", of_hopper(96, 96)), ("sm_90a", "bf16", of_hopper(192, 128)),
    ("sm_80", "bf16", [("param RESIDENT = 2", "param RESIDENT = 1")]),
    ("sm_80", "f16", [("param D = 128, BN = 64", "param D = 64, BN = 128")])])
def test_launch_h_packs_and_refuses_as_the_runtime_does(target, element, columns, tmp_path):
    run = plan(tmp_path, target, element, columns)
    assert run.returncode == 0, run.stderr
    said = agreement_of(tmp_path, tmp_path)
    assert_agree(said)
    assert said["q lies 8 bytes off"][1:3] == (
        "q: the address must be a multiple of 16 bytes", "launch.alignment")
    assert said["k's rows are 132 apart"][2] == "launch.stride"
    assert said["a key more than are proved"][1:3] == (
        "k: dimension 2 must be from 1 to 16777216, for which kernels are checked", "launch.range")


# The kernel whose rows of q a pre-pass writes to memory that the caller makes room for; and both pre-passes.
ROWED = [("    q: tiled in element[B, H, M, D]", "    q: in bf16[B, H, M, D]\n    q_rows: tiled scratch element[B, H, M, D]"),
         ("tma_load q[", "tma_load q_rows["),
         ("kernel attention_fwd", """rows attention_rows, threads 256, w of B * H:
    for b, h, r in each_row(q_rows, w):
        write_row q_rows[b, h, r] over j < D = q[b, h, r, j]
kernel attention_fwd""")]


@pytest.mark.parametrize("edits", [ROWED, LISTED + ROWED])
def test_launch_h_makes_room_for_rows_as_the_runtime_does(edits, tmp_path):
    run = plan(tmp_path, "sm_90a", "bf16", edits)
    assert run.returncode == 0, run.stderr
    assert_agree(agreement_of(tmp_path, tmp_path))


@pytest.mark.parametrize("text", ["sm90_attention_bwd", "sm90_attention_bwd_wide", "sm90_attention_bwd_mla", "sm90_attention_bwd_narrow", "sm80_attention_bwd"])
def test_launch_h_packs_scratches_of_every_rank_as_the_runtime_does(text, tmp_path):
    """A kernel of gradients has sums of four dimensions and a number of each row, of three."""
    target = "sm_80" if text.startswith("sm80") else "sm_90a"
    run = subprocess.run([str(ROOT / "build/tests/launch_plan"), ROOT / f"tests/corpus/{text}.tl", target, tmp_path, "made_here"],
                         text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    ranks = {len(a["dims"]) for a in json.loads((tmp_path / "launch.json").read_text())["arguments"] if a["kind"] == "scratch"}
    assert ranks == {3, 4}
    assert_agree(agreement_of(tmp_path, tmp_path, [("nothing", False, "")]))


def test_more_thread_blocks_than_a_grid_has_are_refused_by_both(tmp_path):
    assert plan(tmp_path, "sm_80", "bf16", [("ceil_div(M, BM) * H * B", "M * 67108864 * 16")]).returncode == 0
    header, runtime = agreement_of(tmp_path, tmp_path)["nothing"][1:3]
    assert header == "blocks does not fit 32 bits" and runtime == "launch.range"


def test_a_head_dimension_that_is_no_whole_panels_is_refused(tmp_path):
    run = plan(tmp_path, "sm_90a", "bf16", of_hopper(100, 100))
    assert run.returncode == 2 and "[launch.box]" in run.stderr
    assert "'q' has 100 columns; the copy engine moves panels of 64 or 32" in run.stderr
