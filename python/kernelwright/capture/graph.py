"""The exported graph as JSON: ATen operators, symbolic shapes, the user's lines.

Sizes are expressions over symbols, written as nested lists: ["+", "s1", 3]. Arithmetic on sizes,
which the graph spells as nodes, becomes such an expression where it is used, so that only tensors
are nodes. Operators stay as the user's code called them; composite ones are opened in C++.
"""

import math
import re

import sympy
import torch

from .diagnostic import Problem

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "e4m3",
    torch.int64: "i64", torch.int32: "i32", torch.uint8: "u8", torch.bool: "bool",
}

MOST_EXAMPLE_INTEGERS, MOST_EXAMPLE_FLAGS = 2**14, 2**18

# Operators that the attention form cannot hold, and what to say about them.
REFUSED = {
    "spec.scan": ({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"},
                  "runs along the keys one after the other: a scan, which no tile of scores can do"),
    "spec.selection": ({"topk", "sort", "argsort", "argmax", "argmin", "kthvalue", "median", "unique",
                        "_unique2", "nonzero", "masked_select"},
                       "selects by value, so which keys count is known only after all scores are"),
    "spec.dropout": ({"dropout", "native_dropout", "bernoulli", "rand", "rand_like", "randn",
                      "randn_like", "alpha_dropout", "feature_dropout"},
                     "is random, so there is no one right output to check a kernel against"),
}


def operator_name(node):
    """aten.softmax of aten.softmax.int."""
    return str(node.target).split(".")[1] if str(node.target).startswith("aten.") else str(node.target)


def place_of(node):
    """(line, column) in the user's file; the innermost frame there."""
    found = re.findall(r'line (\d+), in', node.meta.get("stack_trace") or "")
    return (int(found[-1]), 1) if found else (None, 1)


def refuse_operators(graph, product):
    """`product`: of a function that is no attention, whose kernels know no rows without a key."""
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = operator_name(node).rstrip("_")
        _refuse_nan(node)
        _refuse_other_numbers(node, name, product)
        if name == "dropout" and (node.args[1] == 0 or not node.args[2]):
            continue  # does nothing
        random_sdpa = name == "scaled_dot_product_attention" and _dropout_of(node) != 0
        for code, (names, why) in REFUSED.items():
            if name in names or (random_sdpa and code == "spec.dropout"):
                line, column = place_of(node)
                raise Problem(code, f"{node.target} {why}", line, column,
                              "remove it: scores, a mask, softmax and the product with v are what "
                              "a kernel can be made for")


def _refuse_nan(node):
    if any(isinstance(x, float) and math.isnan(x) for x in [*node.args, *node.kwargs.values()]):
        line, column = place_of(node)
        raise Problem("spec.nan", f"{node.target} puts NaN into the result, which no kernel's output can be held against",
                      line, column, "drop keys with -inf; for rows that are not to be used any number will do")


def _refuse_other_numbers(node, name, product):
    """nan_to_num is for rows without a key, which are 0 in every kernel."""
    given = [*node.args[1:], *node.kwargs.values()]
    if name == "nan_to_num" and product:
        line, column = place_of(node)
        raise Problem("spec.nan", f"{node.target} puts 0 and the largest numbers of the type in the place of what is no number or "
                      "infinite, and a kernel of a product gives what the product is", line, column, "leave it away")
    if name == "nan_to_num" and any(x not in (None, 0) for x in given):
        line, column = place_of(node)
        raise Problem("spec.nan", f"{node.target} puts {next(x for x in given if x not in (None, 0))} in the place of what is no "
                      "number or infinite, and a kernel puts 0 into rows without a key, and no other number anywhere", line, column,
                      "mask with torch.where(keep, scores, -inf), and leave nan_to_num its 0")


def _dropout_of(node):
    return node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0)


class Sizes:
    """Symbols of one graph, after those that an operator forces to be equal became one."""

    def __init__(self, graph):
        self.same = {}
        for node in graph.nodes:
            if node.op == "call_function" and operator_name(node) == "scaled_dot_product_attention":
                # export leaves the key counts of k and v apart here
                k, v = (node.args[n].meta["val"].shape for n in (1, 2))
                for a, b in ((k[-2], v[-2]), (k[-3], v[-3]) if len(k) > 3 else (0, 0)):
                    self._join(a, b)

    def _join(self, a, b):
        if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
            x, y = sympy.sympify(self.expr(a)), sympy.sympify(self.expr(b))
            if x != y and y.is_Symbol:
                self.same[y] = x

    def expr(self, size):
        return size.node.expr.xreplace(self.same) if hasattr(size, "node") else sympy.Integer(size)

    def to_json(self, size):
        return size if isinstance(size, (int, float)) else _expression(self.expr(size))


def _expression(e):
    if e.is_Symbol:
        return str(e)
    if e.is_Integer:
        return int(e)
    if e.is_number:
        return ["real", float(e)]
    name = type(e).__name__
    operators = {"Add": "+", "Mul": "*", "FloorDiv": "//", "CleanDiv": "//", "PythonMod": "%",
                 "Mod": "%", "Max": "max", "Min": "min", "Pow": "**", "PowByNatural": "**",
                 "FloatPow": "**", "ToFloat": "float", "FloatTrueDiv": "/", "IntTrueDiv": "/",
                 "OpaqueUnaryFn_sqrt": "sqrt", "OpaqueUnaryFn_log2": "log2", "OpaqueUnaryFn_exp": "exp"}
    if name not in operators:
        raise Problem("spec.operator", f"{e} is computed of sizes, and sizes are added, multiplied, divided and compared here",
                      hint="compute it of positions, in tensors, or pass the number as an argument")
    return [operators[name]] + [_expression(a) for a in e.args]


def number(value):
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    return value


def _argument(value, sizes):
    if isinstance(value, torch.fx.Node):
        val = value.meta.get("val")
        if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return {"size": sizes.to_json(val)}
        return {"node": value.name}
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return {"size": sizes.to_json(value)}
    if isinstance(value, (list, tuple)):
        return [_argument(v, sizes) for v in value]
    if isinstance(value, torch.dtype):
        return {"dtype": DTYPES.get(value, str(value))}
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return None
    return number(value)


def _constant(name, tensor, line):
    values = [number(v) for v in tensor.reshape(-1).tolist()] if tensor.numel() <= 4096 else None
    return {"name": name, "op": "constant", "args": [values], "kwargs": {}, "line": line, "column": 1,
            "dtype": DTYPES.get(tensor.dtype, str(tensor.dtype)), "shape": list(tensor.shape)}


def _skip(node):
    val = node.meta.get("val")
    return val is None or isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


def to_json(spec, traced):
    program = traced.program
    sizes = Sizes(program.graph)
    signature = program.graph_signature
    constants = {**signature.inputs_to_lifted_tensor_constants, **signature.inputs_to_buffers,
                 **signature.inputs_to_parameters}
    nodes = []
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in constants:
            key = constants[node.name]
            tensor = program.constants[key] if key in program.constants else program.state_dict[key]
            nodes.append(_constant(node.name, tensor, spec.line))
        if node.op != "call_function" or _skip(node):
            continue
        line, column = place_of(node)
        val = node.meta["val"]
        several = isinstance(val, (tuple, list))
        first = val[0] if several else val
        if not hasattr(node.target, "_schema") and "getitem" not in str(node.target):
            raise Problem("spec.operator", f"{node.target} is not an ATen operator", line, column)
        try:
            nodes.append(_node(node, first, sizes, line, column))
        except Problem as problem:  # of an expression of sizes, which knows no line
            problem.line, problem.column = problem.line or line, column
            raise
    output = next(n for n in program.graph.nodes if n.op == "output").args[0]
    outputs = [o.name for o in output if isinstance(o, torch.fx.Node)]
    return {
        "name": spec.name,
        "file": spec.file,
        "line": spec.line,
        "dtype": DTYPES[traced.dtype],
        "arguments": _arguments(spec, traced, sizes),
        "nodes": nodes,
        "outputs": outputs,
        "notes": [{"message": message, "line": line} for message, line in traced.notes],
        "examples": _examples(spec, traced),
    }


def _node(node, first, sizes, line, column):
    return {
        "name": node.name,
        "op": "getitem" if "getitem" in str(node.target) else str(node.target),
        "args": [_argument(a, sizes) for a in node.args],
        "kwargs": {k: _argument(a, sizes) for k, a in node.kwargs.items()},
        "dtype": DTYPES.get(first.dtype, str(first.dtype)),
        "shape": [sizes.to_json(s) for s in first.shape],
        "line": line, "column": column,
    }


def _examples(spec, traced):
    """What example_inputs() gave, for pictures of the mask: the shape of each tensor, and the values of
    those that a mask may read where they are few: integers as a list, flags as a text of 0 and 1."""
    out = {}
    for name, value, is_argument in zip(spec.names, traced.values, traced.is_argument):
        if not is_argument or not value.dim():
            continue
        numbers = None
        if value.dtype == torch.bool and value.numel() <= MOST_EXAMPLE_FLAGS:
            numbers = "".join("01"[flag] for flag in value.reshape(-1).tolist())
        elif not value.is_floating_point() and value.numel() <= MOST_EXAMPLE_INTEGERS:
            numbers = value.reshape(-1).tolist()
        out[name] = {"shape": list(value.shape), "values": numbers}
    return out


def _beyond_32_bits(value):
    bounds = torch.iinfo(torch.int32)
    return next((n for n in (int(value.min()), int(value.max())) if not bounds.min <= n <= bounds.max), None)


def _arguments(spec, traced, sizes):
    placeholders = {n.name: n for n in traced.program.graph.nodes if n.op == "placeholder"}
    keys = iter(traced.program.graph_signature.user_inputs)
    out = []
    for n, (value, is_argument) in enumerate(zip(traced.values, traced.is_argument)):
        if not is_argument:
            continue
        key = next(keys)
        scalar = value.dim() == 0
        strides = list(value.stride())
        dtype = {torch.float64: "f32", torch.int64: "i32"}.get(value.dtype) if scalar else None
        if not scalar and value.dtype not in DTYPES:
            raise Problem("spec.dtype", f"argument {spec.names[n]} is {value.dtype}", spec.lines[n],
                          spec.columns[n])
        if value.dtype == torch.int64 and value.numel() and (far := _beyond_32_bits(value)) is not None:
            raise Problem("spec.integers", f"argument {spec.names[n]} holds {far} among the example's inputs, and a "
                          "kernel takes 32 bits of an int64", spec.lines[n], spec.columns[n],
                          "number what is compared from 0 on, as torch.unique(ids, return_inverse=True)[1] does")
        if scalar and not math.isfinite(value.item()):
            raise Problem("spec.example", f"{spec.names[n]} is {value.item()} in the example, and cases draw numbers around "
                          "the example's", spec.lines[n], spec.columns[n],
                          f"write {value.item()} in the function, or make the example a number like those of calls")
        out.append({
            "name": spec.names[n],
            "node": key,
            "dtype": dtype or DTYPES[value.dtype],
            "tensor": not scalar,
            "dims": [sizes.to_json(s) for s in placeholders[key].meta["val"].shape],
            "stride_order": sorted(range(value.dim()), key=lambda d: -strides[d]),
            "value": number(value.item()) if scalar else None,
            "line": spec.lines[n], "column": spec.columns[n],
        })
    return out
