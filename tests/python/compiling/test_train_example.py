"""examples/train/decoder.py on a CPU, small and in plain PyTorch: the script itself. Its kernels are a GPU's."""

import sys

import pytest

from kernelwright_cli import ROOT


@pytest.fixture
def decoder(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples/train"))
    import decoder
    monkeypatch.setattr(decoder, "LENGTH", 32)
    monkeypatch.setattr(decoder, "BATCH", 2)
    yield decoder
    del sys.modules["decoder"]


def test_losses_of_one_seed_are_the_same_and_fall(decoder):
    losses, speed = decoder.train(decoder.causal, 0, steps=8, device="cpu")
    again, _ = decoder.train(decoder.by_pytorch, 0, steps=8, device="cpu")
    assert len(losses) == 8 and speed > 0
    assert max(abs(a - b) for a, b in zip(losses, again)) < 0.05 and min(losses[4:]) < losses[0]


def test_how_far_curves_are_apart(decoder):
    curves = {f"{way}, seed {s}": [4.0 - 0.01 * n + 0.1 * s + (0.001 if way == "kernels" else 0) for n in range(300)]
              for way in ("kernels", "plain PyTorch") for s in decoder.SEEDS}
    apart = decoder.apart(curves)
    assert apart["kernels and plain PyTorch"] == pytest.approx(0.001, rel=1e-3)
    assert apart["two seeds of plain PyTorch"] == pytest.approx(0.2, rel=1e-3)
