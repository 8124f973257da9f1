"""A small decoder on bytes of this repository's own pages, its attention by kernels, in plain PyTorch, or by PyTorch's own.

    python examples/train/decoder.py run curves.json    # on a Hopper GPU: every way, every seed; minutes
    python examples/train/decoder.py plot curves.json curves.svg    # wants matplotlib

Six layers, four query heads on two key heads of 128, sequences of 1024 bytes, 300 steps of AdamW. Weights are in fp32; what
is multiplied is bf16. One seed is one order of the data and one start: two ways of one seed see the same numbers, and may
differ as far as rounding carries them, which is held against how far two seeds of plain PyTorch are apart.
"""

import argparse
import json
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

HEADS, GROUPS, DIM, WIDTH, LAYERS = 4, 2, 128, 512, 6
LENGTH, BATCH, STEPS, SEEDS = 1024, 16, 300, (0, 1, 2)


def causal(q, k, v):
    """q [B, 4, M, 128], k and v [B, 2, N, 128]."""
    k, v = (x.repeat_interleave(2, dim=1) for x in (k, v))
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
    return (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -torch.inf).softmax(-1) @ v


def by_pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def by_flex():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    mask = create_block_mask(lambda b, h, i, j: j <= i, None, None, LENGTH, LENGTH, device="cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask, enable_gqa=True)


def example_inputs():
    return [torch.randn(2, heads, 256, DIM, dtype=torch.bfloat16) for heads in (HEADS, GROUPS, GROUPS)]


def by_kernels():
    import kernelwright
    return kernelwright.compile(causal, example_inputs(), target="sm_90a", backward=True)


class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * GROUPS) * DIM, bias=False)
        self.out = nn.Linear(HEADS * DIM, WIDTH, bias=False)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (-1, DIM)).transpose(1, 2) for t in
                   self.qkv(self.before(x)).split([HEADS * DIM, GROUPS * DIM, GROUPS * DIM], -1))
        x = x + self.out(self.attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class Decoder(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(*(Layer(attention) for _ in range(LAYERS)), nn.LayerNorm(WIDTH))
        self.head = nn.Linear(WIDTH, 256, bias=False)

    def forward(self, x):
        return self.head(self.layers(self.bytes(x) + self.places.weight[: x.shape[1]]))


def pages():
    root = pathlib.Path(__file__).resolve().parents[2]
    text = b"".join(p.read_bytes() for p in [root / "README.md", *sorted((root / "docs").rglob("*.md"))])
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def train(attention, seed, steps=STEPS, device="cuda"):
    """(the loss of each step, tokens a second without the first ten steps)"""
    torch.manual_seed(seed)
    data = pages().to(device)
    model = Decoder(attention).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    draw, losses, begun = torch.Generator().manual_seed(seed), [], None
    for step in range(steps):
        if step == min(10, steps - 1):
            torch.cuda.synchronize() if device == "cuda" else None
            begun = time.perf_counter()
        at = torch.randint(len(data) - LENGTH - 1, (BATCH,), generator=draw)
        taken = torch.stack([data[n : n + LENGTH + 1] for n in at.tolist()]).long()
        for group in optimizer.param_groups:  # a short warm-up
            group["lr"] = 6e-4 * min(1, (step + 1) / 30)
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(taken[:, :-1]).flatten(0, 1).float(), taken[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).tolist()
    return losses, BATCH * LENGTH * max(1, steps - 10) / (time.perf_counter() - begun)


def run(file):
    ways = {"kernels": by_kernels(), "plain PyTorch": causal, "SDPA": by_pytorch, "FlexAttention": by_flex()}
    curves, speeds = {}, {}
    for seed in SEEDS:  # the ways take turns
        for way, attention in ways.items():
            curves[f"{way}, seed {seed}"], speed = train(attention, seed)
            speeds.setdefault(way, []).append(speed)
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "curves": curves, "tokens_a_second":
              {way: statistics.median(of) for way, of in speeds.items()}, "apart": apart(curves)}
    pathlib.Path(file).write_text(json.dumps(report))
    print(json.dumps({key: value for key, value in report.items() if key != "curves"}, indent=1))


def apart(curves):
    """Mean |difference| of the last 100 steps' losses, means of ten: kernels and plain PyTorch of one seed, and two seeds."""
    smooth = {name: torch.tensor(losses).unfold(0, 10, 10).mean(-1)[-10:] for name, losses in curves.items()}
    between = lambda a, b: (smooth[a] - smooth[b]).abs().mean().item()
    return {"kernels and plain PyTorch": max(between(f"kernels, seed {s}", f"plain PyTorch, seed {s}") for s in SEEDS),
            "two seeds of plain PyTorch": max(between(f"plain PyTorch, seed {a}", f"plain PyTorch, seed {b}")
                                              for a in SEEDS for b in SEEDS if a < b)}


def plot(file, image):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    report = json.loads(pathlib.Path(file).read_text())
    figure, axes = pyplot.subplots(figsize=(7, 4))
    colors = {"kernels": "tab:red", "plain PyTorch": "black"}
    for name, losses in report["curves"].items():
        way, seed = name.split(", seed ")
        if way in colors:
            axes.plot(torch.tensor(losses).unfold(0, 5, 5).mean(-1).tolist(), color=colors[way], linewidth=1,
                      linestyle=("-", "--", ":")[int(seed)], label=name)
    axes.set(xlabel="steps / 5", title=f"causal decoder, {report['gpu']}", yscale="log")
    axes.set_ylabel("loss (nats a byte)")
    axes.legend(fontsize=7)
    figure.savefig(image)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "plot"])
    parser.add_argument("files", nargs="+")
    asked = parser.parse_args()
    (run if asked.what == "run" else plot)(*asked.files)
