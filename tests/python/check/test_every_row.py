"""tests/gpu/every_row.py without a GPU: kernels that are Python functions, at small shapes."""

import hashlib
import importlib.util
import json
import math

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
spec = importlib.util.spec_from_file_location("every_row", ROOT / "tests/gpu/every_row.py")
every_row = importlib.util.module_from_spec(spec)
spec.loader.exec_module(every_row)

HALF_ULP = every_row.HALF_ULP[torch.bfloat16]
SMALL = [(2, 40, 33), (1, 5, 70)]


def folder(tmp_path, file, bindings, scratch=()):
    """What `make` writes, as far as it is read. bindings: (argument, user, dims, dtype)."""
    digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
    (tmp_path / "certificate.json").write_text(json.dumps(
        {"spec": {"file": {"sha256": digest}},
         "transfer": {"bindings": [dict(zip(("argument", "user", "dims"), b)) for b in bindings]}}))
    (tmp_path / "launch.json").write_text(json.dumps(
        {"arguments": [{"name": b[0], "kind": "tensor", "dtype": b[3]} for b in bindings] +
                      list(scratch)}))
    return every_row.Claim.read(ROOT / file, tmp_path)


def operands(dims):
    return [(name, user, dims, "bf16") for name, user in
            (("q", "q"), ("k", "k"), ("v", "v"), ("o", ""))]


@pytest.fixture
def causal(tmp_path):
    return folder(tmp_path, "examples/causal.py", operands([0, 2, 1, 3]))


@pytest.fixture
def prefix_lm(tmp_path):
    return folder(tmp_path, "examples/prefix_lm.py",
                  operands([0, 1, 2, 3]) + [("prefix", "prefix", [0], "i32")])


def attention(inputs, name, empty):
    """Causal or prefix attention on [B, H, S, D], as the kernel of that name would compute it."""
    q, k, v = (inputs[n].float() for n in "qkv")
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    keep = j <= i
    if "prefix" in inputs:
        keep = keep | (j < inputs["prefix"][:, None, None, None])
    scores = (q @ k.mT / math.sqrt(q.shape[3])).masked_fill(~keep, -torch.inf)
    return empty.copy_(torch.softmax(scores, -1) @ v)


def run(claim, kernel, shapes=SMALL):
    lines = []
    return every_row.check(claim, kernel, shapes, lines.append), lines


@pytest.mark.parametrize("function", ["causal", "prefix_lm"])
def test_a_right_kernel_holds_on_every_row_of_every_head_in_both_layouts(function, request):
    orders = set()

    def kernel(inputs, name, empty):
        assert name == "o" and empty.isnan().all()
        orders.add(tuple(sorted(range(4), key=lambda d: -empty.stride(d))))
        assert inputs["q"].stride() == empty.stride()
        return attention(inputs, name, empty)

    holds, lines = run(request.getfixturevalue(function), kernel)
    assert holds and orders == {(0, 1, 2, 3), (0, 2, 1, 3)}
    assert [line.split("rows")[0].split()[-1] for line in lines if "holds" in line] == [
        str(2 * 32 * 40)] * 2 + [str(32 * 5)] * 2


def test_a_kernel_that_is_wrong_in_one_row_is_found_at_that_row(causal):
    def kernel(inputs, name, empty):
        output = attention(inputs, name, empty)
        output[-1, 31, 3] *= 1.05
        return output

    holds, lines = run(causal, kernel)
    assert not holds
    assert "WRONG, 1 rows, the first at (1, 3, 31)" in lines[1]  # [batch, sequence, head]


def test_a_kernel_that_leaves_a_row_unwritten_is_found(causal):
    def kernel(inputs, name, empty):
        output = attention(inputs, name, empty.clone())
        empty[:, :, :-1] = output[:, :, :-1]
        return empty

    holds, lines = run(causal, kernel)
    assert not holds and "WRONG, 64 rows" in lines[1]


def test_a_kernel_that_ignores_an_argument_is_found(prefix_lm):
    def kernel(inputs, name, empty):
        return attention({n: v for n, v in inputs.items() if n != "prefix"}, name, empty)

    assert not run(prefix_lm, kernel)[0]


def rows(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_the_rounded_truth_holds_and_one_row_off_by_a_percent_does_not():
    truth = rows(2, 3, 50, 64)
    rounded = truth.bfloat16()
    assert not every_row.judge(rounded, [truth], rounded, HALF_ULP).out
    off = truth.clone()
    off[1, 2, 7] *= 1.01
    verdict = every_row.judge(off.bfloat16(), [truth], rounded, HALF_ULP)
    assert verdict.out == [(1, 2, 7)] and verdict.worst > 1


def test_a_row_may_be_off_by_twice_the_users_own_error():
    truth = rows(4, 64)
    own = truth * 1.02
    assert not every_row.judge(truth * 1.039, [truth], own, HALF_ULP).out
    assert len(every_row.judge(truth * 1.041, [truth], own, HALF_ULP).out) == 4


@pytest.mark.parametrize("value, out", [(0.0, []), (1e-6, [(2,)]), (float("nan"), [(2,)])])
def test_a_row_without_keys_must_be_zero(value, out):
    truth = rows(4, 64)
    output = truth.bfloat16()
    truth[2], output[2] = float("nan"), value
    assert every_row.judge(output, [truth], truth.bfloat16(), HALF_ULP).out == out


def test_another_shape_is_out_and_not_broadcast():
    truth = rows(4, 64)
    assert every_row.judge(truth[:1], [truth], truth, HALF_ULP).out == ["shape [1, 64], not [4, 64]"]


@pytest.mark.parametrize("dims", [[0, 2, 1, 3], [1, -1, 2, 0], [2, 0, 1, -1]])
def test_the_users_order_of_dimensions_comes_back(dims):
    user = rows(*range(2, 2 + max(dims) + 1))
    kernel = every_row.to_kernel(user, dims)
    assert list(kernel.shape) == [1 if d < 0 else d + 2 for d in dims]
    assert torch.equal(every_row.to_user(kernel, dims), user)


def test_a_folder_made_from_another_text_is_refused(tmp_path, causal):
    other = tmp_path / "causal.py"
    other.write_text((ROOT / "examples/causal.py").read_text() + "\n")
    with pytest.raises(every_row.Problem, match="made from another text"):
        every_row.Claim.read(other, tmp_path)


# ---- rows of q and k that change before the product

ROWS = [{"name": f"{x}_rows", "kind": "scratch", "dims": ["B", "H", "M", 128], "dtype": "bf16"}
        for x in "qk"]
LISTS = [{"name": "visits", "kind": "scratch", "bytes": 64}]
TABLES = {"rope": ([0, 1], "bf16"), "rope_interleaved": ([0, 1], "f32"),
          "qk_norm_rope": ([0, 1, 2], "f32")}


def claim_of_rotation(path, example, scratch):
    tables = [(name, name, *TABLES[example]) for name in ("cos", "sin")]
    weights = [(name, name, [0], "bf16") for name in ("q_weight", "k_weight")]
    return folder(path, f"examples/{example}.py", operands([0, 1, 2, 3]) + tables +
                  (weights if example == "qk_norm_rope" else []), scratch)


class Rotation:
    """One case of an example: its inputs by name, its truths and the user's own output."""

    def __init__(self, path, example):
        self.claim = claim_of_rotation(path, example, ROWS)
        (_, inputs, truth, self.own), = every_row.goldens.run_cases(
            self.claim.spec, self.claim.traced, [(1, 200, 200)])
        self.example, self.inputs = example, dict(zip(self.claim.spec.names, inputs))
        self.truths = self.claim.truths(inputs, truth)

    def rows(self, inputs, x):
        """Rows of q or k in the type of the inputs, as the kernel's pre-pass computes them."""
        cos, sin, rows = inputs["cos"], inputs["sin"], inputs[x]
        if self.example == "rope_interleaved":
            even, odd = rows[..., ::2], rows[..., 1::2]
            return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)
        if self.example == "qk_norm_rope":
            norm = torch.rsqrt((rows * rows).sum(-1, keepdim=True) / 128 + 1e-6)
            rows, cos, sin = rows * norm * inputs[f"{x}_weight"], cos[:, None], sin[:, None]
        return rows * cos + torch.cat((-rows[..., 64:], rows[..., :64]), -1) * sin

    def attention(self, q, k, v, weight_type):
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
        i = torch.arange(q.shape[2])
        scores = (q @ k.mT / 128**0.5).masked_fill(i > i[:, None], -torch.inf)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        return weights.to(weight_type).to(q.dtype) @ v / weights.sum(-1, keepdim=True)

    def emulated(self, break_inputs=lambda inputs: None, break_rows=lambda q, k: None):
        """A kernel's arithmetic: changed rows and weights in bf16, products and softmax in fp32."""
        inputs = {n: t.float().clone() for n, t in self.inputs.items()}
        break_inputs(inputs)
        q, k = (self.rows(inputs, x).bfloat16() for x in "qk")
        break_rows(q, k)
        return self.attention(q.float(), k.float(), inputs["v"], torch.bfloat16).bfloat16()


@pytest.fixture(scope="module", params=TABLES)
def rotation(request, tmp_path_factory):
    return Rotation(tmp_path_factory.mktemp(request.param), request.param)


def test_rows_that_are_rounded_once_more_are_held_against_the_truth_of_rounded_rows(rotation):
    truth, rounded = rotation.truths
    output = rotation.emulated()
    verdict = every_row.judge(output, [truth, rounded], rotation.own, HALF_ULP)
    assert not verdict.out and verdict.worst < 0.6
    # However near to the truth the user's function is; of the fp64 truth that would ask too much.
    assert every_row.judge(output, [truth, rounded], truth, HALF_ULP).worst < 0.6
    if rotation.example != "rope_interleaved":
        assert every_row.judge(output, [truth], truth, HALF_ULP).worst > 1


def test_the_rounded_truth_has_rounded_factors_and_is_exact_else(rotation):
    inputs = {n: t.double() for n, t in rotation.inputs.items()}
    q, k = (rotation.rows(inputs, x).bfloat16().double() for x in "qk")
    wanted = rotation.attention(q, k, inputs["v"], torch.float64)
    truth, rounded = rotation.truths
    assert (rounded - wanted).abs().max() < 1e-12 < 1e-4 < (rounded - truth).abs().max()


@pytest.mark.parametrize("scratch, count", [([], 1), (LISTS, 1), (ROWS, 2), (LISTS + ROWS, 2)])
def test_only_a_kernel_that_writes_rows_has_a_second_truth(scratch, count, tmp_path):
    claim = claim_of_rotation(tmp_path, "rope", scratch)
    for _, inputs, truth, _ in every_row.goldens.run_cases(claim.spec, claim.traced, [(1, 5, 5)]):
        assert len(claim.truths(inputs, truth)) == count


def test_arguments_that_are_factors_of_a_product_stay_what_they_are(prefix_lm):
    rounded = every_row.RoundedRows(prefix_lm.traced.program.graph_module, torch.bfloat16)
    for _, inputs, truth, _ in every_row.goldens.run_cases(prefix_lm.spec, prefix_lm.traced, SMALL):
        assert torch.equal(every_row.goldens.truth_of(prefix_lm.traced, rounded, inputs), truth)


def wrong_column_of_cosines(inputs):
    inputs["cos"][..., 40] = inputs["cos"][..., 41]


def wrong_sign_of_a_sine(inputs):
    inputs["sin"][..., 3] *= -1


def row_of_the_next_position(q, k):
    q[0, 5, 50] = q[0, 5, 51]


def wrong_sign_of_one_element(q, k):
    q[0, 5, 50, 17] *= -1


def key_of_the_next_position(q, k):
    k[0, 1, 9] = k[0, 1, 10]


def rows_of_eight_bits(q, k):
    q[0, 5] = q[0, 5].to(torch.float8_e4m3fn).to(q.dtype)


@pytest.mark.parametrize("planted", [
    {"break_inputs": wrong_column_of_cosines}, {"break_inputs": wrong_sign_of_a_sine},
    {"break_rows": row_of_the_next_position}, {"break_rows": wrong_sign_of_one_element},
    {"break_rows": key_of_the_next_position}, {"break_rows": rows_of_eight_bits}],
    ids=lambda planted: next(iter(planted.values())).__name__)
def test_a_wrong_row_is_not_taken_for_a_rounded_one(rotation, planted):
    broken = rotation.emulated(**planted)
    verdict = every_row.judge(broken, rotation.truths, rotation.own, HALF_ULP)
    heads = {place[1] for place in verdict.out}
    if "break_inputs" in planted:
        assert heads == set(range(broken.shape[1]))
    elif planted["break_rows"] is key_of_the_next_position:
        shared = broken.shape[1] // rotation.inputs["k"].shape[1]
        assert heads == set(range(shared, 2 * shared))
    else:
        assert heads == {5}
