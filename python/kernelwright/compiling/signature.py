"""Which argument of the user's function is which of the kernel, and whether a call fits.

Three things meet here: the captured graph (what the user's arguments are, with symbolic sizes), the
certificate's bindings (which of them is which of the kernel's, with its dimensions in which order)
and launch.json (what is copied how). `describe` makes one record of them, which is kept with the
kernel; a `Signature` reads the record, checks calls in the user's own words, and says which shapes
come out. It works on symbolic sizes as on integers, so the same code serves torch.compile.

A size is an integer, a name, or [operator, size, size].
"""

import functools
import operator

import torch

from ..errors import ArgumentError, InternalError
from ..runtime.launch import DTYPES, LARGEST_SIZE

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "i64": 8, "i32": 4, "u8": 1, "bool": 1}
_ARITHMETIC = {"+": operator.add, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
               "max": max, "min": min, "**": operator.pow}
SAVED = "forward."  # before the names of what a backward kernel takes beside the function's arguments
COPIED = 16  # bytes, of which addresses and strides of copied rows are multiples


def evaluate(size, known):
    """The value of a size, or None where a name in it is not known."""
    if isinstance(size, str):
        return known.get(size)
    if not isinstance(size, list):  # a number, or None: unknown
        return size
    values = [evaluate(part, known) for part in size[1:]]
    if any(value is None for value in values) or size[0] not in _ARITHMETIC:
        return None
    return functools.reduce(_ARITHMETIC[size[0]], values)


def _renamed(size, names):
    if isinstance(size, list):
        return [size[0], *(_renamed(part, names) for part in size[1:])]
    return names.get(size, size) if isinstance(size, str) else size


def _size_names(arguments, bindings, launch):
    """The kernel's names of the graph's symbols: M instead of s27."""
    names = {}
    for argument in arguments:
        binding = bindings.get(argument["name"])
        if binding is None or not argument["tensor"]:
            continue
        for d, theirs in zip(binding["dims"], launch[binding["argument"]]["dims"]):
            symbol = argument["dims"][d] if d >= 0 else None
            if isinstance(symbol, str) and isinstance(theirs, str) and theirs not in names.values():
                names.setdefault(symbol, theirs)
    return names


def _output_size(graph, name, names):
    node = next(node for node in graph["nodes"] if node["name"] == name)
    return [_renamed(size, names) for size in node["shape"]]


def describe(graph, certificate, launch, reached, constants, least):
    """The record of a compiled function.

    graph: graph.json. certificate, launch: certificate.json and launch.json of its kernel.
    reached: names of arguments that the function is not given but reaches. constants: values of
    parameters that are built in, by name. least: what sizes of an argument's own must be at least."""
    theirs = {a["name"]: a for a in launch["arguments"] if a["kind"] in ("tensor", "tensor_map", "scalar")}
    bindings = {b["user"]: b for b in certificate["transfer"]["bindings"] if b["user"]}
    own = {b["argument"]: b for b in certificate["transfer"]["bindings"] if not b["user"]}
    names = _size_names(graph["arguments"], bindings, theirs)
    arguments = []
    for argument in graph["arguments"]:
        dims = [_renamed(size, names) for size in argument["dims"]]
        smallest = [_renamed(least.get(size), names) if isinstance(size, str) else None for size in argument["dims"]]
        record = _argument(argument["name"], argument["dtype"], dims, smallest, bindings.get(argument["name"]), theirs)
        arguments.append(record | {"tensor": argument["tensor"], "reached": argument["name"] in reached})
    sizes = _kernel_sizes(arguments, theirs)
    record = {"arguments": arguments, "constants": constants, "own": len(graph["outputs"]),  # the function's outputs
              "outputs": _outputs(graph, theirs, own, names, sizes),
              "order": [a["name"] for a in launch["arguments"] if a["kind"] in ("tensor", "tensor_map")]}
    if graph.get("training") == "backward":
        _add_gradients(record, [_output_size(graph, name, names) for name in graph["outputs"]],
                       certificate["transfer"]["bindings"], theirs, sizes)
    return record


def _argument(name, dtype, dims, least, binding, theirs):
    record = {"name": name, "dtype": dtype, "tensor": True, "dims": dims, "least": least, "reached": False,
              "kernel": binding["argument"] if binding else None, "copied": False}
    if binding and binding["argument"] in theirs and theirs[binding["argument"]]["kind"] != "scalar":
        kernel = theirs[binding["argument"]]
        record["kernel_dims"] = binding["dims"]
        record["group"] = binding.get("group", 1)
        record["copied"] = kernel["kind"] == "tensor_map" or bool(kernel.get("row_alignment"))
    return record


def _add_gradients(record, outputs, bindings, theirs, sizes):
    """Of a backward kernel: before the function's arguments the gradients of its `outputs`, of which these are the sizes,
    as often as the kernel reads them (`of_outputs`, by number); behind them what the forward kernel has saved (`saved`, how
    many); and of which arguments its own outputs are the gradients (`gradients`)."""
    record["of_outputs"] = []
    before, behind = [], []
    for binding in bindings:
        if binding["user"].startswith(SAVED):
            kernel = theirs[binding["argument"]]
            given = {f"{SAVED}d_o": 0, f"{SAVED}d_lse": 1}.get(binding["user"])
            dims = _sizes_behind(kernel["dims"], sizes) if given is None else outputs[given]
            (behind if given is None else before).append(_argument(f"forward_{binding['argument']}", kernel["dtype"], dims,
                                                                   [None] * len(dims), binding, theirs))
            if given is not None:
                record["of_outputs"].append(given)
    behind.sort(key=lambda a: len(a["dims"]))  # as the forward kernel's outputs: lse, o
    record["saved"] = len(behind)
    record["gradients"] = [_differentiated(o["kernel"], record["arguments"]) for o in record["outputs"]]
    for output, n in zip(record["outputs"], record["gradients"]):
        output["dims"] = record["arguments"][n]["dims"]
    record["arguments"] = [*before, *record["arguments"], *behind]


def _differentiated(output, arguments):
    """The number of the argument that a kernel's output is the gradient of: `dq` of its operand q, `d_slopes` of what the
    function calls slopes."""
    names = {"d_o_given": "o"} | {f"d_{a['name']}": a["name"] for a in arguments if a["name"] != "o"}  # d_o is the output's
    if output in names:
        return next(n for n, a in enumerate(arguments) if a["name"] == names[output])
    return next(n for n, a in enumerate(arguments) if a["kernel"] == output.removeprefix("d"))


def _sizes_behind(letters, sizes):
    return [sizes.get(size, size) if isinstance(size, str) else size for size in letters]


def _outputs(graph, theirs, own, names, sizes):
    """What the kernel writes: first what the user's function returns, in its order, which is that of the
    bindings without an argument of the user's; then what it does not."""
    written = [name for name, a in theirs.items() if a.get("access") == "write"]
    order = [name for name in own if name in written]
    outputs = []
    for n, kernel in enumerate(sorted(written, key=lambda name: order.index(name) if name in order else len(order))):
        users = n < len(graph["outputs"])
        rank = len(theirs[kernel]["dims"])
        dims = own.get(kernel, {}).get("dims", list(range(rank)))
        record = {"kernel": kernel, "dtype": theirs[kernel]["dtype"], "returned": users or "training" in graph,
                  "kernel_dims": dims, "group": own.get(kernel, {}).get("group", 1)}
        record["dims"] = (_output_size(graph, graph["outputs"][n], names) if users else
                          _sizes_behind(theirs[kernel]["dims"], sizes))
        outputs.append(record)
    return outputs


def _kernel_sizes(arguments, theirs):
    """The user's size behind each name of the kernel's: 32 for H, M for M."""
    sizes = {}
    for argument in arguments:
        if argument["tensor"] and argument["kernel"]:
            for d, size, name in _sizes_of(argument, theirs[argument["kernel"]]["dims"]):
                if d >= 0 and isinstance(name, str):
                    sizes.setdefault(name, size)
    return sizes


def _sizes_of(argument, letters):
    """Of each of the kernel's dimensions the user's, its size, and the kernel's letter for it."""
    dims = argument["kernel_dims"]
    sizes = [argument["dims"][d] if d >= 0 else 1 for d in dims]
    if argument["group"] > 1:
        sizes[1:3] = [sizes[1] // argument["group"], argument["group"]]
    return zip(dims, sizes, letters)


class Signature:
    """`function`: the user's name of it, for messages."""

    def __init__(self, function, record):
        self.function, self.record = function, record
        self.arguments, self.outputs = record["arguments"], record["outputs"]
        self.returned = [o for o in self.outputs if o["returned"]]

    def schema(self):
        """As torch.library reads it, without the name."""
        kind = {"f32": "float", "i32": "SymInt"}
        given = [f"{'Tensor' if a['tensor'] else kind[a['dtype']]} {a['name']}" for a in self.arguments]
        out = ["Tensor"] * len(self.returned)
        return f"({', '.join(given)}) -> " + (out[0] if len(out) == 1 else f"({', '.join(out)})")

    def refuse(self, argument, was, should, hint=None):
        name = argument["name"] + (" (which the function reaches)" if argument["reached"] else "")
        raise ArgumentError(self.function, name, was, should, hint)

    def sizes(self, values):
        """The sizes by name of a call, from shapes that fit each other. Raises ArgumentError."""
        known, said = {}, {}
        for argument, value in zip(self.arguments, values):
            if argument["tensor"]:
                self._bind(argument, value, known, said)
        for argument, value in zip(self.arguments, values):
            if not argument["tensor"]:
                continue
            for d, size in enumerate(argument["dims"]):
                due = evaluate(size, known)
                if _differ(value.shape[d], due):
                    by = f", as {said[size]} has" if isinstance(size, str) else ""
                    self.refuse(argument, f"has {value.shape[d]} in dimension {d}", f"have {due}{by}")
        if all(isinstance(size, int) for size in known.values()):  # no questions to symbols
            self._check_least(values, known)
        return known

    def sizes_of(self, names, values):
        """The sizes by name that these arguments alone tell."""
        known = {}
        for argument in self.arguments:
            if argument["tensor"] and argument["name"] in names:
                value = values[names.index(argument["name"])]
                known |= {size: value.shape[d] for d, size in enumerate(argument["dims"]) if isinstance(size, str)}
        return known

    def _check_least(self, values, known):
        for argument, value in zip(self.arguments, values):
            for d, size in enumerate(argument["least"]):
                need = evaluate(size, known)
                if need is not None and value.shape[d] < need:
                    self.refuse(argument, f"has {value.shape[d]} in dimension {d}",
                                f"have {need} or more, which these lengths read")

    def _bind(self, argument, value, known, said):
        if not isinstance(value, torch.Tensor):
            self.refuse(argument, f"is of the type {type(value).__name__}", "be a tensor")
        due = DTYPES[argument["dtype"]]
        if value.dtype != due:
            self.refuse(argument, f"is {_short(value.dtype)}", f"be {_short(due)}",
                        f"pass {argument['name']}.to({due})" if due.is_floating_point else None)
        if value.dim() != len(argument["dims"]):
            self.refuse(argument, f"has {value.dim()} dimensions, {list(value.shape)}",
                        f"have {len(argument['dims'])}, {self._shape(argument)}")
        for d, size in enumerate(argument["dims"]):
            if isinstance(size, str) and size not in known:
                if isinstance(value.shape[d], int) and value.shape[d] > LARGEST_SIZE:  # no questions to symbols
                    self.refuse(argument, f"has {value.shape[d]} in dimension {d}",
                                f"have {LARGEST_SIZE} or fewer, for which kernels are checked")
                known[size] = value.shape[d]
                said[size] = f"dimension {d} of {argument['name']}"

    def _shape(self, argument):
        text = [s if isinstance(s, str) else str(s) if isinstance(s, int) else "…" for s in argument["dims"]]
        return "[" + ", ".join(text) + "]"

    def check_memory(self, values):
        """Device and strides, of real tensors."""
        devices = [v.device for a, v in zip(self.arguments, values) if a["tensor"]]
        device = next((d for d in devices if d.type != "cpu"), devices[0])
        for argument, value in zip(self.arguments, values):
            if not argument["tensor"]:
                continue
            if value.device != device:
                self.refuse(argument, f"is on {value.device}", f"be on {device}, as other arguments are")
            if value.numel() == 0:
                d = list(value.shape).index(0)
                self.refuse(argument, f"has 0 in dimension {d}", "have 1 or more")
            if value.layout != torch.strided:
                self.refuse(argument, f"has the layout {value.layout}", "have torch.strided")
            if argument["copied"]:
                self._check_copied(argument, value)

    def _check_copied(self, argument, value):
        """Rows are copied 16 bytes at a time: a contiguous last dimension, multiples of that else."""
        contiguous = f"pass {argument['name']}.contiguous()"
        user = [d for d in argument["kernel_dims"] if d >= 0]
        columns, unit = user[-1], COPIED // BYTES[argument["dtype"]]
        strides = value.stride()
        if value.shape[columns] > 1 and strides[columns] != 1:
            self.refuse(argument, f"has stride {strides[columns]} in dimension {columns}", "have 1",
                        contiguous)
        for d in user[:-1]:
            if value.shape[d] > 1 and (strides[d] <= 0 or strides[d] % unit):
                self.refuse(argument, f"has stride {strides[d]} in dimension {d}",
                            f"have a positive multiple of {unit} elements ({COPIED} bytes)", contiguous)
        if value.data_ptr() % COPIED:
            self.refuse(argument, f"begins at address {value.data_ptr():#x}",
                        f"begin at a multiple of {COPIED} bytes", f"pass {argument['name']}.clone()")

    def output_shapes(self, known):
        """Of every output, in the user's order of dimensions for those that are returned."""
        shapes = [[evaluate(size, known) for size in output["dims"]] for output in self.outputs]
        for output, shape in zip(self.outputs, shapes):
            if any(size is None for size in shape):
                raise InternalError(f"no argument of {self.function} says what {output['dims']} of "
                                    f"{output['kernel']} is")
        return shapes

    def empty_outputs(self, values, shapes):
        """The tensors that are returned: the first in the memory layout of the operand of its shape, others
        contiguous. Of fake tensors too, so that both agree."""
        operands = [(a, v) for a, v in zip(self.arguments, values) if a["tensor"]]
        out = []
        for output, shape in zip(self.outputs, shapes):
            if output["returned"]:
                alike = [v for a, v in operands if output is self.outputs[0] and a["copied"]
                         and (a["dims"], a["dtype"]) == (output["dims"], output["dtype"])]
                out.append(torch.empty_like(alike[0]) if alike else
                           operands[0][1].new_empty(shape, dtype=DTYPES[output["dtype"]]))
        return out


def _differ(a, b):
    """Of sizes that are symbols nobody asks: torch.compile would make another graph for the answer. The
    launch asks."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def _short(dtype):
    return str(dtype).removeprefix("torch.")
