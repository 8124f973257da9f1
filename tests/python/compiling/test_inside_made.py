"""Modules whose attention becomes a kernel, made by the program; what a region must be for that, a capture alone does not say.

The region's own function stands in for the kernel in calls, as there is no GPU (inside/choose.py, call_of)."""

import pytest
import torch
from attention_modules import HOW, GPT2, Llama, MinGPT, hidden
from test_inside import assert_same

import kernelwright
from kernelwright.compiling.inside import choose


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNELWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache") / "kernelwright"))
        patch.setattr(choose, "call_of", lambda compiled, function: function.function)
        yield


def compiled(module, *args, **options):
    return kernelwright.compile(module, args, target="sm_90a", **options)


def kernels_operators(fast, kernel="kernel 1"):
    return [o.name for o in fast.plan.operators if o.where == kernel]


@pytest.mark.parametrize("name, inner", [("mha", {"scaled_dot_product_attention"}), ("t5", {"embedding", "clamp", "softmax"}),
                                         ("relu", {"relu", "masked_fill", "eq"}), ("cross_padded", {"masked_fill", "bitwise_not"})])
def test_a_kernel_is_made_of_the_largest_part(name, inner):
    make, arguments, keywords = HOW[name]
    torch.manual_seed(0)
    module, args = make().eval().bfloat16(), arguments(2, 40)
    fast = compiled(module, *args, keywords=keywords)
    assert inner <= set(kernels_operators(fast)) and not {"linear", "addmm"} & set(kernels_operators(fast))
    assert fast.certificate["verdict"] == "holds" and "attention_fwd" in fast.source and len(fast.kernels) == 1
    more = tuple([args[0][:, :33]] * 3) if name == "mha" else arguments(3, 33)
    assert_same(fast(*more, **keywords), module(*more, **keywords), limit=2e-3)


def test_what_is_refused_stays_outside_with_the_reason(capsys):
    module = Llama().bfloat16()
    fast = compiled(module, hidden(2, 40))
    outside = sum(o.where in ("before", "behind") for o in fast.plan.operators)
    assert f"kernelwright: Llama: {outside} operators run in PyTorch around 1 kernel; `plan` says which" in capsys.readouterr().err
    assert {"neg", "cat", "scaled_dot_product_attention"} <= set(kernels_operators(fast))
    sine = next(o for o in fast.plan.operators if o.name == "sin")
    assert sine.where == "before" and "attention_modules.py:" in sine.place and sine.reason
    assert_same(fast(hidden(3, 33)), module(hidden(3, 33)))


def test_fp32_callers_get_kernels_of_the_type_that_they_say():
    torch.manual_seed(0)
    module = MinGPT().eval()
    fast = compiled(module, hidden(2, 40, torch.float32), dtype=torch.float16)
    assert {a["dtype"] for a in fast.certificate["transfer"]["bindings"] if "dtype" in a} <= {"f16", "f32", "bool"}
    assert_same(fast(hidden(2, 33, torch.float32)), module(hidden(2, 33, torch.float32)), limit=5e-3)


def test_a_kernel_itself_refuses_tensors_that_are_on_no_gpu(monkeypatch):
    monkeypatch.setattr(choose, "call_of", lambda compiled, function: compiled)
    fast = compiled(GPT2().eval().bfloat16(), hidden(2, 40))
    with pytest.raises(kernelwright.ArgumentError, match="q is on the CPU"):
        fast(hidden(2, 40))


@pytest.mark.parametrize("backward", [True, "recompute"])
def test_gradients_by_either_way_are_made_with_it(backward, monkeypatch):
    monkeypatch.setattr(choose, "call_of", lambda compiled, function: compiled)
    fast = compiled(GPT2().eval().bfloat16(), hidden(2, 40), backward=backward)
    assert fast.operator.name().endswith("_recompute") == (backward == "recompute")
    with pytest.raises(kernelwright.ArgumentError, match="q is on the CPU"):
        fast(hidden(2, 40))


def test_a_function_that_a_kernel_holds_is_compiled_as_ever():
    def attention(q, k, v):
        return (q @ k.mT * 64**-0.5).softmax(-1) @ v

    fast = compiled(attention, *(torch.randn(2, 4, 40, 64).bfloat16() for _ in range(3)))
    assert fast.plan.whole and str(fast.plan) == "attention: all of it in one kernel" and fast.kernels == (fast,)
    assert fast.operator._schema.arguments[0].name == "q"


def test_a_head_dimension_without_tiles_is_refused_at_the_attention():
    with pytest.raises(kernelwright.SpecError, match="attention_modules.py:.*head dimension is 32"):
        compiled(Llama(head=32).bfloat16(), hidden(2, 40))


def test_a_refusal_is_kept_like_a_kernel(capfd):
    compiled(Llama().bfloat16(), hidden(2, 40))
    assert "capture" not in capfd.readouterr().err  # not of what is refused either
