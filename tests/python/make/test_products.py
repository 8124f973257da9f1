"""Products of matrices, from plain PyTorch to a checked kernel; and what is refused of them.

Each text is a function of a and b with its example_inputs(); the kernel is kernels/sm80/gemm.cu, or on Hopper
kernels/sm90/gemm.cu. PyTorch is loaded once: what Python captures is captured in this process.
"""

import json
import re
import runpy

import pytest
import torch
from kernelwright.capture import capture
from kernelwright_cli import ROOT, assert_refused, call

SPEC = """import torch


def product(a, b{more}):
    {body}


def example_inputs():
    return (torch.randn({a}, dtype=torch.bfloat16), torch.randn({b}, dtype=torch.bfloat16){values})
"""


def spec(folder, body, a="96, 72", b="72, 80", more="", values=""):
    path = folder / "product.py"
    path.write_text(SPEC.format(body=body, a=a, b=b, more=more, values=values))
    return path


def captured(folder, *words, **parts):
    path = spec(folder, *words, **parts)
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


def form(folder, *words, **parts):
    run = call("capture", captured(folder, *words, **parts), "--form")
    assert run.returncode == 0, run.stderr
    return [line.strip() for line in run.stdout.splitlines()[1:]]


def test_a_product_and_what_becomes_of_it_is_a_form(tmp_path):
    said = form(tmp_path, "return (2 * (a @ b) + bias[:, None]).relu()", more=", bias",
                values=", torch.randn(96)")
    assert said == ["s       sum over d of a[i, d] * b[d, j]", "value   relu(s * 2 + bias[i])",
                    "gives   each value"]


def test_ways_to_write_one_product_give_one_form(tmp_path):
    plain = form(tmp_path, "return a @ b")
    assert plain[:1] == ["s       sum over d of a[i, d] * b[d, j]"]
    for body in ('return torch.einsum("mk,kn->mn", a, b)', "return torch.mm(a, b)",
                 "return torch.matmul(a.mT.mT, b)", "return (b.mT @ a.mT).mT.contiguous() * 1"):
        assert form(tmp_path, body)[-2:] == plain[-2:], body


def test_batches_belong_to_the_sides_that_have_them(tmp_path):
    assert form(tmp_path, "return a @ b", a="2, 96, 72")[0] == "s       sum over d of a[b, i, d] * b[d, j]"
    assert form(tmp_path, "return a @ b", a="2, 3, 96, 72", b="2, 3, 72, 80")[0] \
        == "s       sum over d of a[b, h, i, d] * b[b, h, d, j]"


def test_sums_of_rows_alone_or_beside_the_matrix(tmp_path):
    assert form(tmp_path, "c = a @ b\n    return c, c.sum(-1)")[2:] == \
        ["gives   each value", "also     the sum of each row's values"]
    assert form(tmp_path, "return (a @ b).sum(-1)")[2:] == ["gives    the sum of each row's values"]


@pytest.mark.parametrize("body, code, part", [
    ("c = a @ b\n    return c, c.sum(0)", "spec.product", "not the sum of the first over its columns"),
    ("return a.relu() @ b", "spec.operand", "not an argument as it is"),
    ("return (a @ b).softmax(-1)", "spec.not_attention", "not attention"),
])
def test_what_is_neither_is_refused_with_the_line(tmp_path, body, code, part):
    run = call("capture", captured(tmp_path, body), "--form")
    assert_refused(run, code, part, ".py:")


def test_a_left_side_with_columns_apart_is_refused(tmp_path):
    run = call("make", captured(tmp_path, "return (a @ b).mT"), "--out", tmp_path / "out")
    assert_refused(run, "transfer.operand", "contiguous")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """GEMM + ReduceSum of values of the product, batches of one side alone."""
    folder = tmp_path_factory.mktemp("product")
    text = "c = (a @ b + bias).relu()\n    return c, c.sum(-1)"
    source = captured(folder, text, a="2, 96, 72", more=", bias", values=", torch.randn(80)")
    run = call("make", source, "--target", "sm_80", "--check", "quick", "--out", folder / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


def test_make_gives_a_folder_as_any_other(made):
    certificate = json.loads((made / "certificate.json").read_text())
    assert certificate["verdict"] == "holds" and certificate["expert"]["name"] == "kernels/sm80/gemm.cu"
    assert [r["rule"] for r in certificate["transfer"]["rules"]] == ["batches", "value", "row_sums"]
    assert "What it keeps" not in (made / "report.html").read_text()
    cases = json.loads((made / "prove.json").read_text())["cases"]
    assert {g["output"] for case in cases for g in case["goldens"]} == {"o", "sums"}


def test_another_random_example_gives_the_same_cases(tmp_path):
    for n in (1, 2):
        (tmp_path / str(n)).mkdir()
        captured(tmp_path / str(n), "return a @ b")
    first, second = ((tmp_path / f"{n}/captured/goldens.json").read_text() for n in (1, 2))
    assert first == second


@pytest.mark.parametrize("was, slip, output", [
    ("bias[j]", "bias[max(j, 1)]", "o"),
    ("where(j < N, ", "where(j < N - 1, ", "o"),
    ("where(j < N, ", "where(j < N + 64, ", "sums"),
    ("row_sum l += acc", "row_sum l += acc\n        row_sum l += acc", "sums"),
])
def test_a_slip_is_refuted(made, tmp_path, was, slip, output):
    program = (made / "kernel.tl").read_text()
    assert was in program
    (tmp_path / "slip.tl").write_text(program.replace(was, slip, 1))
    run = call("check", tmp_path / "slip.tl", "--spec", made.parent / "captured", "--check", "quick", "--json")
    assert run.returncode == 1, run.stdout + run.stderr
    assert json.loads(run.stdout)["counterexample"]["output"] == output


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """A layer as torch.nn.Linear has it: the sum along the rows of both sides."""
    folder = tmp_path_factory.mktemp("linear")
    source = captured(folder, "return (a @ b.mT + bias).relu()", a="2, 96, 72", b="80, 72", more=", bias",
                      values=", torch.randn(80)")
    run = call("make", source, "--target", "sm_80", "--check", "quick", "--out", folder / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    return folder / "out"


def test_a_right_side_with_the_sum_along_its_rows_is_a_kernel(linear):
    certificate = json.loads((linear / "certificate.json").read_text())
    assert certificate["verdict"] == "holds"
    assert [r["rule"] for r in certificate["transfer"]["rules"]] == ["batches", "right_rows", "value"]
    assert "kw::mma_add_transposed(acc, a_r, shared.b_s[k]);" in (linear / "kernel.cu").read_text()


def test_the_sums_of_attentions_columns_are_a_product(tmp_path):
    """examples/products/key_mass.py is the sum over queries of what PyTorch's softmax gives each key, and a kernel."""
    torch.manual_seed(1)
    source = ROOT / "examples/products/key_mass.py"
    function = runpy.run_path(str(source))["key_mass"]
    k, q = (torch.randn(2, 3, 40, 128, dtype=torch.float64) for _ in range(2))
    scores = (q @ k.mT * 128**-0.5).masked_fill(torch.ones(40, 40).triu(1) > 0, -torch.inf)
    assert torch.allclose(function(k, q, scores.logsumexp(-1)), scores.softmax(-1).sum(-2), rtol=1e-12)
    capture.capture_file(str(source), None, None, tmp_path / "captured")
    run = call("make", tmp_path / "captured", "--target", "sm_80", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    certificate = json.loads((tmp_path / "out/certificate.json").read_text())
    assert [r["rule"] for r in certificate["transfer"]["rules"]] == ["right_rows", "value", "row_sums", "matrix"]
    program = (tmp_path / "out/kernel.tl").read_text()
    split = re.sub(r"exp2\(\((.*) - (lse\[.*?\])\) \* log2e\)", r"exp2(\1 * log2e) * exp2(-\2 * log2e)", program)
    assert split != program
    (tmp_path / "split.tl").write_text(split)  # right in the reals, and with scores near 100 beyond fp32
    run = call("check", tmp_path / "split.tl", "--spec", tmp_path / "captured")
    assert run.returncode == 1 and "refuted" in run.stdout, run.stdout + run.stderr


@pytest.mark.parametrize("was, slip", [
    ("b[0, c.h, n * BN, k * BK]", "b[0, c.h, n * BN, max(k - 1, 0) * BK]"),
    ("b[0, c.h, n * BN, k * BK]", "b[0, c.h, (n + 1) * BN, k * BK]"),
    ("fill acc = 0.0", "fill acc = 1.0"),
])
def test_a_slip_with_rows_is_refuted(linear, tmp_path, was, slip):
    program = (linear / "kernel.tl").read_text()
    assert was in program
    (tmp_path / "slip.tl").write_text(program.replace(was, slip, 1))
    run = call("check", tmp_path / "slip.tl", "--spec", linear.parent / "captured", "--check", "quick")
    assert run.returncode == 1, run.stdout + run.stderr


def hopper(folder, source):
    run = call("make", source, "--target", "sm_90a", "--check", "quick", "--out", folder / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    certificate = json.loads((folder / "out/certificate.json").read_text())
    assert certificate["verdict"] == "holds" and certificate["expert"]["name"] == "kernels/sm90/gemm.cu"
    return folder / "out", [r["rule"] for r in certificate["transfer"]["rules"]]


@pytest.mark.parametrize("name, rules", [("gemm", []), ("gemm_gelu", ["batches", "value"]), ("gemm_reduce_sum", ["row_sums"])])
def test_an_example_on_hopper_is_hoppers_own_text(tmp_path, name, rules):
    capture.capture_file(str(ROOT / f"examples/products/{name}.py"), None, None, tmp_path / "captured")
    made, applied = hopper(tmp_path, tmp_path / "captured")
    assert applied == rules
    launch = json.loads((made / "launch.json").read_text())
    assert all(a["part_of_rows"] for a in launch["arguments"] if a["kind"] == "tensor_map")
    assert [p["entry"] for p in launch.get("after", [])] == (["add_sums"] if "row_sums" in rules else [])


@pytest.fixture(scope="module")
def hoppers_linear(tmp_path_factory):
    """A layer whose rows are summed, batches of one side alone, columns beyond the last that are no zeros."""
    folder = tmp_path_factory.mktemp("hopper")
    source = captured(folder, "c = (a @ b.mT + bias).relu()\n    return c, c.sum(-1)", a="2, 96, 72", b="80, 72",
                      more=", bias", values=", torch.randn(80)")
    return hopper(folder, source)


def test_a_layer_on_hopper_has_all_of_the_rules(hoppers_linear):
    made, rules = hoppers_linear
    assert rules == ["batches", "right_rows", "value", "row_sums"]
    text = (made / "kernel.cu").read_text()
    assert text.count("kw::wgmma_add_transposed(acc, shared.a_s[me][t") == 2
    assert text.count("kw::add_parts(args.parts, args.columns, w, args.sums);") == 1


@pytest.mark.parametrize("was, slip, code", [
    ("bias[j]", "bias[max(j, 1)]", None),
    ("where(j < N, ", "where(j < N + 64, ", None),
    ("row_sum l += acc", "row_sum l += acc\n            row_sum l += acc", None),
    ("* columns + c.n]", "* columns]", None),
    ("add_parts parts of columns", "add_parts parts of (columns + 1) // 2", None),
    ("wgmma_wait_group 1\n                arrive free[t]", "arrive free[t]\n                wgmma_wait_group 1", "arrive.C2"),
    ("            arrive free[t]\n            count t", "            arrive free[t + 1]\n            count t", None),
    ("            wait_free o_free[u]\n", "", "barrier.C4"),
])
def test_a_slip_on_hopper_is_refused(hoppers_linear, tmp_path, was, slip, code):
    made, _ = hoppers_linear
    program = (made / "kernel.tl").read_text()
    assert was in program
    (tmp_path / "slip.tl").write_text(program.replace(was, slip, 1))
    run = call("check", tmp_path / "slip.tl", "--spec", made.parent / "captured", "--check", "quick")
    assert run.returncode in (1, 2, 3), run.stdout + run.stderr  # refuted, no program, not to be decided
    assert not code or code in run.stdout + run.stderr


def test_sums_alone_on_hopper_store_no_matrix(tmp_path):
    made, rules = hopper(tmp_path, captured(tmp_path, "return (a @ b).sum(-1)"))
    assert rules == ["row_sums", "matrix"]
    assert "tma_store_tile" not in (made / "kernel.tl").read_text()
