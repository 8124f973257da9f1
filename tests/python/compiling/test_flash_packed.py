"""kernelwright.flash.flash_attn_varlen_func: packed sequences mean what each means alone, and can be captured."""

import pytest
import torch

import kernelwright
from flash_options import OPTIONS, SLOPES, assert_equal_but_for_rows_without_keys, by_the_book, compiled, form_of  # noqa: F401
from kernelwright import flash
from kernelwright.flash.packed import key_ranges

# Queries and keys of each sequence: some without either, more queries than keys, and rows behind the last.
LENGTHS = {"ragged": [(7, 11), (1, 9), (5, 5), (6, 2)], "empty": [(0, 4), (3, 0), (0, 0), (4, 6), (0, 2)], "one": [(9, 9)]}


def packed(lengths, behind=(0, 0)):
    """q [T, 4, 16], k [S, 2, 16], v [S, 2, 8] and the offsets; `behind`: so many rows more than sequences have."""
    torch.manual_seed(len(lengths))
    queries, keys = (sum(x) + more for x, more in zip(zip(*lengths), behind))
    offsets = [torch.tensor([0, *x], dtype=torch.int32).cumsum(0, dtype=torch.int32) for x in zip(*lengths)]
    return [torch.randn(queries, 4, 16), torch.randn(keys, 2, 16), torch.randn(keys, 2, 8)], offsets


def call(q, k, v, offsets, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None, **more):
    return flash.flash_attn_varlen_func(q, k, v, *offsets, 0, 0, softmax_scale=scale, causal=causal, window_size=window, softcap=softcap,
                                        alibi_slopes=slopes, **more)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("name", OPTIONS)
def test_each_sequence_is_as_it_is_alone(name, lengths, compiled):  # noqa: F811
    (q, k, v), offsets = packed(LENGTHS[lengths], behind=(2, 3))
    out, sums, nothing = call(q, k, v, offsets, **OPTIONS[name], return_attn_probs=True)
    assert nothing is None and out.shape == (q.shape[0], 4, 8) and sums.shape == (4, q.shape[0])
    (*begins_q, end), begins_k = offsets[0].tolist(), offsets[1].tolist()
    for (m, n), i, j in zip(LENGTHS[lengths], begins_q, begins_k):
        want, want_sums = by_the_book(q[None, i:i + m], k[None, j:j + n], v[None, j:j + n], **OPTIONS[name])
        assert_equal_but_for_rows_without_keys(out[None, i:i + m], sums[None, :, i:i + m], want, want_sums)
    assert not out[end:].any()
    torch.testing.assert_close(call(q, k, v, offsets, **OPTIONS[name]), out)
    assert len(compiled) == 2, "with log-sums and without, whatever the lengths"


def test_ranges_lie_within_a_querys_own_sequence():
    offsets_q, offsets_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 3, 3, 5], [0, 4, 6, 9]))
    start, end, place = key_ranges(offsets_q, offsets_k, 6)
    assert start.tolist() == [[0, 0, 0, 6, 6, 9]] and end.tolist() == [[4, 4, 4, 9, 9, 9]]
    assert place.tolist()[0][:5] == [1, 2, 3, 7, 8] and start.dtype == end.dtype == place.dtype == torch.int32
    start, end, _ = key_ranges(offsets_q, offsets_k, 6, causal=True, left=1)
    assert start.tolist()[0][:5] == [0, 1, 2, 6, 7] and end.tolist()[0][:5] == [2, 3, 4, 8, 9]
    _, end, _ = key_ranges(offsets_q, offsets_k, 6, right=1)
    assert end.tolist()[0][:5] == [3, 4, 4, 9, 9]


@pytest.mark.parametrize("softcap, slopes", [(0.0, False), (30.0, True)])
def test_it_is_captured_for_any_number_of_rows(softcap, slopes, tmp_path):
    (q, k, v), offsets = packed([(100, 100), (92, 92)])
    ranges = key_ranges(*offsets, 192, causal=True)
    inputs = *(x[None].bfloat16() for x in (q, k, v)), 0.25, *ranges[:2], ranges[2] if slopes else None, SLOPES if slopes else None
    form = form_of(flash.packed_attention_of(softcap, slopes, True), inputs, tmp_path)
    assert "M, N" in str(form) and "start" in form["keep"] and "end" in form["keep"], form
    assert ("tanh" in form["score"]) == bool(softcap) and ("place" in form["score"]) == slopes, form


def test_gradients_are_those_of_each_sequence(compiled):  # noqa: F811
    lengths = [(5, 5), (3, 3)]
    inputs, offsets = packed(lengths)
    inputs = [x.requires_grad_() for x in inputs]
    call(*inputs, offsets, causal=True).square().sum().backward()
    grads = [x.grad.clone() for x in inputs]
    for x in inputs:
        x.grad = None
    begin = 0
    for m, _ in lengths:
        q, k, v = (x[None, begin:begin + m] for x in inputs)
        flash.attention_of(True)(q, k, v, 0.25, None).square().sum().backward()
        begin += m
    for x, grad in zip(inputs, grads, strict=True):
        torch.testing.assert_close(grad, x.grad)


def test_a_function_of_ones_own_has_the_ranges(compiled):  # noqa: F811
    def sigmoid(q, k, v, start, end, place):
        q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(2, dim=2), v.repeat_interleave(2, dim=2)))
        j = torch.arange(k.shape[2])
        keep = (start[:, :, None] <= j) & (j < end[:, :, None])
        return (torch.sigmoid(q @ k.mT + (place[:, :, None] - j) * 0.1) * keep[:, None] @ v).transpose(1, 2)

    (q, k, v), offsets = packed([(5, 7), (4, 4)])
    got = call(q, k, v, offsets, causal=True, function=sigmoid)
    weights = torch.sigmoid(q[6, 3] @ k[7:9, 1].mT + torch.tensor([0.1, 0.0]))  # of the second sequence's second query
    torch.testing.assert_close(got[6, 3], weights @ v[7:9, 1])
    assert compiled[0][0] is sigmoid
    with pytest.raises(kernelwright.ArgumentError, match="function is given beside options of scores"):
        call(q, k, v, offsets, softcap=1.0, function=sigmoid)


@pytest.mark.parametrize("offsets, words", [
    (([0, 7, 5], [0, 5, 9]), "cu_seqlens_q has sequence 1 from 7 to 5; it should not decrease"),
    (([0, 5, 7], [0, 5, 99]), "cu_seqlens_k has sequence 1 end at 99; it should end within the 9 rows that there are"),
    (([1, 5, 7], [0, 5, 9]), "cu_seqlens_q begins with 1")])
def test_wrong_offsets_are_named_with_their_sequence(offsets, words, compiled):  # noqa: F811
    (q, k, v), _ = packed([(7, 9)])
    wrong = [torch.tensor(x, dtype=torch.int32) for x in offsets]
    with pytest.raises(kernelwright.ArgumentError, match=words):
        call(q, k, v, wrong, check_inputs=True)
    assert call(q, k, v, wrong).shape == (7, 4, 8), "without check_inputs no row beyond q, k and v is read"


@pytest.mark.parametrize("change, words", [
    ({"block_table": torch.ones(1)}, "block_table is given"), ({"dropout_p": 0.5}, "dropout_p is 0.5"),
    ({"slopes": torch.ones(1, 4)}, r"alibi_slopes is float32 \[1, 4\]; it should be float32 \[4\]"), ({"seqused_q": torch.ones(1)}, "seqused_q")])
def test_what_a_kernel_has_not_is_refused_by_its_name(change, words, compiled):  # noqa: F811
    (q, k, v), offsets = packed([(7, 9)])
    with pytest.raises(kernelwright.ArgumentError, match=words):
        call(q, k, v, offsets, **change)
    assert not compiled


def test_offsets_and_shapes_that_do_not_fit_are_refused(compiled):  # noqa: F811
    (q, k, v), offsets = packed([(7, 9)])
    for which, wrong, words in ((0, offsets[0].long(), r"cu_seqlens_q is int64 \[2\]; it should be int32"),
                                (1, offsets[1][:1], r"cu_seqlens_k is int32 \[1\]; it should be int32 \[2\]"), (0, [0, 7], "is a list")):
        with pytest.raises(kernelwright.ArgumentError, match=words):
            call(q, k, v, [wrong if x == which else offsets[x] for x in range(2)])
    with pytest.raises(kernelwright.ArgumentError, match=r"q has 4 dimensions; it should be a tensor \[length of all, heads, head dimension\]"):
        call(q[None], k, v, offsets)
