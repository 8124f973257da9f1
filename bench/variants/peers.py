"""What computes a row of rows.py: our kernel, and each peer in its own words.

FlexAttention takes every statement, with its Triton backend and with FLASH, which is FlashAttention-4
with the same functions compiled into it. The others run where they have an option for the function, or
where fa4_words.py has its mask or score. An unmasked entry costs 2 * (D + columns of V) operations for everybody.

A function that a maker gives may have an attribute `mask`, which builds its block mask anew:
measuring.py times that apart. Ours has none: what it needs, it computes in each launch.
"""

import hashlib
import json
import types
from pathlib import Path

from peers import as_bhsd, first, sdpa_with
from table import KNOWN

BLOCK = 128  # rows and columns of a block of FlexAttention's masks


# ---- ours

def ours(folder):
    def make(inputs):
        from kernelwright.runtime.bindings import to_kernel
        from kernelwright.runtime.launch import DTYPES, Kernel
        certificate = json.loads((Path(folder) / "certificate.json").read_text())
        text = hashlib.sha256(inputs.case.text.encode()).hexdigest()
        if certificate["spec"]["file"]["sha256"] != text:
            raise ValueError(f"{folder} was made from another text of {inputs.case.example}.py")
        kernel = Kernel(folder)
        launch = json.loads((Path(folder) / "launch.json").read_text())
        arguments = {a["name"]: a for a in launch["arguments"]}
        given, output, dims_of_output = {}, None, None
        users = users_arguments(inputs)
        for binding in certificate["transfer"]["bindings"]:
            name, dims, user = binding["argument"], binding["dims"], binding["user"]
            if not user:
                output, dims_of_output = name, dims
            elif arguments[name]["kind"] == "scalar":
                given[name] = users[user]
            else:
                given[name] = to_kernel(users[user], dims).to(DTYPES[arguments[name]["dtype"]])
        run = kernel.prepare(**given)
        return in_users_order(run, kernel.outputs, output, dims_of_output, inputs)
    return make


def users_arguments(inputs):
    """The example's arguments by name; q, k and v in its order of dimensions, in memory as
    [B, S, H, D], which our kernels like."""
    names = ("q", "k", "v")
    operands = dict(zip(names, (inputs.qs, inputs.ks, inputs.vs)))
    if inputs.case.statement.layout == "bhsd":
        operands = {name: t.transpose(1, 2) for name, t in operands.items()}
    return {**operands, **{name: value for name, (_, value) in inputs.arguments.items()}}


def in_users_order(run, outputs, name, dims, inputs):
    """`run` gives the kernel's outputs; the function given back one of them, as [B, H, M, V]."""
    from kernelwright.runtime.bindings import to_user
    swap = inputs.case.statement.layout == "bshd"

    def launch():
        results = run()
        output = results[outputs.index(name)] if len(outputs) > 1 else results
        output = to_user(output, dims)
        return output.transpose(1, 2) if swap else output
    return launch


# ---- FlexAttention

def block_mask(inputs):
    from torch.nn.attention.flex_attention import create_block_mask
    batch, heads = inputs.mask_axes
    return create_block_mask(inputs.keep, batch, heads, inputs.case.length, inputs.case.all_keys,
                             device=inputs.device, BLOCK_SIZE=BLOCK)


def flex(approximate=False, **kernel_options):
    """FlexAttention; `approximate` with the hardware's tanh."""
    def make(inputs):
        import torch
        score = inputs.score
        if approximate:
            from variants.fast_tanh import fast_tanh
            score = inputs.case.statement.score(
                types.SimpleNamespace(**{**vars(inputs.a), "tanh": fast_tanh()}))
        mask = block_mask(inputs) if inputs.keep else None
        attention = torch.compile(flex_function(inputs, score, kernel_options), dynamic=False)

        def run():
            return attention(inputs.q, inputs.k, inputs.v, mask)
        if inputs.keep:
            run.mask = lambda: block_mask(inputs)
        return run
    return make


def flex_function(inputs, score, kernel_options):
    """f(q, k, v, block mask), not compiled yet."""
    from torch.nn.attention.flex_attention import AuxRequest, flex_attention
    options, finish, dtype = kernel_options or None, inputs.finish, inputs.dtype
    grouped = inputs.grouped

    def plain(q, k, v, mask):
        return flex_attention(q, k, v, score_mod=score, block_mask=mask, enable_gqa=grouped,
                              kernel_options=options)

    def finished(q, k, v, mask):
        output, aux = flex_attention(q, k, v, score_mod=score, block_mask=mask, enable_gqa=grouped,
                                     kernel_options=options, return_aux=AuxRequest(lse=True))
        return finish(output.float(), aux.lse).to(dtype)
    return finished if finish else plain


# ---- FlashAttention

def window_of(inputs):
    """(keys to the left besides the query's own, 0), or none."""
    return (inputs.a.WINDOW - 1, 0) if inputs.case.statement.kernels.get("window") else None


def options_of(inputs, words):
    """The options of FlashAttention that say the function, without a mask or score of its own."""
    options = {"causal": words["causal"]}
    if window := window_of(inputs):
        options["window_size"] = window
    if "cap" in words:
        options["softcap"] = words["cap"]
    return options


def fa4_option(inputs):
    from flash_attn.cute import flash_attn_func
    words = inputs.case.statement.kernels
    options = ({"causal": True, "learnable_sink": inputs.a.sinks.to(inputs.a.dtype)}
               if "sink" in words else options_of(inputs, words))
    return as_bhsd(lambda: flash_attn_func(inputs.qs, inputs.ks, inputs.vs, **options))


def fa4_word(which):
    """Its mask or its score of fa4_words.py: which is mask, score or known."""
    def make(inputs):
        from variants.fa4_words import words
        from flash_attn.cute import flash_attn_func
        statement = inputs.case.statement
        name = statement.kernels[which]
        known = words(inputs.a)
        if name not in known:
            raise ValueError(f"its word '{name}' says another function than this row")
        function, reads = known[name]
        is_score = which == "score" or (which == "known" and "score" in statement.kernels)
        if is_score:
            options = {"causal": statement.keep is not None, "score_mod": function}
        else:
            options = {"mask_mod": function, "block_sparse_tensors": fa4_blocks(block_mask(inputs))}
        run = as_bhsd(lambda: flash_attn_func(inputs.qs, inputs.ks, inputs.vs, aux_tensors=reads,
                                              **options))
        if not is_score:
            run.mask = lambda: block_mask(inputs)
        return run
    return make


def fa4_blocks(mask):
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
    return BlockSparseTensorsTorch(mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks,
                                   mask.full_kv_indices, block_size=(BLOCK, BLOCK))


def fa3_option(inputs):
    from flash_attn_interface import flash_attn_func
    options = options_of(inputs, inputs.case.statement.kernels)
    return as_bhsd(lambda: flash_attn_func(inputs.qs, inputs.ks, inputs.vs, **options))


# ---- packed sequences: documents one behind the other, of which none sees another

def packed(inputs):
    """(q, k, v as [B * S, H, D], where each document begins and the last ends, the longest)."""
    import torch
    row = inputs.case
    if row.length % row.document_length:
        raise ValueError("documents of different lengths are not packed here")
    ends = torch.arange(0, row.batch * row.length + 1, row.document_length, dtype=torch.int32,
                        device=inputs.device)
    return [t.flatten(0, 1) for t in (inputs.qs, inputs.ks, inputs.vs)], ends, row.document_length


def unpacked(run, inputs):
    batch, heads, length, columns = inputs.shape
    return as_bhsd(lambda: first(run()).view(batch, length, heads, columns))


def packed_flash(module):
    def make(inputs):
        import importlib
        function = importlib.import_module(module).flash_attn_varlen_func
        (q, k, v), ends, longest = packed(inputs)
        return unpacked(lambda: function(
            q, k, v, cu_seqlens_q=ends, cu_seqlens_k=ends, max_seqlen_q=longest,
            max_seqlen_k=longest, causal=True), inputs)
    return make


def packed_torch(inputs):
    from torch.nn.attention.varlen import varlen_attn
    (q, k, v), ends, longest = packed(inputs)
    return unpacked(lambda: varlen_attn(q, k, v, ends, ends, longest, longest,
                                        window_size=(-1, 0)), inputs)


# ---- rows of q and k that change first, which no peer has a word for

def after_rows(maker):
    """The same peer behind the rows' own kernel, as torch.compile makes it: part of each run."""
    def make(inputs):
        if not inputs.rows:
            return maker(inputs)
        import copy
        import torch
        given = copy.copy(inputs)
        change = torch.compile(inputs.changed, dynamic=False) if inputs.q.is_cuda else inputs.changed

        def rows():
            q, k = change(inputs.qs.transpose(1, 2), inputs.ks.transpose(1, 2))
            given.q, given.k, given.qs, given.ks = q, k, q.transpose(1, 2), k.transpose(1, 2)
        rows()
        attention = maker(given)

        def run():
            rows()
            return attention()
        if mask := getattr(attention, "mask", None):
            run.mask = mask
        return run
    return make


# ---- PyTorch

def cudnn(inputs):
    words = inputs.case.statement.kernels
    if "attn_mask" in words:
        return sdpa_with(inputs, "CUDNN_ATTENTION", attn_mask=getattr(inputs.a, words["attn_mask"]))
    return sdpa_with(inputs, "CUDNN_ATTENTION", is_causal=words["causal"])


def eager(inputs):
    """The example as it stands, operator by operator, a batch entry at a time."""
    import torch
    row = inputs.case
    needed = 6 * inputs.q.element_size() * row.heads * row.length * row.all_keys
    if inputs.q.is_cuda and needed > torch.cuda.mem_get_info()[0]:
        raise MemoryError(f"the scores of one batch entry take about {needed >> 30} GiB")
    heads = list(range(row.heads))

    def run():
        return torch.cat([inputs.example(b, heads, of=lambda t: t) for b in range(row.batch)])
    return run


# ---- who takes part

EAGER = "PyTorch"
PEERS = {  # name: (maker, the module that it needs, whether it can say a statement, by its `kernels`)
    "FlashAttention-4": (fa4_option, "flash_attn.cute", lambda w: "causal" in w or "sink" in w),
    "FlashAttention-4 mask": (fa4_word("mask"), "flash_attn.cute", lambda w: "mask" in w),
    "FlashAttention-4 score": (fa4_word("score"), "flash_attn.cute", lambda w: "score" in w),
    KNOWN: (fa4_word("known"), "flash_attn.cute", lambda w: "known" in w),
    "FlashAttention-4 packed": (packed_flash("flash_attn.cute"), "flash_attn.cute",
                                lambda w: "packed" in w),
    "FlashAttention-3": (fa3_option, "flash_attn_interface", lambda w: "causal" in w),
    "FlashAttention-3 packed": (packed_flash("flash_attn_interface"), "flash_attn_interface",
                                lambda w: "packed" in w),
    "PyTorch varlen": (packed_torch, "torch.nn.attention.varlen", lambda w: "packed" in w),
    "SDPA cuDNN": (cudnn, None, lambda w: "attn_mask" in w or set(w) == {"causal"}),
    "FlexAttention FLASH": (flex(BACKEND="FLASH"), "flash_attn.cute", lambda w: True),
    "FlexAttention Triton": (flex(), "triton", lambda w: True),
    "FlexAttention Triton, fast tanh": (flex(approximate=True), "triton", lambda w: False),
    EAGER: (eager, None, lambda w: False)}
SLOW = ("FlexAttention Triton", "FlexAttention Triton, fast tanh", EAGER)  # left out by --peers fast
NEEDS = {name: module for name, (_, module, _) in PEERS.items() if module}


def names_of_peers(row, which="all"):
    """The peers that can say a row, in the order of the table."""
    statement = row.statement
    names = [name for name, (_, _, says) in PEERS.items() if says(statement.kernels)
             or (name == "FlexAttention Triton, fast tanh" and statement.capped)
             or (name == EAGER and row.compared_with_eager)]
    if row.keys:
        names = [name for name in names if name != "SDPA cuDNN" or not statement.keep]
    return [name for name in names if which == "all" or name not in SLOW]


def maker_of(name):
    """The example itself changes the rows of q and k; the others are given changed ones."""
    maker = PEERS[name][0]
    return maker if name == EAGER else after_rows(maker)


def implementations(row, folders, which="all", absent=()):
    """(name, maker) in the order of the table."""
    return ([(f"ours {label}" if label else "ours", ours(folder)) for label, folder in folders]
            + [(name, maker_of(name)) for name in names_of_peers(row, which) if name not in absent])
