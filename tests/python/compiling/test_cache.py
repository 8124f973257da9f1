"""The cache: whole at any moment, the user's own, and made again where it is damaged."""

import hashlib
import json
import os
import random
import signal
import sys
import time

import pytest

from kernelwright.compiling.cache import Cache, digest
from kernelwright.errors import MachineError


def put(cache, key, size=50_000):
    """A stand-in for `kernelwright make` that takes a millisecond."""
    with cache.making() as staging:
        folder = staging / "kernel"
        folder.mkdir()
        files = {"kernel.cubin": os.urandom(size), "launch.json": key.encode()}
        for name, content in files.items():
            (folder / name).write_bytes(content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        (folder / "certificate.json").write_text(json.dumps({"files": hashes}))
        found = cache.add_kernel(key, folder)
    cache.write("functions", key, {"kernel": key, "padding": "x" * 5000})
    return found


def write_for_ever(root):
    cache, n = Cache(root), 0
    while True:
        put(cache, digest(os.getpid(), n % 7))
        n += 1


def killed_while_writing(root, seconds):
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(root)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def not_whole(root):
    """Entries that a reader would find and that are not whole."""
    cache = Cache(root)
    kernels = [p.name for p in (root / "kernels").iterdir() if cache.kernel(p.name) is None]
    records = [p.stem for p in (root / "functions").iterdir() if cache.read("functions", p.stem) is None]
    return kernels + records


def test_a_process_killed_200_times_leaves_only_whole_entries(tmp_path):
    pick = random.Random(20261122)
    for _ in range(200):
        killed_while_writing(tmp_path / "cache", pick.uniform(0, 0.02))
        assert not_whole(tmp_path / "cache") == []
    assert len(list((tmp_path / "cache/kernels").iterdir())) > 20  # it was killed while it wrote
    put(Cache(tmp_path / "cache"), "last")
    assert list((tmp_path / "cache/making").iterdir()) == []  # what the dead left is swept


def test_the_page_of_a_refused_kernel_is_kept_in_the_place_of_an_older_one(tmp_path):
    cache = Cache(tmp_path)
    for text in ("first", "second"):
        with cache.making() as staging:
            (staging / "kernel.refuted").mkdir()
            (staging / "kernel.refuted/report.html").write_text(text)
            page = cache.keep_refused("key", staging)
        assert page == tmp_path / "refused/key/report.html" and page.read_text() == text
    with cache.making() as staging:
        assert cache.keep_refused("other", staging) is None
    assert list((tmp_path / "making").iterdir()) == []


def test_a_damaged_cubin_counts_as_missing_and_is_made_again(tmp_path):
    cache = Cache(tmp_path)
    folder, _ = put(cache, "key")
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(cubin.read_bytes()[:-1] + b"!")
    assert cache.kernel("key") is None
    assert put(cache, "key") is not None and cache.kernel("key") is not None


@pytest.mark.parametrize("name", ["kernel.cubin", "launch.json", "certificate.json"])
def test_a_kernel_without_one_of_its_files_counts_as_missing(tmp_path, name):
    cache = Cache(tmp_path)
    (put(cache, "key")[0] / name).unlink()
    assert cache.kernel("key") is None


def test_a_damaged_record_counts_as_missing(tmp_path):
    cache = Cache(tmp_path)
    cache.write("functions", "key", {"kernel": "abc"})
    path = tmp_path / "functions/key.json"
    path.write_text(path.read_text().replace("abc", "abd"))
    assert cache.read("functions", "key") is None


def test_the_first_of_two_makers_stays(tmp_path):
    first, second = Cache(tmp_path), Cache(tmp_path)
    put(first, "key")
    before = (tmp_path / "kernels/key/kernel.cubin").read_bytes()
    assert put(second, "key") is not None
    assert (tmp_path / "kernels/key/kernel.cubin").read_bytes() == before


def test_the_cache_is_made_for_the_user_alone(tmp_path):
    Cache(tmp_path / "cache")
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_others_can_write_is_refused(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    with pytest.raises(MachineError, match="can be written by others"):
        Cache(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 12345, 12345)
    with pytest.raises(MachineError, match="belongs to user 12345"):
        Cache(tmp_path)


def test_the_cache_needs_no_pytorch():
    code = "import kernelwright.compiling.cache, sys; sys.exit('torch' in sys.modules)"
    assert os.spawnve(os.P_WAIT, sys.executable, [sys.executable, "-c", code],
                      {"PYTHONPATH": os.pathsep.join(sys.path)}) == 0
