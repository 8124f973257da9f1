"""kernelwright.flash.flash_attn_func: FlashAttention's options mean what its documents say, and each can be captured."""

import pytest
import torch

import kernelwright
from flash_options import OPTIONS, SLOPES, assert_equal_but_for_rows_without_keys, by_the_book, compiled, form_of, operands  # noqa: F401
from kernelwright import flash
from kernelwright.flash.arguments import window

OPTIONS = {**OPTIONS, "slopes_of_entries": {"slopes": torch.stack([SLOPES, 2 * SLOPES]), "causal": True, "window": (4, 0)}}


def call(q, k, v, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None, **more):
    return flash.flash_attn_func(q, k, v, softmax_scale=scale, causal=causal, window_size=window, softcap=softcap,
                                 alibi_slopes=slopes, **more)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("lengths", [(7, 11), (9, 9), (6, 2)])
def test_options_mean_what_they_mean_to_flash_attention(name, lengths, compiled):
    inputs = operands(*lengths)
    want, sums = by_the_book(*inputs, **OPTIONS[name])
    torch.testing.assert_close(call(*inputs, **OPTIONS[name]).double(), want, rtol=1e-4, atol=1e-5)
    out, log_sums, nothing = call(*inputs, **OPTIONS[name], return_attn_probs=True)
    assert nothing is None
    assert_equal_but_for_rows_without_keys(out, log_sums, want, sums)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_is_captured_for_any_length(name, tmp_path):
    o = {"causal": False, "window": (-1, -1), "softcap": 0.0, "slopes": None, **OPTIONS[name]}
    function = flash.attention_of(o["causal"], *window("", o["window"], o["causal"]), o["softcap"], o["slopes"] is not None, True)
    q, k, v = (x.bfloat16() for x in operands(96, 96))
    form = form_of(function, (q, k, v, 0.25, o["slopes"]), tmp_path)
    assert "any B" in str(form) and "M, N" in str(form)
    assert ("keep" in form) == (o["causal"] or max(o["window"]) >= 0), form
    assert ("tanh" in form["score"]) == bool(o["softcap"]) and ("slopes" in form["score"]) == (o["slopes"] is not None), form


def test_a_kind_is_compiled_once_whatever_the_lengths_and_the_scale(compiled):
    for lengths, scale in (((7, 11), 0.5), ((3, 4), 0.25)):
        call(*operands(*lengths), scale=scale, causal=True)
    assert len(compiled) == 1
    function, examples, options = compiled[0]
    assert examples[0].shape == (2, 256, 4, 16) and examples[2].shape == (2, 256, 2, 8) and options == {}
    call(*operands(), causal=True, window=(2, 0))
    call(*operands(), causal=True, deterministic=True)
    assert len(compiled) == 3 and compiled[2][2] == {"deterministic": True}


def test_gradients_are_those_of_the_function(compiled):
    inputs = [x.requires_grad_() for x in operands()]
    call(*inputs, causal=True).sum().backward()
    grads = [x.grad.clone() for x in inputs]
    for x in inputs:
        x.grad = None
    flash.attention_of(True)(*inputs, 0.25, None).sum().backward()
    for x, grad in zip(inputs, grads, strict=True):
        torch.testing.assert_close(grad, x.grad)


def test_a_function_of_ones_own_takes_the_place_of_the_options(compiled):
    def sigmoid(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(2, dim=2), v.repeat_interleave(2, dim=2)))
        return (torch.sigmoid(q @ k.mT) @ v).transpose(1, 2)

    inputs = operands()
    torch.testing.assert_close(flash.flash_attn_func(*inputs, function=sigmoid), sigmoid(*inputs))
    assert compiled[0][0] is sigmoid
    with pytest.raises(kernelwright.ArgumentError, match="function is given beside options"):
        flash.flash_attn_func(*inputs, causal=True, function=sigmoid)


@pytest.mark.parametrize("more, words", [
    ({"dropout_p": 0.1}, "dropout_p is 0.1"), ({"window_size": (-2, 0)}, r"window_size is \(-2, 0\)"),
    ({"alibi_slopes": torch.ones(3)}, r"alibi_slopes is float32 \[3\]; it should be float32 \[4\] or \[2, 4\]"),
    ({"alibi_slopes": SLOPES.double()}, "alibi_slopes is float64"), ({"qv": torch.ones(1)}, "qv is given, a Tensor"),
    ({"num_splits": 4}, "num_splits is given"), ({"page_table": torch.ones(1)}, "page_table is given")])
def test_what_a_kernel_has_not_is_refused_by_its_name(more, words, compiled):
    with pytest.raises(kernelwright.ArgumentError, match=words):
        flash.flash_attn_func(*operands(), **more)
    assert not compiled


def test_shapes_that_are_none_of_its_own_are_refused(compiled):
    q, k, v = operands()
    with pytest.raises(kernelwright.ArgumentError, match="k has 3 dimensions"):
        flash.flash_attn_func(q, k[0], v)
    with pytest.raises(kernelwright.ArgumentError, match="k has 2 heads; it should have a number that divides the 3 of q"):
        flash.flash_attn_func(q[:, :, :3], k, v)
    assert flash.flash_attn_func(q, k, v, num_splits=1, pack_gqa=None, qv=None).shape == (2, 7, 4, 8)
