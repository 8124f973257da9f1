"""kernelwright from Python: `compile` makes an operator of an attention function, `flex` writes such a
function in FlexAttention's vocabulary. docs/python.md is the reference.

Importing this package is cheap, because the command line imports it too: PyTorch and the rest come
with the first name that is used.
"""

__version__ = "0.1.0"
_HOME = {"compile": "compiler", "flex": "flexattention", "Error": "errors", "SpecError": "errors",
         "ArgumentError": "errors", "GradientError": "errors", "MachineError": "errors",
         "Refuted": "errors", "Inconclusive": "errors", "InternalError": "errors"}
__all__ = [*_HOME, "__version__"]


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'kernelwright' has no attribute '{name}'")
    from importlib import import_module
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__():
    return sorted([*globals(), *_HOME])
