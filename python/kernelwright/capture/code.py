"""The user's code as Python has compiled it: which functions there are, and what they read beside their arguments."""

import dis
import functools
import inspect
import types


def functions_of(spec):
    """The user's function, and those of the same file that it calls by name: cached, bound and partial ones too,
    and those of classes and objects that it reads."""
    found, waiting = [], [spec.function]
    while waiting:
        function = _inner(waiting.pop(0))
        if not isinstance(function, types.FunctionType):
            owner = function if isinstance(function, type) else type(function)
            waiting += [f for f in vars(owner).values() if isinstance(_inner(f), types.FunctionType)
                        and _inner(f).__code__.co_filename == spec.file and _inner(f) not in found]
        elif function not in found and function.__code__.co_filename == spec.file:
            found.append(function)
            waiting += [value for value, _ in read(function).values()]
    return found


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
