"""From the user's function to an exported graph with symbolic sizes.

A first run on fake tensors (milliseconds) says which dimensions are sequences, which Python
numbers PyTorch insists on knowing, and what is wrong with the function. Then `torch.export` traces
once. Head counts and head dimensions stay constants; every other dimension may vary unless the
user's code fixes it, and then the line that did is noted.
"""

import dataclasses
import math
import re
import traceback

import torch
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException, FakeTensorMode)
from torch.export import Dim
from torch.fx.experimental import symbolic_shapes
from torch.fx.proxy import TracerBase
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from . import agreement, branches
from .diagnostic import Problem, first_line_of, last_line_in, of_isolation


@dataclasses.dataclass
class Trace:
    program: torch.export.ExportedProgram
    values: list  # what was traced: numbers that are arguments became zero-dimensional tensors
    is_argument: list  # False for what was built into the graph
    dtype: torch.dtype
    notes: list  # (message, line)
    product: bool = False  # of two matrices, not attention, by its operands
    rows: bool = False  # no product at all: each row is normalised by sums over it
    factors: frozenset = frozenset()  # which values come to a product as its sides; empty: not known
    paged: frozenset = frozenset()  # which of these are read at indices that are data: pages of keys and values
    guard_lines: dict = dataclasses.field(default_factory=dict)  # of what PyTorch asked of sizes, by the condition


FP8 = torch.float8_e4m3fn


def is_operand(value, product=False):
    """q, k or v, by its looks: floating, of three dimensions or more; of a product of matrices two."""
    least = 2 if product else 3
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() >= least


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def convert(spec, dtype):
    """Checks the floating types; with `dtype`, fp32 operands become that type."""
    operands = [n for n, value in enumerate(spec.values) if is_operand(value)]
    for n, value in enumerate(spec.values):
        if isinstance(value, torch.Tensor) and value.dtype == torch.float64:
            raise Problem("spec.dtype", f"argument {spec.names[n]} is float64, for which no tensor "
                          "cores exist here", spec.lines[n], spec.columns[n],
                          "give example_inputs() in bfloat16 or float16")
    if len(operands) < 3 and not (len(operands) == 2 and _is_attention(spec)):
        spec.product = True
        spec.rows = _is_of_rows(spec)
        operands = [n for n, value in enumerate(spec.values) if is_operand(value, True)]
    if len(operands) < (1 if spec.rows else 2):
        raise Problem("spec.not_attention", f"{spec.name} has {len(operands)} floating arguments of "
                      "two or more dimensions; attention has q, k and v, a product of matrices two "
                      "factors", spec.line)
    types = {spec.values[n].dtype for n in operands}
    if dtype is None and len(types) > 1:  # a bias or a gate may have another type
        operands = _factors_among(spec, operands)
        types = {spec.values[n].dtype for n in operands}
    if dtype is None and torch.float32 in types:
        n = next(n for n in operands if spec.values[n].dtype == torch.float32)
        raise Problem("spec.dtype", f"argument {spec.names[n]} is float32; kernels take bfloat16 or "
                      "float16", spec.lines[n], spec.columns[n], "say --dtype bf16 or --dtype f16")
    if dtype is not None:
        spec.values = [v.to(dtype) if (is_operand(v, spec.product) and v.dtype != FP8) or
                       _is_parameter_like(v) else v for v in spec.values]
        types = {spec.values[n].dtype for n in operands}
    wide = types - {FP8}
    if len(wide) > 1 or not wide <= {torch.bfloat16, torch.float16}:
        listed = ", ".join(f"{spec.names[n]} {spec.values[n].dtype}" for n in operands)
        raise Problem("spec.dtype", "the operands must share one type, bfloat16 or float16, beside "
                      f"those of float8_e4m3fn: {listed}", spec.line)
    return _of_fp8(spec, wide, dtype) if FP8 in types else wide.pop()


def _of_fp8(spec, wide, asked):
    """The type that FP8 operands are multiplied in and the output has: what the function returns."""
    returned = _fake_run(spec, spec.values, [is_number(value) for value in spec.values]).returned
    due = wide or ({asked} if asked else {torch.bfloat16, torch.float16})
    if returned not in due:
        raise Problem("spec.dtype", f"{spec.name} returns {returned} of operands of float8_e4m3fn; its kernel "
                      f"can write {' or '.join(sorted(map(str, due)))}", spec.line,
                      hint=f"return the output .to({sorted(map(str, due))[0]})")
    return returned


def _is_attention(spec):
    """Of a function with two operands: whether what one product gives comes to another, as where the
    values are columns of the keys."""
    try:
        return _fake_run(spec, spec.values, [is_number(value) for value in spec.values]).chained
    except Exception:
        return False


def _is_of_rows(spec):
    """Whether a function has no product of matrices, and means or sums instead."""
    try:
        run = _fake_run(spec, spec.values, [is_number(value) for value in spec.values])
    except Exception:
        return False
    return not run.factors and run.reduces


def _factors_among(spec, operands):
    """Those that come to a matrix product; all of them if the function does not run."""
    try:
        factors = _fake_run(spec, spec.values, [is_number(value) for value in spec.values]).factors
    except Exception:
        return operands
    return [n for n in operands if n in factors] or operands


def _is_parameter_like(value):
    return isinstance(value, torch.nn.Parameter) and value.dtype == torch.float32


# ---- the first run, on fake tensors


class _Products(TorchDispatchMode):
    """Which arguments are factors of matrix products, and the rows and columns of the scores.

    A tensor's origins are the arguments that it was computed from, and "product" if a matrix product
    was on the way. q, k and v come to a product without another before it; a bias does not. Of the
    arguments on one side of a product the factor is that of the most dimensions, the first of several:
    the others are weights and rotations of its rows."""

    def __init__(self, values, file=None):
        super().__init__()
        self.ranks = {n: value.dim() for n, value in enumerate(values) if isinstance(value, torch.Tensor)}
        self.sizes, self.factors, self.returned = set(), set(), None  # the type of the first output
        self.paged = set()  # arguments of four dimensions whose first is read at data
        self.chained = False  # a product comes to another
        self.reduces = False  # a mean, a sum or a norm is taken
        self.file, self.storages, self.written = file, {}, None  # written: (argument, line) of the first write
        self.origins, self.given, self.alive = {}, {}, []  # by id(), which is a tensor's while it lives

    def note(self, tensor, origins):
        self.origins[id(tensor)] = origins
        self.alive.append(tensor)

    def note_argument(self, tensor, n):
        self.note(tensor, {n})
        self.given[id(tensor)] = n
        self.storages[tensor.untyped_storage()._cdata] = n

    def note_writes(self, func, args):
        """Views share their tensor's storage, so that a write through one is a write to it."""
        for argument, value in zip(func._schema.arguments, args):
            if argument.alias_info is None or not argument.alias_info.is_write or not isinstance(value, torch.Tensor):
                continue
            n = self.storages.get(value.untyped_storage()._cdata)
            if n is not None and self.written is None:
                lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self.file]
                self.written = n, lines[-1] if lines else None

    def note_pages(self, func, args):
        """k[table], of a table of page numbers."""
        if func is torch.ops.aten.index.Tensor and args[1] and args[1][0] is not None:
            n = self.given.get(id(args[0]))
            if n is not None and args[0].dim() == 4:
                self.paged.add(n)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.note_writes(func, args)
        self.note_pages(func, args)
        out = func(*args, **(kwargs or {}))
        given = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        origins = set().union(*(self.origins.get(id(x), set()) for x in given))
        attention = "scaled_dot_product" in str(func)
        self.reduces |= any(word in str(func) for word in (".mean.", ".sum.", "rms_norm", "layer_norm", "vector_norm"))
        plain = func in (torch.ops.aten.bmm.default, torch.ops.aten.mm.default)
        added = func in (torch.ops.aten.baddbmm.default, torch.ops.aten.addmm.default)
        if attention or plain or added:
            args = args[1:] if added else args  # what is added comes first
            sides = [self.origins.get(id(x), set()) for x in args[:3 if attention else 2]]
            self.factors |= {min(side, key=lambda n: (-self.ranks.get(n, 0), n))
                             for side in sides if side and "product" not in side}
            self.chained |= attention or any("product" in side for side in sides)
            if attention:
                self.sizes |= {int(args[0].shape[2]), int(args[1].shape[2])}
            elif "product" not in origins:
                self.sizes |= {int(args[0].shape[-2]), int(args[1].shape[-1])}
            origins = origins | {"product"}
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor):
                self.note(x, origins | self.origins.get(id(x), set()))
        return out


def _fake_run(spec, values, as_tensors):
    """Runs the function on fake tensors; returns its products."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    products = _Products(values, spec.file)
    fakes = []
    for n, (value, as_tensor) in enumerate(zip(values, as_tensors)):
        if as_tensor:
            value = torch.tensor(value)
        if isinstance(value, torch.Tensor):
            value = mode.from_tensor(value)
            products.note_argument(value, n)
        fakes.append(value)
    with torch.no_grad(), mode, products:
        out = spec.function(*fakes)
    products.returned = next((x.dtype for x in tree_leaves(out) if isinstance(x, torch.Tensor)), None)
    return products


def _explain(spec, error):
    if isinstance(error, Problem):
        return error
    line = last_line_in(spec.file, error)
    if isinstance(error, (DataDependentOutputException, DynamicOutputShapeException,
                          symbolic_shapes.GuardOnDataDependentSymNode)):
        operator = getattr(error, "func", None)
        what = f" ({operator})" if operator is not None else ""
        return Problem("spec.branch_on_value", "what happens next depends on a tensor's value, which "
                       f"is known only when the kernel runs{what}", line or spec.line,
                       hint="choose with torch.where, or pass the value as a Python number")
    return Problem("spec.run", f"{spec.name} raises {type(error).__name__}: {first_line_of(error)}",
                   line or spec.line, hint=of_isolation(error))


def _choose_numbers(spec, values):
    """Which Python numbers can be arguments. The others are constants, and their line is noted."""
    numbers = [is_number(value) for value in values]
    try:
        return numbers, _fake_run(spec, values, numbers), []
    except Exception as error:
        if not any(numbers):
            raise _explain(spec, error) from None
    notes = []
    for n in [n for n, number in enumerate(numbers) if number]:
        # Is the function content once everything but this number is a constant?
        try:
            _fake_run(spec, values, [m == n for m in range(len(values))])
        except Exception as error:
            numbers[n] = False
            notes.append((f"{spec.names[n]} = {values[n]} is a constant of the kernel: PyTorch needs "
                          "its value here", last_line_in(spec.file, error) or spec.lines[n]))
    try:
        return numbers, _fake_run(spec, values, numbers), notes
    except Exception as error:
        raise _explain(spec, error) from None


def _without_ones(spec, values, numbers, factors):
    """Batch or sequence size 1 in an example would be traced as a constant: try 2 and 3 instead.

    Where q, k and v have a larger batch, a 1 elsewhere is the same for all of it."""
    if spec.product:
        return _without_ones_of_product(spec, values, numbers)
    batches = {values[n].shape[0] for n in factors if is_operand(values[n])}
    grown = []
    for n, value in enumerate(values):
        if n not in factors and batches and 1 not in batches:
            pass
        elif is_operand(value) and 1 in value.shape:
            shape = [2 if d == 0 and size == 1 else size for d, size in enumerate(value.shape)]
            value = value.new_empty(shape)
        elif isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == 1:
            value = value[:1].expand(2, *value.shape[1:]).clone()
        grown.append(value)
    try:
        _fake_run(spec, grown, numbers)
        return grown
    except Exception:
        return values


def _without_ones_of_product(spec, values, numbers):
    """The same where any dimension may vary: every size of one becomes two, if the function runs."""
    grown = [value.expand([2 if size == 1 else size for size in value.shape]).clone()
             if is_operand(value, True) and 1 in value.shape else value for value in values]
    try:
        _fake_run(spec, grown, numbers)
        return grown
    except Exception:
        return values


# ---- the trace


def _dynamic_dims(value, sequence_sizes, is_factor, product=False, rows=False, paged=False):
    """AUTO for a dimension that may vary, None for one that is a constant."""
    if not isinstance(value, torch.Tensor):
        return None
    if rows:  # the columns are a constant, as are heads
        return {d: Dim.AUTO for d in range(value.dim() - 1) if d != 1 or value.dim() < 4}
    if product:  # of four dimensions the second is a constant
        return {d: Dim.AUTO for d in range(value.dim()) if d != 1 or value.dim() < 4}
    if not is_operand(value) or not is_factor:  # data, such as a bias [B, H, M, N]
        return {d: Dim.AUTO for d in range(value.dim())}
    if paged:  # a page's rows and heads are constants, in either order
        return {0: Dim.AUTO}
    dims = {d: Dim.AUTO for d in range(value.dim() - 1)}
    if value.dim() == 4:
        dims.pop(2 if value.shape[1] in sequence_sizes and value.shape[2] not in sequence_sizes else 1)
    return dims


class _Recorder:
    """While tracing: keeps the user's frames only, and notes which line fixed a size."""

    def __init__(self, file):
        self.file, self.lines = file, {}  # (argument, dimension) -> line

    def __enter__(self):
        self.filter = TracerBase._filter_traceback_frames
        self.replace = symbolic_shapes.ShapeEnv._set_replacement
        recorder = self

        def only_user_frames(tracer, frames):
            return traceback.StackSummary.from_list(
                [frame for frame in frames if frame.filename == recorder.file])

        def note_replacement(env, symbol, target, message):
            recorder.note(env, symbol)
            return recorder.replace(env, symbol, target, message)

        TracerBase._filter_traceback_frames = only_user_frames
        symbolic_shapes.ShapeEnv._set_replacement = note_replacement
        return self

    def note(self, env, symbol):
        lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self.file]
        if not lines:
            return
        for source in env.var_to_sources.get(symbol, []):
            place = re.search(r"\[(\d+)\]\D*size\(\)\[(\d+)\]", source.name if isinstance(source.name, str)
                              else source.name())
            if place:
                self.lines.setdefault((int(place[1]), int(place[2])), lines[-1])

    def __exit__(self, *_):
        TracerBase._filter_traceback_frames = self.filter
        symbolic_shapes.ShapeEnv._set_replacement = self.replace


class _LogarithmsOfSizes:
    """While tracing: math.log of a size is a tensor of one number, a function of the size. PyTorch
    would ask for the size's value, and so fix it."""

    def __enter__(self):
        self.log = math.log

        def log(x, *base):
            if isinstance(x, torch.SymInt) and not base:
                return torch.scalar_tensor(x, dtype=torch.float32).log()
            return self.log(x, *base)

        math.log = log

    def __exit__(self, *_):
        math.log = self.log


class _Module(torch.nn.Module):
    def __init__(self, function, constants):
        super().__init__()
        self.function, self.constants = function, constants

    def forward(self, *args):
        remaining = iter(args)
        return self.function(*[next(remaining) if is_arg else value for is_arg, value in self.constants])


def trace(spec, dtype):
    """Traces spec.function on its example inputs, whose operands are of `dtype`."""
    numbers, products, notes = _choose_numbers(spec, spec.values)
    if products.written:
        raise agreement.written(spec, spec.names[products.written[0]], products.written[1])
    values = _without_ones(spec, spec.values, numbers, products.factors)
    if values is not spec.values:
        products = _fake_run(spec, values, numbers)
    is_argument = [number or isinstance(value, torch.Tensor) for number, value in zip(numbers, values)]
    values = [torch.tensor(value) if number else value for number, value in zip(numbers, values)]
    given = tuple(value for value, argument in zip(values, is_argument) if argument)
    dims = tuple(_dynamic_dims(value, products.sizes, not products.factors or n in products.factors,
                               spec.product, spec.rows, n in products.paged & products.factors)
                 for n, value in enumerate(values) if is_argument[n])
    module = _Module(spec.function, list(zip(is_argument, values)))
    recorder, decisions = _Recorder(spec.file), branches.Decisions(spec.file)
    try:
        with torch.no_grad(), recorder, decisions, _LogarithmsOfSizes():
            program = torch.export.export(module, given, dynamic_shapes=(dims,), strict=False)
    except Exception as error:
        raise _explain(spec, error) from None
    for value in program.graph.output_node().args[0] or (None,):
        if not isinstance(value, torch.fx.Node):
            raise Problem("spec.output", f"the function returns {value!r}, and what a kernel gives is tensors", spec.line,
                          hint="return the output")
    branches.refuse(spec, decisions.taken, program, is_argument)
    notes += [*spec.notes, *_fixed_sizes(spec, program, given, dims, is_argument, recorder.lines)]
    return Trace(program, values, is_argument, dtype, notes, spec.product, spec.rows, frozenset(products.factors),
                 frozenset(products.paged & products.factors), decisions.lines)


def _fixed_sizes(spec, program, given, dims, is_argument, lines):
    """Notes on sizes of operands that could have varied but came out as constants."""
    names = [name for name, argument in zip(spec.names, is_argument) if argument]
    places = [line for line, argument in zip(spec.lines, is_argument) if argument]
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    notes = []
    for n, key in enumerate(program.graph_signature.user_inputs):
        shape = placeholders[key].meta["val"].shape
        for d in dims[n] or {}:
            fixed = not isinstance(shape[d], torch.SymInt) or shape[d].node.expr.is_number
            if is_operand(given[n], spec.product) and fixed:
                # Of sizes that must be equal, one is recorded.
                line = lines.get((n, d)) or min(lines.values(), default=places[n])
                notes.append((f"size {d} of {names[n]} is fixed at {int(shape[d])} here", line))
    return notes
