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
    for name in ("decoder", "functions", "curves"):
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
    apart = decoder.apart(curves, decoder.smooth, "kernels", "plain PyTorch")
    assert apart["kernels and plain PyTorch"] == pytest.approx(0.001, rel=1e-3)
    assert apart["two seeds of plain PyTorch"] == pytest.approx(0.2, rel=1e-3)


# ---- examples/train/huggingface.py


@pytest.fixture
def trained(monkeypatch):
    """The script, small; functions run as they are, as test_huggingface_training.py has them."""
    import kernelwright
    from kernelwright import huggingface
    from kernelwright.compiling.kinds import Kinds
    monkeypatch.syspath_prepend(str(ROOT / "examples/train"))
    monkeypatch.setitem(vars(kernelwright), "compile", lambda function, inputs, **_: lambda *given: function(*given).nan_to_num())
    monkeypatch.setattr(huggingface, "_kinds", Kinds())
    huggingface.register("kernelwright")
    import huggingface as script
    for name, value in {"LENGTH": 32, "BATCH": 2, "STEPS": 4, "SIZES": script.SIZES | {"hidden_size": 64, "intermediate_size": 64}}.items():
        monkeypatch.setattr(script, name, value)
    yield script
    for name in ("huggingface", "curves"):
        del sys.modules[name]


@pytest.mark.parametrize("name", ["Llama, padded", "Llama, packed", "Gemma 2, checkpointed", "gpt-oss, accumulated"])
def test_a_model_of_transformers_trains_by_either_way(trained, name):
    quick = dict(use_cpu=True, warmup_steps=0, learning_rate=3e-3)
    ours, eager = (trained.train(trained.CASES[name], way, 0, trained.STEPS, **quick) for way in (trained.OURS, trained.EAGER))
    assert len(ours["losses"]) == 4 and min(ours["tokens_a_second"], eager["tokens_a_second"]) > 0
    assert max(abs(a - b) for a, b in zip(ours["losses"], eager["losses"])) < 2e-2
    assert abs(ours["held_back"] - eager["held_back"]) < 2e-2 and eager["held_back"] < 5.3  # ln 256 is 5.55
    assert len(ours["sinks"]) == (32 if "gpt-oss" in name else 0) and all(moved != 0 for moved in ours["sinks"])


def test_texts_are_the_pages_in_pieces_and_padding_is_none(trained):
    data, _ = trained.pages()
    pieces = trained.texts(1024)
    assert len(data) - 100 < sum(map(len, pieces)) <= len(data) and len({len(piece) for piece in pieces}) > 100
    assert all(len(row) == 1024 for row in trained.rows(1024)) and 0 not in data
    batch = trained.pad([{"input_ids": piece, "labels": piece} for piece in pieces[:8]])
    kept = batch["attention_mask"].bool()
    assert (batch["labels"][~kept] == -100).all() and (batch["labels"][kept] == batch["input_ids"][kept]).all()
    assert kept.sum() == sum(map(len, pieces[:8])) and not kept.all()
