"""A mistake in the user's function is a SpecError with the user's line, before any program is asked."""

import inspect
import pathlib
import traceback

import pytest
import torch

import kernelwright
from kernelwright.compiling import program


PACKAGE = pathlib.Path(kernelwright.__file__).parent


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "make", lambda *_: pytest.fail("the program was asked"))


def operands(dtype=torch.bfloat16):
    return [torch.randn(1, 2, 40, 64, dtype=dtype) for _ in range(3)]


def branches(q, k, v):
    if q.sum() > 0:
        return q
    return v


def raises(q, k, v):
    return (q @ k).softmax(-1) @ v


def selects(q, k, v):
    return (q @ k.mT).sort()[0].softmax(-1) @ v


def many(*tensors):
    return tensors[0]


def scalar(q, k, v, heat):
    return (q @ k.mT * heat).softmax(-1) @ v


def line_of(function, words):
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if words in line)


@pytest.mark.parametrize("function, values, blamed, words", [
    (branches, operands(), "if q.sum()", "depends on a tensor's value"),
    (raises, operands(), "q @ k", "raises RuntimeError"),
    (selects, operands(), ".sort()", "selects by value"),
    (many, operands(), "def many", "takes *tensors; a kernel's arguments have names"),
    (raises, operands()[:2], "def raises", "takes 3 arguments, example_inputs has 2"),
    (raises, operands(torch.float32), "def raises", "argument q is float32"),
    (scalar, [*operands(), torch.tensor(0.5)], "def scalar", "heat is a tensor without dimensions"),
])
def test_the_users_line_is_blamed(function, values, blamed, words):
    with pytest.raises(kernelwright.SpecError) as caught:
        kernelwright.compile(function, values, target="sm_90a")
    error = caught.value
    assert words in error.message
    assert (error.file, error.line) == (__file__, line_of(function, blamed))
    assert str(error).startswith(f"{__file__}:{error.line}:")
    ours = [f for f in traceback.extract_tb(error.__traceback__) if pathlib.Path(f.filename).is_relative_to(PACKAGE)]
    assert len(ours) == 1 and error.__cause__ is None and error.__suppress_context__


def test_a_mistake_in_a_mod_is_blamed_where_the_mod_is():
    def mask(b, h, q_idx, kv_idx):
        return q_idx.nonzero()[:, 0] >= kv_idx

    with pytest.raises(kernelwright.SpecError) as caught:
        kernelwright.compile(kernelwright.flex(mask_mod=mask), operands(), target="sm_90a")
    assert caught.value.file == __file__
    assert line_of(mask, "def mask") <= caught.value.line <= line_of(mask, "nonzero")
