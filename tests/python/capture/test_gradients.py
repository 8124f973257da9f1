"""Gradients as capture has them: PyTorch's own of the user's function, and a form that gives other ones is refused."""

import json

import numpy as np
import pytest
import torch

from kernelwright.capture import capture, gradients, load
from kernelwright.capture.diagnostic import Problem
from kernelwright_cli import call

SPEC = """import torch

def attention(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = (q @ k.mT * 64**-0.5).masked_fill(j > i, -torch.inf)
    return {output}

def example_inputs():
    return tuple(torch.randn(2, heads, 96, 64, dtype=torch.bfloat16) for heads in (4, 2, 2))
"""
PLAIN = "scores.softmax(-1) @ v"


def spec_of(folder, output=PLAIN):
    path = folder / "attention.py"
    path.write_text(SPEC.format(output=output))
    return path


def add_argument(path, name, example):
    """A fourth argument, and what it is in example_inputs()."""
    path.write_text(path.read_text().replace("(q, k, v):", f"(q, k, v, {name}):").replace(
        "return tuple(", "return (*(").replace("(4, 2, 2))", f"(4, 2, 2)), {example})"))


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gradients")
    capture.capture_file(str(spec_of(folder)), None, None, folder / "out", training="backward")
    return folder / "out"


def test_they_are_autograds_of_the_function_itself(captured):
    index = json.loads((captured / "goldens.json").read_text())
    truths = np.load(captured / "truth.npy")
    spec = load.load(str(captured.parent / "attention.py"))
    at = 0
    for entry in index["cases"]:
        drawn = {}
        for how in entry["draws"]:
            drawn[how["name"]] = gradients.goldens.draw(how, entry["seed"], how["stream"], torch.bfloat16,
                                                        how["shape"]).double()
        leaves = [drawn[name].requires_grad_() for name in ("q", "k", "v")]
        want = torch.autograd.grad(spec.function(*leaves), leaves, drawn[gradients.OF_OUTPUTS[0]])
        for one, whole in zip(entry["gradients"], want):
            part = whole.index_select(1, torch.tensor(one["heads"]))
            assert list(part.shape) == one["shape"]
            got = torch.from_numpy(truths[at:at + part.numel()]).view(part.shape)
            assert torch.allclose(got, part, rtol=1e-9, atol=1e-12)
            at += part.numel()
    assert at == truths.size


def test_of_two_query_heads_the_key_heads_that_they_read_are_kept(captured):
    entry = json.loads((captured / "goldens.json").read_text())["cases"][0]
    heads = {one["of"]: one["heads"] for one in entry["gradients"]}
    assert heads["q"] == [0, 3] and heads["k"] == heads["v"] == [0, 1]


def test_the_form_gives_pytorchs_gradients(captured):
    run = call("capture", captured, "--form")
    assert run.returncode == 0, run.stderr
    assert "slope   0.125" in run.stdout and "gives   dq, dk, dv" in run.stdout


def test_a_form_with_other_gradients_is_our_own_fault(captured, tmp_path):
    for name in ("graph.json", "source.py"):
        (tmp_path / name).write_bytes((captured / name).read_bytes())
    truths, errors = np.load(captured / "truth.npy"), np.load(captured / "own_error.npy")
    case = json.loads((captured / "goldens.json").read_text())["cases"][-1]
    (tmp_path / "goldens.json").write_text(json.dumps({"cases": [case]}))
    sizes = [int(np.prod(one["shape"])) for one in case["gradients"]]
    np.save(tmp_path / "own_error.npy", errors[-sum(int(np.prod(one["rows"])) for one in case["gradients"]):])
    for first in (0, sizes[0], sizes[0] + sizes[1]):  # a row of dq, of dk, of dv; not the first, which is zero
        wrong = truths[-sum(sizes):].copy()
        wrong[first + 64:first + 128] *= 1 + 1e-7
        np.save(tmp_path / "truth.npy", wrong)
        run = call("capture", tmp_path, "--form")
        assert run.returncode == 70 and "does not compute what PyTorch does" in run.stderr


@pytest.mark.parametrize("output, why", [
    ("(scores.softmax(-1) @ v, scores.softmax(-1).sum(-2))", "the function returns sums of columns"),
])
def test_a_function_whose_gradients_nobody_writes_is_refused_at_its_line(tmp_path, output, why):
    run = call("capture", spec_of(tmp_path, output), "--backward")
    assert run.returncode == 2 and "error[spec.gradient]" in run.stderr and why in run.stderr
    assert "attention.py:" in run.stderr


def test_queries_that_are_keys_too_are_refused(tmp_path):
    path = spec_of(tmp_path, "(q @ q.mT).softmax(-1) @ v")
    path.write_text(path.read_text().replace("    k, v = (x.repeat_interleave(2, 1) for x in (k, v))\n", "").replace("(4, 2, 2)", "(4, 4, 4)"))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "its queries are its keys or its values, too" in run.stderr, run.stderr


def test_of_what_is_read_beside_the_operands_no_gradient_is_given(tmp_path):
    path = tmp_path / "alibi.py"
    path.write_text(SPEC.format(output=PLAIN).replace("(q, k, v):", "(q, k, v, slopes):").replace(
        "scores = (", "scores = (slopes[:, None, None] * (j - i) + ").replace("(q @ k.mT * 64**-0.5)", "q @ k.mT * 64**-0.5)")
        .replace("return tuple(", "return (*(").replace("(4, 2, 2))", "(4, 2, 2)), torch.rand(4))")
        .replace("scores.softmax(-1)", "scores.softmax(-1).bfloat16()"))
    run = call("capture", path, "--backward", "--form")
    assert run.returncode == 0 and "gives   dq, dk, dv" in run.stdout and "slopes[h]" in run.stdout, run.stderr


def test_of_a_table_by_distances_each_entry_has_one(tmp_path):
    path = spec_of(tmp_path, "(scores + table[(j - i).clamp(-9, 9) + 9].permute(2, 0, 1)).softmax(-1).bfloat16() @ v")
    add_argument(path, "table", "torch.randn(19, 4)")
    run = call("make", path, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "learned" in run.stderr, run.stderr
    assert "add_diagonals" in (tmp_path / "out/backward/kernel.cu").read_text()


@pytest.mark.parametrize("bias, drawn", [("bias", "torch.randn(2, 1, 96, 96)"), ("0.5 * bias", "torch.randn(96, 96)")])
def test_of_a_bias_of_pairs_each_pair_has_one(tmp_path, bias, drawn):
    path = spec_of(tmp_path, f"(scores + {bias}).softmax(-1).bfloat16() @ v")
    add_argument(path, "bias", drawn)
    run = call("make", path, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "pairs" in run.stderr, run.stderr
    assert "kw::sum_tiles(args.pairs" in (tmp_path / "out/backward/kernel.cu").read_text()


def test_of_a_factor_of_a_head_there_is_one(tmp_path):
    path = spec_of(tmp_path, "(q @ k.mT * factor.exp()).softmax(-1).bfloat16() @ v")
    add_argument(path, "factor", "torch.randn(4, 1, 1)")
    run = call("capture", path, "--backward", "--form")
    assert run.returncode == 0 and "d_factor" in run.stdout and "learns  factor: s *" in run.stdout, run.stderr


def test_of_a_single_head_of_keys(tmp_path):
    path = spec_of(tmp_path)
    path.write_text(path.read_text().replace("    k, v = (x.repeat_interleave(2, 1) for x in (k, v))\n", "").replace("(4, 2, 2)", "(4, 1, 1)"))
    run = call("make", path, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("line, why", [
    ("k = k.detach()", "error[spec.gradient]: attention detaches what it computes of its arguments here"),
    ("scores = scores + (5 * torch.tanh(scores / 5) - scores).detach()", "error[spec.gradient]: attention detaches"),
    ("with torch.no_grad(): v = v * 2", "error[spec.gradient]: attention computes mul of its arguments without its gradient here"),
])
def test_a_derivative_that_the_function_stops_is_refused(tmp_path, line, why):
    path = spec_of(tmp_path)
    before = "    scores = " if line.startswith("k") else "    return "
    path.write_text(path.read_text().replace(before, f"    {line}\n{before}", 1))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and why in run.stderr and "attention.py:" in run.stderr, run.stderr


FROZEN = """@torch.no_grad()
def frozen(x):
    return x * 1.0


def attention"""
BY_KEYS = "torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU))"


@pytest.mark.parametrize("lines, at, why", [
    (["scores = torch.where(i > 20000, frozen(scores), scores)"], 5, "computes mul of its arguments without its gradient"),
    (["scores = scores + (frozen(scores.clamp(max=300.0)) - frozen(scores))"], 5, "computes mul of its arguments without"),
    (["with torch.inference_mode():", "    t = scores * 1.0", "scores = torch.where(i > 20000, t, scores)"], 8, "computes mul of"),
    ([f"with {BY_KEYS}:", "    t = scores * 1.0", "scores = torch.where(i > 20000, t, scores)"], 8, "computes mul of"),
    (["torch.set_grad_enabled(False)", "scores = torch.where(i > 20000, scores.softmax(-1), scores)"], 8, "computes softmax of"),
    (["scores = (scores * 1.0).mT", "with torch.no_grad(): scores.mul_(torch.where(j[:, None] > 20000, 2.0, 1.0))", "scores = scores.mT"],
     8, "writes into a tensor by mul_ without a gradient"),
    (["t = torch.zeros_like(scores)", "with torch.no_grad(): t.copy_(scores)", "scores = torch.where(i > 20000, t, scores)"], 8,
     "writes into a tensor by copy_"),
    (["with torch._C.DisableTorchFunction(), torch.no_grad(): t = scores * 1.0", "scores = torch.where(i > 20000, t, scores)"], 7,
     "computes aten.mul.Tensor here where PyTorch tells nobody"),
    (["q.requires_grad_(False)", "t = q * 1.0", "q.requires_grad_(True)", "scores = torch.where(i > 20000, t @ k.mT, scores)"], 7,
     "lets requires_grad_ take its gradient from a tensor"),
    (["scores = torch.utils.checkpoint.checkpoint(lambda s: torch.where(i > 20000, frozen(s), s), scores, use_reentrant=False)"], 5,
     "computes mul of"),
])
def test_a_guard_that_stops_a_derivative_is_refused_where_no_data_reach_it(tmp_path, lines, at, why):
    """Of a function whose gradient and whose trace's are the same on all goldens: it is the guard's effect that is seen."""
    path = spec_of(tmp_path)
    text = path.read_text().replace("    return ", "".join(f"    {line}\n" for line in lines) + "    return ", 1)
    path.write_text(text.replace("def attention", FROZEN, 1) if "frozen" in text else text)
    line = 1 + path.read_text().splitlines().index("    return x * 1.0") if "frozen" in text else at
    with pytest.raises(Problem) as refused:
        capture.capture_file(str(path), None, None, tmp_path / "out", training="backward")
    assert refused.value.code == "spec.gradient" and why in str(refused.value), refused.value
    assert refused.value.line == line and "recompute" in refused.value.hint


@pytest.mark.parametrize("lines", [
    ["with torch.no_grad(): keep = j <= i", "scores = scores.masked_fill(~keep, -torch.inf)"],
    ["with torch.no_grad(): far = scores > 3", "scores = torch.where(far, scores * 2, scores)"],
    ["with torch.inference_mode(): m = torch.where(j > i, -torch.inf, 0.0)", "scores = scores + m.to(scores)"],
    ["with torch.no_grad(): m = torch.zeros_like(scores).masked_fill(j > i, -torch.inf)", "scores = scores + m"],
    ["m, scores = torch.broadcast_tensors(torch.where(j > i, -torch.inf, 0.0).type_as(q), scores)", "scores = scores + m"],
    ["scores = scores.clone()", "scores.masked_fill_(j > i + 1, -torch.inf)"],
    ["q = torch.nn.functional.rms_norm(q, (64,))", "scores = torch.einsum('bhmd,bhnd->bhmn', q, k) * 0.125"],
    ["return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)"],
])
def test_a_guard_around_what_has_no_derivative_is_none(tmp_path, lines):
    path = spec_of(tmp_path)
    path.write_text(path.read_text().replace("    return ", "".join(f"    {line}\n" for line in lines) + "    return ", 1))
    capture.capture_file(str(path), None, None, tmp_path / "out", training="backward")


@pytest.mark.parametrize("how", ["padding_idx=0", "padding_idx=-2", "scale_grad_by_freq=True", "sparse=True", "max_norm=0.5"])
def test_an_embedding_whose_gradient_is_another_is_refused(tmp_path, how):
    path = spec_of(tmp_path, "(scores + torch.nn.functional.embedding((i - j).clamp(-5, 5) + 5, table, " + how +
                   ").permute(2, 0, 1)).softmax(-1).to(v.dtype) @ v")
    add_argument(path, "table", "torch.randn(11, 4)")
    run, name = call("capture", path, "--backward"), how.partition("=")[0]
    why = "error[spec.writes]" if name == "max_norm" else f"error[spec.gradient]: attention looks up an embedding with {name} here"
    assert run.returncode == 2 and why in run.stderr and "attention.py:7" in run.stderr, run.stderr
    assert call("capture", path).returncode == (2 if name == "max_norm" else 0)


def test_a_derivative_of_1_over_0_is_refused(tmp_path):
    """Of 0 * inf PyTorch makes 0 where it is a ReLU's."""
    path = spec_of(tmp_path, "scores.float().relu().sqrt().softmax(-1).to(v.dtype) @ v")
    path.write_text(path.read_text().replace(".masked_fill(j > i, -torch.inf)", ""))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "error[spec.gradient]: the gradient of q has a derivative that is infinite" in run.stderr, run.stderr
    assert "attention.py:7" in run.stderr and call("capture", path).returncode == 0
    path.write_text(path.read_text().replace(".relu()", ".relu().add(1e-3)"))
    run = call("capture", path, "--backward")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("hooks", ["torch.autograd.graph.saved_tensors_hooks(lambda x: x * 0 if x.shape[-1] > 5000 else x, lambda x: x)",
                                   "torch.autograd.graph.save_on_cpu()", "Compressed()"])
def test_hooks_on_what_is_kept_for_gradients_are_refused(tmp_path, hooks):
    path = spec_of(tmp_path, "output(scores, v)")
    path.write_text(path.read_text().replace("def attention", f'''class Compressed(torch.autograd.graph.saved_tensors_hooks):
    def __init__(self):
        super().__init__(lambda x: x.to(torch.float8_e4m3fn) if x.numel() > 2**24 else x, lambda x: x)


def output(scores, v):
    with {hooks}:
        return scores.softmax(-1) @ v


def attention'''))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "error[spec.gradient]: attention sets hooks on the tensors that are kept" in run.stderr, run.stderr
    assert "attention.py:9" in run.stderr and call("capture", path).returncode == 0


def test_checkpointing_is_no_such_hook(tmp_path):
    path = spec_of(tmp_path, "torch.utils.checkpoint.checkpoint(lambda s, v: s.softmax(-1) @ v, scores, v, use_reentrant=False)")
    path.write_text(path.read_text().replace("import torch", "import torch\nimport torch.utils.checkpoint", 1))
    run = call("capture", path, "--backward")
    assert run.returncode == 0, run.stderr


def test_a_gradient_of_ones_own_is_refused(tmp_path):
    path = spec_of(tmp_path)
    path.write_text(path.read_text().replace("def attention", '''class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-1000.0, 1000.0)


def attention''').replace("    scores = ", "    k = Clipped.apply(k)\n    scores = ", 1))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "error[spec.gradient]: attention has a gradient of its own, of Clipped" in run.stderr, run.stderr
    assert call("capture", path).returncode == 0


def test_a_hook_on_gradients_is_refused(tmp_path):
    path = spec_of(tmp_path, "(scores.register_hook(lambda g: g * 2), scores.softmax(-1) @ v)[1]")
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "asks for register_hook" in run.stderr, run.stderr


def test_at_its_bounds_a_clamp_has_the_derivative_of_its_input(tmp_path):
    path = spec_of(tmp_path)
    path.write_text(path.read_text().replace("    return ", "    scores = scores.clamp(0.0, 4.0)\n    return ", 1)
                    .replace(".masked_fill(j > i, -torch.inf)", ""))
    run = call("capture", path, "--backward", "--form")
    assert run.returncode == 0, run.stderr
    slope = next(line for line in run.stdout.splitlines() if line.strip().startswith("slope"))
    assert "where(4 < " in slope and "< 0, 0," in slope and "<=" not in slope, slope


@pytest.mark.parametrize("returned, learned", [("", True), (", scores.logsumexp(-1)", False)])
def test_a_vector_of_rows_adds_nothing_unless_log_sums_are_returned(tmp_path, returned, learned):
    """Gradients of a row's scores add up to 0; with the log-sums, to their gradient, which no kernel sums up by rows."""
    path = tmp_path / "attention.py"
    path.write_text(f"""import torch

def attention(q, k, v, g):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scores = ((q @ k.mT).float() * 0.125 + g[:, :, :, None] - g[:, :, None, :]).masked_fill(j > i, -torch.inf)
    return scores.softmax(-1).to(v.dtype) @ v{returned}

def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(2, 4, 96)
""")
    run = call("capture", path, "--backward", "--form")
    assert run.returncode == 0, run.stderr
    assert ("d_g" in run.stdout) == learned, run.stdout


def test_a_gate_of_weights_without_a_softmax(tmp_path):
    path = tmp_path / "attention.py"
    path.write_text("""import torch

def attention(q, k, v, gates):
    weights = torch.sigmoid((q @ k.mT).float() * 0.125 - 3.0)
    return (weights.to(v.dtype) @ v) * gates[:, None, None].to(v.dtype)

def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.rand(4)
""")
    run = call("make", path, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "epilogue" in run.stderr, run.stderr


def test_a_gate_of_each_query(tmp_path):
    path = spec_of(tmp_path, "scores.softmax(-1) @ v * gates.sigmoid()[:, :, :, None]")
    add_argument(path, "gates", "torch.randn(2, 4, 96, dtype=torch.bfloat16)")
    run = call("make", path, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "epilogue" in run.stderr, run.stderr


def test_weights_over_their_sum_have_gradients_in_bf16_where_none_is_negative(tmp_path):
    path = spec_of(tmp_path, "(weights / weights.sum(-1, keepdim=True)).nan_to_num() @ v")
    path.write_text(path.read_text().replace(".masked_fill(j > i, -torch.inf)", ".masked_fill(j > i, 0.0)").replace(
        "    return ", "    weights = scores.relu().square()\n    return ", 1))
    run = call("capture", path, "--backward", "--form")
    assert run.returncode == 0 and "divided by the sum" in run.stdout and "slope" in run.stdout, run.stderr
    path.write_text(path.read_text().replace("bfloat16", "float16"))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "which is of weights that are rounded to bfloat16" in run.stderr, run.stderr
    path.write_text(path.read_text().replace("float16", "bfloat16").replace(".relu().square()", ".tanh()"))
    run = call("capture", path, "--backward")
    assert run.returncode == 2 and "some may be negative" in run.stderr, run.stderr
