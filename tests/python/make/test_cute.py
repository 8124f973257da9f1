"""Kernels in CuTe: what is printed, that it compiles without spills, and that it computes what it should.

A printed kernel runs on the host, thread by thread, with its atoms' instructions emulated
(tests/cute/emulated.h), and is held against attention in fp64. One variant and one compilation a commit (sample.py);
all of them when KW_TEST_ALL=1. The programs of tests/cute/*.tl are what transfer made of examples.
"""

import re
import subprocess

import pytest

from cute_build import build_on_host, compile_cute, emulated
from kernelwright_cli import ROOT, assert_refused, call
from sample import ALL, sample

HERE = ROOT / "tests/cute"
pytestmark = pytest.mark.network  # CUTLASS's headers
PLAIN = ROOT / "tests/corpus/sm80_attention_fwd.tl"
HOPPER = ROOT / "tests/corpus/sm90_attention_fwd.tl"
UNSCALE = "args.unscale = 1.4426950408889634f / args.scale;"
VARIANTS = {  # what the launcher gives beside the usual, and what the function says
    "prefix_lm": ("static int prefix[] = {40}; args.prefix = {prefix, {1}, {B}}; args.section = 1;",
                  "j <= i || j < 40", "x"),
    "softcap": ("args.scale = 50 * 1.4426950408889634f; args.section = 1;",
                "j <= i", "50 * std::tanh(x / scale * 0.0017677669)"),
    "alibi": ("static float slopes[] = {0.5f, 0.0625f}; args.slopes = {slopes, {1}, {H}}; args.section = 1;" + UNSCALE,
              "j <= i", "x + slopes[h] * (j - i)"),
    "relative_bias": ("static float table[H * 33]; for (float& t : table) t = normal(random);"
                      "args.table = {table, {33, 1}, {H, 33}}; args.S = 33;" + UNSCALE,
                      "true", "x + table[h * 33 + 16 + std::min(std::max(j - i, -16), 16)]"),
    "dense_bias": ("static element bias[H * M * N]; for (element& b : bias) b = element(normal(random));"
                   "args.bias = {bias, {H * M * N, M * N, N, 1}, {1, H, M, N}}; args.S = 1;" + UNSCALE,
                   "true", "x + float(bias[(h * M + i) * N + j])"),
    "documents": ("static int64_t document[M]; for (int i = 0; i < M; ++i) document[i] = i < 40 ? 0 : 1;"
                  "static int words[64]; args.document = {document, {M, 1}, {B, M}}; args.visits = {words};"
                  "args.lists = (M + kernel::BM - 1) / kernel::BM; args.section = 1;"
                  "args.list_words = 3 + (N + kernel::BN - 1) / kernel::BN;",
                  "j <= i && document[i] == document[j]", "x"),
}  # fmt: skip
BEFORE = {"documents": "for (int w = 0; w < args.lists; ++w) run_block(512, w, [&] { kernel::attention_lists(args); });"}


def printed(program, out, target="sm_80"):
    run = call("lower", program, "--to", "cute", "--target", target, "--out", out)
    assert run.returncode == 0, run.stderr
    return out.read_text()


def changed(program, folder, *edits):
    """The program with other constants or statements."""
    text = program.read_text()
    for pattern, instead in edits:
        text, count = re.subn(pattern, instead, text)
        assert count == 1, pattern
    path = folder / program.name
    path.write_text(text)
    return path


def small(program, folder):
    return changed(program, folder, (r"D = \d+, BN = \d+", "D = 64, BN = 32"), ("ROWS = 128, WARPGROUPS = 1", "ROWS = 64, WARPGROUPS = 2"))


def on_host(text, folder, *options, program="run.cpp"):
    (folder / "kernel.inc").write_text(emulated(text))
    build_on_host(folder / "program", HERE / program, f'-DKERNEL="{folder / "kernel.inc"}"', *options)
    return subprocess.run([folder / "program"], text=True, capture_output=True, timeout=100)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return printed(PLAIN, tmp_path_factory.mktemp("plain") / "plain.cu")


@pytest.fixture(scope="module")
def hopper(tmp_path_factory):
    return printed(HOPPER, tmp_path_factory.mktemp("hopper") / "hopper.cu", "sm_90a")


@pytest.mark.parametrize("program, text", [(PLAIN, "plain"), (HOPPER, "hopper")])
def test_each_statement_stands_over_its_lines(program, text, request):
    statements = [line.strip() for line in program.read_text().splitlines()]
    said = [line.strip()[3:] for line in request.getfixturevalue(text).splitlines() if line.strip().startswith("// ")]
    heads = ("args:", "shared:", "include")
    expected = [line for line in statements if not line.startswith(heads)]
    assert [line for line in said if line in set(expected)] == expected


def test_it_includes_cutlass_and_nothing_of_ours(plain, hopper):
    for text in (plain, hopper):
        assert all(name.startswith(("cute/", "cutlass/")) for name in re.findall(r"#include [<\"](\S+)[>\"]", text))
        assert "kw::" not in text and "kw/" not in text
    assert "SM80_16x8x16_F32BF16BF16F32_TN" in plain and "SM80_CP_ASYNC_CACHEGLOBAL_ZFILL" in plain


def test_the_element_type_and_the_target_choose_the_atoms(tmp_path):
    program = changed(PLAIN, tmp_path, ("element bf16", "element f16"))
    text = printed(program, tmp_path / "f16.cu", "sm_90")
    assert "SM80_16x8x16_F32F16F16F32_TN" in text and "BF16" not in text and "SM90_U32x4_STSM_N" in text


@pytest.mark.parametrize("program, target, code, part", [
    (HERE / "rope.tl", "sm_80", "cute.unspellable", "rows attention_rows"),
    (HOPPER, "sm_90", "target.C3", "sm_90a"),
    (("row m, factor", "row m, factor, vr"), "sm_80", "cute.name", "'vr'"),
], ids=["a pre-pass over rows", "Hopper's statements", "a name of the text's own"])  # fmt: skip
def test_what_has_no_spelling_is_refused(program, target, code, part, tmp_path):
    if isinstance(program, tuple):
        program = changed(PLAIN, tmp_path, program)
    run = call("lower", program, "--to", "cute", "--target", target)
    assert run.returncode == 2 and f"[{code}]" in run.stderr and part in run.stderr and not run.stdout, run.stderr


def test_a_target_without_atoms_is_refused():
    assert_refused(call("lower", PLAIN, "--to", "cute", "--target", "sm_70"), "cute.target", "sm_70", "sm_80")


def test_cute_lays_tiles_out_as_the_vocabulary_does(plain, tmp_path):
    prelude = plain[: plain.index("namespace kernel {")]
    (tmp_path / "prelude.inc").write_text(emulated(prelude, of_prelude=True))
    build_on_host(tmp_path / "layouts", HERE / "layouts.cpp", f'-DPRELUDE="{tmp_path / "prelude.inc"}"')
    run = subprocess.run([tmp_path / "layouts"], text=True, capture_output=True, timeout=100)
    assert run.returncode == 0 and run.stdout == "0 disagree\n", run.stdout


def test_cute_describes_tiles_to_wgmma_as_the_vocabulary_does(hopper, tmp_path):
    prelude = hopper[: hopper.index("namespace kernel {")]
    (tmp_path / "prelude.inc").write_text(emulated(prelude, of_prelude=True))
    build_on_host(tmp_path / "layouts", HERE / "hopper_layouts.cpp", f'-DPRELUDE="{tmp_path / "prelude.inc"}"')
    run = subprocess.run([tmp_path / "layouts"], text=True, capture_output=True, timeout=100)
    assert run.returncode == 0 and run.stdout == "0 disagree\n", run.stdout


@pytest.mark.parametrize("variant", sample("CuTe variants", VARIANTS))
def test_a_printed_variant_computes_its_function(variant, tmp_path):
    more, keeps, score = VARIANTS[variant]
    text = printed(small(HERE / f"{variant}.tl", tmp_path), tmp_path / "kernel.cu")
    run = on_host(text, tmp_path, f"-DMORE={more}", f"-DKEEPS(i, j)=({keeps})", f"-DSCORE(x, i, j)=({score})",
                  f"-DBEFORE={BEFORE.get(variant, '')}")
    print(run.stdout)
    assert run.returncode == 0, run.stdout


def turing(folder):
    """The plain program as sm_75 has it: f16, copied in, nothing under way."""
    text = re.sub(r"^ *(cp_async_commit|cp_async_wait \d)\n", "", PLAIN.read_text(), flags=re.M).replace("cp_async", "copy_in")
    path = folder / "turing.tl"
    path.write_text(text.replace("element bf16", "element f16").replace("ROWS = 128", "ROWS = 64"))
    return path


def test_turing_has_atoms_of_its_own(tmp_path):
    program = changed(turing(tmp_path), tmp_path, ("D = 128, BN = 64", "D = 64, BN = 32"))
    text = printed(program, tmp_path / "kernel.cu", "sm_75")
    assert "SM75_16x8x8_F32F16F16F32_TN" in text and "tl::copy_in<" in text
    run = on_host(text, tmp_path)
    print(run.stdout)
    assert run.returncode == 0, run.stdout


CASES = [("plain", "sm_80", 128), ("prefix_lm", "sm_80", 128), ("alibi", "sm_80", 128), ("softcap", "sm_80", 64),
         ("plain", "sm_89", 64), ("plain", "sm_90", 128), ("plain", "sm_80", 256),
         ("turing", "sm_75", 64)]  # fmt: skip


@pytest.mark.parametrize("name, target, columns", sample("CuTe compiled", CASES))
def test_it_compiles_without_spills(name, target, columns, tmp_path):
    program = PLAIN if name == "plain" else turing(tmp_path) if name == "turing" else HERE / f"{name}.tl"
    if columns == 64:
        program = changed(program, tmp_path, (r"D = \d+, BN = \d+", "D = 64, BN = 64"))
    if columns == 256:
        program = changed(program, tmp_path, (r"D = \d+", "D = 256"), ("ROWS = 128, WARPGROUPS = 1", "ROWS = 64, WARPGROUPS = 2"),
                          ("RESIDENT = 2", "RESIDENT = 1"))  # fmt: skip
    _, kernels = compile_cute(printed(program, tmp_path / "kernel.cu", target), target)
    assert len(kernels) == 1 and kernels[0]["spills"] == 0, kernels


def sketch(folder):
    """What the passes make of a sketch for Hopper: Q stays in shared memory."""
    sized, scheduled = folder / "sized.tl", folder / "scheduled.tl"
    sizes = ("--gpu", "h200", "--param", "D=128", "--param", "V=128")
    for command in (("size", ROOT / "sketches/attention.tl", *sizes, "--out", sized),
                    ("schedule", sized, "--gpu", "h200", "--out", scheduled)):  # fmt: skip
        run = call(*command)
        assert run.returncode == 0, run.stderr
    return scheduled


def test_hopper_has_the_copy_engine_wgmma_and_the_queue(hopper, tmp_path):
    for part in ("SM90_TMA_LOAD_MULTICAST_5D", "SM90_TMA_STORE_5D", "tl::wgmma_add(", "tl::TensorMap q;",
                 "warpgroup_reg_alloc<WARPGROUP_REGISTERS>", "tl::Barriers<(STAGES), (4 * WARPGROUPS), (CTAS)> k_free, v_free;"):  # fmt: skip
        assert part in hopper, part
    assert "cp_async" not in hopper and "struct Queue" not in hopper
    queued = printed(HERE / "hopper_causal.tl", tmp_path / "causal.cu", "sm_90a")
    assert "(w = tl::dynamic_tiles_warp(shared.work, u)) < args.blocks" in queued and "tl::schedule_tiles(shared.work, args.counter, " in queued


@pytest.mark.parametrize("name", ["causal", "sketch", "full"] if ALL else ["causal", "sketch"])
def test_hopper_compiles_without_spills_and_with_products_under_way(name, tmp_path):
    program = {"full": HOPPER, "causal": HERE / "hopper_causal.tl"}.get(name) or sketch(tmp_path)
    _, kernels = compile_cute(printed(program, tmp_path / "kernel.cu", "sm_90a"), "sm_90a")
    assert len(kernels) == 1 and kernels[0]["spills"] == 0, kernels
    assert kernels[0]["registers"] == 168, kernels  # 65536 shared out among 384 threads


HOPPER_VARIANTS = {  # the program, and what the function keeps
    "full": (HOPPER, "true", ""),
    "causal": (HERE / "hopper_causal.tl", "j <= i", "args.section = 1; args.counter = {words};"),
}


@pytest.mark.parametrize("variant", sample("CuTe variants of Hopper", HOPPER_VARIANTS))
def test_a_text_for_hopper_computes_its_function(variant, tmp_path):
    program, keeps, more = HOPPER_VARIANTS[variant]
    program = changed(program, tmp_path, ("D = 128, V = 128", "D = 64, V = 64"),
                      ("BM = 256, BN = 128, CTAS = 2", "BM = 128, BN = 64, CTAS = 1"))  # fmt: skip
    text = printed(program, tmp_path / "kernel.cu", "sm_90a")
    run = on_host(text, tmp_path, f"-DKEEPS(i, j)=({keeps})", f"-DMORE={more}", program="hopper_run.cpp")
    print(run.stdout)
    assert run.returncode == 0, run.stdout


def test_matrix_tiles_and_transposed_sums_are_spelled(tmp_path):
    text = printed(ROOT / "tests/corpus/sm80_gemm.tl", tmp_path / "gemm.cu")
    assert "tl::cp_async_tile<WARPGROUPS>(" in text and "tl::copy_tile_out<1>(" in text and "tl::load(mma, " in text
