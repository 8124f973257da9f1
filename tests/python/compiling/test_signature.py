"""Calls held against a record in the user's words."""

import pytest
import torch

from kernelwright.capture import goldens, live_function, trace
from kernelwright.capture.dependencies import Dependencies
from kernelwright.compiling.signature import Signature, evaluate
from kernelwright.errors import ArgumentError
from kernelwright.runtime.bindings import kernel_view


def least(function, *more):
    """What sizes of the arguments after q, k and v must be at least, by the size's place."""
    q, k, v = (torch.randn(2, 4, n, 64, dtype=torch.bfloat16) for n in (48, 80, 80))
    spec, _ = live_function.user_spec(function, [q, k, v, *more], Dependencies(function).places)
    traced = trace.trace(spec, trace.convert(spec, None))
    found = goldens.least_sizes(traced)
    names, sizes = {}, goldens.Sizes(traced.program.graph)
    placeholders = {n.name: n for n in traced.program.graph.nodes if n.op == "placeholder"}
    shapes = [placeholders[key].meta["val"].shape for key in traced.program.graph_signature.user_inputs]
    for size, name in ((shapes[0][0], "B"), (shapes[0][2], "M"), (shapes[1][2], "N")):
        names[str(sizes.expr(size))] = name

    def named(size):
        return [size[0], *map(named, size[1:])] if isinstance(size, list) else names.get(size, size)

    return [named(found.get(str(sizes.expr(s)))) for shape in shapes[3:] for s in shape]


def rows(q, k, v, heat):
    i = torch.arange(q.shape[2], device=q.device)
    return (q @ k.mT * heat[i][:, None]).softmax(-1).to(v.dtype) @ v


def documents(q, k, v, ids):
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    b = torch.arange(q.shape[0], device=q.device)[:, None, None, None]
    return torch.where(ids[b, i] == ids[b, j], q @ k.mT, -torch.inf).softmax(-1) @ v


def distances(q, k, v, table):
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)
    return (q @ k.mT + table[j - i + q.shape[2] - 1]).softmax(-1).to(v.dtype) @ v


def by_data(q, k, v, which, table):
    return (q @ k.mT + table[which][:, None, None, None]).softmax(-1).to(v.dtype) @ v


@pytest.mark.parametrize("function, more, due", [
    (rows, [torch.randn(90)], ["M"]),
    (documents, [torch.zeros(3, 90, dtype=torch.int32)], ["B", ["max", "M", "N"]]),
    (distances, [torch.randn(300)], [["+", ["+", "M", "N"], -1]]),
    (by_data, [torch.zeros(2, dtype=torch.int32), torch.randn(17)], [None, None]),
])
def test_how_much_of_a_table_lengths_read_is_known(function, more, due):
    order = {"M": 0, "N": 1}
    found = least(function, *more)
    assert [sorted_pair(size, order) for size in found] == [sorted_pair(size, order) for size in due]


def sorted_pair(size, order):
    """Sums and maxima whichever way round."""
    if not isinstance(size, list):
        return size
    return [size[0], *sorted((sorted_pair(part, order) for part in size[1:]), key=str)]


def signature(least):
    q = {"name": "q", "dtype": "bf16", "tensor": True, "dims": ["B", 4, "M", 64], "reached": False,
         "least": [None] * 4, "kernel": "q", "kernel_dims": [0, 1, 2, 3], "group": 1, "copied": True}
    table = {"name": "ids", "dtype": "i32", "tensor": True, "dims": ["S"], "reached": True, "least": [least],
             "kernel": "ids", "kernel_dims": [0], "group": 1, "copied": False}
    return Signature("f", {"arguments": [q, table], "outputs": [], "constants": {}, "order": []})


def test_a_table_that_is_too_short_is_refused():
    q, ids = torch.zeros(2, 4, 30, 64, dtype=torch.bfloat16), torch.zeros(29, dtype=torch.int32)
    assert signature(None).sizes([q, ids]) == {"B": 2, "M": 30, "S": 29}
    with pytest.raises(ArgumentError, match=r"ids \(which the function reaches\) has 29 in dimension 0; it "
                                            "should have 30 or more"):
        signature("M").sizes([q, ids])


def test_a_size_beyond_what_is_proved_is_refused():
    q = torch.zeros(2, 4, 30, 64, dtype=torch.bfloat16)
    ids = torch.zeros(1, dtype=torch.int32).expand(2**24)
    assert signature(None).sizes([q, ids])["S"] == 2**24
    with pytest.raises(ArgumentError, match=r"ids \(which the function reaches\) has 16777217 in dimension 0; it "
                                            "should have 16777216 or fewer"):
        signature(None).sizes([q, torch.zeros(1, dtype=torch.int32).expand(2**24 + 1)])


def test_sizes_are_evaluated_as_python_does():
    assert evaluate(["//", ["+", "M", 3, -10], 4], {"M": 2}) == -2
    assert evaluate(["max", "M", "N"], {"M": 2}) is None


def test_a_new_dimension_of_the_kernels_has_size_one():
    assert kernel_view([3, 5], [5, 1], [0, -1, 1]) == ([3, 1, 5], [5, 15, 1])
