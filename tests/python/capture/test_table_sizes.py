"""How long an argument is that has sizes of its own, at sizes beyond the example's."""

import json

import pytest

torch = pytest.importorskip("torch")
from kernelwright.capture import goldens, load, trace  # noqa: E402
from kernelwright.capture.diagnostic import Problem  # noqa: E402
from kernelwright_cli import ROOT, call  # noqa: E402

SHAPES = [(1, 600, 777), (2, 5, 1111), (1, 3, 2)]


def shapes_of(path, argument, cases=SHAPES):
    spec = load.load(str(path))
    traced = trace.trace(spec, trace.convert(spec, None))
    return [next(d["shape"] for d in entry["draws"] if d["name"] == argument)
            for entry, *_ in goldens.run_cases(spec, traced, cases)]


def write(tmp_path, body, argument):
    """A function of q, k, v and t, which is `argument`; queries 24, keys 40."""
    path = tmp_path / "attention.py"
    path.write_text(f"""import torch
import torch.nn.functional as F

def attention(q, k, v, t):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
{body}
    return torch.softmax(s, -1).to(v.dtype) @ v

def example_inputs():
    q = torch.randn(2, 2, 24, 64, dtype=torch.bfloat16)
    k, v = torch.randn(2, 2, 2, 40, 64, dtype=torch.bfloat16)
    return q, k, v, {argument}
""")
    return path


def test_a_table_of_blocks_has_a_row_and_a_column_for_each_block():
    assert shapes_of(ROOT / "examples/block_table.py", "table") == [
        [1, 16, 5, 7], [2, 16, 3, 9], [1, 16, 3, 3]]  # the example's own is 3 by 3


def test_a_packed_mask_has_a_word_for_each_32_keys():
    assert shapes_of(ROOT / "examples/tree_bits.py", "words") == [
        [1, 600, 25], [2, 5, 35], [1, 3, 11]]  # the example's own has 11


def test_a_table_that_is_read_within_its_own_length_keeps_it():
    assert shapes_of(ROOT / "examples/relative_bias.py", "table") == [[32, 257]] * 3


def test_a_proof_has_the_same_sizes(tmp_path):
    """src/operator/capture/problem.cpp knows them from the attention form."""
    run = call("make", ROOT / "examples/tree_bits.py", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    proof = json.loads((tmp_path / "made/prove.json").read_text())
    cases = [c for c in proof["cases"] if c["name"].startswith("sampled")]
    asked = [[c["sizes"][x] for x in "BMN"] for c in cases if c["sizes"]["M"] < 4096]
    assert len(asked) == 3
    own = [shape[2] for shape in shapes_of(ROOT / "examples/tree_bits.py", "words", asked)]
    assert own == [c["sizes"]["S"] for c in cases if c["sizes"]["M"] < 4096]


@pytest.mark.parametrize("read", ["t[j // 16]", "torch.index_select(t, 0, j // 16)",
                                  "t.gather(0, j // 16)", "F.embedding(j // 16, t[:, None])[:, 0]"])
def test_every_operator_that_gathers_asks_for_its_length(read, tmp_path):
    path = write(tmp_path, f"    s = q @ k.mT / 8 + {read}", "torch.randn(3)")
    assert shapes_of(path, "t") == [[49], [70], [3]]


def test_what_is_read_at_indices_from_data_stays(tmp_path):
    path = write(tmp_path, "    s = q @ k.mT / 8 + torch.arange(4)[t[j // 16]]",
                 "torch.zeros(3, dtype=torch.int32)")
    assert shapes_of(path, "t") == [[49], [70], [3]]
    path = write(tmp_path, "    s = q @ k.mT / 8 + t[(k[:, :, :, 0] > 0).long()][:, :, None]",
                 "torch.randn(2)")
    assert shapes_of(path, "t") == [[2]] * 3


def test_an_index_from_a_number_and_a_constant_of_the_graph_is_known(tmp_path):
    path = tmp_path / "attention.py"
    path.write_text("""import torch

def attention(q, k, v, t, shift):
    j = torch.arange(k.shape[2])
    s = q @ k.mT / 8 + t[j // 16 + shift] + torch.tensor([1.0, 2.0])[j % 2]
    return torch.softmax(s, -1).to(v.dtype) @ v

def example_inputs():
    q = torch.randn(2, 2, 24, 64, dtype=torch.bfloat16)
    k, v = torch.randn(2, 2, 2, 40, 64, dtype=torch.bfloat16)
    return q, k, v, torch.randn(4), 1
""")
    assert shapes_of(path, "t") == [[50], [71], [4]]


def test_a_constant_that_is_read_past_its_end_is_the_users_mistake(tmp_path):
    path = write(tmp_path, "    s = q @ k.mT / 8 + t[j // 16] + torch.tensor([1.0, 2.0, 3.0])[j // 16]",
                 "torch.randn(3)")
    with pytest.raises(Problem) as refused:
        shapes_of(path, "t")
    assert refused.value.code == "spec.run" and "out of bounds" in str(refused.value)
