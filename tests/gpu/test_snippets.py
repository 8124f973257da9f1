"""The Python blocks of the documents, whole: what tests/python/project/test_snippets.py runs up to each launch."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from kernelwright.compiling import program

ROOT = pathlib.Path(__file__).parents[2]
RUNNER = ROOT / "tests/python/project/run_snippets.py"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(program.find() is None, reason="no program to make kernels with")]


@pytest.mark.parametrize("document", ["docs/python.md", "docs/model_authors.md"])
def test_every_block_of_a_document_runs(document, cache, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-W", "ignore", RUNNER, ROOT / document], cwd=tmp_path, env=environment,
                          text=True, capture_output=True, timeout=550)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr
    outcomes = {json.loads(line)["outcome"] for line in done.stdout.splitlines() if line.startswith('{"line"')}
    assert outcomes == {"ran"}
