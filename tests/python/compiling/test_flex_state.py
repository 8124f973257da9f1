"""A mod is the user's code: what capture asks of a plain function it asks of mods and of what they reach."""

import functools

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks

import kernelwright
from kernelwright.capture import capture, goldens, live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright.capture.diagnostic import Problem
from kernelwright.errors import SpecError

CALLS = [0]
TABLE = torch.zeros(4)


def other_from_the_third(calls, q_idx, kv_idx):
    calls[0] += 1
    return q_idx >= kv_idx if calls[0] < 3 else q_idx > kv_idx


def in_a_global(b, h, q_idx, kv_idx):
    return other_from_the_third(CALLS, q_idx, kv_idx)


def in_an_argument(calls, b, h, q_idx, kv_idx):
    return other_from_the_third(calls, q_idx, kv_idx)


def in_a_closure():
    calls = [0]
    return lambda b, h, q_idx, kv_idx: other_from_the_third(calls, q_idx, kv_idx)


def in_a_wrapper(mod):
    calls = [0]

    @functools.wraps(mod)
    def wrapper(b, h, q_idx, kv_idx):
        return mod(b, h, q_idx, kv_idx) & other_from_the_third(calls, q_idx, kv_idx)
    return wrapper


class InAnObject:
    def __init__(self):
        self.calls = [0]

    def __call__(self, b, h, q_idx, kv_idx):
        return other_from_the_third(self.calls, q_idx, kv_idx)


class InAClass:
    calls = [0]

    @staticmethod
    def mod(b, h, q_idx, kv_idx):
        return other_from_the_third(InAClass.calls, q_idx, kv_idx)


def in_an_attribute(b, h, q_idx, kv_idx):
    return other_from_the_third(in_an_attribute.calls, q_idx, kv_idx)


in_an_attribute.calls = [0]
FIRST = [True]


def in_its_first_call(b, h, q_idx, kv_idx):
    first, FIRST[0] = FIRST[0], False
    return q_idx > kv_idx if first else q_idx >= kv_idx


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def writes(score, b, h, q_idx, kv_idx):
    return score + TABLE.add_(1.0)[h]


def asks(score, b, h, q_idx, kv_idx):
    return score * 2 if score.is_cuda else score


def captured(function):
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    spec, _ = live_function.user_spec(function, (q, k, v), Dependencies(function).places)
    return capture.capture(spec, None, goldens.CASES[:4])


def refusal(**mods):
    with pytest.raises((Problem, SpecError)) as caught:
        captured(kernelwright.flex(**mods))
    return caught.value


STATEFUL = {"global": lambda: in_a_global, "argument": lambda: functools.partial(in_an_argument, [0]),
            "closure": in_a_closure, "wrapper": lambda: in_a_wrapper(causal), "object": InAnObject,
            "method": lambda: InAnObject().__call__, "class": lambda: InAClass.mod, "attribute": lambda: in_an_attribute,
            "composed": lambda: and_masks(causal, in_a_closure()), "composed_twice": lambda: and_masks(in_a_closure(), in_a_closure()),
            "first_call": lambda: in_its_first_call}


@pytest.mark.parametrize("where", STATEFUL)
def test_a_mod_that_changes_what_it_reads_is_refused(where):
    problem = refusal(mask_mod=STATEFUL[where]())
    assert problem.code == "spec.not_a_function"
    assert " changes " in str(problem) and "before a call" in str(problem)


def test_it_is_refused_at_the_line_of_the_mod_that_reads_it():
    for mods in ({"mask_mod": in_a_global}, {"score_mod": lambda s, b, h, q, k: s + 1.0, "mask_mod": in_a_global}):
        problem = refusal(**mods)
        assert problem.line == in_a_global.__code__.co_firstlineno and "changes CALLS" in str(problem)


def test_a_mod_that_writes_to_a_tensor_is_refused():
    problem = refusal(score_mod=writes)
    assert problem.code == "spec.writes" and "argument TABLE" in str(problem)


def test_a_mod_that_asks_where_it_runs_is_refused():
    problem = refusal(score_mod=asks)
    assert problem.code == "spec.elsewhere" and problem.line == asks.__code__.co_firstlineno + 1


def test_the_form_names_what_of_a_mod_was_built_in():
    window = 17
    found = captured(kernelwright.flex(mask_mod=lambda b, h, q, k: (q >= k) & (q - k < window)))
    assert found.graph["built_in"] == ["window = 17 (held by the closure)"]


def test_composed_and_partial_mods_without_state_are_captured():
    captured(kernelwright.flex(mask_mod=and_masks(causal, functools.partial(lambda w, b, h, q, k: q - k < w, 9))))


@pytest.mark.parametrize("options", [{}, {"scale": 0.3}], ids=["nothing", "scale"])
def test_flex_without_mods_is_captured_and_stands_where_it_was_called(options):
    here = captured.__code__.co_filename
    found = captured(kernelwright.flex(**options)).graph
    assert found["name"] == "attention" and found["file"] == here
