"""Python tests that need a GPU: `python -m pytest tests/gpu -s`. KERNELWRIGHT_BROUGHT names kernels that
another machine made (operator_functions.py), for machines without the program."""

import os
import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))


def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: needs a GPU")


def pytest_collection_modifyitems(items):
    for item in items:
        if not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no GPU"))


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of this session's, in the environment of it and of what it starts."""
    folder = tmp_path_factory.mktemp("cache") / "kernelwright"
    before = os.environ.get("KERNELWRIGHT_CACHE")
    if before is None:
        os.environ["KERNELWRIGHT_CACHE"] = str(folder)
    brought = os.environ.get("KERNELWRIGHT_BROUGHT")
    if brought and torch.cuda.is_available():
        from kernelwright.compiling.compiler import current_target
        from operator_functions import bring
        bring(pathlib.Path(brought), current_target())
    yield os.environ["KERNELWRIGHT_CACHE"]
    if before is None:
        del os.environ["KERNELWRIGHT_CACHE"]
