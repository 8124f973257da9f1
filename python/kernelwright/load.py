"""Reads a user's file: the function, its arguments, and where they stand in the text.

Two forms are read. Ours: a function and `example_inputs()`. KernelBench's: `Model`, `get_inputs`
and `get_init_inputs`; the model's parameters become arguments after the inputs.
"""

import ast
import dataclasses
import inspect
import pathlib
import sys
import types

import torch

from .problem import Problem, first_line_of, last_line_in


@dataclasses.dataclass
class UserSpec:
    file: str
    name: str
    function: object  # called with `values`
    values: list  # tensors, numbers, None
    names: list
    lines: list  # of each argument's name in the file
    columns: list
    line: int  # of the function


def load(path, function_name=None):
    file = str(path)
    try:
        text = pathlib.Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise Problem("spec.file", f"{file} cannot be read: {error}") from None
    try:
        tree = ast.parse(text, file)
        code = compile(tree, file, "exec")
    except SyntaxError as error:
        raise Problem("spec.syntax", f"Python cannot read this file: {error.msg}", error.lineno or 1,
                      error.offset or 1) from None
    module = types.ModuleType("user_spec")
    module.__file__ = file
    sys.modules["user_spec"] = module
    sys.path.insert(0, str(pathlib.Path(path).parent))
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise Problem("spec.run", f"importing the file raises {type(error).__name__}: "
                      f"{first_line_of(error)}", last_line_in(file, error)) from None
    definitions = {node.name: node for node in tree.body
                   if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    if "Model" in definitions and "get_inputs" in definitions and function_name is None:
        return _kernel_bench(file, module, definitions)
    return _function(file, module, definitions, function_name)


def _call(file, function, *args):
    try:
        return function(*args)
    except (Exception, SystemExit) as error:
        raise Problem("spec.run", f"{function.__name__}() raises {type(error).__name__}: "
                      f"{first_line_of(error)}", last_line_in(file, error)) from None


def _function(file, module, definitions, wanted):
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
    return UserSpec(file, name, getattr(module, name), values, [a.arg for a in arguments],
                    [a.lineno for a in arguments], [a.col_offset + 1 for a in arguments],
                    node.lineno)


def _kernel_bench(file, module, definitions):
    node = definitions["Model"]
    init = _call(file, module.get_init_inputs) if "get_init_inputs" in definitions else []
    model = _call(file, module.Model, *init).eval()
    values = list(_call(file, module.get_inputs))
    names = list(inspect.signature(model.forward).parameters)[: len(values)]
    inputs = len(values)
    parameters = dict(model.named_parameters())
    keys = list(parameters)

    def function(*args):
        return torch.func.functional_call(model, dict(zip(keys, args[inputs:])), args[:inputs])

    values += [p.detach() for p in parameters.values()]
    names += [key.replace(".", "_") for key in keys]
    return UserSpec(file, pathlib.Path(file).stem, function, values, names, [node.lineno] * len(names),
                    [1] * len(names), node.lineno)
