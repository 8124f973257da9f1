"""A captured folder as --spec has the options that it was captured with: others are refused, and not dropped."""

import pytest

from helpers.kernelwright_cli import ROOT, call, write_spec

KERNEL = ROOT / "tests/corpus/sm90_attention_fwd.tl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("folder")
    run = call("capture", write_spec(top), "--out", top / "captured")
    assert run.returncode == 0, run.stderr
    return top / "captured"


@pytest.mark.parametrize("option, said", [
    (["--backward"], "--backward is asked for, and "),
    (["--save-for-backward"], "--save-for-backward is asked for, and "),
    (["--function", "other"], "was captured of the function attention"),
    (["--dtype", "f16"], "was captured in bf16"),
])
def test_another_option_is_refused(folder, option, said):
    run = call("check", KERNEL, "--spec", folder, *option, "--check", "quick")
    assert run.returncode == 2 and "spec.folder" in run.stderr and said in run.stderr


def test_the_same_option_is_taken(folder):
    run = call("check", KERNEL, "--spec", folder, "--dtype", "bf16", "--function", "attention", "--check", "quick", "--cases", "1")
    assert "spec.folder" not in run.stderr
