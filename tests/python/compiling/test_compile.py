"""kernelwright.compile from end to end: cold, then in a second process, whose launches compute attention
on the stand-in driver of tests/fake_cuda. compile_on_fake_cuda.py runs there; what a GPU must say is
tests/gpu/test_operator.py's."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from kernelwright_cli import ROOT

FAKE = ROOT / "build/tests/fake_cuda"
CLOSE = 0.01  # of one rounding to bf16, of outputs below 2


def run(cache, *words, **environment):
    script = pathlib.Path(__file__).with_name("compile_on_fake_cuda.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(cache),
                   **environment}
    done = subprocess.run([sys.executable, "-W", "ignore", script, *words], env=environment, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def on_fake(cache, *words):
    if not (FAKE / "libcuda.so.1").exists():
        pytest.skip("the stand-in driver is not built: ninja -C build fake_cuda")
    return run(cache, *words, LD_LIBRARY_PATH=str(FAKE), FAKE_CUDA_ATTENTION="1")[0]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache") / "kernelwright"


@pytest.fixture(scope="module")
def cold(cache):
    return run(cache, "--cold")


@pytest.fixture(scope="module")
def warm(cache, cold):
    return on_fake(cache)


def test_a_cold_start_captures_and_shows_its_progress(cold):
    result, progress = cold
    assert result["cold"]
    assert [line.split()[0] for line in progress.splitlines() if line[:1].isalpha()] == [
        "kernelwright:", "capture", "capture", "lift", "transfer", "check", "lower", "build", "wrote"]


def test_a_second_process_neither_captures_nor_makes(warm):
    assert not warm["cold"]


def test_a_call_is_the_operators_where_somebody_looks_and_a_launch_alone_where_nobody_does(warm):
    assert warm["watched"] == [True] * 4


def test_a_machine_without_the_program_takes_what_the_cache_holds(cache, cold, tmp_path):
    brought = tmp_path / "brought"
    shutil.copytree(cache, brought)
    assert not on_fake(brought, "--no-program")["cold"]


def test_the_operator_has_the_functions_arguments(warm):
    assert warm["schema"].split("(", 1)[1] == "Tensor q, Tensor k, Tensor v) -> Tensor"


@pytest.mark.parametrize("way", ["eager", "view", "again", "keywords", "no_grad", "compiled_first", "exported",
                                 "names_of_ours"])
def test_it_computes_what_the_function_computes(warm, way):
    assert warm[way] < CLOSE


def test_torch_librarys_own_checks_pass(warm):
    assert set(warm["opcheck"].values()) == {"SUCCESS"} and len(warm["opcheck"]) == 4


def test_the_output_has_qs_memory_layout(warm):
    assert warm["strides_like_q"]


def test_calls_of_the_same_shapes_share_a_plan(warm):
    assert warm["more_plans"] == 1


def test_plans_are_bounded(warm):
    assert warm["kept_plans"] == 8


def test_an_empty_batch_gives_an_empty_output(warm):
    assert warm["empty_batch"] == [0, 5, 4, 96]


def test_the_result_can_be_inspected(warm):
    assert warm["source"] and warm["holds"] == "holds" and pathlib.Path(warm["folder"]).is_dir()


@pytest.mark.parametrize("what, message", [
    ("type", "attention: q is of the type list; it should be a tensor"),
    ("dtype", "attention: k is float32; it should be bfloat16\n  help: pass k.to(torch.bfloat16)"),
    ("rank", "attention: k has 3 dimensions, [30, 2, 96]; it should have 4, [B, N, 2, 96]"),
    ("heads", "attention: k has 4 in dimension 2; it should have 2"),
    ("lengths", "attention: v has 20 in dimension 1; it should have 30, as dimension 1 of k has"),
    ("last_stride", "attention: q has stride 4 in dimension 3; it should have 1\n  help: pass q.contiguous()"),
    ("stride", "attention: q has stride 100 in dimension 2; it should have a positive multiple of 8 elements "
               "(16 bytes)\n  help: pass q.contiguous()"),
    ("no_keys", "attention: k has 0 in dimension 1; it should have 1 or more"),
])
def test_a_wrong_argument_is_refused_by_its_name(warm, what, message):
    assert warm["refusals"][what] == ["ArgumentError", message]


def test_an_unaligned_address_is_refused_even_where_a_plan_exists(warm):
    for what in ("address", "address_again"):
        kind, message = warm["refusals"][what]
        assert kind == "ArgumentError" and "q begins at address" in message, what


def test_a_machine_without_a_driver_is_refused(cache, cold):
    kind, message = run(cache, "--one-call", LD_LIBRARY_PATH="")[0]
    assert kind == "MachineError" and "no CUDA driver on this machine" in message


def test_a_gpu_older_than_the_target_is_refused(cache, cold):
    kind, message = run(cache, "--one-call", LD_LIBRARY_PATH=str(FAKE), FAKE_CUDA_CAPABILITY="80")[0]
    assert kind == "MachineError" and "built for sm_90a, the GPU is sm_80" in message


def test_the_readmes_example_can_be_pasted_into_a_python(tmp_path):
    """All but its launch, which takes a GPU: tests/gpu/test_operator.py."""
    readme = (ROOT / "README.md").read_text().split("## From Python", 1)[1]
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    assert 'device="cuda"' in example and "compile(causal, (q, k, v))" in example
    pasted = example.replace('device="cuda"', 'device="cpu"').replace("(q, k, v))  #", '(q, k, v), target="sm_90a")  #')
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, "-i", "-q"], input=pasted, env=environment, text=True,
                          capture_output=True, timeout=600)
    assert "ArgumentError: causal: q is on the CPU; it should be on a GPU" in done.stderr, done.stderr
    assert done.stderr.count("Traceback") == 1


def test_asking_for_a_gradient_raises_and_says_so(warm):
    kind, message = warm["refusals"]["gradient"]
    assert kind == "GradientError" and "each weight changes with its score" in message and 'backward="recompute"' in message


def test_recomputed_gradients_are_the_functions_eager_and_compiled(warm):
    assert warm["gradients"] < 0.02
    assert set(warm["opcheck_gradients"].values()) == {"SUCCESS"}


@pytest.mark.parametrize("what, words", [("gradient_compiled", "computes none"),
                                         ("dtype_compiled", "k is float32; it should be bfloat16")])
def test_torch_compile_shows_the_same_words(warm, what, words):
    assert words in warm["refusals"][what][1]
