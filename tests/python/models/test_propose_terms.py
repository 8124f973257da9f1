"""A function that no rule can write, the difference of two softmaxes, and a program for it by hand: it is
checked, lowered and built like any other. tests/propose/differential.tl is an edit of the Ampere-class kernel."""

import json

import pytest

from kernelwright_cli import ROOT, assert_refused, call

PROGRAM = ROOT / "tests/propose/differential.tl"
EXPERT = ROOT / "kernels/sm80/attention_fwd.cu"


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terms") / "spec"
    run = call("capture", ROOT / "tests/propose/differential.py", "--form", "--out", folder)
    assert run.returncode == 0, run.stderr
    assert "term 2 of 2" in run.stdout and "times   -lam" in run.stdout
    return folder


def test_the_rules_refuse_it(spec):
    run = call("transfer", ROOT / "tests/corpus/sm80_attention_fwd.tl", "--target", "sm_80", "--spec", spec)
    assert_refused(run, "transfer.terms", "a sum of 2 softmax terms")


def test_a_program_by_hand_is_checked_and_becomes_cuda(spec, tmp_path):
    run = call("check", PROGRAM, "--spec", spec, "--check", "quick")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "exact: 1 case" in run.stdout
    lowered = call("lower", PROGRAM, "--reference", EXPERT, "--out", tmp_path / "kernel.cu")
    assert lowered.returncode == 0, lowered.stderr
    lifted = call("lift", tmp_path / "kernel.cu")
    assert lifted.stdout == PROGRAM.read_text()


def test_whoever_answers_by_hand_gets_a_kernel_that_no_rule_can_write(spec, tmp_path):
    """From a question in a folder to a made kernel; the answer is differential.tl (make_fixture.py)."""
    desk = tmp_path / "desk"
    common = ["make", spec, "--target", "sm_80", "--check", "quick", "--out", tmp_path / "made",
              "--proposer", "model", "--api", f"folder:{desk}"]
    run = call(*common)
    assert_refused(run, "propose.none", "001.answer", exit_code=3)
    assert "v5" in (desk / "001.request.md").read_text() and not (tmp_path / "made").exists()
    (desk / "001.answer.json").write_text((ROOT / "tests/propose/differential.answer.json").read_text())
    run = call(*common)
    assert run.returncode == 0, run.stderr
    assert "model (by hand): 1 attempt: none refused" in run.stderr + run.stdout
    assert (tmp_path / "made/kernel.tl").read_text() == PROGRAM.read_text()
    launch = json.loads((tmp_path / "made/launch.json").read_text())
    assert {"q2", "k2", "lam"} <= {argument["name"] for argument in launch["arguments"]}
    cases = json.loads((tmp_path / "made/prove.json").read_text())["cases"]
    assert cases and all(case["inputs"].keys() >= {"q2", "k2"} for case in cases)


@pytest.mark.parametrize("old, new", [("-lam * reciprocal", "lam * reciprocal"), ("q2_s[me] @ k2_s", "q_s[me] @ k2_s"),
                                      ("offset2[i])) * second", "offset[i])) * second")])
def test_a_wrong_one_is_refuted(spec, tmp_path, old, new):
    text = PROGRAM.read_text()
    assert old in text
    wrong = tmp_path / "wrong.tl"
    wrong.write_text(text.replace(old, new))
    run = call("check", wrong, "--spec", spec, "--check", "quick", "--cases", "2")
    assert run.returncode == 1, run.stdout + run.stderr


def test_a_log_sum_of_several_terms_is_no_output(spec, tmp_path):
    text = PROGRAM.read_text()
    for at, more in [("    B, H, G, M, N: size", "    lse: out f32[B, H, M]\n"),
                     ("    sync_warpgroup me\n    store acc", "    store_rows first -> lse[c.b, c.h, i0]\n")]:
        text = text.replace(at, more + at)
    (tmp_path / "with_lse.tl").write_text(text)
    run = call("check", tmp_path / "with_lse.tl", "--spec", spec, "--check", "quick")
    assert run.returncode == 2 and "no log-sum-exp" in run.stdout + run.stderr, run.stdout + run.stderr
