"""The Python blocks of every document run (run_snippets.py says how far without a GPU). tests/gpu runs
them whole."""

import json
import os
import subprocess
import sys

import pytest

import kernelwright
import run_snippets
import test_docs
from kernelwright_cli import ROOT

# README.md's block is pasted into an interpreter by test_compile.py.
DOCUMENTS = [str(p.relative_to(ROOT)) for p in test_docs.PAGES if run_snippets.BLOCK.search(p.read_text())]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("snippets") / "cache"


def run(path, cache, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-W", "ignore", ROOT / "tests/python/project/run_snippets.py", path], cwd=cwd,
                          env=environment, text=True, capture_output=True, timeout=300)


def outcomes(done):
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"line"')]
    return [(line["line"], line["outcome"]) for line in lines]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_blocks_of_a_document_run(document, cache, tmp_path):
    done = run(ROOT / document, cache, tmp_path)
    assert done.returncode == 0, done.stderr
    found = outcomes(done)
    kinds = [kind for _, kind in found]
    assert "ran" in kinds and "stopped" in kinds, found  # a kernel was made, and a call reached it
    assert kinds.count("left out") <= 2 * kinds.count("stopped"), found


# --- the runner itself ------------------------------------------------------------------------

def snippets(*blocks):
    """[(line, outcome)] of a document with these blocks, as on a machine without a GPU."""
    text = "\n".join(f"text\n```{kind}\n{text}\n```\n" for kind, text in blocks)
    return list(run_snippets.Runner("document.md", gpu=False).run(text))


def test_a_block_sees_those_before_it():
    assert snippets(("python", "x = 1"), ("python", "y = x + 1\nassert y == 2")) == [(3, "ran"), (8, "ran"), (9, "ran")]


def test_an_exception_has_the_documents_line():
    with pytest.raises(ValueError) as caught:
        snippets(("python", "x = 1"), ("python", "y = 2\nraise ValueError(y)"))
    place = caught.traceback[-1]
    assert (str(place.path).endswith("document.md"), place.lineno + 1) == (True, 9)


RAISING = "import kernelwright\nraise kernelwright.ArgumentError('f', 'q', {!r}, 'be on a GPU')"


def test_only_the_stated_refusal_of_a_launch_may_stop_a_statement():
    found = snippets(("python", RAISING.format("is on the CPU")), ("python", "z = 1"))
    assert found == [(3, "ran"), (4, "stopped"), (9, "ran")]
    with pytest.raises(kernelwright.ArgumentError):
        snippets(("python", RAISING.format("is on cpu:0")))


def test_what_a_launch_would_have_given_is_not_used():
    give = "def give():\n    raise kernelwright.ArgumentError('f', 'q', 'is on the CPU', 'be on a GPU')"
    found = snippets(("python", f"import kernelwright\n{give}\no = give()\np = o + 1\np = 2\np = p + 1"))
    assert [kind for _, kind in found] == ["ran", "ran", "stopped", "left out", "ran", "ran"]


def test_a_gpus_block_is_compiled_and_not_run():
    assert snippets(("python gpu", "undefined()")) == [(3, "gpu")]
    with pytest.raises(SyntaxError):
        snippets(("python gpu", "x = = 1"))


def test_tensors_for_a_gpu_are_made_on_the_cpu():
    assert snippets(("python", "import torch\nx = torch.ones(2, device='cuda').cuda()\nassert x.device.type == 'cpu'"))


def test_blocks_that_are_files_are_not_run_here():
    assert snippets(("python a.py", "raise ValueError")) == []
