"""Run by test_training.py with the stand-in driver in LD_LIBRARY_PATH, which computes full attention and its gradients
on the CPU; prints one JSON object."""

import json
import sys

import torch

import kernelwright
from compile_on_fake_cuda import Seen, refusal
from kernelwright.compiling import operators

operators.DISPATCH_KEY = "CPU"


def attention(q, k, v):
    """q [B, M, 4, 128], k and v [B, N, 2, 128]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    return ((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v).transpose(1, 2)


def two_by_two(q, k, v):
    """What has no backward kernel: weights that are linear in scores."""
    return (q @ k.mT * q.shape[-1] ** -0.5) @ v


def draw(batch, m, n):
    torch.manual_seed(m + n)
    return [torch.randn(batch, length, heads, 128, dtype=torch.bfloat16) for length, heads in ((m, 4), (n, 2), (n, 2))]


def off(call, inputs, loss=lambda o: o.float().square().sum(), wanted=(True, True, True)):
    """How far the gradients are from the function's, relatively; infinity where one is there or missing in one alone."""
    leaves = [x.clone().requires_grad_(w) for x, w in zip(inputs, wanted)]
    exact = [x.detach().double().requires_grad_(w) for x, w in zip(leaves, wanted)]
    loss(call(*leaves)).backward()
    loss(attention(*exact)).backward()
    if any((x.grad is None) != (y.grad is None) for x, y in zip(leaves, exact)):
        return float("inf")
    return max(float((x.grad - y.grad).norm() / y.grad.norm()) for x, y in zip(leaves, exact) if y.grad is not None)


def twice(fast):
    leaves = [x.requires_grad_() for x in draw(1, 8, 8)]
    return refusal(lambda: torch.autograd.grad(fast(*leaves).float().square().sum(), leaves, create_graph=True))


def seen(fast):
    def call(*leaves):
        with Seen() as mode:
            output = fast(*leaves)
        assert any("_forward_" in name for name in mode.names)
        return output
    return call


def checkpointed(fast):
    return lambda *x: torch.utils.checkpoint.checkpoint(fast, *x, use_reentrant=False)


def biased(q, k, v, bias):
    """What is not added up in one order yet: the gradients beside a bias of pairs."""
    return (q @ k.mT * q.shape[-1] ** -0.5 + bias).softmax(-1) @ v


BIASED = [*[torch.zeros(1, 2, 8, 128, dtype=torch.bfloat16)] * 3, torch.zeros(2, 8, 8, dtype=torch.bfloat16)]


def in_one_order(inputs):
    """What each way to ask for gradients with the same bits comes to."""
    def names(call):
        with Seen() as mode:
            call(*[x.clone().requires_grad_() for x in inputs]).float().sum().backward()
        return [name for name in mode.names if "_backward" in name]
    asked = kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a", backward=True, deterministic=True)
    any_order = kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a", deterministic=False)
    by_switch = kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a")
    traced = torch.compile(by_switch, fullgraph=True, backend="aot_eager")
    result = {"off": off(asked, inputs), "asked": names(asked), "without_the_switch": names(by_switch)}
    traced_any = names(traced)
    torch.use_deterministic_algorithms(True)
    result |= {"by_the_switch": names(by_switch), "traced": [traced_any, names(traced)], "any": names(any_order),
               "off_by_the_switch": off(by_switch, inputs)}
    torch.use_deterministic_algorithms(False)
    return result


def without_an_order():
    """What is said where no kernel adds in one order."""
    tensors = [x.clone().requires_grad_() for x in BIASED[:3]]
    fast = kernelwright.compile(biased, BIASED, target="sm_90a")
    torch.use_deterministic_algorithms(True)
    refused = refusal(lambda: fast(*tensors, BIASED[3]))
    torch.use_deterministic_algorithms(False)
    return refused, refusal(lambda: kernelwright.compile(attention, draw(1, 8, 8), target="sm_90a", backward="recompute",
                                                         deterministic=True))


def main():
    lazy = kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a")
    if "--cold" in sys.argv:  # NVRTC cannot run with the stand-in, so nothing is launched
        kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a", backward=True)
        kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a", backward=True, deterministic=True)
        kernelwright.compile(biased, BIASED, target="sm_90a")
        kernelwright.compile(two_by_two, [torch.zeros(1, 2, 8, 96, dtype=torch.bfloat16)] * 3, target="sm_90a")
        return print(json.dumps({}))
    inputs = draw(2, 65, 130)
    through_compile = refusal(lambda: torch.compile(lazy, fullgraph=True, backend="aot_eager")(
        *[x.requires_grad_() for x in draw(1, 8, 8)]))
    eager = kernelwright.compile(attention, draw(2, 128, 128), target="sm_90a", backward=True)
    narrow = kernelwright.compile(two_by_two, [torch.zeros(1, 2, 8, 96, dtype=torch.bfloat16)] * 3, target="sm_90a")
    compiled = torch.compile(eager, fullgraph=True, backend="aot_eager", dynamic=True)
    weights = torch.randn(2, 4, 65, 128).transpose(1, 2)
    last = draw(2, 65, 130)[0].requires_grad_()
    result = {
        "refused_before_it_is_made": through_compile,
        "lazy": off(lazy, inputs), "eager": off(eager, inputs), "compiled": max(off(compiled, x) for x in (
            inputs, draw(3, 20, 9))),
        "sum": off(eager, inputs, lambda o: o.sum()),  # a gradient whose strides are 0
        "view": off(eager, inputs, lambda o: (o * weights).sum()),  # heads before rows
        "odd_address": off(eager, inputs, lambda o: torch.cat((o.flatten(), o.flatten()[:3]))[1:].square().sum()),
        "of_q_alone": off(eager, inputs, wanted=(True, False, False)),
        "of_v_alone": off(eager, inputs, wanted=(False, False, True)),
        "checkpointed": off(checkpointed(eager), inputs),
        "seen_by_a_mode": off(seen(eager), inputs),
        "without_gradients": torch.no_grad()(eager)(last, *inputs[1:]).requires_grad,
        "twice": twice(eager),
        "no_kernel": refusal(lambda: narrow(*[torch.zeros(1, 2, 8, 96, dtype=torch.bfloat16, requires_grad=True)] * 3)),
    }
    result |= {"in_one_order": in_one_order(inputs)}
    result["without_an_order"], result["recomputed"] = without_an_order()
    training = next(op for name, op in operators._operators.items() if "_forward_" in name)
    result["opcheck"] = torch.library.opcheck(training.overload, tuple(x.requires_grad_() for x in draw(2, 40, 30)))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
