"""kernelwright from Python: `compile` makes an operator of an attention function, `flex` writes such a
function in FlexAttention's vocabulary. docs/python.md is the reference.

    capture/     from a function to its graph and golden values
    compiling/   `compile`: the cache, operators, gradients
    runtime/     launching a kernel that was made
    flash/       FlashAttention's functions by their names
    serve/       the tools of `kernelwright serve`
    flexattention.py, huggingface.py   functions that others write: FlexAttention's mods, transformers' models

Importing this package is cheap, because the command line imports it too: PyTorch and the rest come
with the first name that is used.
"""

import sys
import types
from importlib import import_module

_HOME = {"compile": "compiling.compiler", "flex": "flexattention", "Error": "errors", "SpecError": "errors",
         "ArgumentError": "errors", "GradientError": "errors", "MachineError": "errors",
         "Refuted": "errors", "Inconclusive": "errors", "InternalError": "errors"}
# Modules that docs/python_reference.md names without their folders.
_MODULES = {"compiler": "compiling.compiler", "operators": "compiling.operators", "plan": "compiling.inside.plan", "launch": "runtime.launch",
            "exported": "runtime.exported", "library": "runtime.library", "load": "capture.load",
            "definition": "capture.definition", "problem": "capture.diagnostic"}
__all__ = [*_HOME, "__version__"]


def _version():
    """What CMakeLists.txt says: read there in a checkout, kept by the wheel's metadata elsewhere."""
    import pathlib
    import re
    project = pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt"
    said = project.exists() and re.search(r"project\(kernelwright VERSION ([\d.]+)", project.read_text())
    if said:
        return said[1]
    from importlib.metadata import version
    return version("kernelwright")


def __getattr__(name):
    if name == "__version__":
        globals()[name] = _version()
        return globals()[name]
    if name in _MODULES:
        return import_module(f".{_MODULES[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'kernelwright' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


class _Elsewhere(types.ModuleType):
    """A documented module under its documented name: its contents, imported with the first of them."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(f".{_MODULES[self.__name__.split('.')[1]]}", __package__), name)


sys.modules.update((name, _Elsewhere(name)) for name in (f"{__name__}.{module}" for module in _MODULES))


def __dir__():
    return sorted([*globals(), *_HOME])
