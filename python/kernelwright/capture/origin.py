"""Where code, functions and classes come from: a package that was installed, whose version stands for its text, or the user.

A name says little: `functools.wraps(torch.add)` gives a user's function torch's `__module__`, and anybody may put a function
into `torch.nn.functional`. So a function's origin is the file of its code, or, where its code was generated, the module whose
globals it has.
"""

import functools
import os
import pathlib
import sys
import types

INSTALLED = {"site-packages", "dist-packages"}
STANDARD = os.path.realpath(os.path.dirname(os.__file__)) + os.sep
# What C has made: their names say all.
OF_C = (types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
        types.GetSetDescriptorType, types.MemberDescriptorType)

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: it is not built into C


@functools.cache
def package_of_file(file):
    """The package that a file of code was installed with, "" for one of Python's own; None for anybody's."""
    parts = pathlib.PurePath(file).parts
    for n in range(len(parts) - 2, -1, -1):
        if parts[n] in INSTALLED:
            return parts[n + 1].split(".")[0]
    if file.startswith("<frozen ") or os.path.realpath(file).startswith(STANDARD):
        return ""
    return None


def package_of(function):
    """The same of a function."""
    file = function.__code__.co_filename
    if not file.startswith("<") or file.startswith("<frozen "):
        return package_of_file(file)
    name = function.__globals__.get("__name__")  # generated, as methods of dataclasses are
    module = sys.modules.get(name)
    return name.split(".")[0] if module is not None and function.__globals__ is vars(module) and is_installed(name) else None


def is_installed(module_name):
    """Whether a module came with Python or a package, so that its version stands for its text."""
    top = (module_name or "").split(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return top != "__main__"
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
    return bool(INSTALLED & set(pathlib.PurePath(file).parts))


def is_installed_class(kind):
    """Of a class that says so: whether its module has it under its name, or the code of its methods is of that module's file."""
    if not isinstance(kind.__module__, str) or not is_installed(kind.__module__):
        return False
    module = found = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    files = {part.__code__.co_filename for part in vars(kind).values() if isinstance(part, types.FunctionType)}
    return found is kind or not kind.__flags__ & HEAP_TYPE or getattr(module, "__file__", None) in files


def version(module_name):
    """What stands for the text of an installed module."""
    module = sys.modules.get(module_name.split(".")[0])
    return str(getattr(module, "__version__", "")) or sys.version


def is_plain_instance(value):
    """Of an object: whether it is of an installed class of Python's, and all that it holds is among its attributes."""
    kinds = type(value).__mro__[:-1]
    return hasattr(value, "__dict__") and all(
        is_installed_class(kind) and kind.__flags__ & HEAP_TYPE and not vars(kind).get("__slots__") for kind in kinds)
