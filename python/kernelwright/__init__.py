"""kernelwright from Python: `compile` makes an operator of an attention function, `flex` writes such a
function in FlexAttention's vocabulary. docs/python.md is the reference.

Importing this package is cheap, because the command line imports it too: PyTorch and the rest come
with the first name that is used.
"""

_HOME = {"compile": "compiler", "flex": "flexattention", "Error": "errors", "SpecError": "errors",
         "ArgumentError": "errors", "GradientError": "errors", "MachineError": "errors",
         "Refuted": "errors", "Inconclusive": "errors", "InternalError": "errors"}
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
    if name not in _HOME:
        raise AttributeError(f"module 'kernelwright' has no attribute '{name}'")
    from importlib import import_module
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__():
    return sorted([*globals(), *_HOME])
