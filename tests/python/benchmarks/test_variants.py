"""The benchmark's statements of the examples, on a CPU: each computes its example's function."""

import dataclasses
import sys

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
import kept  # noqa: E402
from variants import rows as variants  # noqa: E402
from variants.inputs import VariantInputs  # noqa: E402
from variants.statements import STATEMENTS  # noqa: E402

torch.set_num_threads(1)
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
KEYS = 320
SMALL = {  # constants and lengths at which every part of a mask shows among KEYS keys
    "chunked": {"constants": (("CHUNK", 48),)},
    "sliding_window": {"constants": (("WINDOW", 33),)}, "softcap_window": {"constants": (("WINDOW", 33),)},
    "dilated_window": {"constants": (("WINDOW", 33),)}, "neighborhood": {"constants": (("KERNEL", 31),)},
    "global_window": {"constants": (("WINDOW", 20), ("GLOBAL", 5))},
    "longformer": {"constants": (("WINDOW", 20), ("GLOBAL", 5))},
    "streaming": {"constants": (("SINKS", 4), ("WINDOW", 20))},
    "grid_window": {"constants": (("WIDTH", 16), ("RADIUS", 3))},
    "bottom_right": {"length": 200, "keys": KEYS}, "tree_mask": {"length": 60, "keys": KEYS},
    "tree_bits": {"length": 60, "keys": KEYS}, "mla_prefill": {"dim": 192, "value_dim": 128},
    "alibi": {"dim": KEYS}, "causal": {"dim": KEYS}}  # these take V to have as many columns as Q


def small(example, **more):
    sizes = {"batch": 2, "heads": 2, "length": KEYS, "prefix_length": 77, "document_length": 64,
             "reach": 100, "dim": 64 if example in ("sink", "t5_buckets") else 128}
    return variants.Row(example, **{**sizes, **SMALL.get(example, {}), **more})


def weights(inputs, keep, score, finish):
    """A statement's weights [B, H, M, N] as FlexAttention defines them, in fp64."""
    row = inputs.case
    b, h, i, j = kept._grid(inputs.sizes, torch.arange(row.length), "cpu")
    q, k = inputs.changed(inputs.q.double(), inputs.k.double())
    s = q @ k.mT * row.dim**-0.5
    s = score(s, b, h, i, j) if score else s
    if keep:
        s = s.masked_fill(~keep(b, h, i, j).expand(s.shape), -torch.inf)
    found, lse = s.softmax(-1).nan_to_num(), s.logsumexp(-1)
    return finish(found, lse) if finish else found


def examples_weights(inputs):
    """Those of the example: with the unit matrix in the place of V, its output is its weights."""
    row, heads = inputs.case, list(range(inputs.case.heads))
    inputs.v = torch.eye(row.all_keys).expand(row.batch, row.groups, -1, -1)
    return torch.cat([inputs.example(b, heads, of=lambda t: t.double()) for b in range(row.batch)])


def difference(row):
    inputs = VariantInputs(row, "cpu")
    found = weights(inputs, inputs.keep, inputs.score, inputs.finish)
    return (found - examples_weights(inputs)).abs().max().item()


def test_every_example_has_a_statement_and_a_row():
    assert sorted(STATEMENTS) == EXAMPLES == sorted({row.example for row in variants.VARIANTS})


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_statement_computes_its_example_entry_by_entry(example):
    assert difference(small(example)) < 2e-6


def test_grouped_heads_are_shared_as_the_example_shares_them():
    inputs = VariantInputs(small("alibi", heads=4, key_heads=2), "cpu")
    k = inputs.k
    inputs.k = k.repeat_interleave(2, dim=1)
    stated = weights(inputs, inputs.keep, inputs.score, inputs.finish)
    inputs.k = k
    assert (stated - examples_weights(inputs)).abs().max() < 2e-6


def test_a_wrong_statement_is_seen(monkeypatch):
    off = dataclasses.replace(STATEMENTS["sliding_window"],
                              keep=lambda a: lambda b, h, i, j: (j <= i) & (i - j <= a.WINDOW))
    monkeypatch.setitem(STATEMENTS, "sliding_window", off)
    assert difference(small("sliding_window")) > 1e-3


@pytest.mark.parametrize("example", EXAMPLES)
def test_kept_entries_are_counted_as_by_brute_force(example):
    inputs = VariantInputs(small(example), "cpu")
    mask = kept.kept(inputs.keep, inputs.sizes, torch.arange(inputs.case.length))
    everything = mask.expand(*inputs.sizes)
    assert inputs.kept == everything.sum()
    assert inputs.flop == 2 * (inputs.case.dim + inputs.case.columns) * inputs.kept
    batch, heads = inputs.mask_axes
    assert batch or (everything == everything[:1]).all()
    assert heads or (everything == everything[:, :1]).all()


# ---- the rows

def test_constants_and_types_are_replaced_where_a_row_asks_for_others():
    cell = next(row for row in variants.CUBRIDGE if row.example == "global_window")
    assert "WINDOW, GLOBAL = 64, 16\n" in cell.text and "bfloat16" not in cell.text
    assert cell.key == "global_window_window64_global16_f16" and cell.spec is None
    plain = next(row for row in variants.VARIANTS if row.example == "global_window")
    assert plain.spec == ROOT / "examples/global_window.py" and plain.key == "global_window"
    with pytest.raises(ValueError, match="no constant WIDTH"):
        variants.Row("streaming", constants=(("WIDTH", 3),)).text


def test_cubridges_cells_have_16k_tokens_and_names_of_their_own():
    assert len({row.name for row in variants.CUBRIDGE}) == 96
    assert {row.batch * row.length for row in variants.CUBRIDGE} == {16384}
    assert {(row.heads, row.groups) for row in variants.CUBRIDGE} == {(32, 32), (64, 8), (128, 8)}
    assert {row.dtype for row in variants.CUBRIDGE} == {"f16"}
    assert len({row.name for row in variants.VARIANTS}) == len(variants.VARIANTS)


def test_flop_of_the_rows_are_those_of_their_masks():
    rows = {row.name: row for row in variants.VARIANTS}
    s = 8192
    causal = s * (s + 1) // 2
    for name, entries in {"dilated by 4, causal": causal, "prefix-LM 1024": causal + 1024 * 1023 // 2,
                          "documents of 1024": 8 * 1024 * 1025 // 2,
                          "causal window 1024": 1024 * s - 1024 * 1023 // 2}.items():
        inputs = VariantInputs.__new__(VariantInputs)  # without the tensors
        inputs.case = row = rows[f"{name} B2 H16 S8192 D128"]
        from variants.inputs import module_of, words_of
        inputs.a, _ = words_of(row, module_of(row), "cpu", torch.bfloat16)
        inputs.keep, inputs.sizes, inputs.device = row.statement.keep(inputs.a), (2, 16, s, s), "cpu"
        assert inputs.kept == 32 * entries
