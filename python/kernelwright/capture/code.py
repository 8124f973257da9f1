"""The user's code as Python has compiled it: which functions there are, and what they read beside their arguments.

The user's is what lies neither in the standard library, nor among installed packages, nor in this one.
"""

import dis
import functools
import inspect
import os
import pathlib
import types

LIBRARIES = tuple(os.path.realpath(os.path.dirname(path)) + os.sep for path in (inspect.__file__, os.path.dirname(__file__)))


def functions_of(spec):
    """The user's function, and those of the user's that it reaches: called by name, cached, bound and partial ones, wrapped
    and wrapping ones, those of classes and objects that it reads, and those that a function of others holds (a mod of `flex`)."""
    return [value for value in _reached(spec) if isinstance(value, types.FunctionType)]


def objects_of(spec):
    """What else than functions is reached in their place: objects that are called, what a partial holds, what a method is bound to."""
    return [value for value in _reached(spec) if not isinstance(value, types.FunctionType)]


def entered(spec):
    """The user's functions that are called with what the specification says, and not by another of the user's."""
    function = unwrapped(spec.function)
    return [unwrapped(f) for f in getattr(function, "__kernelwright_mods__", (function,))]


def _reached(spec):
    found, waiting, seen = [], [spec.function], {}  # seen: by id(), which is an object's while it lives
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen or isinstance(value, PLAIN) or hasattr(value, "data_ptr"):  # a tensor has no code
            continue
        seen[id(value)] = value
        waiting += _parts(value, spec)
        if is_users(value, spec) if isinstance(value, types.FunctionType) else not isinstance(value, (type, types.ModuleType)):
            found.append(value)
    return found


PLAIN = (type(None), bool, int, float, complex, str, bytes)


def _parts(value, spec):
    """What a value may run, or hand to what it runs."""
    if isinstance(value, types.FunctionType):
        inner = [value.__wrapped__] if hasattr(value, "__wrapped__") else []
        if is_users(value, spec):
            return inner + [part for name, (part, _) in read(value).items()] + _of_modules(value)
        return inner + [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, types.ModuleType):
        return []
    if callable(value) and hasattr(value, "__wrapped__") and not isinstance(value, type):
        return [value.__wrapped__]
    made = not isinstance(value, type)  # then its __init__ has run
    parts = [part for base in (type(value) if made else value).__mro__ for name, part in vars(base).items()
             if isinstance(f := unwrapped(part), types.FunctionType) and is_users(f, spec) and not (made and name == "__init__")]
    holds = made and hasattr(value, "__dict__") and (parts or hasattr(type(value), "named_modules"))
    return parts + (list(vars(value).values()) if holds else [])


def _of_modules(function):
    """Functions and classes of the user's own modules that a function names: `masks.causal`."""
    named = set(names(function.__code__))
    modules = [value for value, _ in read(function).values() if isinstance(value, types.ModuleType)
               and getattr(value, "__file__", None) and not is_others(value.__file__)]
    return [part for module in modules for name, part in vars(module).items() if name in named]


def _is_filled(cell):
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


def is_users(function, spec):
    """Of a function, or of a frame's code."""
    file = getattr(function, "__code__", function).co_filename
    return file == spec.file or not is_others(file)


@functools.cache
def is_others(file):
    if not os.path.isfile(file):  # typed in, or generated
        return True
    file = os.path.realpath(file)
    return file.startswith(LIBRARIES) or bool({"site-packages", "dist-packages"} & set(pathlib.Path(file).parts))


def read(function):
    """{name: (value, "a global" or "held by the closure")} of what a function reads that is no argument or local."""
    found = {name: (function.__globals__[name], "a global") for name in global_names(function.__code__)
             if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if _is_filled(cell):
            found[name] = (cell.cell_contents, "held by the closure")
    return found


def codes(code):
    """The code and that of the functions inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def global_names(code):
    """Names that code, and the functions inside it, look up in their module: of `cfg.window` it is cfg."""
    return [step.argval for c in codes(code) for step in dis.get_instructions(c)
            if step.opname in ("LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")]


def names(code):
    """Names that code reads, attributes among them, and the functions inside it."""
    return [name for c in codes(code) for name in c.co_names]


def steps(function):
    """(line, instruction), of a function and those inside it."""
    for code in codes(function.__code__):
        line = code.co_firstlineno
        for step in dis.get_instructions(code):
            line = step.starts_line if isinstance(step.starts_line, int) and step.starts_line > 1 else line
            yield line, step


def unwrapped(function):
    """What is behind partial functions, methods and wrappers."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, (types.MethodType, staticmethod, classmethod)):
            function = function.__func__
        elif isinstance(function, property):
            function = function.fget
        elif callable(function) and hasattr(function, "__wrapped__") and not isinstance(function, type):
            function = inspect.unwrap(function)
        else:
            return function
