"""kernelwright.flash.flash_attn_with_kvcache: a cache filled to some length means what its keys mean alone."""

import pytest
import torch

import kernelwright
from flash_options import OPTIONS, SLOPES, assert_equal_but_for_rows_without_keys, by_the_book, compiled, form_of, operands  # noqa: F401
from kernelwright import flash

OPTIONS = {**OPTIONS, "slopes_of_entries": {"slopes": torch.stack([SLOPES, 2 * SLOPES]), "causal": True, "window": (4, 0)}}
LENGTHS = torch.tensor([9, 4], dtype=torch.int32)


def call(q, k_cache, v_cache, lengths, scale=None, causal=False, window=(-1, -1), softcap=0.0, slopes=None, **more):
    return flash.flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths, softmax_scale=scale, causal=causal, window_size=window,
                                         softcap=softcap, alibi_slopes=slopes, **more)


def of_each(q, k, v, lengths, slopes=None, **options):
    """The output and the log-sums of each entry, of the keys that its cache has."""
    found = [by_the_book(q[b:b + 1], k[b:b + 1, :n], v[b:b + 1, :n], slopes=slopes[b] if slopes is not None and slopes.dim() == 2 else slopes,
                         **options) for b, n in enumerate(lengths.tolist())]
    return [torch.cat(x) for x in zip(*found)]


@pytest.mark.parametrize("queries", [1, 3, 6])
@pytest.mark.parametrize("name", OPTIONS)
def test_an_entry_sees_the_keys_that_its_cache_has(name, queries, compiled):  # noqa: F811
    q, k, v = operands(queries)
    out, sums = call(q, k, v, LENGTHS, **OPTIONS[name], return_softmax_lse=True)
    assert_equal_but_for_rows_without_keys(out, sums, *of_each(q, k, v, LENGTHS, **OPTIONS[name]))
    torch.testing.assert_close(call(q, k, v, LENGTHS, **OPTIONS[name]), out)


def test_lengths_may_be_one_number_or_none(compiled):  # noqa: F811
    q, k, v = operands(1)
    torch.testing.assert_close(call(q, k, v, 5), call(q, k, v, torch.tensor([5, 5], dtype=torch.int32)))
    torch.testing.assert_close(call(q, k, v, None).double(), by_the_book(q, k, v)[0], rtol=1e-4, atol=1e-5)
    assert len(compiled) == 1 and compiled[0][1][0].shape == (2, 1, 4, 16), "one kernel of one query, whatever the lengths"
    call(*operands(3), 5)
    assert len(compiled) == 2 and compiled[1][1][0].shape == (2, 128, 4, 16)


def test_new_keys_are_written_behind_those_that_the_cache_has(compiled):  # noqa: F811
    q, k, v = operands(2)
    full_k, full_v = k.clone(), v.clone()
    at = torch.stack([LENGTHS.long() - 2, LENGTHS.long() - 1], 1)
    entry = torch.arange(2)[:, None]
    new_k, new_v = k[entry, at], v[entry, at]
    k[entry, at], v[entry, at] = 77.0, -77.0
    out = call(q, k, v, LENGTHS - 2, causal=True, k=new_k, v=new_v)
    torch.testing.assert_close(k, full_k)
    torch.testing.assert_close(v, full_v)
    torch.testing.assert_close(out.double(), of_each(q, k, v, LENGTHS, causal=True)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_new_keys_and_queries_are_rotated_by_their_places(interleaved, causal, compiled):  # noqa: F811
    q, k, v = operands(2)
    angles = torch.outer(torch.arange(11.0), torch.tensor([1.0, 0.3, 0.1]))
    new_k, new_v = torch.randn(2, 2, 2, 16), torch.randn(2, 2, 2, 8)
    want_k, want_q = k.clone(), q.clone()
    for b, length in enumerate((LENGTHS - 2).tolist()):
        for i in range(2):
            for x, to, place in ((new_k, want_k[b, length + i], length + i), (q, want_q[b, i], length + (i if causal else 0))):
                to.copy_(x[b, i])
                for n in range(3):
                    first, second = (2 * n, 2 * n + 1) if interleaved else (n, n + 3)
                    turn = torch.polar(torch.ones(()), angles[place, n]) * torch.complex(x[b, i, :, first], x[b, i, :, second])
                    to[:, first], to[:, second] = turn.real, turn.imag
    out = call(q, k, v, LENGTHS - 2, causal=causal, k=new_k, v=new_v, rotary_cos=angles.cos(), rotary_sin=angles.sin(),
               rotary_interleaved=interleaved)
    torch.testing.assert_close(k, want_k)
    torch.testing.assert_close(out.double(), of_each(want_q, k, v, LENGTHS, causal=causal)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("queries, name", [(1, "plain"), (1, "left"), (128, "causal"), (128, "slopes_of_entries")])
def test_it_is_captured_for_any_length(queries, name, tmp_path):
    o = {"causal": False, "window": (-1, -1), "softcap": 0.0, "slopes": None, **OPTIONS[name]}
    function = flash.cached_attention_of(o["causal"], o["window"][0], -1, o["softcap"], o["slopes"] is not None)
    q, k, v = (x.bfloat16() for x in operands(queries, 512))
    form = form_of(function, (q, k, v, 0.25, torch.tensor([512, 300], dtype=torch.int32), o["slopes"]), tmp_path)
    assert "any B" in str(form) and "lengths" in form["keep"], form
    assert ("slopes" in form["score"]) == (o["slopes"] is not None), form


def test_a_function_of_ones_own_has_the_lengths(compiled):  # noqa: F811
    def relu(q, k, v, lengths):
        q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(2, dim=2), v.repeat_interleave(2, dim=2)))
        there = torch.arange(k.shape[2]) < lengths[:, None, None, None]
        return (torch.relu(q @ k.mT) * there @ v).transpose(1, 2)

    q, k, v = operands(1)
    got = call(q, k, v, LENGTHS, function=relu)
    torch.testing.assert_close(got[1, 0, 2], torch.relu(q[1, 0, 2] @ k[1, :4, 1].mT) @ v[1, :4, 1])
    assert compiled[0][0] is relu
    with pytest.raises(kernelwright.ArgumentError, match="function is given beside options"):
        call(q, k, v, LENGTHS, causal=True, function=relu)


def test_what_does_not_fit_is_refused_by_its_name(compiled):  # noqa: F811
    q, k, v = operands(1)
    new = torch.randn(2, 1, 2, 16), torch.randn(2, 1, 2, 8)
    angles = torch.ones(11, 3)
    for more, words in (({"block_table": [[0, 1]]}, "block_table is a list; it should be an int32 tensor"), ({"block_table": torch.ones(1)}, r"block_table is float32 \[1\]; it should be int32 \[2, 0\]"), ({"cache_batch_idx": torch.ones(1)}, "cache_batch_idx is given"),
                        ({"num_splits": 3}, "num_splits is given"), ({"k": new[0]}, "v is None; it should be given, as k is"),
                        ({"k": new[0], "v": new[1][:, :, :1]}, r"v is float32 \[2, 1, 1, 8\]; it should be float32 \[2, 1, 2, 8\], as v_cache"),
                        ({"rotary_cos": angles, "rotary_sin": angles}, "rotary_cos is given without all of rotary_sin, k and v"),
                        ({"qv": q}, "qv is given")):
        with pytest.raises(kernelwright.ArgumentError, match=words):
            call(q, k, v, LENGTHS, **more)
    with pytest.raises(kernelwright.ArgumentError, match="cache_seqlens is None; it should be given, as k is"):
        call(q, k, v, None, k=new[0], v=new[1])
    with pytest.raises(kernelwright.ArgumentError, match=r"cache_seqlens is int64 \[2\]; it should be int32 \[2\]"):
        call(q, k, v, LENGTHS.long())
    assert not compiled


def test_lengths_beyond_the_cache_are_named_with_their_entry(compiled):  # noqa: F811
    q, k, v = operands(1)
    wrong = torch.tensor([3, 12], dtype=torch.int32)
    with pytest.raises(kernelwright.ArgumentError, match="cache_seqlens is 12 for entry 1; it should leave all keys within the 11"):
        call(q, k, v, wrong, check_inputs=True)
    with pytest.raises(kernelwright.ArgumentError, match="is 11 for entry 1, and 1 keys are new"):
        call(q, k, v, wrong - 1, check_inputs=True, k=k[:, :1], v=v[:, :1])
    assert call(q, k, v, wrong).shape == q.shape[:3] + v.shape[3:], "without check_inputs no key beyond the cache is read"


def in_pages(*caches, rows=16):
    """Caches [B, N, heads, columns] in pages in no order, and the table; what lies behind N, and in pages of nobody, is 1e4."""
    entries = -(-caches[0].shape[1] // rows)
    count = caches[0].shape[0] * entries
    table = torch.randperm(count + 2)[:count].int().view(-1, entries)
    out = []
    for x in caches:
        padded = torch.full((x.shape[0], entries * rows, *x.shape[2:]), 1e4)
        padded[:, :x.shape[1]] = x
        pages = torch.full((count + 2, rows, *x.shape[2:]), 1e4)
        pages[table.long()] = padded.view(x.shape[0], entries, rows, *x.shape[2:])
        out.append(pages)
    return *out, table


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_cache_in_pages_means_what_its_rows_mean(name, queries, compiled):  # noqa: F811
    q, k, v = operands(queries, 43)
    lengths = torch.tensor([43, 20], dtype=torch.int32)
    pages_k, pages_v, table = in_pages(k, v)
    out, sums = call(q, pages_k, pages_v, lengths, block_table=table, **OPTIONS[name], return_softmax_lse=True)
    assert_equal_but_for_rows_without_keys(out, sums, *of_each(q, k, v, lengths, **OPTIONS[name]))
    table[1, 2] = 0  # behind the second's keys
    torch.testing.assert_close(call(q, pages_k, pages_v, lengths, block_table=table, **OPTIONS[name]), out)


def test_new_keys_are_written_to_their_pages(compiled):  # noqa: F811
    q, k, v = operands(2, 43)
    lengths = torch.tensor([32, 15], dtype=torch.int32)
    pages_k, pages_v, table = in_pages(k, v)
    want_k, want_v = pages_k.clone(), pages_v.clone()
    new_k, new_v = torch.randn(2, 2, 2, 16), torch.randn(2, 2, 2, 8)
    for b, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
        place = lengths[b] + i
        for pages, rows, new in ((want_k, k, new_k), (want_v, v, new_v)):
            pages[table[b, place // 16], place % 16] = rows[b, place] = new[b, i]
    out = call(q, pages_k, pages_v, lengths, causal=True, k=new_k, v=new_v, block_table=table)
    torch.testing.assert_close(pages_k, want_k)
    torch.testing.assert_close(pages_v, want_v)
    torch.testing.assert_close(out.double(), of_each(q, k, v, lengths + 2, causal=True)[0], rtol=1e-4, atol=1e-5)


def test_a_page_that_is_not_there_is_named_with_its_sequence(compiled):  # noqa: F811
    q, k, v = operands(1, 43)
    lengths = torch.tensor([43, 20], dtype=torch.int32)
    pages_k, pages_v, table = in_pages(k, v)
    table[1, 2] = -1
    call(q, pages_k, pages_v, lengths, block_table=table.clamp(min=0), check_inputs=True)
    with pytest.raises(kernelwright.ArgumentError, match="block_table names page -1 for sequence 1; it should name one of the 8 pages"):
        call(q, pages_k, pages_v, lengths + torch.tensor([0, 20], dtype=torch.int32), block_table=table, check_inputs=True)
    with pytest.raises(kernelwright.ArgumentError, match="k_cache has pages of 24 rows; it should have pages of 16, 32, or a multiple of 64"):
        call(q, *in_pages(k, v, rows=24)[:2], lengths, block_table=table)


@pytest.mark.parametrize("queries, name", [(1, "plain"), (128, "causal")])
def test_pages_are_captured_as_they_lie(queries, name, tmp_path):
    o = {"causal": False, "window": (-1, -1), "softcap": 0.0, "slopes": None, **OPTIONS[name]}
    function = flash.in_pages(flash.cached_attention_of(o["causal"], o["window"][0], -1, o["softcap"], o["slopes"] is not None))
    q, k, v = (x.bfloat16() for x in operands(queries, 512))
    k, v, table = in_pages(k, v)
    form = form_of(function, (q, k.bfloat16(), v.bfloat16(), table, 0.25, torch.tensor([512, 300], dtype=torch.int32), o["slopes"]), tmp_path)
    assert "table[b, j // 16], j % 16" in str(form) and ", T" in form["first"] and "lengths" in form["keep"], form
