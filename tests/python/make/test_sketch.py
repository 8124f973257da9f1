"""From a sketch to a kernel: sized, scheduled, checked, lowered and built, without an expert's text.

One GPU and head dimension a test run, chosen by commit (sample.py); all with KW_TEST_ALL=1."""

import json
import re

import pytest

from kernelwright_cli import ROOT, assert_refused, call, cubin_check
from sample import sample

SKETCH = ROOT / "sketches/attention.tl"
CASES = [("t4", "sm_75", 64, 64, "float16"), ("a100", "sm_80", 64, 64, "bfloat16"),
         ("a100", "sm_80", 256, 256, "bfloat16"), ("a100", "sm_80", 192, 128, "bfloat16"),
         ("l40s", "sm_89", 128, 128, "bfloat16"), ("l40s", "sm_89", 192, 128, "float16"),
         ("t4", "sm_75", 128, 128, "float16"), ("h200", "sm_90a", 128, 128, "bfloat16")]


def scheduled(folder, gpu, d, v, dtype, sketch=SKETCH):
    run = call("size", sketch, "--gpu", gpu, "--param", f"D={d}", "--param", f"V={v}",
               "--dtype", dtype, "--out", folder / "sized.tl")
    assert run.returncode == 0, run.stderr
    run = call("schedule", folder / "sized.tl", "--gpu", gpu, "--out", folder / "scheduled.tl")
    assert run.returncode == 0, run.stderr
    return folder / "scheduled.tl"


def spec(folder, d, v, dtype):
    file = folder / "attention.py"
    file.write_text(f'''import torch


def attention(q, k, v):
    return ((q @ k.mT) * {d} ** -0.5).softmax(-1) @ v


def example_inputs():
    q, k = (torch.randn(2, 4, 256, {d}, dtype=torch.{dtype}) for _ in range(2))
    return q, k, torch.randn(2, 4, 256, {v}, dtype=torch.{dtype})
''')
    return file


@pytest.mark.parametrize("gpu, target, d, v, dtype", sample("sketches", CASES), ids=str)
def test_make_from_the_sketch_holds_and_spills_nothing(gpu, target, d, v, dtype, tmp_path):
    run = call("make", spec(tmp_path, d, v, dtype), "--from", "sketch", "--target", target,
               "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    certificate = json.loads((tmp_path / "made/certificate.json").read_text())
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    assert certificate["target"] == target
    named = {"t4": "rtx8000"}.get(gpu, gpu)  # the first by name of those that the target is for
    assert re.search(rf"^sketch +sketches/attention.tl for {named}, {target}", run.stderr, re.M)


def test_turings_loops_end_at_the_first_key_block_of_a_window(tmp_path):
    source = tmp_path / "nsa_window.py"
    source.write_text((ROOT / "examples/decode/nsa_window.py").read_text().replace("bfloat16", "float16"))
    run = call("make", source, "--from", "sketch", "--target", "sm_75", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    certificate = json.loads((tmp_path / "made/certificate.json").read_text())
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    assert "key_blocks(c, c.m * BM, BM).first):" in (tmp_path / "made/kernel.tl").read_text()


def test_for_the_a100_it_is_the_experts_program_but_for_the_columns_of_v(tmp_path):
    ours = scheduled(tmp_path, "a100", 128, 128, "bf16").read_text()
    experts = (ROOT / "tests/corpus/sm80_attention_fwd.tl").read_text()
    changed = experts.replace("param D = 128, BN = 64", "param D = 128, V = 128")
    changed = changed.replace("    k, v: in element[B, G, N, D]",
                              "    k: in element[B, G, N, D]\n    v: in element[B, G, N, V]")
    for words in ["o: out element[B, H, M, {}]", "tile v_s: element[BN, {}]",
                  "accumulator acc: real[ROWS, {}]"]:
        changed = changed.replace(words.format("D"), words.format("V"))
    assert sorted(ours.splitlines()) == sorted([*changed.splitlines(), "param BN = 64"])


def test_a_schedule_holds_in_every_order_and_one_with_a_wait_too_few_does_not(tmp_path):
    program = scheduled(tmp_path, "a100", 64, 64, "bf16")
    source = spec(tmp_path, 64, 64, "bfloat16")
    captured = tmp_path / "captured"
    assert call("capture", source, "--out", captured).returncode == 0
    run = call("check", program, "--spec", captured)
    assert run.returncode == 0, run.stderr + run.stdout
    broken = program.read_text().replace("cp_async_wait 1", "cp_async_wait 2")
    assert broken != program.read_text()
    program.write_text(broken)
    run = call("check", program, "--spec", captured)
    assert run.returncode == 1, run.stderr + run.stdout


def made_from(file, spec_file, folder, *words):
    return call("make", spec_file, "--from", file, "--target", "sm_80", "--check", "quick",
                "--out", folder / "made", *words)


@pytest.mark.parametrize("level", ["sketch", "sized", "scheduled"])
def test_make_goes_on_from_a_program_at_its_level(level, tmp_path):
    scheduled(tmp_path, "a100", 64, 64, "bf16")
    (tmp_path / "sketch.tl").write_text(SKETCH.read_text())
    file = tmp_path / f"{level}.tl"
    text = re.sub(r"\bacc\b", "summed", file.read_text())  # somebody's own name
    if level == "sized":  # and own tiles
        text = text.replace("param BN = 128", "param BN = 32")
    file.write_text(text)
    run = made_from(file, spec(tmp_path, 64, 64, "bfloat16"), tmp_path)
    assert run.returncode == 0, run.stderr
    program = (tmp_path / "made/kernel.tl").read_text()
    assert re.search(rf"^sketch +{level}.tl, {level}", run.stderr, re.M), run.stderr
    assert "summed" in program and ("BN = 32" in program) == (level == "sized")
    certificate = json.loads((tmp_path / "made/certificate.json").read_text())
    assert certificate["verdict"] == "holds" and certificate["expert"]["name"] == f"sketched/{level}.cu"


def causal(text):
    return text.replace("where(j < N, s[i, j], -inf)", "where(j < N and j <= i, s[i, j], -inf)")


@pytest.mark.parametrize("mask, exit_code", [("j <= i", 0), ("j < i", 1)])
def test_a_sketch_that_is_no_plain_attention_is_the_functions_own_and_judged(mask, exit_code, tmp_path):
    file = tmp_path / "own.tl"
    file.write_text(causal(SKETCH.read_text()).replace("j <= i", mask))
    source = spec(tmp_path, 64, 64, "bfloat16")
    source.write_text(source.read_text().replace(
        ").softmax(-1)", ").masked_fill(torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1), "
                         "-torch.inf).softmax(-1)"))
    run = made_from(file, source, tmp_path)
    assert run.returncode == exit_code, run.stderr
    assert "the program's own" in run.stderr and (tmp_path / "made").exists() == (exit_code == 0)


def test_a_program_to_start_from_is_refused_at_its_own_line(tmp_path):
    source, file = spec(tmp_path, 64, 64, "bfloat16"), tmp_path / "own.tl"
    assert_refused(made_from(file, source, tmp_path), "sketch.read", f"cannot read '{file}': No such file")
    (tmp_path / "folder.tl").mkdir()
    assert_refused(made_from(tmp_path / "folder.tl", source, tmp_path), "sketch.read", "folder.tl", "Is a directory")
    text = SKETCH.read_text()

    def refused(change, code, *parts):
        changed = change(text)
        assert changed != text
        file.write_text(changed)
        line = 1 + next(n for n, (a, b) in enumerate(zip(text.splitlines(), changed.splitlines())) if a != b)
        assert_refused(made_from(file, source, tmp_path), code, f"own.tl:{line}:", *parts)

    refused(lambda t: t.replace("mma s = q_s @ k_s.T", "mma s = q_s @@ k_s.T"), "tl.syntax")
    refused(lambda t: t.replace("level sketch", "level drawn"), "sketch.level", "drawn", "sketch, sized and scheduled")
    refused(lambda t: t.replace("        copy acc -> o", "        for j1 in blocks(N):\n            fill l = 0.0\n"
                                "        copy acc -> o"), "sketch.shape", "a second loop over blocks")
    refused(lambda t: t.replace("D = 128, V = 128", "D = 128, W = 128").replace("V]", "W]"), "sketch.param", "`V`")
    assert_refused(made_from("kernel.cu", source, tmp_path), "driver.from", "'kernel.cu'", "kernelwright port", "NAME.tl")


def test_a_gpu_without_a_description_is_refused_with_those_that_have_one():
    assert_refused(call("size", SKETCH, "--gpu", "b300"), "timeline.gpu",
                   "no GPU is called 'b300'; there are a10, a100, h200, l40s, rtx8000, t4", "gpus/b300.json")


def test_a_target_that_no_described_gpu_runs_is_refused(tmp_path):
    source, home = spec(tmp_path, 64, 64, "bfloat16"), tmp_path / "home"
    (home / "gpus").mkdir(parents=True)
    for name in (".venv", "cuda", "kernels", "python", "sketches"):
        (home / name).symlink_to(ROOT / name)
    (home / "gpus/l40s.json").symlink_to(ROOT / "gpus/l40s.json")
    assert_refused(call("make", source, "--from", "sketch", "--target", "sm_86", "--out", tmp_path / "made",
                        KERNELWRIGHT_HOME=str(home)), "sketch.gpu", "no GPU of gpus/ runs sm_86", "l40s (sm_89)")


def test_a_parameter_is_a_name_and_a_number():
    assert_refused(call("size", SKETCH, "--gpu", "a100", "--param", "D"), "cli.param", "D=128")


def test_bf16_on_turing_is_refused():
    assert_refused(call("size", SKETCH, "--gpu", "t4"), "timeline.gpu", "mma.bf16")


PRODUCT = ROOT / "sketches/product.tl"
PRODUCTS = [(name, target) for target in ("sm_75", "sm_80", "sm_89", "sm_90a")
            for name in ("gemm", "gemm_gelu", "gemm_reduce_sum")]


def product(folder, name, dtype="bfloat16"):
    file = folder / f"{name}.py"
    file.write_text((ROOT / f"examples/products/{name}.py").read_text().replace("bfloat16", dtype))
    return file


@pytest.mark.parametrize("name, target", sample("sketches of products", PRODUCTS), ids=str)
def test_make_of_a_product_from_the_sketch_holds_and_spills_nothing(name, target, tmp_path):
    source = product(tmp_path, name, "float16" if target == "sm_75" else "bfloat16")
    run = call("make", source, "--from", "sketch", "--target", target, "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    certificate = json.loads((tmp_path / "made/certificate.json").read_text())
    assert certificate["verdict"] == "holds" and cubin_check(certificate)["spill_bytes"] == 0
    assert re.search(rf"^sketch +sketches/product.tl for \w+, {target}: \d+ rows, \d+ columns", run.stderr, re.M)


@pytest.mark.parametrize("target", ["sm_86", "sm_89"])
def test_the_experts_product_has_tiles_for_gpus_with_less_shared_memory(target, tmp_path):
    run = call("make", product(tmp_path, "gemm"), "--target", target, "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    assert "param BN = 64, BK = 64, STAGES = 3" in (tmp_path / "made/kernel.tl").read_text()


def test_without_an_experts_product_the_sketch_is_taken_and_said_so(tmp_path):
    home = tmp_path / "home"
    (home / "kernels/sm80").mkdir(parents=True)
    for name in (".venv", "cuda", "gpus", "python", "sketches"):
        (home / name).symlink_to(ROOT / name)
    (home / "kernels/sm80/attention_fwd.cu").symlink_to(ROOT / "kernels/sm80/attention_fwd.cu")
    run = call("make", product(tmp_path, "gemm"), "--target", "sm_80", "--check", "quick", "--out", tmp_path / "made",
               KERNELWRIGHT_HOME=str(home))
    assert run.returncode == 0, run.stderr
    assert "sketches/product.tl for a100, sm_80" in run.stderr and "no expert's kernel is for sm_80" in run.stderr


@pytest.mark.parametrize("gpu, was, slip, code", [  # by running it, 1, or by a law, 2
    ("a100", "cp_async_wait 1", "cp_async_wait 2", 1), ("l40s", "if k > 0:", "if k > 1:", 1),
    ("h200", "r * ROWS, k * BK]", "r * ROWS, k * 32]", 1), ("h200", "wgmma_wait_group 1", "wgmma_wait_group 2", 2),
    ("t4", "        sync_block\n            load", "        load", 1)])
def test_a_scheduled_product_with_a_slip_is_refuted(gpu, was, slip, code, tmp_path):
    dtype = "float16" if gpu == "t4" else "bfloat16"
    for step in (["size", PRODUCT, "--dtype", "f16" if gpu == "t4" else "bf16"], ["schedule", tmp_path / "size.tl"]):
        run = call(*step, "--gpu", gpu, "--out", tmp_path / f"{step[0]}.tl")
        assert run.returncode == 0, run.stderr
    program, captured = tmp_path / "schedule.tl", tmp_path / "captured"
    assert call("capture", product(tmp_path, "gemm", dtype), "--out", captured).returncode == 0
    run = call("check", program, "--spec", captured)
    assert run.returncode == 0, run.stderr + run.stdout
    text = program.read_text()
    assert was in text
    program.write_text(text.replace(was, slip, 1))
    run = call("check", program, "--spec", captured)
    assert run.returncode == code, run.stderr + run.stdout
