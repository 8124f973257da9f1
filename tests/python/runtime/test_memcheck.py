"""tests/gpu/memcheck.sh without a GPU: the stand-in driver, and a sanitizer that is a shell script."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from kernelwright_cli import ROOT
from test_launch import FAKE, copy_kernel
from tiny_cubin import tiny_cubin

SCRIPT = ROOT / "tests/gpu/memcheck.sh"
RUNS = """while [ "${1#--}" != "$1" ]; do shift 2>/dev/null; done
while [ "${1##*python*}" ]; do shift; done
"$@"
"""


@pytest.fixture
def sanitized(tmp_path):
    """Runs memcheck.sh with a sanitizer that runs the program, and then `after`."""
    if not (FAKE / "libcuda.so.1").exists():
        pytest.skip("the stand-in driver is not built: ninja -C build fake_cuda")

    def call(*words, after='status=$?; echo "== ERROR SUMMARY: 0 errors"; exit $status',
             script=SCRIPT, shapes="77 129"):
        tool = tmp_path / "bin/compute-sanitizer"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text("#!/bin/sh\n" + RUNS + after)
        tool.chmod(0o755)
        return subprocess.run(
            ["sh", str(script), *map(str, words)], capture_output=True, text=True, timeout=60,
            env={**os.environ, "LD_LIBRARY_PATH": str(FAKE), "PYTHON": sys.executable, "JOBS": "2",
                 "SHAPES": shapes,
                 "PATH": f"{tool.parent}:{os.environ['PATH']}"})
    return call


@pytest.fixture
def kernel(tmp_path):
    def make(entry="copy", **more):
        folder = tmp_path / entry
        folder.mkdir()
        (folder / "launch.json").write_text(json.dumps({**copy_kernel(), "entry": entry, **more}))
        (folder / "kernel.cubin").write_bytes(tiny_cubin(entry, 168))
        return folder
    return make


def test_each_kernel_and_shape_has_a_line_with_its_errors(sanitized, kernel):
    folders = [kernel(), kernel("copy_again")]
    run = sanitized(*folders, shapes="")  # the script's own
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stdout + run.stderr
    assert sorted(lines[:-1]) == sorted(f"{f} M {m:<4} N {n:<4} 0 errors" for f in folders
                                        for m, n in ((1, 65), (77, 129), (300, 513)))
    assert lines[-1] == "memcheck: 0 errors in every kernel and shape"


def test_what_the_tool_finds_fails(sanitized, kernel):
    run = sanitized("--tool", "racecheck", kernel(),
                    after='echo "== RACECHECK SUMMARY: 3 hazards displayed (1 errors, 2 warnings)"')
    assert run.returncode == 1 and "3 errors (exit 0)" in run.stdout
    assert run.stdout.splitlines()[-1] == "racecheck: NOT clean"


def test_a_tool_that_dies_without_a_count_fails(sanitized, kernel):
    run = sanitized(kernel(), after="exit 0")
    assert run.returncode == 1 and "no count of errors" in run.stdout


@pytest.mark.parametrize("entry, said", [
    ("copy_skip", "elements of y were not written"), ("copy_fault", "cuCtxSynchronize gives error 700")])
def test_a_kernel_that_does_not_run_is_not_clean(sanitized, kernel, entry, said):
    run = sanitized(kernel(entry))
    assert run.returncode == 1 and said in run.stdout and "0 errors (exit 1)" in run.stdout


def test_sizes_that_the_kernel_requires_are_given(sanitized, kernel):
    requires = [["==", "H", 3], ["==", "M", "B"], [">=", "M", 1]]
    assert sanitized(kernel(requires=requires)).returncode == 0
    run = sanitized(kernel("copy_more", requires=[["==", ["%", "M", 2], 0]]))
    assert run.returncode == 1 and "launch.requires" in run.stdout


def test_without_the_tool_or_a_folder_nothing_is_called_clean(sanitized, kernel, tmp_path):
    if pathlib.Path("/usr/local/cuda/bin/compute-sanitizer").exists():
        pytest.skip("the tool is installed here")
    bare = subprocess.run(["sh", str(SCRIPT), str(kernel())], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin"})
    assert bare.returncode == 2 and "no compute-sanitizer" in bare.stderr
    assert sanitized().returncode == 2
    assert sanitized(tmp_path / "nothing").returncode == 1


def test_the_self_test_needs_a_planted_kernel_that_is_found(sanitized, kernel, tmp_path):
    copy = tmp_path / "checkout/tests/gpu"
    copy.mkdir(parents=True)
    for file in (SCRIPT, SCRIPT.with_name("exact_launch.py")):
        shutil.copy(file, copy)
    (tmp_path / "checkout/python").symlink_to(ROOT / "python")

    def self_test(after):
        return sanitized("--self-test", after=after, script=copy / "memcheck.sh")
    assert self_test("true").returncode == 1  # nothing is planted
    planted = tmp_path / "checkout/build/memcheck"
    planted.mkdir(parents=True)
    kernel().rename(planted / "full")
    run = self_test('echo "== Invalid __global__ write of size 4 bytes"')
    assert run.returncode == 0 and "found: the store past the end" in run.stdout
    run = self_test('echo "== ERROR SUMMARY: 0 errors"')
    assert run.returncode == 1 and "NOT found" in run.stdout
