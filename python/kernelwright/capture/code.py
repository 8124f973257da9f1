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
    """The user's function, and those of the user's that it calls by name: cached, bound and partial ones too, and those of
    classes and objects that it reads."""
    found, waiting = [], [spec.function]
    while waiting:
        function = _inner(waiting.pop(0))
        if not isinstance(function, types.FunctionType):
            methods = map(_inner, vars(function if isinstance(function, type) else type(function)).values())
            waiting += [f for f in methods if isinstance(f, types.FunctionType) and is_users(f, spec) and f not in found]
        elif function not in found and is_users(function, spec):
            found.append(function)
            waiting += [value for value, _ in read(function).values()]
    return found


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
    found = {name: (function.__globals__[name], "a global") for name in names(function.__code__)
             if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = (cell.cell_contents, "held by the closure")
        except ValueError:  # not filled yet
            continue
    return found


def codes(code):
    """The code and that of the functions inside it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def names(code):
    """Names that code reads, and the functions inside it."""
    return [name for c in codes(code) for name in c.co_names]


def steps(function):
    """(line, instruction), of a function and those inside it."""
    for code in codes(function.__code__):
        line = code.co_firstlineno
        for step in dis.get_instructions(code):
            line = step.starts_line if isinstance(step.starts_line, int) and step.starts_line > 1 else line
            yield line, step


def _inner(function):
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
