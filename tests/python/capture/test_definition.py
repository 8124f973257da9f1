"""FlashInfer-Bench definitions as specifications: dense attention is read, what lies in pages or end to end
is refused at its field."""

import copy
import json

import pytest
import torch

from kernelwright.capture import graph, load, trace
from kernelwright.problem import Problem
from kernelwright_cli import assert_refused, call

REFERENCE = """import torch


def run(q, k, v, sm_scale):
    q, k, v = (x.transpose(1, 2).float() for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    s = q @ k.mT * sm_scale
    seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    o = s.masked_fill(~seen, -torch.inf).softmax(-1) @ v
    return o.transpose(1, 2).to(torch.bfloat16)
"""
DENSE = {
    "name": "gqa-causal.h8_kv2_d128",
    "op_type": "gqa_dense",
    "description": "Causal attention; not \"inputs\": [], nor \"paged\".",
    "axes": {
        "batch": {"type": "var"},
        "seq_q": {"type": "var"},
        "seq_kv": {"type": "var", "description": "keys"},
        "num_qo_heads": {"type": "const", "value": 8},
        "num_kv_heads": {"type": "const", "value": 2},
        "head_dim": {"type": "const", "value": 128},
    },
    "constraints": ["num_qo_heads % num_kv_heads == 0", "seq_q <= seq_kv"],
    "inputs": {
        "q": {"shape": ["batch", "seq_q", "num_qo_heads", "head_dim"], "dtype": "bfloat16"},
        "k": {"shape": ["batch", "seq_kv", "num_kv_heads", "head_dim"], "dtype": "bfloat16"},
        "v": {"shape": ["batch", "seq_kv", "num_kv_heads", "head_dim"], "dtype": "bfloat16"},
        "sm_scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"output": {"shape": ["batch", "seq_q", "num_qo_heads", "head_dim"], "dtype": "bfloat16"}},
    "reference": REFERENCE,
}


def write(folder, changes=(), indent=2):
    """The definition with fields changed, ("inputs.q.dtype", value); None takes a field away."""
    definition = copy.deepcopy(DENSE)
    for path, value in changes:
        *above, last = path.split(".")
        at = definition
        for key in above:
            at = at[key]
        if value is None:
            del at[last]
        else:
            at[last] = value
    path = folder / "definition.json"
    path.write_text(json.dumps(definition, indent=indent))
    return path


def traced(path):
    spec = load.load(str(path))
    return graph.to_json(spec, trace.trace(spec, trace.convert(spec, None)))


def test_constant_axes_are_fixed_and_variable_ones_vary(tmp_path):
    text = traced(write(tmp_path))
    assert text["name"] == "gqa_causal_h8_kv2_d128"
    q, k, v, scale = text["arguments"]
    assert [a["name"] for a in text["arguments"]] == ["q", "k", "v", "sm_scale"]
    assert q["dims"][2:] == [8, 128] and k["dims"][2:] == [2, 128] and k["dims"] == v["dims"]
    assert all(isinstance(n, str) for n in [*q["dims"][:2], k["dims"][1]]) and q["dims"][1] != k["dims"][1]
    assert scale["dims"] == [] and text["notes"] == []


def test_lines_are_those_of_the_reference(tmp_path):
    line = REFERENCE.splitlines().index("    s = q @ k.mT * sm_scale") + 1
    products = [n for n in traced(write(tmp_path))["nodes"] if "matmul" in n["op"] or "bmm" in n["op"]]
    assert products[0]["line"] == line


def test_constraints_choose_the_example(tmp_path):
    path = write(tmp_path, [("constraints", ["seq_q == seq_kv", "seq_q % 128 == 0"])])
    q, k, *_ = load.load(str(path)).values
    assert q.shape == (2, 128, 8, 128) and k.shape == (2, 128, 2, 128)


@pytest.mark.parametrize("changes, code, field, part", [
    ([("op_type", "gqa_paged")], "spec.not_dense", '"op_type"', "pages"),
    ([("op_type", "mla_ragged")], "spec.not_dense", '"op_type"', "end to end"),
    ([("inputs.kv_indptr", {"shape": ["batch"], "dtype": "int32"})], "spec.not_dense", '"kv_indptr"', "kv_indptr"),
    ([("inputs.q.dtype", "float8_e4m3fn")], "spec.dtype", '"dtype": "float8_e4m3fn"', "float8_e4m3fn"),
    ([("inputs.k.shape", ["batch", "pages"])], "spec.definition", '"shape": [\n        "batch",\n        "pages"', "'pages'"),
    ([("axes.seq_kv.type", "dynamic")], "spec.definition", '"type": "dynamic"', "'dynamic'"),
    ([("axes.head_dim.value", "wide")], "spec.definition", '"value": "wide"', '"wide"'),
    ([("constraints", ["seq_q == kv_indptr[-1]"])], "spec.definition", '"constraints"', "kv_indptr[-1]"),
    ([("constraints", ["seq_q < 0"])], "spec.definition", '"constraints"', "seq_q < 0"),
    ([("reference", "def go(): pass")], "spec.definition", '"reference"', "run()"),
    ([("reference", None)], "spec.definition", "{", "no reference"),
    ([("name", 7)], "spec.definition", '"name"', "7"),
])
def test_what_cannot_be_read_is_refused_at_its_field(changes, code, field, part, tmp_path):
    path = write(tmp_path, changes)
    text = path.read_text()
    with pytest.raises(Problem) as refused:
        load.load(str(path))
    problem = refused.value.to_json(str(path))
    assert problem["code"] == code and part in problem["message"]
    assert problem["place"]["line"] == text.count("\n", 0, text.index(field)) + 1
    assert problem["place"]["file"] == str(path)


@pytest.mark.parametrize("text, line", [('{"name": ', 1), ("[1, 2]", 1), ('{\n"name": nil}', 2)])
def test_what_is_no_definition_is_refused(text, line, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(Problem) as refused:
        load.load(str(tmp_path / "x.json"))
    assert refused.value.code == "spec.definition" and refused.value.line == line


def test_what_the_reference_does_wrong_is_shown_in_it(tmp_path):
    wrong = REFERENCE.replace("softmax(-1) @ v", "softmax(-1).cumsum(-1) @ v")
    run = call("capture", write(tmp_path, [("reference", wrong)]))
    line = REFERENCE[:REFERENCE.index("softmax(-1)")].count("\n") + 1
    assert_refused(run, "spec.scan", f"definition.json#reference:{line}:", "cumsum(-1) @ v")
    for reference, code, part in [("import torch\ndef run(q k):\n  pass", "spec.syntax", "cannot read"),
                                  ("\ndef run(q, k):\n    return q", "spec.definition", "4 inputs")]:
        path = write(tmp_path, [("reference", reference)])
        with pytest.raises(Problem) as refused:
            load.load(str(path))
        problem = refused.value.to_json(str(path))
        assert problem["code"] == code and part in problem["message"]
        assert problem["place"] == {"file": f"{path}#reference", "line": 2, "column": problem["place"]["column"],
                                    "text": reference}


def test_a_kernel_of_a_definition_verifies_from_its_folder(tmp_path):
    run = call("make", write(tmp_path), "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert "gqa_causal_h8_kv2_d128: bf16, 8 query / 2 key heads" in run.stderr
    again = call("verify", tmp_path / "out")
    assert again.returncode == 0, again.stderr


def test_the_reference_runs_on_its_example(tmp_path):
    spec = load.load(str(write(tmp_path)))
    out = spec.function(*spec.values)
    assert out.shape == spec.values[0].shape and torch.isfinite(out).all()
