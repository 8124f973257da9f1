"""examples/train on a CPU, small and in plain PyTorch: the scripts themselves. Their kernels are a GPU's."""

import sys

import pytest
import torch

from kernelwright_cli import ROOT


@pytest.fixture
def decoder(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples/train"))
    import decoder
    for name, value in {"LENGTH": 32, "BATCH": 2}.items():
        monkeypatch.setattr(decoder, name, value)
    yield decoder
    for name in ("decoder", "functions"):
        del sys.modules[name]


def test_losses_of_one_seed_are_the_same_and_fall(decoder):
    function = decoder.FUNCTIONS["causal"]
    losses, speed, learned = decoder.train(function, function.plain, 0, steps=8, device="cpu")
    again, *_ = decoder.train(function, function.sdpa, 0, steps=8, device="cpu")
    assert len(losses) == 8 and speed > 0 and learned == []
    assert max(abs(a - b) for a, b in zip(losses, again)) < 0.05 and min(losses[4:]) < losses[0]


@pytest.mark.parametrize("name, count", [("sections", 24), ("window", 48)])
def test_what_a_function_learns_moves(decoder, name, count):
    function = decoder.FUNCTIONS[name]
    _, _, learned = decoder.train(function, function.plain, 0, steps=4, device="cpu")
    start = torch.cat([s() for s in function.learned.values()]).repeat(decoder.LAYERS)
    assert len(learned) == count and (torch.tensor(learned) != start).all()


def test_sections_begin_with_headings(decoder):
    data, section = decoder.pages()
    text = bytes(data.tolist())
    at = text.index(b"\n## ")
    assert section[at + 1] == section[at] + 1 and section[at + 2] == section[at + 1]


def test_how_far_curves_are_apart(decoder):
    curves = {f"{way}, seed {s}": [4.0 - 0.01 * n + 0.1 * s + (0.001 if way == "kernels" else 0) for n in range(300)]
              for way in ("kernels", "plain PyTorch") for s in decoder.SEEDS}
    apart = decoder.apart(curves, decoder.smooth)
    assert apart["kernels and plain PyTorch"] == pytest.approx(0.001, rel=1e-3)
    assert apart["two seeds of plain PyTorch"] == pytest.approx(0.2, rel=1e-3)
