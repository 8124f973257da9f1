"""What the captured graph computes, in fp64, on small ragged shapes; and how far off the user's own
function is, in its own dtype, on the same inputs.

The truth is the graph with every floating type replaced by fp64, not the user's function called on
fp64 tensors: `softmax(dtype=float32)` would round. Inputs come from a seed (random.py), so only
outputs are stored: of each case two heads in fp64, and the user's error of every row.
"""

import json
import math

import numpy as np
import torch

from . import agreement, built_in, random, reach, table_sizes
from .diagnostic import Problem, first_line_of, last_line_in, of_isolation
from .graph import Sizes, number, operator_name
from .pages import Pages
from .sixteen_bits import PRODUCTS
from .trace import is_operand

# (B, M, N): one, and around the tile sizes 64 and 128; M < N, M = N and M > N.
CASES = [
    (1, 1, 1), (1, 64, 64), (2, 63, 65), (1, 129, 127), (1, 1, 129), (1, 127, 1), (1, 128, 128),
    (3, 33, 40), (1, 65, 193), (1, 200, 77), (2, 130, 64), (1, 127, 129), (1, 2, 300), (1, 300, 2),
    (1, 64, 255), (2, 65, 63), (1, 257, 66), (1, 65, 256), (1, 130, 130), (1, 77, 140),
    (4, 17, 16), (1, 191, 65), (1, 63, 128), (2, 66, 129),
]
SEED = 20240501
POSITIVE = {"log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow"}  # of what is not negative
TWICE = 8  # of so many cases the function is called twice in one (the call is half of what a case takes)


class InFp64(torch.fx.Interpreter):
    """Runs a graph with every floating dtype argument, and every floating tensor, in fp64.

    The default type is fp64 meanwhile: integers times 0.1 have it, and fp32 would round them."""

    def run(self, *args, **kwargs):
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return super().run(*args, **kwargs)
        finally:
            torch.set_default_dtype(default)

    def run_node(self, node):
        if node.op == "call_function" and "assert" in str(node.target):
            return None  # of sizes that branches.py has looked at, or for which the function raises itself
        result = super().run_node(node)
        return result.double() if isinstance(result, torch.Tensor) and result.is_floating_point() else result

    def call_function(self, target, args, kwargs):
        if "rms_norm" in str(target) and len(args) < 4 and kwargs.get("eps") is None:
            kwargs = {**kwargs, "eps": torch.finfo(torch.float32).eps}  # what 16-bit rows get, and not fp64's own
        swap = lambda a: torch.float64 if isinstance(a, torch.dtype) and a.is_floating_point else a
        return super().call_function(target, tuple(map(swap, args)), {k: swap(a) for k, a in kwargs.items()})


class InOwnTypes(torch.fx.Interpreter):
    """Runs a graph as it is."""

    def run_node(self, node):
        return None if node.op == "call_function" and "assert" in str(node.target) else super().run_node(node)


def _symbols(traced, sizes, pages):
    """Symbols of the operands: batch sizes and the others, in the order of the arguments; of keys in pages the
    others are the entries of their table. Symbols
    that only other arguments have (a table's length, scales of blocks) come with the example's value,
    which is the least of a case (table_sizes.py)."""
    placeholders = {n.name: n for n in traced.program.graph.nodes if n.op == "placeholder"}
    given = [(n, value) for n, (value, argument) in enumerate(zip(traced.values, traced.is_argument))
             if argument]
    batch, others, examples = [], [], {}
    for key, (n, value) in zip(traced.program.graph_signature.user_inputs, given):
        is_side = is_operand(value, traced.product) and (not traced.factors or n in traced.factors)
        for d, size in enumerate(placeholders[key].meta["val"].shape):
            for symbol in sorted(sizes.expr(size).free_symbols, key=str):
                examples.setdefault(symbol, value.shape[d])
                if is_side and symbol not in batch + others + list(pages.counts):
                    is_batch = d < value.dim() - 2 if traced.product else d == 0
                    (batch if is_batch else others).append(symbol)
    others += [symbol for symbol in pages.rows if symbol not in others]
    return batch, others, {s: n for s, n in examples.items() if s not in batch + others}


def _sizes_of_case(symbols, case, product, pages):
    batch, others, fixed = symbols
    B, M, N = case
    values = {**fixed, **{s: B for s in batch}}
    # Of a product: rows, what is summed over, columns.
    sizes = (M, M + N // 2, N) if product and len(others) == 3 else (M, N)
    values.update({s: pages.in_keys(s, sizes[min(n, len(sizes) - 1)]) for n, s in enumerate(others)})
    return values


def _of_positive(traced):
    """The streams of arguments that the function takes a logarithm or a root of, on a way without a product of matrices."""
    graph = traced.program.graph
    given = [stream for stream, is_argument in enumerate(traced.is_argument) if is_argument]
    streams = dict(zip(traced.program.graph_signature.user_inputs, given))
    out = set()
    for node in graph.nodes:
        if node.op != "placeholder" or node.name not in streams:
            continue
        seen, ahead = {node}, [node]
        while ahead:
            for user in ahead.pop().users:
                name = operator_name(user).rstrip("_") if user.op == "call_function" else ""
                if name in POSITIVE:
                    out.add(streams[node.name])
                if user not in seen and name not in PRODUCTS | POSITIVE:
                    seen.add(user)
                    ahead.append(user)
    return out


def _draw_of(value, index, longest, as_example, times=1, of_positive=False):
    """How an argument of case `index` is drawn.

    Operands are normal, and so is whatever has as many dimensions, but for what is positive in the example and has a logarithm
    or a root taken. Integers take, in turn, 0 .. the longest size (`times` as much), the example's own range, and
    a few small values, so that empty and full prefixes both occur; flags take 0 and 1. Integers beyond
    any size are words of bits: they take all bits alike, in all words or in each, and the example's own
    range. None is drawn beyond what its type holds. Other floats spread as in the example. A number keeps the
    example's value in even cases; in odd ones a float takes three quarters of it, an integer any value up to the longest size.
    """
    odd = index % 2 == 1
    if value.dim() == 0:
        example = value.item()
        if isinstance(example, float):
            return {"kind": "constant", "value": example * 0.75 if odd else example}
        if odd and not as_example and example > 1:
            return {"kind": "integer", "low": 0, "high": longest}
        return {"kind": "constant", "value": int(example)}
    if value.dtype == torch.bool:
        return {"kind": "integer", "low": 0, "high": 1}
    if not value.is_floating_point():
        low, high = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
        most = torch.iinfo(value.dtype).max
        if low >= 0 and high <= 1:
            return {"kind": "integer", "low": 0, "high": 1}
        if odd or as_example:
            return {"kind": "integer", "low": low, "high": high}
        if max(-low, high) >= 2**24:
            alike = -(index // 4 % 2)
            return {"kind": "integer", "low": -1, "high": 0} if index % 4 == 2 else \
                {"kind": "integer", "low": alike, "high": alike}
        if index % 4 == 2:
            return {"kind": "integer", "low": min(0, low), "high": min(1 + times * longest // 16, most)}
        how = {"kind": "integer", "low": min(0, low), "high": min(times * longest, most)}
        return how if most < 2**24 else {**how, "times_longest": times}  # eight bits do not grow with a length
    if value.dim() >= 3 and not (of_positive and (value >= 0).all()):
        return {"kind": "normal", "scale": 1.0}
    finite = value.double()
    finite = finite[finite.isfinite()]
    if finite.numel() and finite.min() >= 0:
        return {"kind": "uniform", "scale": float(finite.max()) or 1.0}
    return {"kind": "normal", "scale": float(finite.std()) if finite.numel() > 1 else 1.0}


def _round_scale(how):
    """To a power of two: that of random numbers is never the same."""
    if how.get("scale", 0) > 0:
        how["scale"] = 2.0 ** round(math.log2(how["scale"]))


def draw(how, seed, stream, dtype, shape):
    """A tensor of `dtype` as kw::draw makes it."""
    count = int(np.prod(shape, dtype=np.int64))
    kind = how["kind"]
    if kind == "constant":
        values = np.full(count, how["value"], np.float64)
    elif kind == "integer":
        values = random.integers(seed, stream, count, how["low"], how["high"])
    elif kind == "uniform":
        values = random.uniform(seed, stream, count).astype(np.float64) * how["scale"]
    else:
        values = random.normal(seed, stream, count)
        if how["scale"] != 1:
            values = values.astype(np.float64) * how["scale"]
    if dtype == torch.float8_e4m3fn:  # which has no infinity
        values = values.clip(-448, 448)
    return torch.from_numpy(values).to(dtype).reshape(shape)


def shapes_of_operands(traced):
    """The shapes of what is_operand() takes for one, of which sizes that a trace fixes are ints."""
    user = set(traced.program.graph_signature.user_inputs)
    return [n.meta["val"].shape for n in traced.program.graph.nodes
            if n.op == "placeholder" and n.name in user and is_operand(n.meta["val"])]


def head_axis(traced):
    """Which axis of the output is heads: the constant one; of several (one query, [B, 1, H, D]) one that no operand has of any size."""
    shape = next(n for n in traced.program.graph.nodes if n.op == "output").args[0][0].meta["val"].shape
    axes = [d for d in range(1, len(shape) - 1) if isinstance(shape[d], int)]
    alike = [of for of in shapes_of_operands(traced) if len(of) == len(shape)]
    heads = [d for d in axes if all(isinstance(of[d], int) for of in alike)] or axes
    return next((d for d in heads if shape[d] != 1), heads[0]) if heads else None


def row_errors(own, truth):
    """||own - truth|| / ||truth|| of every row; NaN where either is."""
    norm, difference = truth.norm(dim=-1), (own - truth).norm(dim=-1)
    error = difference / norm
    error[(norm == 0) & (difference == 0)] = 0
    return error.float().numpy()


def _constants(traced):
    """Tensors that became placeholders of the graph, by the placeholder's name, in their order."""
    lifted = {**traced.program.graph_signature.inputs_to_lifted_tensor_constants,
              **traced.program.graph_signature.inputs_to_buffers}
    constants = {}
    for node in traced.program.graph.nodes:
        if node.op == "placeholder" and node.name in lifted:
            constant = traced.program.constants.get(lifted[node.name])
            constants[node.name] = (constant if constant is not None
                                    else traced.program.state_dict[lifted[node.name]])
    return constants


def truth_of(traced, interpreter, inputs):
    """The first output of the interpreter's graph; `inputs` holds a value for each argument."""
    with torch.no_grad():
        return outputs(traced, interpreter, inputs)[0]


def outputs(traced, interpreter, inputs):
    """All outputs of the interpreter's graph, in fp64."""
    given = [value for value, argument in zip(inputs, traced.is_argument) if argument]
    return interpreter.run(*[v.double() if v.is_floating_point() else v
                             for v in [*_constants(traced).values(), *given]])


def as_called(spec, inputs):
    """The inputs as the user's function takes them: numbers are numbers again."""
    return [v.item() if isinstance(v, torch.Tensor) and v.dim() == 0 and not isinstance(e, torch.Tensor) else v
            for v, e in zip(inputs, spec.values)]


def two_heads(case, heads):
    """Of which heads the numbered case keeps what they give."""
    return sorted({(7 * case) % heads, (7 * case + heads // 2 + 1) % heads}) if heads > 2 else list(range(heads))


def run_own(spec, traced, interpreter, inputs, twice):
    """The user's own output alone, in the place of the truth, too."""
    own = agreement.called(spec, as_called(spec, inputs), twice)
    own = own[0] if isinstance(own, (tuple, list)) else own
    return own, own


def _run_case(spec, traced, interpreter, inputs, twice=True):
    """The truth and the user's own output, of the first; then the truth of the others."""
    truth, *others = outputs(traced, interpreter, inputs)
    _, own = run_own(spec, traced, interpreter, inputs, twice)
    return truth, own, *others


def in_own_types(traced, inputs):
    """All outputs of the graph of these inputs, rounding as the user's function does."""
    given = [value for value, argument in zip(inputs, traced.is_argument) if argument]
    return InOwnTypes(traced.program.graph_module).run(*_constants(traced).values(), *given)


def _in_own_types(traced, inputs):
    with torch.no_grad():
        return in_own_types(traced, inputs)[0]


def run_cases(spec, traced, cases, long=False, first=0, step=1, run=_run_case):
    """For each case (index entry, input of each argument, truth, the user's own output, truths of others).

    long: many queries are one number each (reach.py). first, step: the
    cases' own numbers, from which seeds and kinds of draws follow. run: what gives a case's outputs."""
    sizes = Sizes(traced.program.graph)
    pages = Pages(traced, sizes)
    symbols = _symbols(traced, sizes, pages)
    keys = traced.program.graph_signature.user_inputs
    placeholders = {n.name: n for n in traced.program.graph.nodes if n.op == "placeholder"}
    shapes = [[sizes.expr(s) for s in placeholders[key].meta["val"].shape] for key in keys]
    interpreter = InFp64(traced.program.graph_module)

    def shapes_at(values, given):
        """Of each argument; what was drawn for those that are numbers is given, None for others."""
        known = {key: value for key, value in zip(keys, given) if value is not None}
        values = table_sizes.grown(traced, sizes, values, symbols[2], {**_constants(traced), **known})
        return [[int(s.subs(values)) for s in shape] for shape in shapes]

    for n, case in enumerate(cases):
        yield _case(spec, traced, interpreter, shapes_at, _sizes_of_case(symbols, case, traced.product, pages), pages,
                    first + step * n, long, run)


def least_sizes(traced):
    """{size of an argument of its own, as graph.json names it: what the graph reads of it at least}."""
    sizes = Sizes(traced.program.graph)
    batch, others, own = _symbols(traced, sizes, Pages(traced, sizes))
    given = [value for value, argument in zip(traced.values, traced.is_argument) if argument]
    numbers = {key: value for key, value in zip(traced.program.graph_signature.user_inputs, given)
               if value.dim() == 0}
    found = table_sizes.least(traced, sizes, batch, others, own, {**_constants(traced), **numbers})
    return {str(symbol): size for symbol, size in found.items()}


def make(spec, traced, cases):
    """Returns the index (for JSON), the truths and the own errors, each one flat array."""
    axis = head_axis(traced)
    index, truths, errors = [], [], []
    for n, (entry, inputs, truth, own, *others) in enumerate(run_cases(spec, traced, cases)):
        picked = two_heads(n, truth.shape[axis]) if axis is not None else []
        kept = truth.index_select(axis, torch.tensor(picked)) if axis is not None else truth
        error = row_errors(own, truth)
        agreement.refuse_disagreement(spec, inputs, truth, own, error, lambda: _in_own_types(traced, inputs))
        entry.update(heads=picked, head_axis=axis, shape=list(kept.shape), rows=list(error.shape))
        index.append(entry)
        truths.append(kept.contiguous().numpy().ravel())
        errors.append(error.ravel())
        if others and (traced.rows or not traced.product):  # of all heads; which output it is the form says
            entry["others"] = [{"shape": list(others[0].shape)}]
            truths.append(others[0].contiguous().double().numpy().ravel())
    far = _far(spec, traced, axis, truths, errors)
    return {"cases": index, "far": far}, np.concatenate(truths), np.concatenate(errors)


def _far(spec, traced, axis, truths, errors):
    """The same of reach.py's cases, of which some rows are kept."""
    sizes = Sizes(traced.program.graph)
    _, others, _ = _symbols(traced, sizes, Pages(traced, sizes))
    cases, notes = reach.cases(traced, square=len(others) == 1)
    traced.notes.extend(notes)
    output = next(n for n in traced.program.graph.nodes if n.op == "output").args[0][0].meta["val"].shape
    of_queries = [d for d, size in enumerate(output) if others and sizes.expr(size) == others[0]]
    if len(of_queries) != 1 or axis is None:
        return []
    index = []
    cases_run = run_cases(spec, traced, [case[:3] for case in cases], True, 104, 8)
    for (*_, rows), (entry, inputs, truth, own, *_) in zip(cases, cases_run):
        queries = torch.tensor(rows)
        truth, own = (x.index_select(of_queries[0], queries) for x in (truth, own))
        error = row_errors(own, truth)
        agreement.refuse_disagreement(spec, inputs, truth, own, error, lambda: _in_own_types(
            traced, inputs).index_select(of_queries[0], queries))
        picked = sorted({len(rows) % truth.shape[axis], truth.shape[axis] - 1})
        kept = truth.index_select(axis, torch.tensor(picked))
        entry.update(heads=picked, head_axis=axis, shape=list(kept.shape), rows=list(error.shape), of_rows=rows)
        index.append(entry)
        truths.append(kept.contiguous().numpy().ravel())
        errors.append(error.ravel())
    return index


def _times_longest(value, longest):
    """How many times the longest size of the example an integer argument of it goes up to: tokens that are counted
    where the keys stand for blocks of them. One for what stays within, and for words of bits."""
    if value.is_floating_point() or value.dtype == torch.bool or not value.numel() or value.dim() == 0:
        return 1
    high = int(value.max())
    return max(1, round(high / longest)) if high < 2**24 else 1


def _case(spec, traced, interpreter, shapes_at, values, pages, n, long, run):
    longest = max(values.values(), default=1)
    of_example = max((d for v in traced.values if isinstance(v, torch.Tensor) for d in v.shape[2:-1]), default=1)
    positive, of_positive = built_in.divisors(spec.names, traced), _of_positive(traced)
    streams = [stream for stream, is_argument in enumerate(traced.is_argument) if is_argument]
    for as_example in (False, True):
        hows = {s: _draw_of(traced.values[s], n, longest, as_example, _times_longest(traced.values[s], of_example),
                            s in of_positive) for s in streams}
        hows |= {s: pages.draw_of(s, values) for s in pages.tables}
        values = pages.named(values, hows)
        for s in streams:  # what divides is positive
            if hows[s].get("low") == 0 and spec.names[s] in positive:
                hows[s]["low"] = 1
        if traced.product:  # whose examples are mostly drawn at random: twice the same goldens
            for s in streams:
                _round_scale(hows[s])

        def drawn(stream, shape):
            return draw(hows[stream], SEED + n, stream, traced.values[stream].dtype, shape)

        inputs, draws = list(traced.values), []
        try:
            given = [None if traced.values[s].dim() else drawn(s, []) for s in streams]
            for stream, shape in zip(streams, shapes_at(values, given)):
                if long and is_operand(traced.values[stream]) and math.prod(shape) > reach.DRAWN:
                    hows[stream] = {"kind": "constant", "value": 0.125}
                inputs[stream] = drawn(stream, shape)
                draws.append({"name": spec.names[stream], "stream": stream, "shape": shape,
                              **{k: number(v) for k, v in hows[stream].items()}})
            with torch.no_grad():
                truth, own, *others = run(spec, traced, interpreter, inputs, n % TWICE == 1)
            if own.shape != truth.shape:
                raise Problem("spec.trace", f"with shapes {agreement.shapes_of(inputs)} the function returns shape "
                              f"{tuple(own.shape)}, its trace {tuple(truth.shape)}", spec.line)
            return {"seed": SEED + n, "draws": draws}, inputs, truth, own, *others
        except Problem:
            raise
        except Exception as error:
            failure = error
    raise Problem("spec.run", f"with shapes {agreement.shapes_of(inputs)} {spec.name} raises {type(failure).__name__}: "
                  f"{first_line_of(failure)}", last_line_in(spec.file, failure) or spec.line,
                  hint="PyTorch computes nothing in FP8: convert first, q.to(torch.float32)" if "Float8" in str(failure)
                  else of_isolation(failure) or "it must run as it is on these inputs, and for any batch size and sequence sizes")


def write(folder, index, truths, errors):
    np.save(folder / "truth.npy", truths)
    np.save(folder / "own_error.npy", errors)
    (folder / "goldens.json").write_text(json.dumps(index))
