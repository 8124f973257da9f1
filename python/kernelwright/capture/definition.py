"""FlashInfer-Bench definitions as specifications.

A definition is a JSON file: axes (constant, or variable), inputs and outputs with their axes and
types, and `reference`, Python source with a function run(). What comes out is a specification in our
own form, as Python text: the reference first, so that its lines keep their numbers, then a function
with the definition's name and example_inputs() with the axes' sizes. Constant axes are fixed; of a
variable one the tracing finds that it may vary.

Batches of tokens that lie in pages or end to end are refused, and types that kernels do not take;
each refusal names the field and its line. Schema: flashinfer-ai/flashinfer-bench,
docs/flashinfer-trace/definition.mdx.
"""

import ast
import json
import keyword
import re
import sys

from .diagnostic import Problem

TYPES = ["float32", "float16", "bfloat16", "int64", "int32", "bool"]
NOT_DENSE = {
    "paged": "keys and values lie in pages that a table names",
    "ragged": "the tokens of all sequences lie end to end, with offsets beside them",
}
OFFSETS = re.compile(r"indptr|_indices|page|block_table")
BATCH, QUERIES, KEYS = 2, 96, 112  # of variable axes: the first of four-dimensional tensors, others


class Definition:
    """The JSON text with its places: `problem` makes a refusal at a field."""

    def __init__(self, file, text):
        self.file, self.text = file, text
        try:
            self.json = json.loads(text)
        except json.JSONDecodeError as error:
            raise Problem("spec.definition", f"not JSON: {error.msg}", error.lineno, error.colno) from None
        except RecursionError:
            raise Problem("spec.definition", f"lists and objects stand in one another more than {sys.getrecursionlimit()} deep, and "
                          "those of a definition three", 1, 1, "name a FlashInfer-Bench definition") from None
        if not isinstance(self.json, dict):
            raise self.problem([], "a definition is an object with name, axes, inputs and reference")

    def problem(self, path, message, hint="", code="spec.definition"):
        line, column = self.place(path)
        return Problem(code, message, line, column, hint)

    def place(self, path):
        """Line and column of a field, by its keys from the top; of the last that is there."""
        at = 0
        for key in path:
            found = re.compile(r'(?<!\\)' + re.escape(json.dumps(key)) + r"\s*:").search(self.text, at)
            if not found:
                break
            at = found.start()
        return self.text.count("\n", 0, at) + 1, at - (self.text.rfind("\n", 0, at) + 1) + 1

    def field(self, path, kind, what):
        value = self.json
        for n, key in enumerate(path):
            if not isinstance(value, dict) or key not in value:
                raise self.problem(path[:n], f"the definition has no {'.'.join(path)}")
            value = value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.problem(path, f"{'.'.join(path)} is {json.dumps(value)[:60]}, and should be {what}")
        return value


def read(file, text):
    """A FlashInfer-Bench definition as a specification in our form: (its Python text, its function).

    file: the definition's path, for messages.
    text: its JSON.

    Raises Problem, at the field's line, for what is not dense attention, for types that no kernel takes,
    and for axes that no sizes fit."""
    definition = Definition(file, text)
    name = _identifier(definition)
    _refuse_what_is_not_dense(definition)
    sizes = _sizes(definition)
    reference = definition.field(["reference"], str, "Python source")
    arguments = _arguments_of_run(definition, reference)
    inputs = definition.field(["inputs"], dict, "an object of tensors")
    values = [_value(definition, key, sizes) for key in inputs]
    return f"""{reference.rstrip()}


def {name}({', '.join(arguments)}):
    return run({', '.join(arguments)})


def example_inputs():
    import torch
    return ({', '.join(values)},)
""", name


def _identifier(definition):
    name = re.sub(r"\W", "_", definition.field(["name"], str, "a string"))
    if not name.isidentifier() or keyword.iskeyword(name) or name in ("run", "example_inputs"):
        name = "attention_" + name
    return name


def _refuse_what_is_not_dense(definition):
    op = definition.field(["op_type"], str, "a string")
    hint = "dense attention can be read: q, k and v with axes of their own for batch and sequence"
    for word, why in NOT_DENSE.items():
        if word in op:
            raise definition.problem(["op_type"], f"op_type '{op}' is not supported: {why}", hint,
                                     "spec.not_dense")
    for key in definition.field(["inputs"], dict, "an object of tensors"):
        if OFFSETS.search(key):
            raise definition.problem(["inputs", key], f"input '{key}' is not supported: offsets and "
                                     "page tables say where tokens lie", hint, "spec.not_dense")


def _arguments_of_run(definition, reference):
    """Names of run's parameters; a definition's inputs are given in its order."""
    try:
        tree = ast.parse(reference)
    except SyntaxError as error:
        raise Problem("spec.syntax", f"Python cannot read the reference: {error.msg}", error.lineno or 1,
                      error.offset or 1).of_text(definition.file + "#reference", reference) from None
    run = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "run"), None)
    if run is None:
        raise definition.problem(["reference"], "the reference defines no function run()")
    names = [a.arg for a in run.args.posonlyargs + run.args.args]
    inputs = definition.field(["inputs"], dict, "an object of tensors")
    if len(names) != len(inputs):
        raise Problem("spec.definition", f"run takes {len(names)} arguments, the definition has "
                      f"{len(inputs)} inputs: {', '.join(inputs)}", run.lineno
                      ).of_text(definition.file + "#reference", reference)
    return names


# ---- sizes and values of the example


def _sizes(definition):
    """axis -> size, such that the definition's constraints hold."""
    axes = definition.field(["axes"], dict, "an object of axes")
    fixed, varying = {}, []
    for axis in axes:
        kind = definition.field(["axes", axis, "type"], str, '"const" or "var"')
        if kind == "const":
            fixed[axis] = definition.field(["axes", axis, "value"], int, "a whole number")
        elif kind == "var":
            varying.append(axis)
        else:
            raise definition.problem(["axes", axis, "type"], f"axis '{axis}' has type '{kind}', and "
                                     "should be const or var")
    batch = {shape[0] for shape in _shapes(definition) if len(shape) == 4}
    others = [axis for axis in varying if axis not in batch]
    constraints = _constraints(definition, axes)
    for lengths in ([QUERIES, KEYS], [QUERIES, QUERIES], [128, 256], [128, 128]):
        sizes = {**fixed, **{axis: BATCH for axis in varying if axis in batch}}
        sizes |= {axis: lengths[min(n, 1)] for n, axis in enumerate(others)}
        if all(_holds(code, sizes) for _, code in constraints):
            return sizes
    text = next(text for text, code in constraints if not _holds(code, sizes))
    raise definition.problem(["constraints"], f"no sizes were found for which `{text}` holds",
                             "constraints can be read that relate lengths to each other")


def _shapes(definition):
    inputs = definition.field(["inputs"], dict, "an object of tensors")
    return [shape for tensor in inputs.values()
            if isinstance(tensor, dict) and isinstance(shape := tensor.get("shape"), list)]


def _constraints(definition, axes):
    out = []
    for text in definition.json.get("constraints") or []:
        try:
            tree = ast.parse(str(text), mode="eval")
        except SyntaxError as error:
            raise definition.problem(["constraints"], f"`{text}` is not an expression: {error.msg}") from None
        for node in ast.walk(tree):
            known = (ast.Expression, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant,
                     ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
            if isinstance(node, ast.Name) and node.id in axes or isinstance(node, known):
                continue
            raise definition.problem(["constraints"], f"`{text}` is about more than axes",
                                     "constraints on the contents of tensors cannot be kept")
        out.append((text, compile(tree, definition.file, "eval")))
    return out


def _holds(constraint, sizes):
    try:
        return bool(eval(constraint, {"__builtins__": {}}, dict(sizes)))
    except ArithmeticError:
        return False


def _value(definition, key, sizes):
    """Python text of an input's example."""
    dtype = definition.field(["inputs", key, "dtype"], str, "a type")
    if dtype not in TYPES:
        raise definition.problem(["inputs", key, "dtype"], f"input '{key}' is {dtype}, for which no "
                                 "kernel is started from", f"supported are {', '.join(TYPES)}",
                                 "spec.dtype")
    shape = definition.field(["inputs", key], dict, "a tensor").get("shape")
    floating = "float" in dtype
    if shape is None:
        return "0.125" if floating else "True" if dtype == "bool" else "64"
    for axis in definition.field(["inputs", key, "shape"], list, "a list of axes, or null"):
        if axis not in sizes:
            raise definition.problem(["inputs", key, "shape"], f"input '{key}' has axis '{axis}', which "
                                     "axes does not define")
    extents = tuple(sizes[axis] for axis in shape)
    if floating:
        return f"torch.randn({extents}, dtype=torch.{dtype})"
    return f"torch.randint(0, {2 if dtype == 'bool' else QUERIES}, {extents}).to(torch.{dtype})"
