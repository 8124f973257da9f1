"""What a function reaches: its tensors become arguments, and all else changes its fingerprint."""

import dataclasses
import functools
import importlib.util
import math
import types

import numpy
import pytest
import torch

from kernelwright.capture import live_function
from kernelwright.capture.dependencies import Dependencies
from kernelwright.compiling import compiler
from kernelwright.errors import ArgumentError, SpecError

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


def test_a_tensor_that_is_no_longer_there_is_an_argument_error_of_the_call():
    tables = {"bias": torch.ones(2)}

    def function(q):
        return q + tables["bias"]

    made_of = types.SimpleNamespace(overload=lambda q, bias: q + bias, refuse_call=None, refuse_constant=None, differentiable=True)
    signature = {"arguments": [{"name": "q", "reached": False}, {"name": "bias", "reached": True}], "constants": {}}
    call = compiler._caller(function, 1, Dependencies(function).places, signature, made_of, None)
    compiled = torch.compile(call, backend="eager", fullgraph=True)
    q = torch.zeros(2)
    assert torch.equal(call(q), torch.ones(2)) and torch.equal(compiled(q), torch.ones(2))
    tables["bias"] = torch.full((2,), 5.0)
    assert call(q)[0] == compiled(q)[0] == 5
    for spoil in (lambda: tables.update(bias=None) or tables.pop("bias"), tables.clear):
        spoil()
        with pytest.raises(ArgumentError, match="function: tables_bias is not where the function reaches it: KeyError: 'bias'"):
            call(q)


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


BY_VALUE = "def f(q): return q * settings.window"
NAMED_TUPLE = "import typing\nclass Settings(typing.NamedTuple):\n    blocks: int = 1\n    @property\n    def window(self): return {}\n"


@pytest.mark.parametrize("text", [
    NAMED_TUPLE + "settings = Settings()",
    "import collections\nS = collections.namedtuple('S', 'a')\nS.window = property(lambda self: {})\nsettings = S(1)",
    "import enum\nclass Layer(enum.Enum):\n    LOCAL = 1\n    @property\n    def window(self): return {}\nsettings = Layer.LOCAL",
    "import enum\nclass Layer(enum.IntEnum):\n    LOCAL = 1\n    @enum.property\n    def window(self): return {}\nsettings = Layer.LOCAL",
    "import enum\nclass Layer(str, enum.Enum):\n    LOCAL = 'a'\n    @property\n    def window(self): return {}\nsettings = Layer.LOCAL",
    "import enum\nclass Layer(enum.Enum):\n    LOCAL = 1\n    def __init__(self, n): self.window = {}\nsettings = Layer.LOCAL",
    "import enum\nclass Layer(enum.Flag):\n    A = 1\n    B = 2\n    @property\n    def window(self): return {}\nsettings = Layer.A | Layer.B",
    "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass S:\n    a: int = 1\n    @property\n    def window(self): return {}\nsettings = S()",
    "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\nclass S:\n    a: int = 1\n    @property\n    def window(self): return {}\n"
    "settings = S()",
    "import dataclasses\n@dataclasses.dataclass\nclass S:\n    a: list = dataclasses.field(default_factory=list)\n    window = {}\nsettings = S()",
    "import dataclasses\nclass Base:\n    @staticmethod\n    def window_of(): return {}\n@dataclasses.dataclass\nclass S(Base):\n    a: int = 1\n"
    "    @property\n    def window(self): return self.window_of()\nsettings = S()",
    "import functools\nclass Meta(type):\n    pass\nimport dataclasses\n@dataclasses.dataclass\nclass S(metaclass=Meta):\n    a: int = 1\n"
    "    @functools.cached_property\n    def window(self): return {}\nsettings = S()",
])
def test_the_class_of_a_value_is_part_of_it(text):
    """An edit of a method's body makes another function, and does so in another process: the value is the same."""
    one, same, other = (fingerprint(made(f"{text.replace('{}', n)}\n{BY_VALUE}")) for n in ("64", "64", "128"))
    assert one == same != other


@pytest.mark.parametrize("text", ["g.__doc__", "g.__annotations__['a']", "g.__code__.co_firstlineno", "operator.attrgetter('w')(m)", "get(m, 'w')"])
def test_what_code_says_of_itself_leaves_no_fingerprint(text):
    space = made(f"import operator\nget = getattr\ndef g(a: 1): pass\nm = operator\ndef f(q): return q * {text}")
    assert Dependencies(space).fingerprint is None


def test_a_module_that_computes_its_attributes_leaves_no_fingerprint():
    """PEP 562: what `__getattr__` gives may be another value in the next process."""
    module = types.ModuleType("of_computed")
    module.values = {"window": 1}
    module.__getattr__ = lambda name: module.values[name]
    assert Dependencies(made("def f(q): return q * m.window", m=module)).fingerprint is None


def test_two_functions_may_name_other_attributes_of_one_module(tmp_path):
    module = types.ModuleType("of_two")
    module.a, module.b = 1, 2
    f = made("def g(q): return q * m.b\ndef f(q): return g(q * m.a)", m=module)
    before = fingerprint(f)
    module.b = 3
    assert fingerprint(f) != before


@pytest.mark.parametrize("owner, name, text", [
    (torch.nn.functional, "softmax", "def f(q): return torch.nn.functional.softmax(q, -1)"),
    (torch.nn.functional, "softmax", "from torch.nn.functional import softmax\nimport torch.nn.functional as F\ndef f(q): return F.softmax(q, -1)"),
    (torch.nn.functional, "softmax", "def f(q):\n    import torch.nn.functional as F\n    return F.softmax(q, -1)"),
    (torch.nn.functional, "_my_helper", "def f(q): return torch.nn.functional._my_helper(q)"),
    (torch, "relu", "def f(q): return torch.relu(q)"),
    (torch.Tensor, "_my_method", "def f(q): return q._my_method()"),
    (torch.Tensor, "softmax", "def f(q): return q.softmax(-1)"),
    (torch.Tensor, "__matmul__", "def f(q): return q @ q"),
    (numpy, "sqrt", "import numpy\ndef f(q): return q * numpy.sqrt(2.0)"),
    (math, "sqrt", "import math\ndef f(q): return q * math.sqrt(2.0)"),
])
def test_what_others_put_into_an_installed_module_is_the_users_own(monkeypatch, owner, name, text):
    own = fingerprint(made(text))
    found = []
    for n in (1, 2, 1):
        monkeypatch.setattr(owner, name, made(f"import functools\ndef f(*a): return {n}"), raising=False)
        found.append(fingerprint(made(text)))
    assert own != found[0] == found[2] != found[1]
    monkeypatch.setattr(owner, name, functools.wraps(torch.nn.functional.relu)(made("def f(*a): return 3")))
    assert fingerprint(made(text)) not in (own, *found)  # under torch's name
    monkeypatch.undo()
    assert fingerprint(made(text)) == own


@pytest.mark.parametrize("owner, text", [(torch, "torch"), (math, "math"), (numpy, "numpy"), (torch.nn.functional, "torch.nn.functional"),
                                         (torch.Tensor, "torch.Tensor")])
def test_a_number_in_an_installed_module_counts(monkeypatch, owner, text):
    found = []
    for n in (64, 128, [64], [128]):
        monkeypatch.setattr(owner, "my_number", n, raising=False)
        found.append(fingerprint(made(f"import math, numpy\ndef f(q): return q * {text}.my_number")))
    assert len(set(found)) == 4


def test_another_function_of_pytorch_under_a_name_of_its_own_counts(monkeypatch):
    text = "def f(q): return torch.softmax(q, -1)"
    own = fingerprint(made(text))
    monkeypatch.setattr(torch, "softmax", torch.log_softmax)
    assert fingerprint(made(text)) != own


def test_a_tensor_in_an_installed_module_is_an_argument(monkeypatch):
    monkeypatch.setattr(torch, "my_bias", torch.zeros(2), raising=False)
    place, = Dependencies(made("def f(q): return q + torch.my_bias")).places
    assert place.get() is torch.my_bias


@pytest.mark.parametrize("text", ["functools.wraps(torch.relu)(lambda q: q * {})", "functools.lru_cache(functools.wraps(torch.relu)(lambda q: q * {}))",
                                  "torch.no_grad()(lambda q: q * {})"])
def test_a_users_function_under_an_installed_name_is_the_users(text):
    one, other = (fingerprint(made(f"import functools\ng = {text.format(n)}\ndef f(q): return g(q)")) for n in (1, 2))
    assert one != other


def test_a_method_of_an_installed_object_holds_what_the_object_does():
    reached = [Dependencies(made("def f(q): return g(q)", g=torch.nn.Softmax(dim).forward)) for dim in (-1, -2)]
    assert None in [r.fingerprint for r in reached] or reached[0].fingerprint != reached[1].fingerprint


@pytest.mark.parametrize("text", ["torch.ops.aten.mm(q, q)", "torch.special.expit(q)", "torch._dynamo.disable(q)"])
def test_what_pytorch_loads_when_it_is_asked_is_the_same_function(text):
    f = made(f"def f(q): return {text}")
    before = fingerprint(f)
    assert torch.ops.aten.mm and torch.ops.aten.addmm and torch.special and importlib.import_module("torch._dynamo")
    assert fingerprint(f) == before


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
    ("import functools\n@functools.cache\ndef g(): return 3\ng()\ndef f(q): return q * g()", "g has kept what an earlier call gave"),
    ("import sqlite3\ndef f(q): return q * sqlite3.connect('w')", "it reaches the module sqlite3"),
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
