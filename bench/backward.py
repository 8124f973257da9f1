"""Times kernels of gradients beside PyTorch's, on one GPU, in one run.

    python bench/backward_specs.py out/specs; cp examples/softcap.py out/specs
    for f in out/specs/*.py; do n=$(basename $f .py); build/kernelwright make $f --backward --out out/backward/$n; done
    python bench/backward.py out/backward [--rounds 5] [--only 'causal D128*'] [--limit 500]     # on a GPU machine

A round times every implementation of a case for 25 ms, in random order, back to back: a card at its limit of power.
The figure is the median of the rounds in TFLOP/s over the unmasked entries, 10 D operations each (6 D and 4 of v's); the passes before and
behind the kernel are part of it. Kernels of another head dimension have it behind their name (full64), and those of heads that share no
keys a word (full64_alone), which are taken where a case has such heads and the folder is there. Peers: the backward
of scaled_dot_product_attention by cuDNN and FlashAttention-2, FlexAttention's, and where its package is FlashAttention-4's, of windows and caps too, and
FlexAttention's by its FLASH backend. Each is asked for the gradients of q, k and
v of an output that is at hand, and of what else a function learns where it stands in Function.learned.
A kernel of `--deterministic` in full_deterministic (full64_deterministic) stands beside FlashAttention-4 with that option.
Who differs from FlexAttention's Triton kernel, or cannot compute it, has no time and a line that says so. `--limit`: no case begins
after so many seconds. With `--rounds 0` nothing is timed, and FlexAttention's kernels lie in PyTorch's cache for the next run (FLASH's and
FlashAttention-4's where FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=1 is set): on many cores, a process a case.
"""

import argparse
import fnmatch
import pathlib
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python")]
from kernelwright.runtime.launch import Kernel  # noqa: E402

try:
    from flash_attn.cute import flash_attn_func as flash_attention_4
except ImportError:
    flash_attention_4 = None

CASES = [("full", 4, 16, 16, 4096), ("causal", 4, 16, 16, 4096), ("full", 1, 16, 16, 16384), ("causal", 1, 16, 16, 16384),
         ("full", 1, 64, 8, 8192), ("causal", 1, 64, 8, 8192), ("sliding_window", 2, 16, 16, 8192),
         ("alibi_heads", 2, 16, 16, 8192), ("alibi", 2, 32, 8, 8192), ("kerple", 2, 16, 16, 8192),
         ("fox_decay", 2, 16, 16, 8192), ("softcap", 2, 16, 8, 8192), ("documents", 2, 32, 8, 8192),
         ("relative_bias", 2, 32, 8, 4096), ("full", 1, 32, 32, 16384, 64), ("causal", 1, 32, 32, 16384, 64),
         ("causal", 4, 32, 8, 4096, 64), ("full", 1, 8, 8, 16384, 256), ("causal", 1, 8, 8, 16384, 256),
         ("causal", 4, 8, 4, 4096, 256), ("softcap", 2, 8, 4, 8192, 256),
         ("documents", 2, 16, 4, 8192, 256), ("full", 1, 16, 16, 8192, 192), ("causal", 1, 128, 128, 8192, 192),
         ("causal", 4, 16, 16, 4096, 192), ("full", 1, 32, 32, 8192, 96), ("causal", 1, 32, 32, 8192, 96)]  # B, H, G, S, and D where it is not 128
WIDTHS_OF_V = {192: 128}  # by D, where they are not alike
WINDOW, ROUND_MS = 1024, 25
CAUSAL = lambda b, h, i, j: j <= i  # noqa: E731


class Function:
    """What FlexAttention is given for an example, and what else our kernel takes."""

    def __init__(self, name, B, S):
        self.keep = self.score = None
        self.learned = {}  # in others too
        self.others, self.kept, self.sdpa = {}, S * (S + 1) / 2, name in ("full", "causal")
        if name == "full" or name == "relative_bias":
            self.kept = S * S
        else:
            self.keep = CAUSAL
        if name == "sliding_window":
            self.keep = lambda b, h, i, j: (j <= i) & (i - j < WINDOW)
            self.kept = WINDOW * S - WINDOW * (WINDOW - 1) / 2
        if name == "alibi_heads":
            self.score = lambda s, b, h, i, j: s + torch.exp2(-0.5 * (h + 1)) * (j - i)
        if name == "alibi":
            slopes = torch.exp2(-0.25 * (torch.arange(32, device="cuda") + 1)).requires_grad_()
            self.learned = {"slopes": slopes}
            self.score = lambda s, b, h, i, j: s + slopes[h] * (j - i)
        if name == "kerple":
            r1, r2 = (torch.rand(16, device="cuda").add(0.1).requires_grad_() for _ in range(2))
            self.learned = {"r1": r1, "r2": r2}
            self.score = lambda s, b, h, i, j: s - r1[h] * torch.log1p(r2[h] * (i - j).clamp(min=0))
        if name == "fox_decay":
            decay = torch.nn.functional.logsigmoid(torch.randn(B, 16, S, device="cuda") + 4).cumsum(-1).requires_grad_()
            self.learned, of_rows = {"decay": decay}, decay.detach()  # what is added to a whole row has no gradient
            self.score = lambda s, b, h, i, j: s + of_rows[b, h, i] - decay[b, h, j]
        self.others |= {name: tensor.detach() for name, tensor in self.learned.items()}
        if name == "softcap":
            self.score = lambda s, b, h, i, j: 50.0 * torch.tanh(s / 50.0)
        if name == "documents":
            ends = torch.randint(0, S, (B, 7), device="cuda").sort(-1).values
            document = torch.searchsorted(ends, torch.arange(S, device="cuda").expand(B, S).contiguous(), right=True)
            self.others = {"document": document}
            self.keep = lambda b, h, i, j: (j <= i) & (document[b, i] == document[b, j])
            lengths = torch.stack([torch.bincount(x, minlength=8) for x in document]).double()
            self.kept = (lengths * (lengths + 1) / 2).sum().item() / B
        if name == "relative_bias":
            table = torch.randn(32, 257, device="cuda")
            self.others = {"table": table}
            self.score = lambda s, b, h, i, j: s + table[h, (j - i).clamp(-128, 128) + 128]
        self.by_batch = B if name == "documents" else None
        # What FlashAttention-4 computes of its own is said by its options.
        self.fa4 = {"full": {}, "causal": {"causal": True}, "sliding_window": {"causal": False, "window_size": (WINDOW - 1, 0)},
                    "softcap": {"causal": True, "softcap": 50.0}}.get(name)


def ours(folder, function, q, k, v, o, lse, d_o):
    kernel = Kernel(folder / "backward")
    o = o.float().contiguous()
    places = [kernel.outputs.index(name) for name in ("dq", "dk", "dv", *(f"d_{name}" for name in function.learned))]

    def run():
        outputs = kernel(q=q, k=k, v=v, o=o, do_rows=d_o, d_o=d_o, lse=lse, **function.others)
        return [outputs[n] for n in places]
    return run


def peers(name, function, q, k, v, in_order):
    """{name: what gives its output, with a graph behind it}, FlexAttention's Triton first, with the log-sums"""
    shared = q.shape[1] != k.shape[1]
    mask = function.keep and create_block_mask(function.keep, function.by_batch, None, q.shape[2], k.shape[2], device="cuda")

    def flex(**how):
        return torch.compile(flex_attention, dynamic=False)(q, k, v, score_mod=function.score, block_mask=mask, enable_gqa=shared, **how)

    def sdpa(backend):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=name == "causal", enable_gqa=shared)

    def fa4(**how):
        return flash_attention_4(*(t.transpose(1, 2) for t in (q, k, v)), **function.fa4, **how)[0].transpose(1, 2)

    out = {"flex": lambda: flex(return_lse=True)}
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION) if function.sdpa else ():
        if backend == SDPBackend.FLASH_ATTENTION and q.shape[-1] != v.shape[-1]:
            continue  # takes none
        out[backend.name.split("_")[0].lower()] = lambda backend=backend: sdpa(backend)
    if flash_attention_4:
        out["flex FLASH"] = lambda: flex(kernel_options={"BACKEND": "FLASH"})
    if flash_attention_4 and function.fa4 is not None:
        out["FlashAttention-4"] = fa4
        if in_order:
            out["FlashAttention-4, one order"] = lambda: fa4(deterministic=True)
    return out


def differ(got, due):
    """Why these gradients are not those, or None."""
    for n, (x, y) in enumerate(zip(got, due, strict=True)):
        error = ((x.float() - y.float()).norm() / y.float().norm()).item()
        if not error < 0.02:
            return f"gradient {n} is {error:.3g} from FlexAttention's"
    return None


def milliseconds(call, count):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


def measure(calls, rounds):
    """{name: milliseconds of each round}"""
    counts = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        counts[name] = max(2, round(ROUND_MS / milliseconds(call, 3)))
    found = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            found[name].append(milliseconds(calls[name], counts[name]))
    return found


def case(folder, rounds, title, name, B, H, G, S, D=128):
    torch.compiler.reset()  # each case's function compiled anew, and none of them too often
    torch.manual_seed(0)
    width = WIDTHS_OF_V.get(D, D)
    q, k, v = (torch.randn(B, S, heads, columns, device="cuda", dtype=torch.bfloat16).transpose(1, 2).requires_grad_()
               for heads, columns in ((H, D), (G, D), (G, width)))
    function = Function(name, B, S)
    d_o = torch.randn(B, S, H, width, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    here = kernel_of(folder, name, B, H, G, S, D)
    in_order = here.with_name(f"{here.name}_deterministic")
    calls, due, o, lse = {}, None, None, None
    for peer, forward in peers(name, function, q, k, v, in_order.exists()).items():
        try:
            output = forward()
            if peer == "flex":
                output, lse = output[0], output[1].detach()
                o = output.detach()
            call = lambda output=output: torch.autograd.grad(output, (q, k, v, *function.learned.values()), d_o, retain_graph=True)
            found = call()
        except Exception as error:
            if peer == "flex":
                raise  # what all are held against
            print(f"{title} {peer}: no time, {type(error).__name__}: {' '.join(str(error).split())[:200]}", flush=True)
            continue
        due = due or found
        wrong = differ(found, due)
        if wrong:
            print(f"{title} {peer}: WRONG, {wrong}", flush=True)
        else:
            calls[peer] = call
    for who, made in (("ours", here), ("ours, one order", in_order)):
        if not made.exists():
            continue
        with torch.no_grad():
            run = ours(made, function, q.detach(), k.detach(), v.detach(), o.transpose(1, 2).contiguous().transpose(1, 2),
                       lse.float().contiguous(), d_o)
        wrong = differ(run(), due)
        assert not wrong, f"{who}: {wrong}"
        calls = {who: run, **calls} if who == "ours" else {**calls, who: run}
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    calls["cuBLAS 8192^3"] = lambda: a @ a
    operations = (6 * D + 4 * width) * B * H * function.kept
    for who, times in measure(calls, rounds).items() if rounds else ():
        rates = sorted((operations if "cuBLAS" not in who else 2 * 8192**3) / ms / 1e9 for ms in times)
        print(f"{title} {who}: {statistics.median(rates):.0f} TFLOP/s ({rates[0]:.0f} to {rates[-1]:.0f})", flush=True)


def kernel_of(folder, name, B, H, G, S, D=128):
    name = name if D == 128 else f"{name}{D}"
    own = folder / f"{name}_alone"
    return own if H == G and own.exists() else folder / name


def title_of(name, B, H, G, S, D=128):
    return f"{name} D{D} B{B} H{H}/{G} S{S}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of titles, as the table has them")
    parser.add_argument("--limit", type=float, default=float("inf"), help="no case begins after so many seconds")
    options = parser.parse_args()
    begun = time.monotonic()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
    for name, *sizes in CASES:
        title = title_of(name, *sizes)
        if not any(fnmatch.fnmatch(title, pattern) for pattern in options.only):
            continue
        if time.monotonic() - begun > options.limit:
            print(f"{title}: not begun", flush=True)
            continue
        kernel = kernel_of(options.folder, name, *sizes)
        if not kernel.exists():
            print(f"no kernel in {kernel}")
            continue
        try:
            case(options.folder, options.rounds, title, name, *sizes)
        except Exception as error:
            print(f"{title}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
