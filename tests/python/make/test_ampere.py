"""`make --target` for GPUs without Hopper's own instructions: the same examples from kernels/sm80/.

One example on sm_80 and one on another target, chosen by commit (sample.py); all on all when KW_TEST_ALL=1.
Nothing runs on a GPU: the prover is shown that it loads and launches what was made."""

import itertools
import json
import os
import re
import subprocess

import pytest

from agreement import agreement_of, assert_agree
from kernelwright_cli import ROOT, call, cubin_check
from sample import sample

TARGETS = {"sm_80": 2, "sm_86": 1, "sm_89": 1, "sm_90": 2}  # CTAs on a multiprocessor, D 128
EXAMPLES = ["full", "causal", "prefix_lm", "alibi"]
MADE = [case for targets in (["sm_80"], ["sm_86", "sm_89", "sm_90"])
        for case in sample(f"ampere {targets[0]}", itertools.product(EXAMPLES, targets))]
FAKE = ROOT / "build/tests/fake_cuda"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """Each example's capture, once: it does not depend on the target."""
    done = {}

    def capture(example):
        if example not in done:
            done[example] = tmp_path_factory.mktemp(example) / "captured"
            run = call("capture", ROOT / f"examples/{example}.py", "--out", done[example])
            assert run.returncode == 0, run.stderr
        return done[example]

    return capture


@pytest.fixture(scope="module", params=MADE, ids="-".join)
def made(request, captured, tmp_path_factory):
    example, target = request.param
    folder = tmp_path_factory.mktemp(f"{example}_{target}") / "made"
    run = call("make", captured(example), "--target", target, "--out", folder)
    assert run.returncode == 0, run.stderr
    return folder, target, run.stderr


def read(folder, name):
    return json.loads((folder / name).read_text())


def test_the_kernel_holds_without_spills_and_is_the_experts_but_for_a_few_lines(made):
    folder, target, said = made
    certificate = read(folder, "certificate.json")
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    assert certificate["target"] == target and certificate["holds_for"] in ("every launch", "the sizes and data that ran")
    assert certificate["expert"]["name"] == "kernels/sm80/attention_fwd.cu"
    lines = len((ROOT / "kernels/sm80/attention_fwd.cu").read_text().splitlines())
    changed = int(re.search(r"^lower +(\d+) of", said, re.M)[1])
    assert changed <= 0.15 * lines, said


def test_the_launch_has_a_thread_block_for_each_block_of_the_output(made):
    folder, target, _ = made
    launch = read(folder, "launch.json")
    assert launch["grid"] == "blocks" and launch["cluster"] == 1
    assert launch["resident"] == TARGETS[target]
    kinds = {a["name"]: (a["kind"], a.get("row_alignment")) for a in launch["arguments"]}
    assert all(kinds[name] == ("tensor", 16) for name in "qkvo")


def test_launch_h_packs_and_refuses_as_the_runtime_does(made, tmp_path):
    agreement = agreement_of(made[0], tmp_path)
    assert_agree(agreement)
    assert agreement["k's rows are 132 apart"][2] == "launch.stride"


def test_the_prover_loads_and_launches_it_on_the_gpu_that_it_is_for(made, tmp_path):
    """The stand-in driver computes nothing, so every value is wrong; but the calls are right."""
    folder, target, _ = made
    launch = read(folder, "launch.json")
    log = tmp_path / "log"

    def prove(capability):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(FAKE), "FAKE_CUDA_LOG": str(log),
                       "FAKE_CUDA_CAPABILITY": capability}
        return subprocess.run([ROOT / "build/kernelwright-prove", folder], env=environment, text=True,
                              capture_output=True, timeout=300)

    run = prove(target[3:])
    assert run.returncode == 1, run.stdout + run.stderr
    calls = log.read_text().splitlines()
    shared = f"shared {launch['shared_bytes']}"
    carveout = ["carveout 100"] if TARGETS[target] > 1 else []
    assert calls[:3 + len(carveout)] == ["load", "function attention_fwd", shared, *carveout]
    launches = [c for c in calls if c.startswith("launch ")]
    threads = launch["threads"]
    assert launches and all(re.fullmatch(rf"launch attention_fwd grid \d+ cluster 1 threads {threads} {shared}",
                                         c) for c in launches)
    other = prove("90" if target != "sm_90" else "80")
    assert other.returncode == 2 and f"built for {target}" in other.stdout + other.stderr
