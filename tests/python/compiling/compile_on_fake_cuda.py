"""Run by test_compile.py with the stand-in driver in LD_LIBRARY_PATH; prints one JSON object.

The stand-in computes full attention on the CPU, so operators are registered there. The function has
[B, M, H, D] tensors, which its kernel takes as [B, H, M, D]."""

import copy
import json
import sys
import time

import torch

import kernelwright
from kernelwright.compiling import operators

operators.DISPATCH_KEY = "CPU"
if "--no-program" in sys.argv:  # a machine to which only the cache was brought
    from kernelwright.compiling import program
    program.find = lambda: None


def attention(q, k, v):
    """q [B, M, 4, 96], k and v [B, N, 2, 96]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    return ((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v).transpose(1, 2)


def linear(q, k, v):
    """What has no backward kernel: weights that are linear in scores."""
    return (q @ k.mT * q.shape[-1] ** -0.5) @ v


def draw(batch, m, n):
    torch.manual_seed(m + n)
    return [torch.randn(batch, length, heads, 96, dtype=torch.bfloat16)
            for length, heads in ((m, 4), (n, 2), (n, 2))]


def refusal(call):
    try:
        call()
    except kernelwright.Error as error:
        return [type(error).__name__, str(error)]
    except Exception as error:  # torch.compile wraps what a fake implementation raises
        return [type(error).__name__, str(error)]
    return None


def off_by(got, inputs):
    return float((got.float() - attention(*(x.double() for x in inputs)).float()).abs().max())


def same_memory_again(fast, operator, inputs):
    """How far off a call is whose output is in the memory of the last one's."""
    memory, fresh = fast(*inputs), operator._space["empty"]
    operator._space["empty"] = lambda *_, **__: memory.fill_(100)
    fast(*inputs)
    operator._space["empty"] = fresh
    return off_by(memory, inputs)


def first_compiled(fast):
    """torch.compile, before anything else was called."""
    torch._dynamo.config.error_on_recompile = True
    compiled = torch.compile(fast, fullgraph=True, backend="aot_eager", dynamic=True)
    errors = [off_by(compiled(*inputs), inputs) for inputs in (draw(3, 70, 50), draw(5, 33, 90))]
    torch._dynamo.config.error_on_recompile = False
    return max(errors)


def exported(fast):
    class Module(torch.nn.Module):
        def forward(self, q, k, v):
            return fast(q, k, v) * 2
    batch, m, n = (torch.export.Dim(name) for name in ("batch", "m", "n"))
    program = torch.export.export(Module(), tuple(draw(2, 40, 30)), dynamic_shapes=(
        {0: batch, 1: m}, {0: batch, 1: n}, {0: batch, 1: n}))
    inputs = draw(3, 21, 64)
    return off_by(program.module()(*inputs) / 2, inputs)


def gradients(fast):
    """How far the gradients of eager and of compiled calls are from the function's, relatively."""
    worst = []
    for call in (fast, torch.compile(fast, backend="aot_eager", fullgraph=True)):
        leaves = [x.requires_grad_() for x in draw(2, 40, 30)]
        exact = [x.detach().double().requires_grad_() for x in leaves]
        call(*leaves).square().sum().backward()
        attention(*exact).square().sum().backward()
        worst += [float((x.grad - y.grad).norm() / y.grad.norm()) for x, y in zip(leaves, exact)]
    return max(worst)


class Seen(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


def watched(fast, inputs):
    """Who saw a call as one of the operator: [nobody, a mode, a profiler, a subclass]."""
    seen, name, through = Seen(), fast.operator.name(), []
    class Counted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            through.append(str(func))
            return super().__torch_function__(func, types, args, kwargs)
    operator = operators._operators[name.split("::")[1]]
    alone = fast.__globals__["may_skip_dispatcher_"]() and operator.takes_plainly(*inputs)
    with seen:
        fast(*inputs)
    with torch.profiler.profile() as profile:
        fast(*inputs)
    fast(inputs[0].as_subclass(Counted), *inputs[1:])
    return [alone, name in seen.names, name in {e.key for e in profile.key_averages()},
            any(name.split("::")[1] in f for f in through)]


def refusals(fast):
    q, k, v = draw(2, 40, 30)
    zeros = [torch.zeros(1, 2, 8, 96, dtype=torch.bfloat16)] * 3
    without = kernelwright.compile(linear, zeros, target="sm_90a")
    return {name: refusal(call) for name, call in {
        "type": lambda: fast([1.0], k, v),
        "dtype": lambda: fast(q, k.float(), v),
        "rank": lambda: fast(q, k[0], v),
        "heads": lambda: fast(q, torch.cat((k, k), 2), v),
        "lengths": lambda: fast(q, k, v[:, :20]),
        "last_stride": lambda: fast(q.mT.contiguous().mT, k, v),
        "stride": lambda: fast(torch.zeros(2, 40, 4, 100, dtype=torch.bfloat16)[..., :96], k, v),
        "address": lambda: fast(torch.zeros(2 * 40 * 384 + 1, dtype=torch.bfloat16)[1:].view(q.shape), k, v),
        "address_again": lambda: [fast(q, k, v), fast(torch.zeros(2 * 40 * 384 + 1, dtype=torch.bfloat16)[
            1:].view(q.shape), k, v)],
        "no_keys": lambda: fast(q, k[:, :0], v[:, :0]),
        "gradient": lambda: without(zeros[0].clone().requires_grad_(), *zeros[1:]),
        "gradient_compiled": lambda: torch.compile(without, backend="aot_eager", fullgraph=True)(
            zeros[0].clone().requires_grad_(), *zeros[1:]),
        "dtype_compiled": lambda: torch.compile(fast, backend="aot_eager", fullgraph=True)(q, k.float(), v),
    }.items()}


def main():
    q, k, v = draw(2, 128, 128)
    begun = time.perf_counter()
    fast = kernelwright.compile(attention, (q, k, v), target="sm_90a")
    compile_seconds = time.perf_counter() - begun
    result = {"cold": "kernelwright.compiling.cache_miss" in sys.modules, "seconds": compile_seconds}
    if "--cold" in sys.argv:  # NVRTC cannot run with the stand-in, so nothing is launched
        print(json.dumps(result))
        return
    if "--one-call" in sys.argv:
        print(json.dumps(refusal(lambda: fast(q, k, v))))
        return
    result |= {"schema": str(fast.operator._schema),
              "compiled_first": first_compiled(fast)}
    operator = operators._operators[fast.operator.name().split("::")[1]]
    inputs = draw(2, 65, 130)
    got = fast(*inputs)
    result["eager"], result["strides_like_q"] = off_by(got, inputs), got.stride() == inputs[0].stride()
    plans = len(operator.plans)
    packed = torch.randn(2, 65, 3, 4, 96, dtype=torch.bfloat16)  # q as a view without a copy
    view = [packed[:, :, 0], *inputs[1:]]
    result["view"] = off_by(fast(*view), view)
    fast(*view), fast(*inputs)
    result["more_plans"] = len(operator.plans) - plans
    result["again"] = same_memory_again(fast, operator, inputs)
    result["keywords"] = off_by(fast(inputs[0], v=inputs[2], k=inputs[1]), inputs)
    record = copy.deepcopy(operator.signature.record)
    for argument, name in zip(record["arguments"], ("key", "plan", "shape")):
        argument["name"] = name
    renamed = operators.Operator("renamed", "renamed", record, fast.folder)
    result["names_of_ours"] = off_by(renamed.overload(*inputs), inputs)
    result["empty_batch"] = list(fast(*draw(0, 5, 5)).shape)
    result["no_grad"] = off_by(torch.no_grad()(fast)(inputs[0].clone().requires_grad_(), *inputs[1:]), inputs)
    operators.KEPT_PLANS = 8
    for n in range(20, 40):
        fast(*draw(1, n, n))
    result["kept_plans"] = len(operator.plans)
    result["watched"] = watched(fast, inputs)
    result["exported"] = exported(fast)
    result["opcheck"] = torch.library.opcheck(fast.operator, tuple(inputs))
    result["refusals"] = refusals(fast)
    trained = kernelwright.compile(attention, (q, k, v), target="sm_90a", backward="recompute")
    result["gradients"] = gradients(trained)
    result["opcheck_gradients"] = torch.library.opcheck(
        trained.operator, tuple(x.requires_grad_() for x in draw(2, 40, 30)))
    result["folder"], result["holds"] = str(fast.folder), fast.certificate["verdict"]
    result["source"] = "attention_fwd" in fast.source
    print(json.dumps(result))


if __name__ == "__main__":
    main()
