"""`kernelwright export hf`, loaded by the `kernels` package as its users load it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from kernelwright_cli import ROOT, assert_refused, call

FAKE = ROOT / "build/tests/fake_cuda"
SPEC = '''import torch
import torch.nn.functional as F


def full_rows(q, k, v):
    """[B, M, 4, 128], [B, N, 2, 128]"""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True).transpose(1, 2)


def example_inputs():
    return tuple(torch.randn(2, 64, heads, 128, dtype=torch.bfloat16) for heads in (4, 2, 2))
'''


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    (folder / "full_rows.py").write_text(SPEC)
    run = call("make", folder / "full_rows.py", "--out", folder / "full_rows", "--check", "quick")
    assert run.returncode == 0, run.stderr
    return folder / "full_rows"


@pytest.fixture(scope="module")
def repository(made):
    to = made.parent / "hub"
    run = call("export", "hf", made, "--to", to, "--version", "3")
    assert run.returncode == 0, run.stderr
    return to


def loaded(repository, *more, **environment):
    """What a Python says that knows the repository, `kernels` and PyTorch, and nothing of ours."""
    script = ROOT / "tests/python/runtime/export_on_fake_cuda.py"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **environment}
    environment.pop("KERNELWRIGHT_LAUNCH", None)
    run = subprocess.run([sys.executable, script, str(repository), *more], text=True, capture_output=True,
                         cwd=repository.parent, timeout=120, env=environment)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def said(repository, tmp_path_factory):
    """Loaded from a copy: the repository must not know where it was made."""
    copy = shutil.copytree(repository, tmp_path_factory.mktemp("downloaded") / "copy")
    return loaded(copy, "run", FAKE_CUDA_ATTENTION="1", LD_LIBRARY_PATH=str(FAKE))


def test_kernels_reads_the_metadata(said):
    assert (said["name"], said["version"], said["licence"]) == ("full_rows", 3, "Apache-2.0")
    assert said["archs"] == ["9.0a"] and said["from"].endswith("-x86_64-linux")


def test_the_module_has_the_function_and_its_error(said):
    assert said["exports"] == ["LaunchError", "full_rows"]
    assert said["doc"].startswith("full_rows(q, k, v), for sm_90a")


def test_the_function_computes_on_the_users_tensors(said):
    assert said["error"] < 2**-7
    assert said["shape"] == [2, 70, 4, 128] and said["strides"] == [70 * 4 * 128, 4 * 128, 128, 1]


@pytest.mark.parametrize("what, message", [
    ("on_cpu", "q is on cpu; full_rows runs on an NVIDIA GPU, sm_90a"),
    ("missing", "full_rows: missing v"),
    ("unknown", "full_rows takes q, k, v, each once; window: unknown, or given twice"),
    ("gradient", "q requires a gradient; full_rows has no backward"),
    ("wrong_heads", "error[launch."),
])
def test_misuse_is_refused_by_the_arguments_name(said, what, message):
    assert said[what] and said[what].startswith(message), said[what]


def test_the_repository_says_what_was_checked(made, repository):
    variant = next((repository / "build").iterdir())
    certificate = (variant / "kernel/certificate.json").read_bytes()
    assert certificate == (made / "certificate.json").read_bytes()
    page = (repository / "README.md").read_text()
    assert "full-rows" in page and "bf16, 4 query / 2 key heads" in page and "{" not in page.split("---")[2]


def test_an_earlier_export_is_replaced_and_nothing_else_is(made, repository, tmp_path):
    assert call("export", "hf", made, "--to", repository).returncode == 0
    (tmp_path / "mine").write_text("keep me")
    assert_refused(call("export", "hf", made, "--to", tmp_path), "export.to", tmp_path)
    assert (tmp_path / "mine").exists()


def test_a_cubin_that_the_certificate_does_not_name_is_refused(made, tmp_path):
    other = shutil.copytree(made, tmp_path / "other")
    with (other / "kernel.cubin").open("ab") as file:
        file.write(b"\0")
    assert_refused(call("export", "hf", other, "--to", tmp_path / "hub"), "export.folder",
                   "kernel.cubin is not the file that the certificate was written for")
    assert not (tmp_path / "hub").exists()


def test_what_does_not_hold_is_refused(made, tmp_path):
    other = shutil.copytree(made, tmp_path / "other")
    certificate = json.loads((other / "certificate.json").read_text())
    (other / "certificate.json").write_text(json.dumps({**certificate, "verdict": "refuted"}))
    assert_refused(call("export", "hf", other, "--to", tmp_path / "hub"), "export.verdict", '"refuted"')


@pytest.mark.parametrize("name, target, hub, function, arch", [
    ("2-rotary_", "sm_80", "kernel-2-rotary", "kernel_2_rotary_", "8.0"),
    ("A", "sm_90a", "a-kernel", "A", "9.0a"),
    ("block__Mask", "sm_120", "block-mask", "block__Mask", "12.0")])
def test_names_and_targets_are_spelled_as_the_hub_and_python_want_them(made, tmp_path, name, target, hub, function, arch):
    other = shutil.copytree(made, tmp_path / "other")
    certificate = json.loads((other / "certificate.json").read_text())
    certificate["spec"]["name"], certificate["target"] = name, target
    (other / "certificate.json").write_text(json.dumps(certificate))
    run = call("export", "hf", other, "--to", tmp_path / "hub")
    assert run.returncode == 0, run.stderr
    variant = next((tmp_path / "hub/build").iterdir())
    metadata = json.loads((variant / "metadata.json").read_text())
    assert (metadata["name"], metadata["backend"]["archs"]) == (hub, [arch])
    assert f"\n{function} = Function(" in (variant / "__init__.py").read_text()


def test_without_the_launch_library_nothing_is_written(made, tmp_path):
    run = call("export", "hf", made, "--to", tmp_path / "hub", KERNELWRIGHT_LAUNCH="/nowhere/library.so")
    assert_refused(run, "driver.library", "/nowhere/library.so")
    assert not (tmp_path / "hub").exists()


def test_a_folder_that_make_did_not_write_is_refused(tmp_path):
    assert_refused(call("export", "hf", tmp_path, "--to", tmp_path / "hub"), "export.folder", "has no certificate.json")
