"""FlashAttention's functions of `kernelwright.flash` beside FlashAttention's own, on a GPU.

    python bench/flash.py [packed] [cached] [--json FILE] [--rounds 5]

packed: a prefill of 64 sequences of 128 to 8192 tokens, causal, 32 query heads of 8 key heads, D 128. The lengths are drawn by seed.
cached: one token to a cache, 20 calls of a graph, each to a cache of its own where 13 GB hold so many (else again when all were read);
what fits into L2 may still be there from the replay before. Bytes: each key and value once.

FlashAttention-3 takes part where `flash_attn_interface` can be imported, FlashAttention-4 where `flash_attn.cute` can. Milliseconds
of one call, the median of the rounds with the lowest and the highest, implementations in random order; a call has all that it
launches. TFLOP/s are of unmasked entries, 4 D operations each. What differs from the first is not timed, and ends the run.
"""

import argparse
import json
import random
import statistics

import torch

from decode.decode import CASES, LAUNCHES, POOL, name_of
from kernelwright import flash


def drawn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def peers():
    found = {"ours": flash}
    for name, module in (("FA3", "flash_attn_interface"), ("FA4", "flash_attn.cute")):
        try:
            found[name] = __import__(module, fromlist=["*"])
        except ImportError:
            print(f"{name} is not here")
    return found


def graphed(call, launches):
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for n in range(launches):
            call(n)
    return graph


def timed(calls, rounds, launches):
    """Milliseconds of a launch of each call: all rounds."""
    graphs = {name: graphed(call, launches) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(graphs), len(graphs)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graphs[name].replay()
            begin.record()
            graphs[name].replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / launches)
    return times


def agree(calls):
    outs = {name: (x[0] if isinstance(x, tuple) else x).float() for name, x in ((name, call(0)) for name, call in calls.items())}
    first = next(iter(outs.values()))
    for name, x in outs.items():
        off = ((x.reshape(first.shape) - first).norm(dim=-1) / first.norm(dim=-1).clamp_min(1e-3)).max().item()
        if not off < 3e-2:
            raise SystemExit(f"{name} differs by {off}")


def shown(name, times, work, unit):
    rows = {}
    for who, all_of_it in times.items():
        ms = statistics.median(all_of_it)
        rows[who] = {"ms": ms, "lowest": min(all_of_it), "highest": max(all_of_it), unit: work / ms / 1e9}
        print(f"{name:24} {who:5} {ms * 1e3:9.1f} us ({min(all_of_it) * 1e3:.1f} to {max(all_of_it) * 1e3:.1f})  {work / ms / 1e9:.2f} {unit}", flush=True)
    return rows


def packed(rounds):
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(128, 8193, (64,), generator=generator)
    offsets = torch.tensor([0, *lengths.tolist()]).cumsum(0, dtype=torch.int32).cuda()
    total, longest = int(lengths.sum()), int(lengths.max())
    q, k, v = drawn(total, 32, 128), drawn(total, 8, 128), drawn(total, 8, 128)
    calls = {name: lambda n, of=module: of.flash_attn_varlen_func(q, k, v, cu_seqlens_q=offsets, cu_seqlens_k=offsets, max_seqlen_q=longest,
                                                               max_seqlen_k=longest, causal=True) for name, module in peers().items()}
    agree(calls)
    work = 4 * 128 * 32 * float((lengths.double() * (lengths + 1) / 2).sum())
    return {"packed": shown(f"packed 64, {total} tokens", timed(calls, rounds, 2), work, "TFLOP/s")}


def cached(rounds):
    found, rows = peers(), {}
    found.pop("FA4", None)
    for H, G, D, B, S in CASES:
        size = 4 * B * S * G * D
        caches = [(drawn(B, S, G, D), drawn(B, S, G, D)) for _ in range(max(2, min(LAUNCHES, POOL // size)))]
        q, lengths = drawn(B, 1, H, D), torch.full((B,), S, dtype=torch.int32, device="cuda")
        calls = {name: lambda n, of=module: of.flash_attn_with_kvcache(q, *caches[n % len(caches)], cache_seqlens=lengths, causal=True)
                 for name, module in found.items()}
        agree(calls)
        name = name_of(H, G, D, B, S)
        rows[name] = shown(name, timed(calls, rounds, LAUNCHES), size, "TB/s")
        del caches, calls
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["packed", "cached"], choices=["packed", "cached"])
    parser.add_argument("--json")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), torch.__version__)
    rows = {}
    for what in options.what:
        rows.update({"packed": packed, "cached": cached}[what](options.rounds))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
