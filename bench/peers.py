"""What computes a case of the benchmark: our kernels and every peer.

A maker takes a case's Inputs and gives a function without arguments that computes the output as
[B, H, S, D], or raises where it cannot. `fault` holds an output against fp32 on sampled rows, and
against an output that was already found right on all the others.

Layouts are those that each implementation likes: [B, H, S, D] for PyTorch's own, [B, S, H, D] for
FlashAttention-4 and for ours.
"""

import importlib
import json
import math
import types
from pathlib import Path

from table import KNOWN

ROW_ERROR_LIMIT = 2e-2    # against fp32; bf16 arithmetic gives about 3e-3
DTYPES = {"bf16": "bfloat16", "f16": "float16"}


# ---- the functions, in fp32 on sampled rows

class Inputs:
    """One case's tensors. q, k, v are [B, H, S, D], where k and v may have fewer heads, each shared by
    as many of q; qs, ks, vs are the same values kept as [B, S, H, D]."""

    def __init__(self, case, device):
        import torch
        torch.manual_seed(0)
        self.case, self.device, self.dtype = case, device, getattr(torch, DTYPES[case.dtype])
        self.qs, self.ks, self.vs = (
            torch.randn(case.batch, case.length, heads, d, device=device).to(self.dtype)
            for heads, d in ((case.heads, case.dim), (case.groups, case.dim),
                             (case.groups, case.columns)))
        self.q, self.k, self.v = (t.transpose(1, 2).contiguous() for t in (self.qs, self.ks, self.vs))
        self.grouped = case.groups != case.heads
        self.prefix = torch.full((case.batch,), case.prefix, dtype=torch.int32, device=device)
        head = torch.arange(1, case.heads + 1, dtype=torch.float32, device=device)
        self.slopes = torch.exp2(-8 * head / case.heads)

    @property
    def flop(self):
        return self.case.flop

    @property
    def shape(self):
        """Of the output."""
        return (self.case.batch, self.case.heads, self.case.length, self.case.columns)

    def sample(self):
        """(pick, expected): pick takes of an output [B, H, S, D] the rows that expected has."""
        rows, expected = reference_rows(self)
        return lambda output: output[:, :, rows], expected

    def keep(self, i, j):
        """The mask as [B or 1, 1, i, j], or None."""
        if self.case.function == "full":
            return None
        causal = (j[None, :] <= i[:, None])[None, None]
        if self.case.function == "prefix_lm":
            return causal | (j < self.prefix[:, None])[:, None, None, :]
        return causal

    def bias(self, i, j):
        """What is added to the scaled scores, [1, H, i, j], or None."""
        if self.case.function != "alibi":
            return None
        return (self.slopes[:, None, None] * (j[None, :] - i[:, None]))[None]


def reference_rows(inputs, count=64):
    """(rows, their outputs in fp32 as [B, H, rows, D]), spread over the sequence, both ends included."""
    import torch
    s = inputs.case.length
    i = torch.linspace(0, s - 1, min(count, s), device=inputs.device).long().unique()
    j = torch.arange(s, device=inputs.device)
    shared = inputs.case.heads // inputs.case.groups
    k, v = (t.float().repeat_interleave(shared, dim=1) for t in (inputs.k, inputs.v))
    scores = inputs.q[:, :, i].float() @ k.transpose(-1, -2) / math.sqrt(inputs.case.dim)
    bias, keep = inputs.bias(i, j), inputs.keep(i, j)
    if bias is not None:
        scores += bias
    if keep is not None:
        scores.masked_fill_(~keep, float("-inf"))
    return i, torch.softmax(scores, -1) @ v


def fault(output, shape, pick, expected, consensus):
    """Why an output is wrong, or None. `consensus` is an output already found right.

    A row that is next to nothing beside the others (weights without a softmax may all be 0) is held
    against a hundredth of what the others are."""
    if tuple(output.shape) != tuple(shape):
        return f"shape {list(output.shape)}"
    size = expected.norm(dim=-1)
    size = size.clamp(min=size.median() / 100)
    error = ((pick(output).float() - expected).norm(dim=-1) / size).max().item()
    if not error <= ROW_ERROR_LIMIT:
        return f"row error {error:.1e} against fp32"
    if consensus is not None:
        a, b = output.float(), consensus.float()
        error = ((a - b).norm() / b.norm()).item()
        if not error <= ROW_ERROR_LIMIT:
            return f"error {error:.1e} against the others"
    return None


# ---- implementations: each maker gives a function that computes [B, H, S, D], or raises

def ours(folder):
    def make(inputs):
        from kernelwright.runtime.launch import DTYPES, Kernel
        kernel = Kernel(folder)
        arguments = json.loads((Path(folder) / "launch.json").read_text())["arguments"]
        dtypes = {a["name"]: a.get("dtype") for a in arguments}
        ranks = {a["name"]: len(a.get("dims", [])) for a in arguments}
        tensors = [t.transpose(1, 2) for t in (inputs.qs, inputs.ks, inputs.vs)]
        extra = {"prefix_lm": inputs.prefix, "alibi": inputs.slopes}.get(inputs.case.function)
        if extra is not None:
            tensors.append(extra.to(DTYPES[dtypes[kernel.inputs[3]]]))
        launch = kernel.prepare(*tensors)
        if len(kernel.outputs) == 1:
            return launch
        output = next(n for n, name in enumerate(kernel.outputs) if ranks[name] == 4)
        return lambda: launch()[output]
    return make


def sdpa_with(inputs, backend_name, **arguments):
    """scaled_dot_product_attention with one of its backends alone."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = getattr(SDPBackend, backend_name)

    def run():
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                inputs.q, inputs.k, inputs.v, enable_gqa=inputs.grouped, **arguments)
    return run


def sdpa(backend_name):
    def make(inputs):
        import torch
        j = torch.arange(inputs.case.length, device=inputs.device)
        arguments = {"is_causal": inputs.case.function == "causal"}
        if inputs.case.function == "prefix_lm":
            arguments = {"attn_mask": inputs.keep(j, j)}
        elif inputs.case.function == "alibi":
            bias = inputs.bias(j, j).masked_fill(~inputs.keep(j, j), float("-inf"))
            arguments = {"attn_mask": bias.to(inputs.dtype)}
        return sdpa_with(inputs, backend_name, **arguments)
    return make


def flex(**kernel_options):
    def make(inputs):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        compiled = torch.compile(flex_attention, dynamic=False)
        masks = {"causal": lambda b, h, i, j: i >= j, "alibi": lambda b, h, i, j: i >= j,
                 "prefix_lm": lambda b, h, i, j: (i >= j) | (j < inputs.prefix[b])}
        mask, score = masks.get(inputs.case.function), None
        if mask is not None:
            batch = inputs.case.batch if inputs.case.function == "prefix_lm" else None
            mask = create_block_mask(mask, batch, None, inputs.case.length, inputs.case.length,
                                     device=inputs.device)
        if inputs.case.function == "alibi":
            def score(s, b, h, i, j):
                return s + inputs.slopes[h] * (j - i)
        return lambda: compiled(inputs.q, inputs.k, inputs.v, score_mod=score, block_mask=mask,
                                enable_gqa=inputs.grouped,
                                kernel_options=kernel_options or None)
    return make


def first(output):
    return output[0] if isinstance(output, tuple) else output


def as_bhsd(run):
    """The same with the output of [B, S, H, D], or the first of several, as [B, H, S, D]."""
    return lambda: first(run()).transpose(1, 2)


def fa4(known=False):
    def make(inputs):
        from flash_attn.cute import flash_attn_func
        case = inputs.case
        arguments = {"causal": case.function in ("causal", "alibi")}
        if case.function in ("prefix_lm", "alibi"):
            from variants.fa4_words import words
            name = {"prefix_lm": "prefix", "alibi": "alibi"}[case.function] + "_known" * known
            function, reads = words(types.SimpleNamespace(
                prefix_length=case.prefix, H=case.heads, prefix=inputs.prefix,
                slopes=inputs.slopes))[name]
            arguments["aux_tensors"] = reads
        if case.function == "prefix_lm":
            from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
            from torch.nn.attention.flex_attention import create_block_mask
            blocks = create_block_mask(lambda b, h, i, j: (i >= j) | (j < inputs.prefix[b]),
                                       case.batch, None, case.length, case.length,
                                       device=inputs.device)
            arguments |= {"causal": False, "mask_mod": function,
                          "block_sparse_tensors": BlockSparseTensorsTorch(
                              blocks.kv_num_blocks, blocks.kv_indices, blocks.full_kv_num_blocks,
                              blocks.full_kv_indices, block_size=(128, 128))}
        elif case.function == "alibi":
            arguments["score_mod"] = function
        return as_bhsd(lambda: flash_attn_func(inputs.qs, inputs.ks, inputs.vs, **arguments))
    return make


PEERS = {
    "FlashAttention-4": fa4(), KNOWN: fa4(known=True),
    "FlexAttention FLASH": flex(BACKEND="FLASH"), "FlexAttention Triton": flex(),
    "SDPA cuDNN": sdpa("CUDNN_ATTENTION"), "SDPA flash": sdpa("FLASH_ATTENTION"),
    "SDPA efficient": sdpa("EFFICIENT_ATTENTION"), "SDPA math": sdpa("MATH")}
FAST = ("FlashAttention-4", KNOWN, "FlexAttention FLASH", "SDPA cuDNN")  # the fastest is one of them
NEEDS = {"FlashAttention-4": "flash_attn.cute", KNOWN: "flash_attn.cute",
         "FlexAttention FLASH": "flash_attn.cute", "FlexAttention Triton": "triton"}


def absent_peers(needs=NEEDS):
    """{peer: why} of those whose package cannot be imported here; `needs` is {peer: module}."""
    faults = {}
    for module in dict.fromkeys(needs.values()):
        try:
            importlib.import_module(module)
        except Exception as error:  # a package that is there and broken raises what it likes
            faults[module] = f"{module}: {type(error).__name__}: {error}".splitlines()[0][:150]
    return {peer: faults[module] for peer, module in needs.items() if module in faults}


def names_of_peers(case, which):
    """The peers of a case, in the order of the table; `which` is all or fast."""
    if case.ampere:
        return ["SDPA flash"]  # FlashAttention-2: the others are kernels for Hopper, or slower
    return [name for name in PEERS if (which == "all" or name in FAST)
            and (name != KNOWN or case.function in ("prefix_lm", "alibi"))]


def implementations(case, folders, which="all", absent=()):
    """(name, maker) in the order of the table."""
    return ([(f"ours {label}" if label else "ours", ours(folder)) for label, folder in folders]
            + [(name, PEERS[name]) for name in names_of_peers(case, which) if name not in absent])
