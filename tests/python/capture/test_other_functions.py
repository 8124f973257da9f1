"""A function is captured as what it is, or refused: what tests/spec/bad cannot say in one line each."""

import pytest
import torch

from kernelwright.capture import built_in, capture, elsewhere, goldens, load, reach, trace
from kernelwright.capture.diagnostic import Problem

FILE = """import os
import torch
{before}

def attention(q, k, v{arguments}):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
{body}
    return (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v{values}
"""


@pytest.fixture
def spec_of(tmp_path):
    def spec(body, before="", arguments="", values=""):
        path = tmp_path / "attention.py"
        path.write_text(FILE.format(body="\n".join("    " + line for line in body.split("\n")), before=before,
                                    arguments=arguments, values=values))
        return load.load(str(path))
    return spec


def traced(spec):
    return trace.trace(spec, trace.convert(spec, None))


def refused(spec):
    with pytest.raises(Problem) as caught:
        capture.capture(spec, None, goldens.CASES[:4])
    return caught.value


def test_a_function_whose_batch_of_one_is_another_is_refused_with_what_both_gave(spec_of):
    problem = refused(spec_of("if q.shape[0] == 1:\n    k = k * 2\nkeep = j <= i"))
    assert problem.code == "spec.other_function" and problem.line == 5
    assert "where its trace gives" in problem.message and "[1, 4, 64, 64]" in problem.message


def test_coarse_arithmetic_of_the_same_function_is_not_refused(spec_of):
    """-1e4 added in bf16 leaves nothing of a score whose row keeps no key."""
    spec = spec_of("keep = torch.ones_like(j <= i)\nq = q + 300 - 300")
    captured = capture.capture(spec, None, goldens.CASES[:4])
    assert max(captured.errors[~torch.from_numpy(captured.errors).isnan().numpy()]) > 2.0**-5


def test_what_all_sizes_decide_alike_is_no_branch(spec_of):
    spec = spec_of("assert q.shape[2] >= 1 and k.shape[2] == v.shape[2]\nkeep = j <= i + max(k.shape[2] - q.shape[2], 0)")
    assert traced(spec).notes == []


@pytest.mark.parametrize("condition, other", [("q.shape[2] > 80", "q.shape[2] = 2"), ("k.shape[2] % 1009", "k.shape[2] = 1009"),
                                              ("q.shape[2] < 2 * k.shape[2] + 9", "would take the other")])
def test_a_branch_on_a_size_is_refused_with_a_size_of_the_other_side(spec_of, condition, other):
    problem = refused(spec_of(f"keep = j <= i\nif {condition}:\n    keep = j < i + 3"))
    assert problem.code == "spec.branch_on_size" and problem.line == 8 and other in problem.message


def test_an_attribute_is_no_global_of_its_name(spec_of):
    before = "window = 4096\nreach = 3\nclass Config: pass\ncfg = Config()\ncfg.window = 64"
    spec = spec_of("keep = (j <= i + reach) & (j > i - cfg.window)", before=before)
    assert built_in.lines(spec, traced(spec)) == ["reach = 3 (a global)"]


def test_a_write_through_a_view_is_refused_at_its_line(spec_of):
    problem = refused(spec_of("keep = j <= i\nv[:, 1:].add_(1.0)"))
    assert problem.code == "spec.writes" and problem.line == 8 and "argument v" in problem.message


def test_a_write_to_what_was_computed_is_none(spec_of):
    assert traced(spec_of("q = q * 2.0\nq.add_(1.0)\nkeep = j <= i")).notes == []


def test_there_are_cases_on_both_sides_of_constants_and_of_blocks_of_them(spec_of):
    found = traced(spec_of("keep = (i - j < 700) & (i // 64 - j // 64 < 12) & (j <= i)"))
    assert set(reach.constants(found)) >= {700, 768}
    cases, notes = reach.cases(found)
    assert {case[1] for case in cases} >= {702, 770} and {case[2] for case in cases} >= {702, 770} and not notes
    assert {699, 700, 701} <= set(next(rows for _, M, _, rows in cases if M == 702))


def test_a_constant_beyond_every_case_is_said(spec_of):
    cases, notes = reach.cases(traced(spec_of("keep = (i - j < 100000) & (j <= i)")))
    assert not cases and notes[0][0].startswith("positions meet 100000 here") and notes[0][1] == 7


def test_the_function_is_held_against_its_trace_beyond_its_constants(spec_of, monkeypatch):
    """The window is read from a global that changes after the trace, as far as the small cases see not at all."""
    spec = spec_of("keep = (i - j < WINDOW[0]) & (j <= i)", before="WINDOW = [700]")
    kept = traced(spec)
    spec.function.__globals__["WINDOW"][0] = 701
    with pytest.raises(Problem) as caught:
        goldens.make(spec, kept, goldens.CASES[:4])
    assert caught.value.code == "spec.other_function" and "[1, 4, 702, 64]" in caught.value.message


def test_values_of_globals_defaults_and_the_environment_are_said(spec_of, monkeypatch):
    monkeypatch.setenv("KW_TEST_SPAN", "31")
    spec = spec_of("keep = (j <= i) & helper(i, j) & (j >= int(os.environ['KW_TEST_SPAN']) * 0)", arguments=", shift=3",
                   before="WINDOW = 40\n\ndef helper(i, j, least=2):\n    return i - j < WINDOW - least + 2")
    assert built_in.lines(spec, traced(spec)) == [
        "shift = 3 (a default)",
        "KW_TEST_SPAN = '31' (of the environment)", "WINDOW = 40 (a global)"]


def test_a_number_that_pytorch_branches_on_is_said_with_its_value(spec_of):
    spec = spec_of("keep = j <= i\nif window > 0:\n    keep = keep & (j > i - window)", arguments=", window", values=", 64")
    assert built_in.lines(spec, traced(spec)) == ["window = 64 (an argument that PyTorch needs the value of)"]


def test_a_number_that_divides_is_positive_and_the_form_says_so(spec_of):
    spec = spec_of("keep = (j <= i) & ((i - j) % step == 0)", arguments=", step", values=", 7")
    assert built_in.lines(spec, traced(spec)) == ["step > 0 (something is divided by it in line 7)"]
    index, _, _ = goldens.make(spec, traced(spec), goldens.CASES[:6])
    drawn = [draw for case in index["cases"] for draw in case["draws"] if draw["name"] == "step"]
    assert {draw["low"] for draw in drawn if draw["kind"] == "integer"} == {1}


def test_another_default_dtype_is_refused(spec_of):
    """Under it `(i - j) * 0.1` is rounded to 16 bits, which goldens in fp64 and a kernel do not."""
    spec = spec_of("keep = j <= i")
    torch.set_default_dtype(torch.bfloat16)
    try:
        with pytest.raises(Problem, match="bfloat16") as caught:
            elsewhere.refuse_default_dtype(spec)
    finally:
        torch.set_default_dtype(torch.float32)
    assert caught.value.code == "spec.default_dtype"
    elsewhere.refuse_default_dtype(spec)
