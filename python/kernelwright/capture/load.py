"""Reads a user's file: the function, its arguments, and where they stand in the text.

Three forms are read. Ours: a function and `example_inputs()`. KernelBench's: `Model`, `get_inputs`
and `get_init_inputs`; the model's parameters become arguments after the inputs. FlashInfer-Bench's: a
definition in JSON, which definition.py writes in ours.

Nothing here needs a GPU: where the file puts its tensors on one, and there is none, they stay.
"""

import ast
import dataclasses
import pathlib
import random
import re
import sys
import types

import numpy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from . import definition
from .diagnostic import Problem, first_line_of, last_line_in, of_isolation


@dataclasses.dataclass
class UserSpec:
    """A function to capture, and where its arguments stand in the user's text (lines from 1)."""

    file: str
    name: str
    function: object  # called with `values`
    values: list  # tensors, numbers, None
    names: list
    lines: list  # of each argument's name in the file
    columns: list
    line: int  # of the function
    text: str = ""  # of the file, as lines and columns count
    asked: str = ""  # the function that was asked for, or what a definition calls it
    product: bool = False  # its operands are too few for attention: a product of two matrices, at most
    rows: bool = False  # nor that: each row is normalised by sums over it
    notes: list = dataclasses.field(default_factory=list)  # (message, line): what was assumed of it


class _OnTheCpu(TorchFunctionMode):
    """Tensors that are asked for on a GPU are made on the CPU: only their shapes, types and strides
    count, and a machine that makes kernels need not have one."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        if function is torch.Tensor.to:
            args = (args[0], *(self.place(a) for a in args[1:]))
        kwargs = {k: self.place(v) if k == "device" else v for k, v in (kwargs or {}).items()}
        return function(*args, **kwargs)

    @staticmethod
    def place(value):
        names_gpu = isinstance(value, str) and value.split(":")[0] == "cuda"
        is_gpu = isinstance(value, torch.device) and value.type == "cuda"
        return torch.device("cpu") if names_gpu or is_gpu else value


def load(path, function_name=None):
    """The specification in a file, as a UserSpec: function, example values, names and places.

    path: a Python file of our form or KernelBench's, or a FlashInfer-Bench definition (NAME.json).
    function_name: which function of the file; by default the one named after it.

    Raises Problem, with code, line and column, where the file is at fault."""
    file = str(path)
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem("spec.file", f"{file} cannot be read: {error}") from None
    if file.endswith(".json"):
        text, function_name = definition.read(file, text)
        file += "#reference"
    with _OnTheCpu():
        try:
            return _load(file, text, function_name)
        except Problem as problem:
            raise problem.of_text(file, text)


def _load(file, text, function_name):
    try:
        tree = ast.parse(text, file)
        code = compile(tree, file, "exec")
    except SyntaxError as error:
        raise Problem("spec.syntax", f"Python cannot read this file: {error.msg}", error.lineno or 1,
                      error.offset or 1) from None
    except (RecursionError, ValueError) as error:  # a sum of 200,000 terms; a NUL byte
        raise Problem("spec.syntax", f"Python cannot read this file: {first_line_of(error)}", 1, 1,
                      "name a text that Python can import") from None
    module = types.ModuleType("user_spec")
    module.__file__ = file
    sys.modules["user_spec"] = module
    # Golden inputs are as large as the examples, which a file mostly draws: the same file, the same goldens.
    random.seed(0), numpy.random.seed(0), torch.manual_seed(0)
    sys.path.insert(0, str(pathlib.Path(file).parent))
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise Problem("spec.run", f"importing the file raises {type(error).__name__}: "
                      f"{first_line_of(error)}", last_line_in(file, error), hint=of_isolation(error)) from None
    definitions = {node.name: node for node in tree.body
                   if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    if "Model" in definitions and "get_inputs" in definitions and function_name is None:
        return _kernel_bench(file, text, module, definitions)
    return _function(file, text, module, definitions, function_name)


def _call(file, function, *args):
    try:
        return function(*args)
    except (Exception, SystemExit) as error:
        raise Problem("spec.run", f"{function.__name__}() raises {type(error).__name__}: "
                      f"{first_line_of(error)}", last_line_in(file, error), hint=of_isolation(error)) from None


def _function(file, text, module, definitions, wanted):
    if "example_inputs" not in definitions:
        raise Problem("spec.no_inputs", "the file has no function example_inputs()", 1, hint=
                      "define example_inputs() and return the function's arguments, tensors and "
                      "numbers, as a tuple")
    functions = [name for name, node in definitions.items()
                 if isinstance(node, ast.FunctionDef) and name != "example_inputs"]
    stem = pathlib.Path(file).stem.replace("-", "_")
    public = [name for name in functions if not name.startswith("_")]
    if wanted is not None:
        name = wanted if wanted in functions else None
    else:
        name = stem if stem in functions else public[0] if len(public) == 1 else None
    if name is None:
        looked_for = wanted or stem
        found = ", ".join(functions) or "none"
        raise Problem("spec.no_function", f"no function {looked_for} in the file; it defines: {found}",
                      1, hint="name the function after the file, or say --function NAME")
    node = definitions[name]
    values = _call(file, module.example_inputs)
    values = list(values) if isinstance(values, (tuple, list)) else [values]
    arguments = node.args.posonlyargs + node.args.args
    required = len(arguments) - len(node.args.defaults)
    if not required <= len(values) <= len(arguments):
        raise Problem("spec.inputs", f"{name} takes {len(arguments)} arguments, example_inputs() "
                      f"returns {len(values)}", definitions["example_inputs"].lineno)
    arguments = arguments[: len(values)]
    _refuse_empty(arguments, values, definitions["example_inputs"])
    return UserSpec(file, name, getattr(module, name), values, [a.arg for a in arguments],
                    [a.lineno for a in arguments], [a.col_offset + 1 for a in arguments],
                    node.lineno, text, wanted or "")


def _refuse_empty(arguments, values, node):
    for a, value in zip(arguments, values):
        if isinstance(value, torch.Tensor) and not value.numel():
            raise Problem("spec.inputs", f"{node.name}() gives {a.arg} as {list(value.shape)}, and a tensor without "
                          "elements shows nothing", node.lineno, hint="let every size be at least 1, such as B 2 and S 256")


# ---- KernelBench's form

# What has weights of two dimensions and more: products with them are no part of an attention form.
PROJECTIONS = (torch.nn.Linear, torch.nn.Bilinear, torch.nn.MultiheadAttention, torch.nn.Embedding,
               torch.nn.modules.conv._ConvNd)
LARGEST = 2**26  # elements of an input, above which only its shape is asked for


def _kernel_bench(file, text, module, definitions):
    node = definitions["Model"]
    init = _call(file, module.get_init_inputs) if "get_init_inputs" in definitions else []
    init = init if isinstance(init, (list, tuple)) else [init]
    model = _call(file, module.Model, *init).eval()
    _refuse_projections(model, node)
    values = _inputs(file, module.get_inputs, definitions["get_inputs"])
    arguments = _arguments_of_forward(node, values, definitions["get_inputs"])
    _refuse_empty(arguments, values, definitions["get_inputs"])
    inputs = len(values)
    parameters = dict(model.named_parameters())
    keys = list(parameters)

    def function(*args):
        return torch.func.functional_call(model, dict(zip(keys, args[inputs:])), args[:inputs])

    # Parameters still, so that --dtype converts them as model.to(dtype) would.
    values += [torch.nn.Parameter(p.detach(), requires_grad=False) for p in parameters.values()]
    places = [(a.lineno, a.col_offset + 1) for a in arguments]
    places += [_line_of_attribute(node, key) for key in keys]
    names = [a.arg for a in arguments] + [key.replace(".", "_") for key in keys]
    name = re.sub(r"\W", "_", pathlib.Path(file).stem).lstrip("0123456789_") or "attention"
    return UserSpec(file, name, function, values, names, [line for line, _ in places],
                    [column for _, column in places], node.lineno, text, notes=_of_evaluation(model, node))


def _of_evaluation(model, node):
    """What eval() changes of this Model, as notes."""
    asked = next((n.lineno for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.attr == "training"), None)
    drops = any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 for m in model.modules())
    if asked is None and not drops:
        return []
    return [("the Model is taken as in eval(): self.training is False, and dropout does nothing", asked or node.lineno)]


def _line_of_attribute(node, key):
    """Where the class sets self.NAME, for the name of a parameter or a module: "c_attn.weight"."""
    for child in ast.walk(node):
        targets = child.targets if isinstance(child, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr == key.split(".")[0]:
                return child.lineno, child.col_offset + 1
    return node.lineno, node.col_offset + 1


def _refuse_projections(model, node):
    for name, part in model.named_modules():
        if isinstance(part, PROJECTIONS):
            line, column = _line_of_attribute(node, name)
            raise Problem("spec.projection", f"{name} is an nn.{type(part).__name__}: a product with "
                          "weights, before or after the attention, is not part of an attention kernel",
                          line, column, "write a Model whose forward takes q, k and v, [batch, heads, "
                          "length, dimension], and leave the projections to cuBLAS")


def _inputs(file, get_inputs, node):
    """What get_inputs() returns. Of inputs so large that their contents would take gigabytes only the
    shapes are asked for; with a batch of 2, which a batch of any size is traced as."""
    values = _large_inputs(get_inputs) or _call(file, get_inputs)
    if not isinstance(values, (list, tuple)):
        raise Problem("spec.inputs", f"get_inputs() returns a {type(values).__name__}, and should return a "
                      "list of the arguments of forward", node.lineno)
    return list(values)


def _large_inputs(get_inputs):
    try:
        with FakeTensorMode():
            fakes = list(get_inputs())
        large = all(isinstance(x, torch.Tensor) and x.dim() >= 3 and x.is_floating_point() for x in fakes)
    except Exception:  # it looks at its own values: then it has to run
        return None
    if not large or max((x.numel() for x in fakes), default=0) <= LARGEST:
        return None
    batch = fakes[0].shape[0]
    if any(x.shape[0] != batch or not x.is_contiguous() for x in fakes):
        return None
    return [torch.zeros((min(batch, 2), *x.shape[1:]), dtype=x.dtype) for x in fakes]


def _arguments_of_forward(node, values, get_inputs):
    forward = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None)
    if forward is None:
        raise Problem("spec.no_function", "Model has no method forward", node.lineno)
    arguments = (forward.args.posonlyargs + forward.args.args)[1:]
    required = len(arguments) - len(forward.args.defaults)
    if not required <= len(values) <= len(arguments):
        raise Problem("spec.inputs", f"forward takes {len(arguments)} arguments, get_inputs() returns "
                      f"{len(values)}", get_inputs.lineno)
    return arguments[:len(values)]
