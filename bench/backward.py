"""Times kernels of gradients beside PyTorch's, on one GPU, in one run.

    for n in full causal softcap; do build/kernelwright make examples/$n.py --backward --out out/backward/$n; done
    python bench/backward.py out/backward [--rounds 5]     # on a GPU machine

A round times every implementation of a case for 25 ms, in random order, back to back: a card at its limit of power.
The figure is the median of the rounds in TFLOP/s over the unmasked entries, 10 D operations each (6 D and 4 of v's); the passes before and
behind the kernel are part of it. Kernels of another head dimension have it behind their name (full64). Peers: the backward
of scaled_dot_product_attention by cuDNN and FlashAttention-2, FlexAttention's, and FlashAttention-4's where its package is. Each is asked for the gradients of q, k and
v of an output that is at hand, and of what else a function learns where it stands in Function.learned.
"""

import argparse
import pathlib
import random
import statistics
import sys

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


def ours(folder, name, function, q, k, v, o, lse, d_o):
    kernel = Kernel(folder / name / "backward")
    o = o.float().contiguous()
    places = [kernel.outputs.index(name) for name in ("dq", "dk", "dv", *(f"d_{name}" for name in function.learned))]

    def run():
        outputs = kernel(q=q, k=k, v=v, o=o, do_rows=d_o, d_o=d_o, lse=lse, **function.others)
        return [outputs[n] for n in places]
    return run


def peers(name, function, q, k, v):
    """({name: its output, with a graph behind it}, the log-sums)"""
    out = {}
    for backend in (SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION) if function.sdpa else ():
        if backend == SDPBackend.FLASH_ATTENTION and q.shape[-1] != v.shape[-1]:
            continue  # takes none
        with sdpa_kernel(backend):
            out[backend.name.split("_")[0].lower()] = F.scaled_dot_product_attention(
                q, k, v, is_causal=name == "causal", enable_gqa=q.shape[1] != k.shape[1])
    if function.sdpa and flash_attention_4:
        with torch.enable_grad():
            out["FlashAttention-4"] = flash_attention_4(*(t.transpose(1, 2) for t in (q, k, v)), causal=name == "causal")[0].transpose(1, 2)
    mask = function.keep and create_block_mask(function.keep, function.by_batch, None, q.shape[2], k.shape[2], device="cuda")
    out["flex"], lse = torch.compile(flex_attention, dynamic=False)(
        q, k, v, score_mod=function.score, block_mask=mask, enable_gqa=q.shape[1] != k.shape[1], return_lse=True)
    return out, lse.detach()


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


def case(folder, rounds, name, B, H, G, S, D=128):
    torch.compiler.reset()  # each case's function compiled anew, and none of them too often
    torch.manual_seed(0)
    width = WIDTHS_OF_V.get(D, D)
    q, k, v = (torch.randn(B, S, heads, columns, device="cuda", dtype=torch.bfloat16).transpose(1, 2).requires_grad_()
               for heads, columns in ((H, D), (G, D), (G, width)))
    function = Function(name, B, S)
    outputs, lse = peers(name, function, q, k, v)
    d_o = torch.randn(B, S, H, width, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    o = next(iter(outputs.values())).detach()
    with torch.no_grad():
        run = ours(folder, name if D == 128 else f"{name}{D}", function, q.detach(), k.detach(), v.detach(),
                   o.transpose(1, 2).contiguous().transpose(1, 2), lse.float().contiguous(), d_o)
    calls = {"ours": run}
    for peer, output in outputs.items():
        calls[peer] = lambda output=output: torch.autograd.grad(output, (q, k, v, *function.learned.values()), d_o, retain_graph=True)
    got, due = run(), calls["flex"]()
    for x, y in zip(got, due):
        error = ((x.float() - y.float()).norm() / y.float().norm()).item()
        assert error < 0.02, f"{name}: {error:.3g} from FlexAttention's"
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    calls["cuBLAS 8192^3"] = lambda: a @ a
    operations = (6 * D + 4 * width) * B * H * function.kept
    for who, times in measure(calls, rounds).items():
        rates = sorted((operations if "cuBLAS" not in who else 2 * 8192**3) / ms / 1e9 for ms in times)
        print(f"{name} D{D} B{B} H{H}/{G} S{S} {who}: {statistics.median(rates):.0f} TFLOP/s ({rates[0]:.0f} to {rates[-1]:.0f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, flush=True)
    for name, *sizes in CASES:
        kernel = options.folder / f"{name}{''.join(map(str, sizes[4:]))}"
        if not kernel.exists():
            print(f"no kernel in {kernel}")
            continue
        try:
            case(options.folder, options.rounds, name, *sizes)
        except Exception as error:
            print(f"{name} {sizes}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
