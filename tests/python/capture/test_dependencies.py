"""What a function reaches: its tensors become arguments, and all else changes its fingerprint."""

import dataclasses
import functools
import importlib.util
import types

import pytest
import torch

from kernelwright.capture import live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright.errors import SpecError

TABLE = torch.arange(4.0)
WINDOW = 3


def helper(q):
    return q + TABLE


def uses_helper(q):
    return helper(q) * WINDOW


def fingerprint(function):
    reached = Dependencies(function)
    assert reached.fingerprint, reached.unhashable
    return reached.fingerprint


def made(text, **space):
    """A function from its text, in a module of its own."""
    space = {"torch": torch, **space}
    exec(text, space)
    return space["f"]


def test_a_tensor_in_a_global_of_a_global_function_is_reached():
    places = Dependencies(uses_helper).places
    assert [p.name for p in places] == ["TABLE"] and places[0].get() is TABLE


def test_a_place_can_be_read_and_written_where_the_user_has_it():
    bias, tables = torch.zeros(2), {"a": (torch.ones(3), 5)}

    def function(q):
        return q + bias + tables["a"][0]

    first, second = Dependencies(function).places
    first.set(torch.full((2,), 7.0))
    second.set(torch.full((3,), 8.0))
    assert bias[0] == 7 and tables["a"][0][0] == 8 and tables["a"][1] == 5
    assert first.get() is bias and second.get() is tables["a"][0]


def test_one_place_that_two_functions_reach_is_one_argument():
    bias = torch.zeros(2)

    def inner(q):
        return q + bias

    def outer(q):
        return inner(q) * bias

    assert len(Dependencies(outer).places) == 1


@pytest.mark.parametrize("a, b", [
    ("def f(q): return q + 1", "def f(q): return q + 2"),
    ("def f(q): return q.sin()", "def f(q): return q.cos()"),
    ("def f(q, n=1): return q * n", "def f(q, n=2): return q * n"),
    ("def f(q, *, n=1): return q * n", "def f(q, *, n=2): return q * n"),
    ("W = 3\ndef f(q): return q * W", "W = 4\ndef f(q): return q * W"),
    ("W = 3\ndef f(q): return q * W", "W = 3.0\ndef f(q): return q * W"),
    ("g = lambda q: q\ndef f(q): return g(q)", "g = lambda q: -q\ndef f(q): return g(q)"),
    ("C = {'w': [1, 2]}\ndef f(q): return q * C['w'][1]", "C = {'w': [1, 3]}\ndef f(q): return q * C['w'][1]"),
    ("def f(q): return (lambda: q + 1)()", "def f(q): return (lambda: q + 2)()"),
    ("def make(n):\n def f(q): return q * n\n return f\nf = make(1)",
     "def make(n):\n def f(q): return q * n\n return f\nf = make(2)"),
    ("D = torch.float32\ndef f(q): return q.to(D)", "D = torch.float16\ndef f(q): return q.to(D)"),
])
def test_a_difference_in_meaning_is_one_in_the_fingerprint(a, b):
    assert fingerprint(made(a)) == fingerprint(made(a)) != fingerprint(made(b))


def test_other_lines_and_comments_are_the_same_function():
    assert fingerprint(made("def f(q): return q + 1")) == fingerprint(
        made("\n\n# a comment\ndef f(q):\n\n    return q + 1"))


def test_other_values_of_a_tensor_are_the_same_function():
    text = "def f(q): return q + bias"
    assert fingerprint(made(text, bias=torch.zeros(2))) == fingerprint(made(text, bias=torch.ones(2)))


def test_an_attribute_of_the_users_module_counts_if_the_code_names_it(tmp_path):
    def module(text):
        (tmp_path / "settings.py").write_text(text)
        spec = importlib.util.spec_from_file_location("settings", tmp_path / "settings.py")
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded

    text = "def f(q): return q * settings.window"
    first = fingerprint(made(text, settings=module("window = 3; other = 1")))
    assert first == fingerprint(made(text, settings=module("window = 3; other = 2")))
    assert first != fingerprint(made(text, settings=module("window = 4; other = 1")))


def test_simple_objects_can_be_hashed():
    @dataclasses.dataclass
    class Config:
        window: int

    for config in (Config(3), types.SimpleNamespace(window=3)):
        before = fingerprint(made("def f(q): return q * c.window", c=config))
        config.window = 4
        assert fingerprint(made("def f(q): return q * c.window", c=config)) != before
    assert fingerprint(made("def f(q): return g(q)", g=functools.partial(torch.add, other=1)))


class Opaque:
    window = 3


@pytest.mark.parametrize("text, why", [
    ("def f(q): return q * x.window", "x is of the type Opaque"),
    ("def f(q): return q * getattr(q, 'a')", "it calls getattr"),
    ("import os\ndef f(q): return q * len(os.environ)", "it reaches the module os"),
    ("def f(q):\n    import my_config\n    return q * my_config.WINDOW", "it imports my_config"),
    ("def f(q):\n    from my_config import WINDOW\n    return q * WINDOW", "it imports my_config"),
    ("import builtins\nbuiltins.PUT_THERE = 1\ndef f(q): return q * PUT_THERE", "it reads PUT_THERE, which was put among the builtins"),
    ("class Last(list):\n    def __getitem__(self, n): return 7\nlast = Last([1])\ndef f(q): return q * last[0]", "last is of the type Last"),
    ("class Other(int):\n    def __rmul__(self, x): return x\nn = Other(3)\ndef f(q): return q * n", "n is of the type Other"),
])
def test_what_cannot_be_hashed_leaves_no_fingerprint(text, why):
    reached = Dependencies(made(text, x=Opaque()))
    assert (reached.fingerprint, reached.unhashable) == (None, why)


def test_a_function_that_reaches_itself_has_a_fingerprint():
    assert fingerprint(made("def f(q, n=2): return q if n == 0 else f(q, n - 1)"))


def test_a_tensor_that_hides_in_an_object_is_refused_with_the_functions_line():
    holder = Opaque()
    holder.bias = torch.zeros(1, 1, 8, 8)

    def attention(q, k, v):
        return (q @ k.mT + holder.bias).softmax(-1) @ v

    values = [torch.zeros(1, 2, 8, 64, dtype=torch.bfloat16)] * 3
    with pytest.raises(SpecError, match=r"test_dependencies.py:\d+:1: attention reaches a tensor of shape"):
        live_function.user_spec(attention, values, Dependencies(attention).places)


def test_literals_are_no_hidden_tensors():
    def attention(q, k, v):
        return (q @ k.mT * torch.tensor([2.0])).softmax(-1) @ v

    values = [torch.zeros(1, 2, 8, 64, dtype=torch.bfloat16)] * 3
    assert live_function.user_spec(attention, values, [])


def test_while_traced_a_reached_tensor_is_the_argument_and_afterwards_the_users_own():
    bias = torch.zeros(1, 2, 8, 8)

    def attention(q, k, v):
        return (q @ k.mT + bias).softmax(-1) @ v

    reached = Dependencies(attention)
    spec, names = live_function.user_spec(attention, [torch.randn(1, 2, 8, 64) * 0.1] * 3,
                                        reached.places)
    own = bias
    other = spec.function(*spec.values[:3], torch.randn(1, 2, 8, 8) * 9)
    assert names == ["bias"] and bias is own and not torch.equal(other, attention(*spec.values[:3]))


def test_an_attribute_of_a_function_is_part_of_it():
    def inner(q):
        return q * inner.window

    def outer(q):
        return inner(q)

    inner.window = 64
    before = fingerprint(inner), fingerprint(outer)
    inner.window = 32
    after = fingerprint(inner), fingerprint(outer)
    assert before[0] != after[0] and before[1] != after[1]
    inner.table = torch.zeros(2)
    assert [p.get() is inner.table for p in Dependencies(outer).places] == [True]
