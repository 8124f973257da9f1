"""Functions beyond the rules: a second product in the scores, for which tests/propose/rope_apart.tl is a program by
hand that is checked, lowered and built; and sums of the weights' columns, which the judge can tell, and which a kernel
of its own computes."""

import json

import pytest

from kernelwright_cli import ROOT, assert_refused, call

PROGRAM = ROOT / "tests/propose/rope_apart.tl"
EXPERT = ROOT / "kernels/sm80/attention_fwd.cu"
CORPUS = ROOT / "tests/corpus/sm80_attention_fwd.tl"


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("products") / "spec"
    run = call("capture", ROOT / "tests/propose/rope_apart.py", "--form", "--out", folder)
    assert run.returncode == 0, run.stderr
    assert "product s2 = q_pe[b, h, i, d] . k_pe[b, 0, j, d], D 64" in run.stdout
    return folder


def test_the_rules_refuse_it_and_name_the_proposer(spec):
    run = call("transfer", CORPUS, "--target", "sm_80", "--spec", spec)
    assert_refused(run, "transfer.products", "2 products of q and k", "--proposer model", "--api folder:DIR")


def test_whoever_answers_by_hand_gets_a_kernel(spec, tmp_path):
    """From a question in a folder to a made kernel; the answer is rope_apart.tl (make_fixture.py)."""
    desk = tmp_path / "desk"
    common = ["make", spec, "--target", "sm_80", "--check", "quick", "--out", tmp_path / "made",
              "--proposer", "model", "--api", f"folder:{desk}"]
    assert_refused(call(*common), "propose.none", "001.answer", exit_code=3)
    question = (desk / "001.request.md").read_text()
    assert "q2 is v1[b, h, i, d]" in question and "k2 is v3[b, 0, j, d]" in question and "q_pe" not in question
    (desk / "001.answer.json").write_text((ROOT / "tests/propose/rope_apart.answer.json").read_text())
    run = call(*common)
    assert run.returncode == 0, run.stderr
    made = tmp_path / "made"
    assert (made / "kernel.tl").read_text() == PROGRAM.read_text()
    assert "kw::mma_add_transposed(s, shared.q2_s[me], shared.k2_s[n]);" in (made / "kernel.cu").read_text()
    bindings = {b["argument"]: b for b in json.loads((made / "certificate.json").read_text())["transfer"]["bindings"]}
    assert {name: bindings[name]["user"] for name in ("q", "q2", "k", "k2")} == {
        "q": "q_nope", "q2": "q_pe", "k": "k_nope", "k2": "k_pe"}
    launch = json.loads((made / "launch.json").read_text())
    assert ["==", "P", 1] in launch["requires"]
    cases = json.loads((made / "prove.json").read_text())["cases"]
    assert cases and all(case["inputs"].keys() >= {"q2", "k2"} and case["sizes"]["P"] == 1 for case in cases)
    assert "s2" in (made / "report.html").read_text()


@pytest.mark.parametrize("old, new, said", [
    ("        mma_add_transposed s += q2_s[me] @ k2_s[n].T\n", "", "score"),
    ("rsqrt(D + E)", "rsqrt(D)", "score"),
    ("cp_async k2[c.b, 0, (n - 1) * BN]", "cp_async k2[c.b, 0, n * BN]", "exec.origin"),
    ("cp_async q2[c.b, c.h, i0]", "cp_async q2[c.b, g, i0]", "exec.origin"),
])
def test_a_wrong_one_is_refuted(spec, tmp_path, old, new, said):
    text = PROGRAM.read_text()
    assert text.count(old) == 1
    (tmp_path / "wrong.tl").write_text(text.replace(old, new))
    run = call("check", tmp_path / "wrong.tl", "--spec", spec, "--check", "quick", "--cases", "2")
    assert run.returncode == 1 and said in run.stdout + run.stderr, run.stdout + run.stderr


DIAGONAL = '''
import torch


def diagonal(q, k, v):
    """Each row keeps its own key, whose weight is 1: so is the sum of each column."""
    s = (q @ k.mT * 128**-0.5).masked_fill(~torch.eye(q.shape[2], dtype=torch.bool), -torch.inf)
    p = s.softmax(-1)
    return p @ v, p.sum(-2)


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 128, dtype=torch.bfloat16) for _ in range(3))
'''


@pytest.fixture(scope="module")
def diagonal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diagonal")
    (folder / "diagonal.py").write_text(DIAGONAL)
    run = call("capture", folder / "diagonal.py", "--form", "--out", folder / "spec")
    assert run.returncode == 0 and "sum over i of the softmax" in run.stdout, run.stderr
    return folder / "spec"


@pytest.mark.parametrize("sums, said", [("1.0", ""), ("1.001", "differs"), ("1.0 + reciprocal(f32(200000))", "is not algebraically equal")])
def test_the_judge_holds_sums_of_columns_against_the_function(diagonal, tmp_path, sums, said):
    """By values, and what is too little for these to see by the exact reading."""
    text = CORPUS.read_text()
    for old, new in [("    lse: out f32[B, H, M]\n", "    lse: out f32[B, H, M]\n    column_sums: out f32[B, H, N]\n"),
                     ("return ceil_div(N, BN), N // BN", "return ceil_div(N, BN), 0"),
                     ("where(j < N, s", "where(j < N and j == i, s"),
                     ("    sync_warpgroup me\n    store acc", f"    row ones = m: real[ROWS]\n    map_rows ones[i] = {sums}\n"
                      "    store_rows ones -> column_sums[c.b, c.h, i0]\n    sync_warpgroup me\n    store acc")]:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (tmp_path / "x.tl").write_text(text)
    run = call("check", tmp_path / "x.tl", "--spec", diagonal, "--check", "quick", "--cases", "3")
    assert run.returncode == bool(said), run.stdout + run.stderr
    assert said in run.stdout and ("column_sums" in run.stdout) == bool(said)


def test_every_proposer_refuses_sums_of_columns_and_the_judge_wants_them(diagonal, tmp_path):
    for proposer in [[], ["--proposer", "model", "--api", f"folder:{tmp_path}/desk"]]:
        run = call("transfer", CORPUS, "--target", "sm_80", "--spec", diagonal, *proposer, "--out", tmp_path / "x.tl")
        assert_refused(run, "transfer.column_sums", "TL has no statement that adds up the rows of a tile")
    run = call("check", CORPUS, "--spec", diagonal, "--check", "quick", "--cases", "1")
    assert run.returncode == 2 and "no output column_sums" in run.stdout + run.stderr, run.stdout + run.stderr


def test_an_answer_by_hand_sums_them_in_a_kernel_of_its_own(tmp_path):
    """Of a product of matrices, examples/products/key_mass.py; the answer is what the rules write (make_fixture.py)."""
    spec, desk, made = tmp_path / "spec", tmp_path / "desk", tmp_path / "made"
    assert call("capture", ROOT / "examples/products/key_mass.py", "--out", spec).returncode == 0
    common = ["make", spec, "--target", "sm_80", "--check", "quick", "--out", made, "--proposer", "model",
              "--api", f"folder:{desk}"]
    assert_refused(call(*common), "propose.none", "001.answer", exit_code=3)
    question = (desk / "001.request.md").read_text()
    for part in ["a is v0[b, h, i, d]", "b is v1[b, h, j, d]", "sums: out f32[B, H, M]", "no o: ", "v2[b, h, j]",
                 "the element of row i and column j", "mma_add_transposed acc"]:
        assert part in question, part
    assert "lse[" not in question.split("FUNCTION")[1] and "key_mass" not in question
    (desk / "001.answer.json").write_text((ROOT / "tests/propose/key_mass.answer.json").read_text())
    run = call(*common)
    assert run.returncode == 0, run.stderr
    certificate = json.loads((made / "certificate.json").read_text())
    assert certificate["verdict"] == "holds"
    assert {b["argument"]: b["user"] for b in certificate["transfer"]["bindings"]} == \
        {"a": "k", "b": "q", "sums": "", "lse": "lse"}
    wrong = json.loads((desk / "001.answer.json").read_text())
    for edit in wrong["edits"]:  # another query's log-sum-exp
        edit["text"] = [line.replace("v2[c.b, c.h, j]", "v2[c.b, c.h, i]") for line in edit["text"]]
    (desk / "001.answer.json").write_text(json.dumps(wrong))
    run = call(*common[:-1], f"folder:{desk}", "--attempts", "1")
    assert_refused(run, "propose.none", "1 check.refuted", exit_code=3)
