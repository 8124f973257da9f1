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

from curves import SEEDS, apart, pages, plot, smooth
from functions import FUNCTIONS, LENGTH

WIDTH, LAYERS, BATCH, STEPS, FLEX_STEPS = 512, 6, 16, 300, 40
RATE, RATE_OF_LEARNED = 6e-4, 0.02
PLAIN = "plain PyTorch"


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
        ways = {"kernels": function.by_kernels(), PLAIN: function.plain, "FlexAttention": function.by_flex()}
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
            "apart": apart(curves, smooth, "kernels", PLAIN),
            "learned_apart": apart(learned, torch.tensor, "kernels", PLAIN) if function.learned else None}
        pathlib.Path(file).write_text(json.dumps(report))
        print(name, json.dumps({key: value for key, value in report["functions"][name].items() if key not in ("curves", "learned")}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["run", "plot"])
    parser.add_argument("files", nargs="+")
    asked = parser.parse_args()
    if asked.what == "run":
        run(*asked.files)
    else:
        plot(*asked.files, "functions", {"kernels": "tab:red", PLAIN: "black"})
