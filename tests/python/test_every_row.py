"""tests/gpu/every_row.py without a GPU: kernels that are Python functions, at small shapes."""

import hashlib
import importlib.util
import json
import math
import pathlib

import pytest

torch = pytest.importorskip("torch")
ROOT = pathlib.Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("every_row", ROOT / "tests/gpu/every_row.py")
every_row = importlib.util.module_from_spec(spec)
spec.loader.exec_module(every_row)

HALF_ULP = every_row.HALF_ULP[torch.bfloat16]
SMALL = [(2, 40, 33), (1, 5, 70)]


def folder(tmp_path, file, bindings):
    """What `make` writes, as far as it is read. bindings: (argument, user, dims, dtype)."""
    digest = hashlib.sha256((ROOT / file).read_bytes()).hexdigest()
    (tmp_path / "certificate.json").write_text(json.dumps(
        {"spec": {"file": {"sha256": digest}},
         "transfer": {"bindings": [dict(zip(("argument", "user", "dims"), b)) for b in bindings]}}))
    (tmp_path / "launch.json").write_text(json.dumps(
        {"arguments": [{"name": b[0], "kind": "tensor", "dtype": b[3]} for b in bindings]}))
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


def run(claim, kernel):
    lines = []
    return every_row.check(claim, kernel, SMALL, lines.append), lines


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
    assert not every_row.judge(rounded, truth, rounded, HALF_ULP).out
    off = truth.clone()
    off[1, 2, 7] *= 1.01
    verdict = every_row.judge(off.bfloat16(), truth, rounded, HALF_ULP)
    assert verdict.out == [(1, 2, 7)] and verdict.worst > 1


def test_a_row_may_be_off_by_twice_the_users_own_error():
    truth = rows(4, 64)
    own = truth * 1.02
    assert not every_row.judge(truth * 1.039, truth, own, HALF_ULP).out
    assert len(every_row.judge(truth * 1.041, truth, own, HALF_ULP).out) == 4


@pytest.mark.parametrize("value, out", [(0.0, []), (1e-6, [(2,)]), (float("nan"), [(2,)])])
def test_a_row_without_keys_must_be_zero(value, out):
    truth = rows(4, 64)
    output = truth.bfloat16()
    truth[2], output[2] = float("nan"), value
    assert every_row.judge(output, truth, truth.bfloat16(), HALF_ULP).out == out


def test_another_shape_is_out_and_not_broadcast():
    truth = rows(4, 64)
    assert every_row.judge(truth[:1], truth, truth, HALF_ULP).out == ["shape [1, 64], not [4, 64]"]


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
