#!/usr/bin/env python3
"""What a call costs the host, in microseconds: an operator that does nothing, ours, FlexAttention.

    python bench/host_time.py            on a GPU machine
    LD_LIBRARY_PATH=build/tests/fake_cuda python bench/host_time.py --stand-in     anywhere

Calls are issued one after the other without waiting, few enough that no queue fills; the least of many
rounds counts, since all that disturbs a round makes it longer. The kernel is small, so that the GPU is
never what is waited for. With --stand-in the launch itself costs nothing: what is left is ours."""

import argparse
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/gpu")]

import torch  # noqa: E402

CALLS, ROUNDS = 200, 50


def microseconds(call, wait):
    for _ in range(20):
        call()
    best = float("inf")
    for _ in range(ROUNDS):
        wait()
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - started)
    return best / CALLS * 1e6


def empty_operator(key):
    """The same arguments, nothing done; and one that allocates what ours returns."""
    library = torch.library.Library("kernelwright_bench", "FRAGMENT")
    out = torch.empty(1, device="cuda" if key == "CUDA" else "cpu")
    library.define("empty(Tensor q, Tensor k, Tensor v) -> Tensor")
    library.impl("empty", lambda q, k, v: out, key)
    library.define("allocate(Tensor q, Tensor k, Tensor v) -> Tensor")
    library.impl("allocate", lambda q, k, v: torch.empty_like(q), key)
    both = torch.ops.kernelwright_bench
    return library, both.empty.default, both.allocate.default


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stand-in", action="store_true")
    stand_in = parser.parse_args().stand_in
    from kernelwright.compiling import operators
    if stand_in:
        operators.DISPATCH_KEY = "CPU"
    elif not torch.cuda.is_available():
        sys.exit("host_time: PyTorch finds no GPU; --stand-in measures what needs none")
    import kernelwright
    import operator_functions
    device, wait = ("cpu", lambda: None) if stand_in else ("cuda", torch.cuda.synchronize)
    function, values = operator_functions.examples(device)["causal"]
    fast = kernelwright.compile(function, values, target="sm_90a" if stand_in else None)
    q, k, v = operator_functions.draw([(1, 8, 128, 128), (1, 2, 128, 128), (1, 2, 128, 128)], device)
    kept, empty, allocate = empty_operator(operators.DISPATCH_KEY)
    with torch.no_grad():
        rows = {"empty operator": lambda: empty(q, k, v), "one that allocates": lambda: allocate(q, k, v),
                "ours": lambda: fast(q, k, v), "ours, the operator alone": lambda: fast.operator(q, k, v)}
        if not stand_in:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention
            mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device=device)
            flex = torch.compile(flex_attention)
            rows["FlexAttention, compiled"] = lambda: flex(q, k, v, block_mask=mask, enable_gqa=True)
        times = {name: microseconds(call, wait) for name, call in rows.items()}
    where = "a stand-in driver" if stand_in else torch.cuda.get_device_name()
    print(f"host time of a call, microseconds, {where}, PyTorch {torch.__version__}")
    for name, time_us in times.items():
        print(f"  {name:28} {time_us:7.2f}   {time_us - times['empty operator']:+7.2f} to the empty one")
    del kept


if __name__ == "__main__":
    main()
