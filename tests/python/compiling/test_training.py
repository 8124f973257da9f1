"""Gradients by kernels, end to end but for the GPU: made cold, then launched on the stand-in driver of tests/fake_cuda
by train_on_fake_cuda.py. What a GPU must say is tests/gpu/test_training.py's."""

import json
import os
import pathlib
import subprocess
import sys
import types

import pytest
import torch

from kernelwright.compiling.training import Gradients
from kernelwright.errors import GradientError
from kernelwright_cli import ROOT
from test_compile import FAKE

CLOSE = 0.01  # the stand-in rounds nothing but inputs and gradients


def run(cache, *words, **environment):
    here = pathlib.Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{here}", "KERNELWRIGHT_CACHE": str(cache), **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", here / "train_on_fake_cuda.py", *words], env=environment,
                          text=True, capture_output=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    if not (FAKE / "libcuda.so.1").exists():
        pytest.skip("the stand-in driver is not built: ninja -C build fake_cuda")
    cache = tmp_path_factory.mktemp("cache") / "kernelwright"
    _, said = run(cache, "--cold")
    assert "a backward kernel for attention" in said and "a forward kernel that saves for attention" in said
    result, said = run(cache, LD_LIBRARY_PATH=str(FAKE), FAKE_CUDA_ATTENTION="1")
    return result


@pytest.mark.parametrize("way", ["lazy", "eager", "compiled", "sum", "view", "odd_address", "of_q_alone", "of_v_alone",
                                 "checkpointed", "seen_by_a_mode"])
def test_gradients_are_the_functions(warm, way):
    assert warm[way] < CLOSE


def test_without_gradients_nothing_is_kept_for_them(warm):
    assert warm["without_gradients"] is False


def test_torch_librarys_own_checks_pass(warm):
    assert set(warm["opcheck"].values()) == {"SUCCESS"} and len(warm["opcheck"]) == 4


def test_gradients_of_gradients_are_refused(warm):
    kind, message = warm["twice"]
    assert kind == "GradientError" and "a gradient of its gradients" in message


def test_what_has_no_backward_kernel_says_why_at_the_call(warm):
    kind, message = warm["no_kernel"]
    assert kind == "GradientError" and "96" in message and 'backward="recompute"' in message


def test_what_no_kernel_differentiates_by_is_refused_before_the_forward_pass():
    argument = {"name": "d_o", "dtype": "bf16", "kernel_dims": [0, 1, 2, 3]}
    named = [argument, argument, *({**argument, "name": name} for name in ("q", "slopes", "v")), argument, argument]
    backward = types.SimpleNamespace(function="alibi", signature=types.SimpleNamespace(arguments=named))
    launched = []
    apply = Gradients(backward, [0, 2]).function(lambda *inputs: launched.append(inputs) or (inputs[0], inputs[1])).apply
    q, slopes, v = (torch.zeros(2, requires_grad=grad) for grad in (True, False, True))
    apply(q, slopes, v)
    with pytest.raises(GradientError, match="alibi: slopes requires a gradient, and kernels compute those of q, v\n.*slopes.detach"):
        apply(q, slopes.requires_grad_(), v)
    assert len(launched) == 1


def test_a_call_that_is_traced_before_they_are_made_says_how(warm):
    assert "backward=True" in warm["refused_before_it_is_made"][1]
