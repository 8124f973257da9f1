"""`kernelwright self-test`: what is planted, that it compiles, and that a failed self-test is heard.

One planted bug is compiled, chosen by commit (sample.py); all of them when KW_TEST_ALL=1. On the
stand-in driver, which computes nothing, even the right kernel is refuted: a self-test that failed."""

import json
import os
import subprocess

import pytest

from kernelwright_cli import ROOT, call
from sample import sample

BUGS = sorted(p.stem for p in (ROOT / "self_test").glob("*.edit"))
CHOSEN = sample("planted bugs", BUGS)
FAKE = ROOT / "build/tests/fake_cuda"


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted") / "self_test"
    run = call("self-test", "--write", folder, "--keys", "512", "--only", ",".join(CHOSEN))
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "kernelwright/self_test.json"


def test_there_are_eighteen_planted_bugs():
    assert len(BUGS) == 18


def test_each_kernel_is_there_with_its_expectation(planted):
    kernels = json.loads((planted / "self_test.json").read_text())["kernels"]
    assert [k["name"] for k in kernels] == ["right", *CHOSEN]
    assert [k["expect"] for k in kernels] == ["holds"] + ["refuted"] * len(CHOSEN)
    codes = {(planted / f"kernels/{k['name']}/kernel.cubin").read_bytes() for k in kernels}
    assert len(codes) == len(kernels)


def test_every_kind_of_probe_is_written(planted):
    cases = json.loads((planted / "prove.json").read_text())["cases"]
    names = [c["name"] for c in cases]
    assert names == [*(f"probe identity 512 keys, from {n}" for n in range(0, 512, 128)),
                     "probe mean 512 keys", "probe plain 512 keys", "probe sharp 512 keys"]
    assert [c["goldens"][0].get("rule") for c in cases] == ["window"] * 4 + [None] * 3
    assert cases[4]["inputs"]["v"]["mean"] == 1 and cases[6]["inputs"]["q"]["scale"] == 8


def test_a_right_kernel_that_is_refuted_fails_the_self_test(planted, cache):
    run = subprocess.run([ROOT / "build/kernelwright-prove", "--self-test", planted], text=True, capture_output=True,
                         env={**os.environ, "LD_LIBRARY_PATH": str(FAKE)}, timeout=120)
    assert run.returncode == 1 and "right                    is right, and was refuted by" in run.stdout, run.stdout
    entry, = json.loads(cache.read_text()).values()
    assert entry["passed"] is False


def test_an_unknown_bug_is_named(tmp_path):
    run = call("self-test", "--write", tmp_path / "x", "--only", "no_such_bug")
    assert run.returncode == 2 and "there is no planted bug 'no_such_bug'" in run.stderr


def test_a_part_of_the_programs_is_not_enough(cache):
    run = call("self-test", "--step", "60")
    assert run.returncode == 3 and "0 surprises" in run.stdout, run.stdout + run.stderr
    assert not cache.exists()


def test_nothing_is_certified_after_a_failed_self_test(cache):
    build = call("self-test", "--step", "999").stdout.split("self-test of ")[1].split(":")[0]
    cache.parent.mkdir()
    cache.write_text(json.dumps({f"{build}, cpu": {"passed": False}}))
    for command in (["check", ROOT / "tests/corpus/sm90_attention_fwd.tl", "--spec", ROOT / "examples/full.py"],
                    ["make", ROOT / "examples/full.py"]):
        run = call(*command)
        assert run.returncode == 3 and "self_test.failed" in run.stderr, run.stderr
