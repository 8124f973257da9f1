"""What the benchmark's peers are told to compute, on a CPU: FlexAttention itself, not compiled, and
stand-ins for the others, written from their documentation."""

import dataclasses
import json
import sys
import types

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
import peers  # noqa: E402
from variants import peers as variant_peers, rows as variants  # noqa: E402
from test_variants import EXAMPLES, small  # noqa: E402
from variants.inputs import VariantInputs  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without")


def fault(inputs, run):
    return peers.fault(run(), inputs.shape, *inputs.sample(), None)


@pytest.mark.parametrize("example", EXAMPLES)
def test_flexattention_computes_the_example(example):
    inputs = VariantInputs(small(example), "cpu")
    with torch.no_grad():
        mask = variant_peers.block_mask(inputs) if inputs.keep else None
        attention = variant_peers.flex_function(inputs, inputs.score, {})
        q, k = inputs.changed(inputs.q, inputs.k)
        assert fault(inputs, lambda: attention(q, k, inputs.v, mask)) is None


def test_another_function_is_found_at_fault():
    inputs = VariantInputs(small("softcap"), "cpu")
    with torch.no_grad():
        attention = variant_peers.flex_function(inputs, None, {})
        mask = variant_peers.block_mask(inputs)
        assert "row error" in fault(inputs, lambda: attention(inputs.q * 30, inputs.k, inputs.v, mask))


def flash(q, k, v, causal=False, window_size=(None, None), softcap=0.0, learnable_sink=None):
    """flash_attn_func as its documentation has it: [B, S, H, D], aligned to the last key."""
    q, k, v = (t.transpose(1, 2).float() for t in (q, k, v))
    s = q @ k.mT * q.shape[-1] ** -0.5
    s = softcap * torch.tanh(s / softcap) if softcap else s
    i = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    j = torch.arange(k.shape[2])
    left, right = window_size if window_size[0] is not None else (k.shape[2], k.shape[2])
    right = 0 if causal else right
    s = s.masked_fill((j > i + right) | (j < i - left), -torch.inf)
    sink = torch.zeros(*s.shape[:3], 1) - torch.inf
    if learnable_sink is not None:
        sink = learnable_sink.float()[:, None, None].expand(s.shape[0], -1, s.shape[2], 1)
    p = torch.cat([s, sink], -1).softmax(-1)[..., :-1]
    return (p @ v).to(torch.bfloat16).transpose(1, 2), None


def packed_flash(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal):
    ends = cu_seqlens_q.tolist()
    assert cu_seqlens_q.dtype == torch.int32 and ends == cu_seqlens_k.tolist()
    return torch.cat([flash(q[None, a:b], k[None, a:b], v[None, a:b], causal)[0][0]
                      for a, b in zip(ends, ends[1:])])


@pytest.fixture
def stand_ins(monkeypatch):
    for name in ("flash_attn.cute", "flash_attn_interface"):
        module = types.ModuleType(name)
        module.flash_attn_func, module.flash_attn_varlen_func = flash, packed_flash
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "flash_attn", types.ModuleType("flash_attn"))


PLAIN = ("FlashAttention-4", "FlashAttention-3", "FlashAttention-4 packed", "FlashAttention-3 packed",
         "SDPA cuDNN")


@pytest.mark.parametrize("example,peer", [
    (name, peer) for name in EXAMPLES
    for peer in variant_peers.names_of_peers(small(name)) if peer in PLAIN]
    + [(row.example, "PyTorch") for row in variants.CUBRIDGE[::12]])
def test_the_options_of_a_peer_say_the_example(example, peer, stand_ins, monkeypatch):
    monkeypatch.setattr(variant_peers, "sdpa_with", lambda inputs, backend, **more:
                        peers.sdpa_with(inputs, "MATH", **more))
    dtype = "f16" if peer == "PyTorch" else "bf16"  # whose scores are rounded, which CuBridge's allow
    inputs = VariantInputs(small(example, dtype=dtype), "cpu")
    with torch.no_grad():
        assert fault(inputs, variant_peers.maker_of(peer)(inputs)) is None


def test_documents_of_unlike_lengths_are_not_packed():
    with pytest.raises(ValueError, match="different lengths"):
        variant_peers.packed(VariantInputs(small("documents", document_length=70), "cpu"))


def test_peers_of_a_row_are_those_that_can_say_it():
    names = {row.example: variant_peers.names_of_peers(row) for row in variants.VARIANTS}
    everybody = ["FlexAttention FLASH", "FlexAttention Triton"]
    assert names["fox_decay"] == everybody
    assert names["comb"] == [*everybody, "FlexAttention Triton, fast tanh"]
    assert names["bottom_right"] == ["FlashAttention-4", "FlashAttention-3", *everybody]
    assert names["causal"] == ["FlashAttention-4", "FlashAttention-3", "SDPA cuDNN", *everybody]
    assert names["softcap"][:3] == ["FlashAttention-4", "FlashAttention-4 score", "FlashAttention-3"]
    assert variant_peers.names_of_peers(variants.CUBRIDGE[0], "fast") == [
        "FlashAttention-4 mask", "FlashAttention-4 known", "FlexAttention FLASH"]
    absent = {"FlexAttention FLASH": "why"}
    assert [n for n, _ in variants.CUBRIDGE[-1].makers([("", "x")], "all", absent)] == [
        "ours", "FlexAttention Triton", "PyTorch"]


# ---- our own kernel, with a launcher that computes the example

def write_kernel(folder, row, bindings, kinds):
    import hashlib
    folder.mkdir()
    (folder / "certificate.json").write_text(json.dumps({
        "spec": {"file": {"sha256": hashlib.sha256(row.text.encode()).hexdigest()}},
        "transfer": {"bindings": [{"argument": a, "user": u, "dims": d} for a, u, d in bindings]}}))
    (folder / "launch.json").write_text(json.dumps({"arguments": kinds}))


def launcher(inputs, taken):
    """kernelwright.launch as far as variant_peers uses it; the kernel is [B, H, M, D] and gives two."""
    class Kernel:
        outputs = ["lse", "o"]

        def __init__(self, folder):
            pass

        def prepare(self, **given):
            taken.update(given)
            every = list(range(inputs.case.heads))
            output = torch.cat([inputs.example(b, every) for b in range(inputs.case.batch)])
            return lambda: (None, output.to(inputs.dtype))
    return types.SimpleNamespace(Kernel=Kernel, DTYPES={"bf16": torch.bfloat16, "i32": torch.int32})


def ours(example, bindings, kinds, folder, monkeypatch):
    row, taken = small(example), {}
    write_kernel(folder / "kernel", row, bindings, kinds)
    inputs = VariantInputs(row, "cpu")
    monkeypatch.setitem(sys.modules, "kernelwright.runtime.launch", launcher(inputs, taken))
    return inputs, taken, variant_peers.ours(folder / "kernel")


def test_ours_gets_the_kernels_dimensions_types_and_numbers(tmp_path, monkeypatch):
    dims = [("q", "q", [0, 1, 2, 3]), ("k", "k", [0, 1, 2, 3]), ("v", "v", [0, 1, 2, 3]),
            ("o", "", [0, 1, 2, 3]), ("last", "last", []), ("block", "block", [0, 1])]
    kinds = [{"name": n, "kind": "tensor", "dtype": "bf16"} for n in "qkvo"]
    kinds += [{"name": "last", "kind": "scalar"}, {"name": "block", "kind": "tensor", "dtype": "i32"}]
    inputs, taken, make = ours("causal_blockwise", dims, kinds, tmp_path, monkeypatch)
    assert fault(inputs, make(inputs)) is None
    assert taken["last"] == 7 and taken["block"].dtype == torch.int32
    assert torch.equal(taken["q"], inputs.q) and taken["q"].stride() == inputs.qs.transpose(1, 2).stride()


def test_ours_of_another_order_of_dimensions_is_turned_back(tmp_path, monkeypatch):
    turned = [0, 2, 1, 3]  # the example has [B, M, H, D]
    dims = [(n, n, turned) for n in "qkv"] + [("o", "", turned)]
    kinds = [{"name": n, "kind": "tensor", "dtype": "bf16"} for n in "qkvo"]
    inputs, taken, make = ours("causal", dims, kinds, tmp_path, monkeypatch)
    assert taken == {} and fault(inputs, make(inputs)) is None
    assert torch.equal(taken["k"], inputs.k)


def test_ours_is_the_output_where_the_example_gives_the_log_sum_too(tmp_path, monkeypatch):
    dims = [(n, n, [0, 1, 2, 3]) for n in "qkv"] + [("o", "", [0, 1, 2, 3])]
    kinds = [{"name": n, "kind": "tensor", "dtype": "bf16"} for n in "qkvo"]
    inputs, _, make = ours("with_lse", dims, kinds, tmp_path, monkeypatch)
    assert isinstance(inputs.module.with_lse(inputs.q, inputs.k, inputs.v), tuple)
    assert fault(inputs, make(inputs)) is None


def test_values_may_have_other_columns_than_keys():
    inputs = VariantInputs(small("mla_prefill"), "cpu")
    assert inputs.k.shape[3] == 192 and inputs.vs.shape[3] == 128 and inputs.shape[3] == 128
    row = next(row for row in variants.VARIANTS if row.example == "mla_prefill")
    assert row.name == "mla_prefill B2 H16 S8192 D192/128"


def test_a_kernel_of_another_text_is_refused(tmp_path, monkeypatch):
    inputs, _, make = ours("full", [], [], tmp_path, monkeypatch)
    object.__setattr__(inputs, "case", small("causal"))
    with pytest.raises(ValueError, match="another text of causal.py"):
        make(inputs)


# ---- precompile.py

def test_every_flexattention_peer_of_a_share_is_called_once_and_a_failure_is_a_line(monkeypatch):
    import precompile
    called, said = [], []

    def maker(name):
        def make(inputs):
            if name == "FlexAttention FLASH":
                raise RuntimeError("no such backend\nmore")
            return lambda: called.append((inputs.case.example, name))
        return make
    for name in variant_peers.PEERS:
        monkeypatch.setitem(variant_peers.PEERS, name, (maker(name), *variant_peers.PEERS[name][1:]))
    precompile.share([small("softcap"), small("causal")], "all", list(variant_peers.PEERS),
                     lambda text, flush: said.append(text))
    triton = "FlexAttention Triton"
    assert called == [("softcap", triton), ("softcap", f"{triton}, fast tanh"), ("causal", triton)]
    assert [line for line in said if "no such backend" in line] == [
        f"{small(name).name}, FlexAttention FLASH: RuntimeError: no such backend"
        for name in ("softcap", "causal")]


# ---- a row as bench.py measures it

def test_a_row_is_measured_with_every_peer_that_is_here(monkeypatch):
    import measuring
    from test_bench import Cpu
    monkeypatch.setattr(torch, "compile", lambda function, **more: function)
    monkeypatch.setattr(measuring, "sustained_ms", lambda run, machine: run() is None or 1.0)
    rows = small("comb")
    absent = {n: "x" for n in variant_peers.PEERS if n.startswith("FlashAttention")}
    result = measuring.measure_case(rows, rows.makers([("", "gone")], "all", absent), {}, Cpu(),
                                    lambda name, why=None: None, burst=True)
    found = result["rows"]
    assert found["ours"]["status"].startswith("failed: FileNotFoundError")
    kept = VariantInputs(rows, "cpu").kept
    for name in ("FlexAttention Triton", "FlexAttention Triton, fast tanh"):
        assert found[name]["status"] == "ok"
        assert found[name]["tflops"] == pytest.approx(4 * rows.dim * kept / 1e9)
        assert found[name]["with_mask_tflops"] <= found[name]["tflops"]
    assert result["group"] == variants.EXAMPLES and result["floor"] == 1.0


# ---- FlashAttention-4's words, with a stand-in for the language that has vectors of one element

class Register:
    def __init__(self, *_):
        self.value = None

    def __setitem__(self, place, value):
        self.value = value

    def load(self):
        return torch.as_tensor(self.value).reshape(1)


@pytest.fixture
def dsl(monkeypatch, stand_ins):
    cutlass, cute, utils = (types.ModuleType(n) for n in ("cutlass", "cutlass.cute", "utils"))
    cutlass.Float32, cutlass.Int32, cutlass.cute = torch.float32, torch.int32, cute
    cute.jit = lambda function: function
    cute.full_like = lambda like, value: torch.full_like(like, value)
    cute.make_rmem_tensor = Register
    cute.math = types.SimpleNamespace(exp2=lambda x, fastmath: torch.exp2(x),
                                      tanh=lambda x, fastmath: torch.tanh(x))
    utils.scalar_to_ssa = lambda x, dtype: torch.as_tensor(x).reshape(1).to(dtype)
    monkeypatch.setitem(sys.modules, "cutlass", cutlass)
    monkeypatch.setitem(sys.modules, "cutlass.cute", cute)
    sys.modules["flash_attn.cute"].utils = utils


@pytest.mark.parametrize("example,which", [
    (name, which) for name in EXAMPLES for which in ("mask", "score", "known")
    if which in small(name).statement.kernels])
def test_a_word_of_flashattention_4_is_the_statement(example, which, dsl):
    from variants.fa4_words import words
    row = small(example, heads=16 if example == "alibi_heads" else 2)  # whose slopes are for 16
    row = dataclasses.replace(row, reach=0)  # every distance has its entry
    inputs = VariantInputs(row, "cpu")
    statement = row.statement
    function, reads = words(inputs.a)[statement.kernels[which]]
    assert all(t.dtype in (torch.int32, torch.float32) for t in reads or [])
    scores = which == "score" or "score" in statement.kernels
    ends = torch.tensor([row.batch, row.heads, row.length, row.all_keys])
    seen = set()
    for place in (torch.rand(300, 4) * ends).int():
        b, h, i, j = (x.reshape(1) for x in place)
        s = torch.randn(1) * 20
        mine = (inputs.score(s, b, h, i, j) if scores else inputs.keep(b, h, i, j))
        theirs = (function(s, b, h, i, j, None, reads) if scores else function(b, h, i, j, None, reads))
        assert torch.allclose(mine.float(), theirs.float(), rtol=1e-5), place
        seen.add(float(mine))
    assert len(seen) > 1


def test_a_word_that_would_read_beyond_its_table_is_refused(dsl):
    inputs = VariantInputs(small("relative_bias", reach=100), "cpu")
    with pytest.raises(ValueError, match="'relative' says another function"):
        variant_peers.PEERS["FlashAttention-4 score"][0](inputs)
