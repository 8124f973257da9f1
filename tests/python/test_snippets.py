"""The Python blocks of every document run (run_snippets.py says how far without a GPU). tests/gpu runs
them whole."""

import json
import os
import subprocess
import sys

import pytest

import run_snippets
from kernelwright_cli import ROOT

TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCUMENTS = [str(p.relative_to(ROOT)) for p in TEXTS if run_snippets.BLOCK.search(p.read_text())]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("snippets") / "cache"


def run(path, cache, cwd):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-W", "ignore", ROOT / "tests/python/run_snippets.py", path], cwd=cwd,
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

def snippets(tmp_path, *blocks):
    document = tmp_path / "document.md"
    document.write_text("\n".join(f"text\n```{kind}\n{text}\n```\n" for kind, text in blocks))
    return run(document, tmp_path / "cache", tmp_path)


def test_a_block_sees_those_before_it_and_an_exception_has_the_documents_line(tmp_path):
    done = snippets(tmp_path, ("python", "x = 1"), ("python", "y = x + 1\nraise ValueError(y)"))
    assert outcomes(done) == [(3, "ran"), (8, "ran")]
    assert done.returncode == 1 and "document.md\", line 9" in done.stderr and "ValueError: 2" in done.stderr


def test_only_the_stated_refusal_of_a_launch_may_stop_a_statement(tmp_path):
    raising = "import kernelwright\nraise kernelwright.ArgumentError('f', 'q', {!r}, 'be on a GPU')"
    refused = snippets(tmp_path, ("python", raising.format("is on the CPU")), ("python", "z = 1"))
    assert refused.returncode == 0 and outcomes(refused) == [(3, "ran"), (4, "stopped"), (9, "ran")]
    assert snippets(tmp_path, ("python", raising.format("is on cpu:0"))).returncode == 1


def test_what_a_launch_would_have_given_is_not_used(tmp_path):
    give = "def give():\n    raise kernelwright.ArgumentError('f', 'q', 'is on the CPU', 'be on a GPU')"
    done = snippets(tmp_path, ("python", f"import kernelwright\n{give}\no = give()\np = o + 1\np = 2\np = p + 1"))
    assert [kind for _, kind in outcomes(done)] == ["ran", "ran", "stopped", "left out", "ran", "ran"]


def test_a_gpus_block_is_compiled_and_not_run(tmp_path):
    assert outcomes(snippets(tmp_path, ("python gpu", "undefined()"))) == [(3, "gpu")]
    broken = snippets(tmp_path, ("python gpu", "x = = 1"))
    assert broken.returncode == 1 and "SyntaxError" in broken.stderr


def test_blocks_that_are_files_are_not_run_here(tmp_path):
    assert outcomes(snippets(tmp_path, ("python a.py", "raise ValueError"))) == []
