"""A small decoder on bytes of this repository's own pages, its attention by kernels, in plain PyTorch, or by PyTorch's own.

    python examples/train/decoder.py run curves.json    # on a Hopper GPU: every function, way and seed; minutes
    python examples/train/decoder.py plot curves.json curves.svg    # wants matplotlib

Six layers, sequences of 1024 bytes, 300 steps of AdamW; three functions (functions.py), of which two have something to learn.
Weights are in fp32; what is multiplied is bf16. One seed is one order of the data and one start: two ways of one seed see the
same numbers, and may differ as far as rounding carries them, which is held against how far two seeds of plain PyTorch are
apart. FlexAttention runs a few steps, for its speed.
"""

import argparse
import json
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn

from functions import FUNCTIONS, LENGTH

WIDTH, LAYERS, BATCH, STEPS, SEEDS, FLEX_STEPS = 512, 6, 16, 300, (0, 1, 2), 40
RATE, RATE_OF_LEARNED = 6e-4, 0.02


class Layer(nn.Module):
    def __init__(self, function, attention):
        super().__init__()
        self.function, self.attention = function, attention
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, (function.heads + 2 * function.groups) * function.dim, bias=False)
        self.out = nn.Linear(function.heads * function.dim, WIDTH, bias=False)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.learned = nn.ParameterList(start() for start in function.learned.values())

    def forward(self, x, section):
        widths = [heads * self.function.dim for heads in (self.function.heads, self.function.groups, self.function.groups)]
        q, k, v = (t.unflatten(-1, (-1, self.function.dim)).transpose(1, 2) for t in self.qkv(self.before(x)).split(widths, -1))
        read = (section,) if self.function.by_section else ()
        x = x + self.out(self.attention(q, k, v, *self.learned, *read).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class Decoder(nn.Module):
    def __init__(self, function, attention):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.ModuleList(Layer(function, attention) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, x, section):
        x, places = self.bytes(x), self.places.weight[: x.shape[1]]
        x = x + places
        for layer in self.layers:
            x = layer(x, section)
        return self.head(self.norm(x))

    def learned(self):
        return [p for layer in self.layers for p in layer.learned]


def pages():
    """(the bytes of all pages, of each the number of its section: a heading begins one)"""
    root = pathlib.Path(__file__).resolve().parents[2]
    text = b"".join(p.read_bytes() for p in [root / "README.md", *sorted((root / "docs").rglob("*.md"))])
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    headings = (data == ord("#")) & (data.roll(1) == ord("\n"))
    return data, headings.int().cumsum(0, dtype=torch.int32)


def train(function, attention, seed, steps=STEPS, device="cuda"):
    """(the loss of each step, tokens a second without the first ten steps, what is learned of all layers)"""
    torch.manual_seed(seed)
    data, sections = (x.to(device) for x in pages())
    model = Decoder(function, attention).to(device)
    of_learned = {id(p) for p in model.learned()}
    groups = [{"params": [p for p in model.parameters() if id(p) not in of_learned], "rate": RATE},
              {"params": model.learned(), "rate": RATE_OF_LEARNED, "weight_decay": 0}]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], betas=(0.9, 0.95))
    draw, losses, begun = torch.Generator().manual_seed(seed), [], None
    for step in range(steps):
        if step == min(10, steps - 1):
            torch.cuda.synchronize() if device == "cuda" else None
            begun = time.perf_counter()
        at = torch.randint(len(data) - LENGTH - 1, (BATCH,), generator=draw).tolist()
        taken = torch.stack([data[n : n + LENGTH + 1] for n in at]).long()
        section = torch.stack([sections[n : n + LENGTH] for n in at])
        for group in optimizer.param_groups:  # a short warm-up
            group["lr"] = group["rate"] * min(1, (step + 1) / 30)
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(taken[:, :-1], section).flatten(0, 1).float(), taken[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).tolist()
    speed = BATCH * LENGTH * max(1, steps - 10) / (time.perf_counter() - begun)
    return losses, speed, [x for p in model.learned() for x in p.tolist()]


def run(file):
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "functions": {}}
    for name, function in FUNCTIONS.items():
        ways = {"kernels": function.by_kernels(), "plain PyTorch": function.plain, "FlexAttention": function.by_flex()}
        ways |= {"SDPA": function.sdpa} if function.sdpa else {}
        curves, speeds, learned = {}, {}, {}
        for seed in SEEDS:  # the ways take turns
            for way, attention in ways.items():
                steps = FLEX_STEPS if way == "FlexAttention" else STEPS
                losses, speed, values = train(function, attention, seed, steps)
                speeds.setdefault(way, []).append(speed)
                if steps == STEPS:
                    curves[f"{way}, seed {seed}"], learned[f"{way}, seed {seed}"] = losses, values
        report["functions"][name] = {
            "curves": curves, "learned": learned, "tokens_a_second": {way: statistics.median(of) for way, of in speeds.items()},
            "apart": apart(curves, smooth), "learned_apart": apart(learned, torch.tensor) if function.learned else None}
        pathlib.Path(file).write_text(json.dumps(report))
        print(name, json.dumps({key: value for key, value in report["functions"][name].items() if key not in ("curves", "learned")}))


def smooth(losses):
    """Of the last 100 steps, means of ten."""
    return torch.tensor(losses).unfold(0, 10, 10).mean(-1)[-10:]


def apart(values, of):
    """Mean |difference|: of kernels and plain PyTorch of one seed, and of two seeds; the largest of all."""
    between = lambda a, b: (of(values[a]) - of(values[b])).abs().mean().item()
    return {"kernels and plain PyTorch": max(between(f"kernels, seed {s}", f"plain PyTorch, seed {s}") for s in SEEDS),
            "two seeds of plain PyTorch": max(between(f"plain PyTorch, seed {a}", f"plain PyTorch, seed {b}")
                                              for a in SEEDS for b in SEEDS if a < b)}


def plot(file, image):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    report = json.loads(pathlib.Path(file).read_text())
    figure, all_axes = pyplot.subplots(1, len(report["functions"]), figsize=(4.5 * len(report["functions"]), 4), squeeze=False)
    colors = {"kernels": "tab:red", "plain PyTorch": "black"}
    for axes, (function, found) in zip(all_axes[0], report["functions"].items()):
        for name, losses in found["curves"].items():
            way, seed = name.split(", seed ")
            if way in colors:
                axes.plot(torch.tensor(losses).unfold(0, 5, 5).mean(-1).tolist(), color=colors[way], linewidth=1,
                          linestyle=("-", "--", ":")[int(seed)], label=name)
        axes.set(xlabel="steps / 5", title=f"{function}, {report['gpu']}", yscale="log")
    all_axes[0][0].set_ylabel("loss (nats a byte)")
    all_axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(image)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "plot"])
    parser.add_argument("files", nargs="+")
    asked = parser.parse_args()
    (run if asked.what == "run" else plot)(*asked.files)
