"""What the trainings of this folder share: their data, how far two curves are apart, and the plot of them.

The data is this repository's own pages, byte by byte: something to learn that is here. A curve is the loss of every step, under
the name "WAY, seed N"; a way is something that computes attention. Two ways of one seed begin with the same weights and see the
same bytes, and differ as far as rounding carries them. How far that may be has no number of its own: it is held against how far
the same way's seeds are apart.
"""

import json
import pathlib

import torch

SEEDS = (0, 1, 2)


def pages():
    """(the bytes of all pages, of each the number of its section: a heading begins one)"""
    root = pathlib.Path(__file__).resolve().parents[2]
    text = b"".join(p.read_bytes() for p in [root / "README.md", *sorted((root / "docs").rglob("*.md"))])
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    headings = (data == ord("#")) & (data.roll(1) == ord("\n"))
    return data, headings.int().cumsum(0, dtype=torch.int32)


def smooth(losses):
    """Of the last 100 steps, means of ten."""
    return torch.tensor(losses).unfold(0, 10, 10).mean(-1)[-10:]


def apart(values, of, way, peer):
    """Mean |difference| of what `of` makes of values: of `way` and `peer` of one seed, and of two seeds of `peer`; the largest
    of all."""
    between = lambda a, b: (of(values[a]) - of(values[b])).abs().mean().item()
    return {f"{way} and {peer}": max(between(f"{way}, seed {s}", f"{peer}, seed {s}") for s in SEEDS),
            f"two seeds of {peer}": max(between(f"{peer}, seed {a}", f"{peer}, seed {b}") for a in SEEDS for b in SEEDS if a < b)}


def plot(file, image, panels, colors):
    """Draws the curves of a report, a panel for each entry of report[panels]; of the ways that have a color."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    report = json.loads(pathlib.Path(file).read_text())
    found = report[panels]
    figure, all_axes = pyplot.subplots(1, len(found), figsize=(4.5 * len(found), 4), squeeze=False)
    for axes, (title, entry) in zip(all_axes[0], found.items()):
        for name, losses in entry["curves"].items():
            way, seed = name.split(", seed ")
            if way in colors:
                axes.plot(torch.tensor(losses).unfold(0, 5, 5).mean(-1).tolist(), color=colors[way], linewidth=1,
                          linestyle=("-", "--", ":")[int(seed)], label=name)
        axes.set(xlabel="steps / 5", title=f"{title}, {report['gpu']}", yscale="log")
    all_axes[0][0].set_ylabel("loss (nats a byte)")
    all_axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(image)
