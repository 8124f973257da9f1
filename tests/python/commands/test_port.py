"""`kernelwright port`: kernels as engineers have them become variants, as patches on their own files; what
cannot be one is refused at its line."""

import re
import shutil
import subprocess

import pytest

from engineers import VARIATIONS, capture_causal, git, own_tiles, write_kernel
from kernelwright_cli import KERNEL, assert_refused, call


@pytest.fixture(scope="session")
def causal(tmp_path_factory):
    return capture_causal(tmp_path_factory.mktemp("port"))


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """A repository of somebody's, with every variation in a folder whose name has a space."""
    top = tmp_path_factory.mktemp("theirs")
    git(top, "init", "-q")
    for name, change in VARIATIONS.items():
        write_kernel(top / "our kernels" / f"{name}.cu", change)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "theirs")
    return top


@pytest.mark.parametrize("name", VARIATIONS)
def test_the_patch_gives_the_variant_byte_for_byte(name, repository, causal, tmp_path):
    kernel = repository / "our kernels" / f"{name}.cu"
    run = call("port", kernel, "--spec", causal, "--check", "quick", "--out", tmp_path / "out",
               cwd=repository / "our kernels")
    assert run.returncode == 0, run.stderr
    assert "lift      " + str(kernel) in run.stderr and "\ntiles " not in run.stderr
    variant, patch = (tmp_path / "out/kernel.cu").read_bytes(), tmp_path / "out/kernel.patch"
    assert variant != kernel.read_bytes()
    # New lines end as the user's do.
    assert variant.count(b"\r\n") == (variant.count(b"\n") if name == "from Windows" else 0)
    how = re.search(r"^ +apply: (.*)$", run.stderr, re.M)[1]
    try:
        subprocess.run(how, shell=True, check=True, cwd="/")
        assert kernel.read_bytes() == variant
        git(repository, "checkout", "-q", ".")
        subprocess.run(["patch", "-p1", "-s", "--binary", "-i", patch], cwd=repository, check=True)
        assert kernel.read_bytes() == variant
    finally:
        git(repository, "checkout", "-q", ".")


def test_outside_of_a_repository_patch_applies_it_and_the_certificate_verifies(causal, tmp_path):
    kernel = write_kernel(tmp_path / "mine/fmha.cu")
    run = call("port", kernel, "--spec", causal, "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    subprocess.run(re.search(r"^ +apply: (patch .*)$", run.stderr, re.M)[1], shell=True, check=True)
    assert kernel.read_bytes() == (tmp_path / "out/kernel.cu").read_bytes()
    verified = call("verify", tmp_path / "out")
    assert verified.returncode == 0, verified.stderr


def test_a_copy_of_the_corpus_gets_the_measured_tiles(causal, tmp_path):
    """Its constants are those of a shipped row, so nobody chose others."""
    shutil.copy(KERNEL, tmp_path / "copy.cu")
    run = call("port", tmp_path / "copy.cu", "--spec", causal, "--check", "quick", "--out", tmp_path / "a")
    assert run.returncode == 0, run.stderr
    made = call("make", causal, "--check", "quick", "--out", tmp_path / "b")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "a/kernel.cu").read_text() == (tmp_path / "b/kernel.cu").read_text()


# --- refusals: at the user's line, with what to do --------------------------------------------

FILL = "            kw::fill(acc, 0.0f);\n"
WAIT = "                kw::wait(shared.v_full[t]);\n                kw::wgmma_add(acc"
REFUSED = {
    "a function below the vocabulary": (FILL, "            __syncthreads();\n" + FILL, "__syncthreads", 2,
                                        "lift.unrecognised", "kw::NAME of docs/tl.md"),
    "a word that the vocabulary lacks": (FILL, "            kw::zero(acc);\n", "kw::zero", 2, "lift.invalid", "'zero'"),
    "another name for the arguments": ("Args", "Params", "kw::TensorMap", 2, "lift.unrecognised",
                                       "arguments Args, and"),
    "a read before the wait": (WAIT, WAIT.split("\n")[1], "kw::wgmma_add(acc, p", 1,
                               "exec.not_arrived", "v_full"),
    "a store that other warps still read": ("            kw::sync_warpgroup(me);", "            ", "kw::store(acc", 2,
                                            "store.C4", "sync_warpgroup"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_at_the_users_line(what, causal, tmp_path):
    old, new, place, exit_code, code, part = REFUSED[what]
    kernel = write_kernel(tmp_path / "fmha.cu", lambda text: own_tiles(text).replace(old, new))
    run = call("port", kernel, "--spec", causal, "--out", tmp_path / "out")
    line = next(n for n, text in enumerate(kernel.read_text().splitlines(), 1) if place in text)
    assert run.returncode == exit_code, run.stderr
    assert f"{kernel}:{line}:" in run.stderr and f"[{code}" in run.stderr and part in run.stderr
    assert not (tmp_path / "out").exists()


def test_a_kernel_that_is_a_variant_already_is_refused_with_its_mask(causal, tmp_path):
    kernel = write_kernel(tmp_path / "fmha.cu")
    assert call("port", kernel, "--spec", causal, "--check", "quick", "--out", tmp_path / "out").returncode == 0
    variant = tmp_path / "causal.cu"
    shutil.copy(tmp_path / "out/kernel.cu", variant)
    line = next(n for n, text in enumerate(variant.read_text().splitlines(), 1) if "kw::map_at(s" in text)
    assert_refused(call("port", variant, "--spec", causal, "--out", tmp_path / "again"), "port.variant",
                   f"{variant}:{line}:", "j < min(N, i + 1)", "rebase")


def test_what_is_no_kernel_is_refused(causal, tmp_path):
    (tmp_path / "empty.cu").write_text("")
    (tmp_path / "binary.cu").write_bytes(b"\x7fELF\0\0")
    for name, code, part in [("none.cu", "driver.kernel", "No such file"), (".", "driver.kernel", "folder"),
                             ("binary.cu", "driver.kernel", "binary file"), ("/dev/null", "driver.kernel", "regular file")]:
        assert_refused(call("port", tmp_path / name, "--spec", causal), code, part)
    run = call("port", tmp_path / "empty.cu", "--spec", causal, cwd=tmp_path)
    assert run.returncode == 2 and "error[" in run.stderr
    assert not (tmp_path / "out").exists()
