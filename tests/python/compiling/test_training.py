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
import torch.utils.checkpoint

from kernelwright.compiling.cache_miss import _capture
from kernelwright.compiling.signature import Signature
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
    assert kind == "GradientError" and "each weight changes with its score" in message and 'backward="recompute"' in message


@pytest.mark.parametrize("way", ["asked", "by_the_switch"])
def test_gradients_of_one_order_are_asked_for_by_argument_and_by_pytorchs_switch(warm, way):
    found = warm["in_one_order"]
    assert len(found[way]) == 1 and found[way][0].count("_backward_deterministic_") == 1
    assert found["off"] < CLOSE and found["off_by_the_switch"] < CLOSE


@pytest.mark.parametrize("way", ["without_the_switch", "any"])
def test_gradients_of_any_order_are_computed_by_another_kernel(warm, way):
    assert len(warm["in_one_order"][way]) == 1 and "_deterministic_" not in warm["in_one_order"][way][0]


def test_a_traced_call_follows_the_switch(warm):
    before, behind = warm["in_one_order"]["traced"]
    assert "_deterministic_" not in before[0] and "_deterministic_" in behind[0]


def test_what_has_no_order_says_why_and_what_to_do(warm):
    kind, message = warm["without_an_order"]
    assert kind == "GradientError" and "use_deterministic_algorithms" in message and "deterministic=False" in message
    kind, message = warm["recomputed"]
    assert kind == "ArgumentError" and "recompute" in message


def kernels(arguments, of, of_outputs, saved):
    """Gradients by a backward kernel of such a signature that returns what it was launched with, and these launches."""
    named = [{"name": name, "dtype": "f32" if "lse" in name else "bf16", "kernel_dims": [0, 1, 2, 3], "tensor": True,
              "dims": ["B", "H"] if "lse" in name else ["B", "H", "M", 8]} for name in arguments]
    launched = []
    signature = Signature("alibi", {"arguments": named, "outputs": [], "gradients": of, "of_outputs": of_outputs,
                                    "saved": saved})
    launch = lambda *inputs: launched.append(inputs) or inputs[len(of_outputs):len(inputs) - saved]
    return Gradients(types.SimpleNamespace(function="alibi", signature=signature, launch=launch)), launched


def test_what_no_kernel_differentiates_by_is_refused_before_the_forward_pass():
    gradients, _ = kernels(["do_rows", "d_o", "q", "slopes", "v", "o", "lse"], [0, 2], [0, 0], 2)
    launched = []
    apply = gradients.function(lambda *inputs: launched.append(inputs) or (inputs[0], inputs[1], inputs[2]), 1).apply
    q, slopes, v = (torch.zeros(2, requires_grad=grad) for grad in (True, False, True))
    apply(q, slopes, v)
    with pytest.raises(GradientError, match="alibi: slopes requires a gradient, and kernels compute those of q, v\n.*slopes.detach"):
        apply(q, slopes.requires_grad_(), v)
    assert len(launched) == 1


@pytest.mark.parametrize("used", ["o", "lse", "both"])
def test_a_gradient_for_each_output_reaches_the_kernel(used):
    gradients, launched = kernels(["do_rows", "d_o", "d_lse", "q", "o", "lse"], [0], [0, 0, 1], 2)
    forward = lambda q: (q * 2, q.sum((-2, -1)).float(), q.float())
    q = torch.zeros(2, 3, 5, 8, dtype=torch.bfloat16, requires_grad=True)
    o, lse = gradients.function(forward, 2).apply(q)
    sum((o.float().sum() * 3 if used != "lse" else 0, lse.sum() * 5 if used != "o" else 0)).backward()
    do_rows, d_o, d_lse, given, *saved = launched[0]
    assert do_rows is d_o and d_o.shape == o.shape and torch.all(d_o == (0 if used == "lse" else 3))
    assert d_lse.shape == lse.shape and d_lse.dtype == torch.float32 and torch.all(d_lse == (0 if used == "o" else 5))
    assert d_lse.is_contiguous() and len(saved) == 2 and q.grad is not None


def test_what_saves_nothing_gives_its_output_alone():
    gradients, launched = kernels(["d_o", "q"], [0], [0], 0)
    q = torch.zeros(1, 1, 2, 8, dtype=torch.bfloat16, requires_grad=True)
    o = gradients.function(lambda q: q * 2, 1).apply(q)
    o.float().sum().backward()
    assert o.shape == q.shape and len(launched[0]) == 2 and torch.all(q.grad == 0)


def test_a_kernel_is_made_inside_a_checkpointed_layer():
    """Checkpointing keeps nothing of what is computed in a layer, of the capture's own gradients neither, and runs it again for them."""
    def attention(q, k, v):
        return torch.softmax(q @ k.mT * 0.125, -1) @ v

    def layer(x):
        called.append(x)
        if len(called) < 4:
            _capture(attention, [torch.randn(1, 2, 64, 64, dtype=torch.bfloat16) for _ in "qkv"], [], "quick", "backward")
        return x * 2

    called, x = [], torch.ones(2, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert len(called) == 1


def test_a_call_that_is_traced_before_they_are_made_says_how(warm):
    assert "backward=True" in warm["refused_before_it_is_made"][1]
