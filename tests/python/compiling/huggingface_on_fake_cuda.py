"""Run by test_huggingface_training.py with the stand-in driver in LD_LIBRARY_PATH, which computes full attention and its
gradients on the CPU: an encoder's layer under autocast, as Trainer calls it. Prints one JSON object: how far the gradients of
q, k and v are from the function's, relatively, and what ran."""

import json
import sys

import torch

from compile_on_fake_cuda import Seen
from kernelwright import huggingface
from kernelwright.compiling import operators

operators.DISPATCH_KEY = "CPU"
OPTIONS = {"target": "sm_90a"}


class Layer(torch.nn.Module):
    is_causal = False

    def forward(self, q, k, v):
        """[B, H, M, D] to [B, M, H, D]: 4 heads on 2, D 128."""
        with torch.autocast("cpu", torch.bfloat16):
            return huggingface.attention_forward(self, q, k, v, None, _options=OPTIONS)[0]


def draw(batch, m, n):
    """Rotated queries and keys in fp32, values of a projection in bf16."""
    torch.manual_seed(m + n)
    q, k, v = (torch.randn(batch, heads, length, 128) for heads, length in ((4, m), (2, n), (2, n)))
    return q.bfloat16().float(), k.bfloat16().float(), v.bfloat16()


def truth(q, k, v):
    k, v = (x.to(q.dtype).repeat_interleave(2, dim=1) for x in (k, v))
    return ((q @ k.mT * 128**-0.5).softmax(-1) @ v).transpose(1, 2)


def off(call, inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    exact = [x.double().requires_grad_() for x in inputs]
    call(*leaves).float().square().sum().backward()
    truth(*exact).square().sum().backward()
    assert [x.grad.dtype for x in leaves] == [torch.float32, torch.float32, torch.bfloat16]
    return max(float((x.grad - y.grad).norm() / y.grad.norm()) for x, y in zip(leaves, exact))


def checkpointed(layer, reentrant):
    return lambda *x: torch.utils.checkpoint.checkpoint(layer, *x, use_reentrant=reentrant)


def main():
    layer = Layer()
    if "--cold" in sys.argv:  # NVRTC cannot run with the stand-in, so nothing is launched
        given = [x.bfloat16() for x in draw(2, 8, 8)]
        huggingface._make(huggingface.attention_of(False, None, None), (*given, 128**-0.5, None, None, None, None),
                          OPTIONS | {"backward": True})
        return print(json.dumps({}))
    traced = torch.compile(Layer(), backend="aot_eager")
    with torch.no_grad():  # an evaluation may come first, with another kernel than training's
        evaluated = float((layer(*draw(2, 65, 130)).float() - truth(*draw(2, 65, 130))).abs().max())
    result = {"evaluated": evaluated, "traced_first": off(traced, draw(2, 40, 30))}
    torch._dynamo.reset()
    torch._dynamo.config.error_on_recompile = True
    whole = torch.compile(Layer(), backend="aot_eager", fullgraph=True, dynamic=True)
    result |= {"traced_whole": max(off(whole, x) for x in (draw(3, 65, 130), draw(5, 20, 9))),
               "eager": off(layer, draw(2, 65, 130)), "checkpointed": off(checkpointed(layer, False), draw(2, 65, 130)),
               "checkpointed_reentrant": off(checkpointed(layer, True), draw(2, 65, 130))}
    with Seen() as mode:
        off(layer, draw(2, 8, 8))
    result["ran"] = [name for name in mode.names if name.startswith("kernelwright::")]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
