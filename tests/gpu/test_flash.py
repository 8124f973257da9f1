"""FlashAttention's functions on a GPU, against the specification of their options in fp64, which the CPU's tests hold against a
score at a time."""

import pytest
import torch

from kernelwright import flash

pytestmark = pytest.mark.gpu
OPTIONS = {"causal": {"causal": True}, "window": {"causal": True, "window_size": (300, 0)}, "cap": {"softcap": 15.0},
           "slopes": {"causal": True, "alibi_slopes": "slopes"}}
# The accepted error of a row by its norm: bf16 rounds weights and the output to 2^-9 each.
ROW = 1e-2


def drawn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def options(name, heads):
    torch.manual_seed(len(name))
    slopes = torch.rand(heads, device="cuda")
    return {k: slopes if isinstance(v, str) else v for k, v in OPTIONS[name].items()}


def assert_rows(got, q, k, v, causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None):
    """got [B, M, H, V] is what dense attention in fp64 gives, but for each row's accepted error."""
    left, right = window_size
    function = flash.attention_of(causal, left, -1 if causal else right, softcap, alibi_slopes is not None)
    slopes = None if alibi_slopes is None else alibi_slopes.double()
    want = torch.nan_to_num(function(q.double(), k.double(), v.double(), q.shape[-1]**-0.5, slopes))
    off = (got.double() - want).norm(dim=-1)
    assert (off <= ROW * want.norm(dim=-1) + 1e-6).all(), off.max()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("m, n, heads", [(512, 512, (8, 2, 128)), (77, 1333, (16, 16, 64))])
def test_a_dense_batch(name, m, n, heads):
    H, G, D = heads
    q, k, v = drawn(2, m, H, D), drawn(2, n, G, D), drawn(2, n, G, D)
    o = options(name, H)
    assert_rows(flash.flash_attn_func(q, k, v, **o), q, k, v, **o)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("lengths", [[(300, 300), (1, 900), (0, 5), (128, 128), (77, 1000), (700, 700)], [(5, 5)] * 100])
def test_packed_sequences(name, lengths):
    H, G, D = 8, 2, 128
    offsets_q, offsets_k = (torch.tensor([0, *x], device="cuda").cumsum(0, dtype=torch.int32) for x in zip(*lengths))
    q, k, v = drawn(offsets_q[-1] + 9, H, D), drawn(offsets_k[-1] + 9, G, D), drawn(offsets_k[-1] + 9, G, D)
    o = options(name, H)
    got = flash.flash_attn_varlen_func(q, k, v, offsets_q, offsets_k, 700, 1000, **o)
    for (m, n), i, j in zip(lengths, offsets_q.tolist(), offsets_k.tolist()):
        if m:
            assert_rows(got[None, i:i + m], q[None, i:i + m], k[None, j:j + n], v[None, j:j + n], **o)
    assert not got[offsets_q[-1]:].any()


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("m", [1, 5])
def test_a_cache(name, m):
    H, G, D = 32, 8, 128
    lengths = torch.tensor([1, 77, 2048, 1500, 128], device="cuda", dtype=torch.int32) + (m - 1)
    q, k, v = drawn(5, m, H, D), drawn(5, 3000, G, D), drawn(5, 3000, G, D)
    o = options(name, H)
    got = flash.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, **o)
    for b, n in enumerate(lengths.tolist()):
        assert_rows(got[b:b + 1], q[b:b + 1], k[b:b + 1, :n], v[b:b + 1, :n], **o)


def in_pages(lengths, rows, *caches):
    """Caches [B, N, heads, columns] in pages in no order, among pages of NaN, and the table, which names no page behind a length."""
    entries = -(-caches[0].shape[1] // rows)
    count = len(lengths) * entries
    table = torch.randperm(count + 7, device="cuda")[:count].view(-1, entries)
    out = []
    for x in caches:
        padded = x.new_zeros(len(x), entries * rows, *x.shape[2:])
        padded[:, :x.shape[1]] = x
        pages = x.new_full((count + 7, rows, *x.shape[2:]), float("nan"))
        pages[table] = padded.view(len(x), entries, rows, *x.shape[2:])
        out.append(pages)
    place = torch.arange(entries, device="cuda")
    return *out, torch.where(place * rows >= lengths[:, None], torch.where(place % 2 == 0, -1, 1 << 30), table).int()


@pytest.mark.parametrize("name, m, rows", [("causal", 1, 16), ("causal", 5, 16), ("window", 5, 16), ("cap", 1, 16), ("slopes", 5, 16),
                                           ("causal", 1, 64), ("causal", 5, 256)])
def test_a_cache_in_pages(name, m, rows):
    H, G, D = 32, 8, 128
    lengths = torch.tensor([1, 77, 2048, 1500, 128], device="cuda", dtype=torch.int32) + (m - 1)
    q, k, v = drawn(5, m, H, D), drawn(5, 3000, G, D), drawn(5, 3000, G, D)
    pages_k, pages_v, table = in_pages(lengths, rows, k, v)
    o = options(name, H)
    got = flash.flash_attn_with_kvcache(q, pages_k, pages_v, cache_seqlens=lengths, block_table=table, **o)
    for b, n in enumerate(lengths.tolist()):
        assert_rows(got[b:b + 1], q[b:b + 1], k[b:b + 1, :n], v[b:b + 1, :n], **o)
    new_k, new_v = drawn(5, m, G, D), drawn(5, m, G, D)
    before = lengths - m
    again = flash.flash_attn_with_kvcache(q, pages_k, pages_v, new_k, new_v, cache_seqlens=before, block_table=table, **o)
    for b, n in enumerate(lengths.tolist()):
        both = (torch.cat([x[b:b + 1, :n - m], new[b:b + 1]], 1) for x, new in ((k, new_k), (v, new_v)))
        assert_rows(again[b:b + 1], q[b:b + 1], *both, **o)


def replayed(call, change):
    """Calls once, records a graph of a second call, changes what it reads, and replays it."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = call()
    change()
    graph.replay()
    torch.cuda.synchronize()
    return got


def test_a_graph_replays_with_other_lengths():
    q, k, v = drawn(3, 1, 32, 128), drawn(3, 2000, 8, 128), drawn(3, 2000, 8, 128)
    lengths = torch.tensor([3, 500, 1999], device="cuda", dtype=torch.int32)
    got = replayed(lambda: flash.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths), lambda: lengths.copy_(lengths.flip(0) - 2))
    for b, n in enumerate(lengths.tolist()):
        assert_rows(got[b:b + 1], q[b:b + 1], k[b:b + 1, :n], v[b:b + 1, :n])


def test_a_graph_replays_with_other_pages():
    q, k, v = drawn(3, 1, 32, 128), drawn(3, 2000, 8, 128), drawn(3, 2000, 8, 128)
    lengths = torch.tensor([3, 500, 1999], device="cuda", dtype=torch.int32)
    pages_k, pages_v, table = in_pages(lengths + 2000, 16, k, v)

    def change():
        lengths.copy_(lengths.flip(0) - 2)
        table.copy_(table.roll(1, 0))

    call = lambda: flash.flash_attn_with_kvcache(q, pages_k, pages_v, cache_seqlens=lengths, block_table=table, causal=True)  # noqa: E731
    got = replayed(call, change)
    for b, n in enumerate(lengths.tolist()):
        assert_rows(got[b:b + 1], q[b:b + 1], k[b - 1][None, :n], v[b - 1][None, :n])


def test_a_graph_replays_with_other_offsets():
    q, k, v = drawn(1000, 8, 128), drawn(1000, 8, 128), drawn(1000, 8, 128)
    offsets = torch.tensor([0, 100, 600, 1000], device="cuda", dtype=torch.int32)
    others = offsets.new_tensor([0, 513, 513, 990])
    got = replayed(lambda: flash.flash_attn_varlen_func(q, k, v, offsets, offsets, 600, 600, causal=True), lambda: offsets.copy_(others))
    for begin, end in ((0, 513), (513, 990)):
        part = slice(begin, end)
        assert_rows(got[None, part], q[None, part], k[None, part], v[None, part], causal=True)
    assert not got[990:].any()


def test_gradients_of_packed_sequences():
    inputs = [drawn(900, h, 128).requires_grad_() for h in (8, 2, 2)]
    offsets = torch.tensor([0, 130, 900], device="cuda", dtype=torch.int32)
    out = flash.flash_attn_varlen_func(*inputs, offsets, offsets, 770, 770, causal=True)
    given = torch.randn_like(out)
    got = torch.autograd.grad(out, inputs, given)
    for begin, end in ((0, 130), (130, 900)):
        part = [x[None, begin:end].detach().double().requires_grad_() for x in inputs]
        of = flash.attention_of(True)(*part, 128**-0.5, None)
        for x, want in zip(got, torch.autograd.grad(of, part, given[None, begin:end].double()), strict=True):
            off = (x[None, begin:end].double() - want).norm(dim=-1)
            assert (off <= 3 * ROW * want.norm(dim=-1) + 1e-3 * want.norm(dim=-1).max()).all(), off.max()
