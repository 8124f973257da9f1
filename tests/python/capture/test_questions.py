"""What a function asks about its device, its arguments' identity and its compiled helpers is refused, however it asks."""

import pytest
import torch

from kernelwright.capture import capture, goldens, load, questions
from kernelwright.capture.diagnostic import Problem

FILE = """import collections, contextlib, dataclasses, functools, operator
import torch
from operator import is_ as same
CPU, MODE, NOTHING = torch.device("cpu"), "causal", None
{before}
def attention(q, k, v):
    c = 0.125
{body}
    return (q @ k.mT * c).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
"""


@pytest.fixture
def captured(tmp_path):
    def of(body, before=""):
        path = tmp_path / "attention.py"
        path.write_text(FILE.format(body="\n".join("    " + line for line in body.split("\n")), before=before))
        spec = load.load(str(path))
        return spec, capture.capture(spec, None, goldens.CASES[:2])
    return of


def refused(captured, body, before=""):
    with pytest.raises(Problem) as caught:
        captured(body, before)
    assert caught.value.code == "spec.elsewhere"
    return caught.value


OF_DEVICES = {
    "equal": 'c = 0.125 if q.device == torch.device("cpu") else 0.25',
    "of another device": 'c = 0.125 if q.device == torch.device("cuda:1") else 0.25',
    "unequal": "c = 0.25 if q.device != CPU else 0.125",
    "the other way round": "c = 0.125 if CPU == q.device else 0.25",
    "a text": 'c = 0.125 if "cpu" in str(q.device) else 0.25',
    "formatted": 'c = 0.125 if f"{q.device}" == "cpu" else 0.25',
    "by percent": 'c = 0.125 if "%s" % q.device == "cpu" else 0.25',
    "repr": "c = len(repr(q.device)) / 152",
    "a key": "c = {CPU: 0.125}.get(q.device, 0.25)",
    "in a list": "c = 0.125 if q.device in [CPU] else 0.25",
    "its letters": "c = len([*q.device]) / 24",
    "its type by another name": 'd = q.device\nc = 0.125 if d.type == "cpu" else 0.25',
    "an attribute by its name": 'c = 0.25 if operator.attrgetter("is_cuda")(q) else 0.125',
    "a path of attributes": 'c = 0.25 if operator.attrgetter("device.type")(q) == "cuda" else 0.125',
    "a pattern": 'match q.device:\n    case torch.device(type="cpu"):\n        c = 0.125\n    case _:\n        c = 0.25',
    "its number": "c = 0.125 * (2 + q.get_device())",
    "the type of a tensor": 'c = 0.125 if q.type() == "torch.BFloat16Tensor" else 0.25',
    "a tensor as a text": 'c = 0.25 if "cuda" in f"{q}" else 0.125',
    "a device made of it": "c = 0.125 if torch.device(q.device) == CPU else 0.25",
    "that of a new tensor": "c = 0.125 if torch.zeros(1, device=q.device).device == CPU else 0.25",
    "under a device": 'with torch.device("cpu"):\n    c = 0.125 * (2 + q.get_device())',
}


@pytest.mark.parametrize("body", OF_DEVICES.values(), ids=OF_DEVICES.keys())
def test_a_question_about_the_device_is_refused_at_its_line(captured, body):
    asking = next(n for n, line in enumerate(body.split("\n")) if any(
        word in line for word in ("d.type", "==", "device)", "device]", "case torch", "get", "repr", "f\"", "type()", "!=", "in [")))
    assert refused(captured, body).line == 8 + asking


@pytest.mark.parametrize("field", ["device", "_device"])
def test_a_comparison_in_generated_code_is_the_users(captured, field):
    before = f"@dataclasses.dataclass\nclass Place:\n    {field}: object\n"
    assert "asks which device" in refused(captured, "c = 0.25 if Place(q.device) == Place(CPU) else 0.125", before).message


IDENTITIES = {
    "is": "c = 0.25 if k is v else 0.125",
    "is not": "c = 0.125 if k is not v else 0.25",
    "of None at other sizes": "c = 0.25 if k is (v if q.dim() == 4 else None) else 0.125",
    "of None on the left": "c = 0.25 if (v if q.dim() == 4 else None) is k else 0.125",
    "in a generator": "c = 0.25 if any(x is q for x in (k, v)) else 0.125",
    "of the operator's module": "c = 0.25 if operator.is_(k, v) else 0.125",
    "by another name": "c = 0.25 if same(k, v) else 0.125",
    "a set": "c = 0.125 * (len({q, k, v}) - 2)",
    "a key": "c = {q: 0.25}.get(k, 0.125)",
    "counted": "c = 0.125 * (len(collections.Counter((q, k, v))) - 2)",
    "keys": "c = 0.125 * (len(dict.fromkeys((q, k, v))) - 2)",
}


@pytest.mark.parametrize("body", IDENTITIES.values(), ids=IDENTITIES.keys())
def test_a_question_which_arguments_are_one_is_refused_at_its_line(captured, body):
    assert refused(captured, body).line == 8


COMPILED = {
    "a function": "@torch.jit.script\ndef helper(x: torch.Tensor) -> torch.Tensor:\n    return x * 2.0 if x.is_cuda else x\n",
    "a traced one": "helper = torch.jit.trace(lambda x: x * 2.0, torch.zeros(2))\n",
    "a module": "class Twice(torch.nn.Module):\n    def forward(self, x):\n        return x * 2.0\n"
                "helper = torch.jit.script(Twice())\n",
}


@pytest.mark.parametrize("before", COMPILED.values(), ids=COMPILED.keys())
def test_a_helper_in_torchscript_is_refused_where_it_is_called(captured, before):
    if "def helper" in before:  # of two functions the file's name says which is meant
        before = before.replace("def helper", "def _helper") + "helper = _helper\n"
    problem = refused(captured, "k = helper(k)", before)
    assert "TorchScript" in problem.message and "without torch.jit" in problem.hint
    assert problem.line == 1 + FILE.format(body="    k = helper(k)", before=before).split("\n").index("    k = helper(k)")


ALLOWED = {
    "factories": "k = k + torch.zeros(1, device=q.device, dtype=q.dtype) + q.new_zeros(1, device=q.device)",
    "arange": "k = k + (torch.arange(k.shape[2], device=q.device) * 0).to(k.dtype)[:, None]",
    "to": "k = k.to(q.device).to(device=v.device, dtype=v.dtype)",
    "handed on in a dictionary": "given = dict(device=q.device, dtype=q.dtype)\nk = k + torch.zeros(1, **given)",
    "with": "with q.device:\n    k = k + torch.zeros(1).to(k.dtype)",
    "a device of it": "k = k + torch.zeros(1, device=torch.device(q.device), dtype=k.dtype)",
    "a type": "k = k.type(torch.float32).type(k.dtype).type_as(q)",
    "None": "mask = None\nc = c if mask is None and k is not None and k is not NOTHING else 0.25",
    "None on the left": "c = 0.25 if None is k else c",
    "None of two": "c = 0.25 if (k if q.dim() == 4 else v) is None else c",
    "a mode": 'mode = MODE\nc = c if mode is MODE else 0.25',
    "a function": "f = torch.softmax\nc = c if f is torch.softmax else 0.25",
}


@pytest.mark.parametrize("body", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_device_may_be_handed_on_and_what_is_no_tensor_compared(captured, body):
    captured(body)


def test_a_function_that_runs_only_unwatched_is_refused(captured, monkeypatch):
    """What it would have asked later is not known."""
    def other_than_a_device(*_):
        raise TypeError("no device")
    monkeypatch.setattr(questions, "_Device", other_than_a_device)
    problem = refused(captured, "k = k + torch.zeros(1, device=q.device, dtype=q.dtype)")
    assert problem.line == 8 and "TypeError: no device" in problem.message


def test_what_it_asks_for_a_batch_of_one_alone_is_refused_too(captured):
    """The trace has no batch of one; a golden case has."""
    body = "if q.shape[0] == 1:\n    c = 0.125 if q.device == CPU else 0.25"
    assert refused(captured, body).line == 9


def test_nothing_of_the_watch_stays_behind():
    from torch._subclasses.fake_tensor import FakeTensor

    def now():
        return FakeTensor.__dict__["device"], torch.Tensor.__hash__, torch._C.ScriptFunction.__dict__["__call__"]
    before = now()
    with pytest.raises(ValueError), questions.watched(load.UserSpec("f.py", "f", None, [], [], [], [], 1)):
        assert now() != before
        raise ValueError
    assert now() == before
