"""Modules that contain attention on a GPU: their kernels with PyTorch's operators around them, against the module in fp32, beside the module as it is."""

import copy
import pathlib
import sys

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import kernelwright

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python" / "helpers"))
from attention_modules import HOW  # noqa: E402

pytestmark = pytest.mark.gpu
# How much farther from fp32 the kernels may be than the module itself in bf16, whose errors are one draw of the same size.
FARTHER = 2.0


def on_gpu(values, dtype):
    move = lambda x: x.cuda().to(dtype) if x.is_floating_point() else x.cuda()  # noqa: E731
    return tree_map(lambda x: move(x) if isinstance(x, torch.Tensor) else x, values)


def error(got, due):
    pairs = [(a, b) for a, b in zip(tree_leaves(got), tree_leaves(due)) if isinstance(a, torch.Tensor)]
    return max(((a.float() - b).norm() / b.norm()).item() for a, b in pairs)


@pytest.mark.parametrize("name", HOW)
def test_a_module_is_as_near_to_fp32_as_it_was(name):
    make, arguments, keywords = HOW[name]
    torch.manual_seed(0)
    module = make().eval().cuda().bfloat16()
    wide = copy.deepcopy(module).float()
    example = on_gpu(arguments(2, 40), torch.bfloat16)
    fast = kernelwright.compile(module, (example[0],) * len(example) if name.startswith("mha") else example, keywords=keywords)
    for batch, length in ((2, 40), (3, 77), (1, 300)):
        args = on_gpu(arguments(batch, length), torch.bfloat16)
        args = (args[0],) * len(args) if name.startswith("mha") else args
        with torch.no_grad():
            due = wide(*tree_map(lambda x: x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x, args), **keywords)
            own, got = module(*args, **keywords), fast(*args, **keywords)
        assert error(got, due) <= FARTHER * error(own, due) + 1e-3, (batch, length, error(got, due), error(own, due))
