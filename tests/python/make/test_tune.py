"""`kernelwright tune` from a specification to a row that `make` uses, against the stand-in driver.

The stand-in computes plain attention, so that every candidate is held against the fp64 goldens, and
takes longer the more shared memory a kernel has, so that the winner is known. The space of constants
is a small one, in a home of the test's own."""

import json
import os
import shutil

import pytest

from kernelwright.capture import capture, goldens
from kernelwright_cli import ROOT, assert_refused, call, write_spec

FAKE = ROOT / "build/tests/fake_cuda"
SPACE = {"axes": [{"BM": [384, 256], "CTAS": [2, 2]}, {"BN": [96, 64]}, {"PING_PONG": [False]},
                  {"Q_IN_REGISTERS": [False]}, {"STAGES": [2]}, {"Q_SLOTS": [2]}],
         "first": [{"LOADER_REGISTERS": [24, 32], "WARPGROUP_REGISTERS": [240, 160]}]}
GPU = {"LD_LIBRARY_PATH": str(FAKE), "FAKE_CUDA_ATTENTION": "1"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The project with a space of four candidates."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(ROOT / "kernels", home / "kernels")
    for name in ["cuda", "python"]:
        (home / name).symlink_to(ROOT / name)
    (home / "kernels/sm90/space.json").write_text(json.dumps(SPACE))
    return {"KERNELWRIGHT_HOME": str(home), "KERNELWRIGHT_PYTHON": str(ROOT / ".venv/bin/python"),
            "KERNELWRIGHT_TILES": ""}


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    """A captured specification: full attention, D 64, a few golden cases."""
    folder = tmp_path_factory.mktemp("spec")
    path = write_spec(folder, "return (q @ k.mT * 64**-0.5).softmax(-1) @ v", shape="2, 4, 96, 64")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goldens, "CASES", goldens.CASES[::16])
        capture.capture_file(path, None, None, folder / "captured")
    return folder / "captured"


@pytest.fixture(scope="module")
def tuned(home, spec, tmp_path_factory):
    """The folder after the first half, and what was said."""
    folder = tmp_path_factory.mktemp("tune") / "out"
    run = call("tune", spec, "--out", folder, "--jobs", 2, "--shape", "B=1,M=256", **home)
    assert run.returncode == 0, run.stderr
    return folder, run.stderr


def timed(folder, home, *words):
    run = call("tune", folder, *words, **home, **GPU)
    assert run.returncode == 0, run.stderr
    return run.stderr


def test_the_first_half_leaves_compiled_candidates_beside_the_present_one(tuned):
    folder, said = tuned
    assert "space     4 candidates; 4 left" in said
    assert f"no GPU here; on a machine with one: kernelwright-tune-time {folder}" in said
    assert "their values are not checked yet" in said
    candidates = json.loads((folder / "tune.json").read_text())["candidates"]
    assert [c["present"] for c in candidates] == [True, False, False, False, False]
    assert candidates[0]["constants"]["BN"] == 128  # the shipped row for D 64
    for c in candidates:
        files = {p.name for p in (folder / "candidates" / c["name"]).iterdir()}
        assert files == {"kernel.cu", "kernel.cubin", "launch.json"}
    cases = json.loads((folder / "prove.json").read_text())["cases"]
    assert [c["timed"] for c in cases] == [False] * (len(cases) - 1) + [True]
    assert cases[-1]["flop"] == 4 * 64 * 4 * 256 * 256


def test_the_second_half_writes_the_row_of_the_one_that_must_win(tuned, home, spec, tmp_path):
    folder = shutil.copytree(tuned[0], tmp_path / "tuned")
    said = timed(folder, home)
    tune = json.loads((folder / "tune.json").read_text())["candidates"]
    shared = {c["name"]: json.loads((folder / "candidates" / c["name"] / "launch.json").read_text())
              ["shared_bytes"] for c in tune}
    least = min(shared, key=shared.get)
    times = {c["name"]: c for c in json.loads((folder / "times.json").read_text())["candidates"]}
    assert all(c["verdict"] == "ok" and len(c["ms"]) == 5 for c in times.values()), times
    assert f"chosen    {least} is fastest" in said
    row, = json.loads((folder / "tiles.json").read_text())["rows"]
    assert row["constants"] == next(c["constants"] for c in tune if c["name"] == least)
    assert (row["targets"], row["D"], row["V"], row["keys"]) == (["sm_90a"], 64, 64, "alike")
    assert "TFLOP/s, Fake GPU, 20" in row["why"] and "x the row before it." in row["why"]

    made = call("make", spec, "--out", tmp_path / "made", "--tiles", folder / "tiles.json", **home)
    assert made.returncode == 0, made.stderr
    assert "BM = 256, BN = 64, CTAS = 2" in (tmp_path / "made/kernel.cu").read_text()


def test_the_present_row_stays_where_nothing_is_faster(tuned, home, tmp_path):
    folder = shutil.copytree(tuned[0], tmp_path / "tuned")
    tune = json.loads((folder / "tune.json").read_text())
    for c in tune["candidates"]:  # as if the one with the least shared memory were the present
        c["present"] = c["constants"]["BM"] == 256 and c["constants"]["BN"] == 64
    (folder / "tune.json").write_text(json.dumps(tune))
    assert "the tile database stays as it is" in timed(folder, home)
    assert not (folder / "tiles.json").exists()


def test_a_database_that_is_there_keeps_its_other_rows(tuned, home, tmp_path):
    folder = shutil.copytree(tuned[0], tmp_path / "tuned")
    old = {"targets": ["sm_90a"], "D": 128, "V": 128, "keys": "any", "constants": {"BN": 96},
           "why": "mine"}
    mine = tmp_path / "mine.json"
    mine.write_text(json.dumps({"rows": [old]}))
    timed(folder, home, "--tiles", mine)
    rows = json.loads(mine.read_text())["rows"]
    assert [r["D"] for r in rows] == [64, 128] and rows[1] == old


def test_times_from_elsewhere_are_named(tuned, home, tmp_path):
    folder, _ = tuned
    run = call("tune", folder, "--times", tmp_path / "none.json", **home)
    assert_refused(run, "tune.times", "none.json", f"kernelwright-tune-time {folder}")


@pytest.mark.parametrize("words, code, part", [
    (["--shape", "M=0"], "tune.shape", "'M=0'"),
    (["--target", "sm_70"], "driver.target", "sm_70"),
])
def test_misuse_is_refused(spec, home, words, code, part):
    assert_refused(call("tune", spec, *words, **home), code, part)


def test_a_kernel_without_a_space_is_refused(spec, home, tmp_path):
    other = shutil.copytree(home["KERNELWRIGHT_HOME"], tmp_path / "home", symlinks=True)
    os.remove(other / "kernels/sm90/space.json")
    run = call("tune", spec, **{**home, "KERNELWRIGHT_HOME": str(other)})
    assert_refused(run, "tune.space", "kernels/sm90/space.json")
