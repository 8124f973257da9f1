"""Python values that a trace makes constants of: globals, defaults, what a closure holds, the environment.

A kernel computes with the values of the moment when it was made. That is what a user wants of WINDOW = 1024,
and a surprise of a default that other callers override; so the form says which there are. They are found in the text
of the code, not by watching it: the names that the function reads, and those of the functions of the same file that it
calls. Tensors are not among them: they are arguments, or constants with their own check (dependencies.py).

An integer argument that something is divided by is no constant, but the form holds for positive ones only, and says
so beside them.
"""

import inspect
import os

from . import code
from .graph import operator_name, place_of

DIVISIONS = {"remainder", "floor_divide", "div", "fmod"}
MOST = 24  # lines; a module of a hundred constants is not read by one function


def lines(spec, traced):
    """["WINDOW = 1024 (a global)"], in the order in which they are found; each name once."""
    found = {}
    for name, value, argument in zip(spec.names, spec.values, traced.is_argument):
        if not argument and _is_plain(value):
            found[name] = f"{name} = {value!r} (an argument that PyTorch needs the value of)"
    entered = code.entered(spec)
    for function in code.functions_of(spec):
        for name, line in _of_function(function, spec.names if function in entered else ()).items():
            found.setdefault(name, line)
    return list(found.values())[:MOST] + [
        f"{name} > 0 (something is divided by it in line {line})" for name, line in divisors(spec.names, traced).items()]


def divisors(names, traced):
    """{integer argument that something is divided by: the line}. Its launches and goldens are of positive ones."""
    given = [name for name, argument in zip(names, traced.is_argument) if argument]
    whole = {key: name for key, name in zip(traced.program.graph_signature.user_inputs, given)}
    whole = {node: whole[node.name] for node in traced.program.graph.nodes
             if node.op == "placeholder" and node.name in whole and node.meta["val"].dim() == 0 and
             not node.meta["val"].is_floating_point()}
    found = {}
    for node in traced.program.graph.nodes:
        if node.op == "call_function" and operator_name(node).rstrip("_") in DIVISIONS and len(node.args) > 1 \
                and node.args[1] in whole:
            found.setdefault(whole[node.args[1]], place_of(node)[0])
    return found


def _of_function(function, given):
    """{name: line} of one function of the user's; of a helper, which is given no arguments here, without its
    defaults: whether its callers override them, its code does not say."""
    found = {name: f"{name} = {value!r} (a default)" for name, value in (_defaults(function) if given else {}).items()
             if name not in given and _is_plain(value)}
    for name, (value, kind) in code.read(function).items():
        if _is_plain(value):
            found.setdefault(name, f"{name} = {value!r} ({kind})")
        elif value is os and {"environ", "getenv"} & set(function.__code__.co_names):
            for key in sorted(k for k in os.environ if k in _texts(function.__code__)):
                found.setdefault(key, f"{key} = {os.environ[key]!r} (of the environment)")
    return found


def _defaults(function):
    return {name: p.default for name, p in inspect.signature(function).parameters.items()
            if p.default is not inspect.Parameter.empty}


def _texts(compiled):
    return {c for c in compiled.co_consts if isinstance(c, str)}


def _is_plain(value):
    if isinstance(value, (list, tuple)):
        return 0 < len(value) <= 16 and all(_is_plain(v) for v in value)
    return isinstance(value, (bool, int, float, str)) and len(repr(value)) <= 80
