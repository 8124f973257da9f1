"""`make --backward`: a folder like any other, which `verify` makes again; and a graph of gradients is not taken for another."""

import json
import shutil

import pytest

from kernelwright_cli import call, write_spec


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backward")
    spec = write_spec(folder)
    for name, more in (("forward", ()), ("out", ("--backward",))):
        run = call("make", spec, *more, "--check", "quick", "--out", folder / name)
        assert run.returncode == 0, run.stderr
    return folder


def test_the_kernel_is_of_the_gradients(made):
    certificate = json.loads((made / "out/certificate.json").read_text())
    assert certificate["spec"]["training"] == "backward"
    assert {b["argument"] for b in certificate["transfer"]["bindings"]} >= {"dq", "dk", "dv", "o", "lse", "d_o"}
    assert "of gradients nothing is proved" in certificate["holds_for"] + " ".join(certificate["not_checked"])


def test_verify_captures_the_gradients_again(made):
    run = call("verify", made / "out")
    assert run.returncode == 0 and "changed" not in run.stdout, run.stdout


def test_a_forward_certificate_says_nothing_of_gradients(made):
    assert "training" not in json.loads((made / "forward/certificate.json").read_text())["spec"]


def test_a_certificate_of_gradients_does_not_pass_for_the_function(made, tmp_path):
    shutil.copytree(made / "out", tmp_path / "out")
    path = tmp_path / "out/certificate.json"
    certificate = json.loads(path.read_text())
    del certificate["spec"]["training"]
    path.write_text(json.dumps(certificate))
    assert call("verify", tmp_path / "out").returncode == 1


def test_what_the_rules_write_where_registers_are_few_is_made_again(tmp_path):
    spec = write_spec(tmp_path, body="return (q @ k.mT * 128**-0.5).clamp(min=0.0).softmax(-1) @ v")
    run = call("make", spec, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "rules: scale, score, late" in run.stderr, run.stderr
    verified = call("verify", tmp_path / "out")
    assert verified.returncode == 0, verified.stdout


def test_one_order_is_of_gradients_alone(made, tmp_path):
    run = call("make", next(made.glob("*.py")), "--deterministic", "--out", tmp_path / "out")
    assert run.returncode == 2 and "driver.deterministic" in run.stderr and "--backward" in run.stderr, run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_gradients_before_hopper_are_made_from_a_text_of_their_own(target, tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--target", target, "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "kernels/sm80/attention_bwd.cu" in run.stderr, run.stderr
    kernel = (tmp_path / "out/kernel.cu").read_text()
    assert "cp_async_rows" in kernel and "wgmma" not in kernel


def test_what_needs_a_thread_that_copies_is_refused_before_hopper(tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--deterministic", "--target", "sm_80", "--out", tmp_path / "out")
    assert run.returncode != 0 and "no thread that adds tiles of dQ" in run.stderr, run.stderr


def test_a_head_dimension_without_shared_memory_is_refused_with_the_sum(tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--target", "sm_86", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode != 0 and "launch.shared" in run.stderr, run.stderr
