"""What a function takes from outside while it is captured is noted: files that installed packages open for it, folders, sockets."""

import glob
import json
import socket

import numpy
import pytest
import torch
import transformers

from kernelwright.capture import capture, goldens, live_function
from kernelwright.compiling import cache_miss
from kernelwright.compiling.cache import Cache

FILE = """import glob, numpy, torch, transformers

def attention(q, k, v):
    window = {window}
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).masked_fill((j > i) | (j <= i - window), -torch.inf).softmax(-1) @ v
"""
READS = {
    "int(numpy.load('w.npy')[0])": "w.npy", "int(numpy.loadtxt('w.txt'))": "w.txt", "int(numpy.fromfile('w.bin', dtype='int64')[0])": "w.bin",
    "int(numpy.memmap('w.bin', dtype='int64')[0])": "w.bin", "torch.load('w.pt')": "w.pt",
    "transformers.AutoConfig.from_pretrained('.').sliding_window": "config.json"}


@pytest.fixture
def attention(tmp_path, monkeypatch):
    """A function in a file, with files beside it that hold a window of 64."""
    def function(window):
        path = tmp_path / "attention.py"
        path.write_text(FILE.format(window=window))
        space = {}
        exec(compile(path.read_text(), str(path), "exec"), space)
        return space["attention"]

    monkeypatch.chdir(tmp_path)
    numpy.save("w.npy", numpy.array([64]))
    (tmp_path / "w.txt").write_text("64")
    (tmp_path / "w.bin").write_bytes(numpy.array([64]).tobytes())
    torch.save(64, "w.pt")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mistral", "sliding_window": 64}))
    return function


def operands():
    return [torch.randn(1, 2, 100, 64, dtype=torch.bfloat16) for _ in range(3)]


def noted(function):
    spec, _ = live_function.user_spec(function, operands(), [])
    return capture.capture(spec, None, goldens.CASES[:1]).outside


@pytest.mark.parametrize("window", READS)
def test_a_file_that_a_package_opens_for_the_function_is_noted_with_its_line(attention, window):
    found = noted(attention(window))
    assert [(what.rpartition("/")[2], line) for what, line in found if what.endswith(READS[window])] == [(READS[window], 4)]


def test_a_function_that_takes_nothing_has_nothing_noted(attention, monkeypatch):
    assert noted(attention("64")) == []
    found = noted(attention("int(numpy.float64(64)) + len(transformers.__name__)"))
    assert found == []


def test_folders_and_addresses_are_noted_and_what_others_do_is_not(attention):
    spec, _ = live_function.user_spec(attention("64"), operands(), [])
    outside = spec.function.__kernelwright_outside__
    glob.glob("*.npy")
    assert outside.found == []
    with outside.noted():
        glob.glob("*.npy")
        with pytest.raises(OSError), socket.socket() as s:
            s.connect(("127.0.0.1", 1))
        import colorsys  # noqa: F401
    words = " ".join(what for what, _ in outside.found)
    assert "*.npy" in words and "socket.connect" in words and "colorsys" not in words


@pytest.mark.parametrize("window, kept", [("int(numpy.load('w.npy')[0])", 0), ("64", 1)])
def test_what_a_function_with_a_file_leads_to_is_kept_under_no_key(attention, window, kept, tmp_path, monkeypatch, capsys):
    """Up to `kernelwright make`, and what is written behind it."""
    cache, folder = Cache(tmp_path / "cache"), tmp_path / "kernel"
    folder.mkdir()
    (folder / "launch.json").write_text("{}")
    monkeypatch.setattr(cache_miss.program, "identity", lambda cache: "tools")
    monkeypatch.setattr(cache, "kernel", lambda key: (folder, {}))
    monkeypatch.setattr(cache_miss, "describe", lambda *given: {})
    record, *_ = cache_miss.make(cache, "key", attention(window), operands(), [], "sm_80", "quick")
    assert len(cache.keys("functions", "key")) == kept and record["kernel"]
    assert ("it takes" in capsys.readouterr().err) == (not kept)
