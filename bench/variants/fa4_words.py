"""Masks and score maps in FlashAttention-4's own language, the CuTe DSL.

`words(a)` gives {name: (function, the tensors that it reads)}. Numbers that a function captures are
compiled in; a name ending in _known has the prefix or the slopes among them, where its twin reads
them. Each is what statements.py says of the same name (tests/python/benchmarks/test_variant_peers.py); a word that
does not fit a row is left out: `relative` where the table clips distances.
"""


def words(a):
    """`a` as statements.py has it: sizes, constants and arguments by name. Needs flash_attn.cute."""
    import cutlass
    import cutlass.cute as cute
    import torch
    from flash_attn.cute import utils
    integer = cutlass.Int32
    length_of_prefix, slope_step = a.prefix_length, -8.0 / a.H
    window, columns = getattr(a, "WINDOW", 0), getattr(a, "SINKS", 0)
    farthest = a.reach if hasattr(a, "table") else 0

    # The parameters' names are part of the call.
    @cute.jit
    def prefix(b, h, i, j, seqlen_info, aux_tensors):
        return (j <= i) | (j < utils.scalar_to_ssa(aux_tensors[0][b[0]], integer))

    @cute.jit
    def prefix_known(b, h, i, j, seqlen_info, aux_tensors):
        return (j <= i) | (j < utils.scalar_to_ssa(length_of_prefix, integer))

    @cute.jit
    def documents(b, h, i, j, seqlen_info, aux_tensors):
        document = aux_tensors[0]
        mine = utils.scalar_to_ssa(document[b[0], i[0]], integer)
        theirs = utils.scalar_to_ssa(document[b[0], j[0]], integer)
        return (j <= i) & (mine == theirs)

    @cute.jit
    def first_columns(b, h, i, j, seqlen_info, aux_tensors):
        near = (i - j) < utils.scalar_to_ssa(window, integer)
        return (j <= i) & (near | (j < utils.scalar_to_ssa(columns, integer)))

    @cute.jit
    def blocks(b, h, i, j, seqlen_info, aux_tensors):
        size = utils.scalar_to_ssa(256, integer)
        return (j // size) <= (i // size)

    @cute.jit
    def dilated(b, h, i, j, seqlen_info, aux_tensors):
        step = (i - j) % utils.scalar_to_ssa(4, integer)
        return (j <= i) & (step == utils.scalar_to_ssa(0, integer))

    @cute.jit
    def alibi(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):
        slope = cute.make_rmem_tensor(1, cutlass.Float32)
        slope[0] = aux_tensors[0][h[0]]
        return s + slope.load() * (kv_idx - q_idx).to(cutlass.Float32)

    @cute.jit
    def alibi_known(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):
        power = (h + cute.full_like(h, 1)).to(cutlass.Float32) * cute.full_like(s, slope_step)
        return s + cute.math.exp2(power, fastmath=True) * (kv_idx - q_idx).to(cutlass.Float32)

    @cute.jit
    def capped(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):
        small = s * cute.full_like(s, 0.02)  # its own softcap divides, which is slower
        return cute.full_like(s, 50.0) * cute.math.tanh(small, fastmath=True)

    @cute.jit
    def relative(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):
        place = kv_idx - q_idx + cute.full_like(q_idx, farthest)
        bias = cute.make_rmem_tensor(1, cutlass.Float32)
        bias[0] = aux_tensors[0][h[0], place[0]]
        return s + bias.load()

    reads = {"prefix": ["prefix"], "documents": ["document"], "alibi": ["slopes"],
             "relative": ["table"]}
    functions = {"prefix": prefix, "prefix_known": prefix_known, "documents": documents,
                 "columns": first_columns, "blocks": blocks, "dilated": dilated, "alibi": alibi,
                 "alibi_known": alibi_known, "capped": capped, "relative": relative}
    if hasattr(a, "table") and a.reach < max(a.M, a.N) - 1:
        del functions["relative"]  # it clamps no distance, and would read beyond the table

    def given(name):
        tensor = getattr(a, name)
        return tensor.to(torch.int32) if tensor.dtype == torch.int64 else tensor
    return {name: (function, [given(t) for t in reads.get(name, []) if hasattr(a, t)] or None)
            for name, function in functions.items()}
