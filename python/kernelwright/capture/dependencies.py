"""What a function reaches without being given it: tensors in closures and globals, and everything
that its meaning depends on.

Both come from one walk over the function. A *tensor* that is found becomes one more argument of the
kernel: its `Place` says how to read it at each call and how to put a traced one there while the
function is captured. Everything else goes into a *fingerprint*: byte code and constants, defaults,
closures, the globals that the code names, functions in turn, attributes of the user's own modules
(those that the code names), versions of installed ones. Two functions of one fingerprint compute the
same, so the second need not be captured. It is better to know too little than too much: what cannot
be hashed (an object of a class of one's own, `getattr`, the environment) leaves no fingerprint, and
the function is captured again each time.

Calls read a place through a plain function (`reader`) whose one global or closure variable is the
user's own, so that torch.compile reads it as it would in the user's code, guards and all.
"""

import builtins
import dataclasses
import dis
import enum
import functools
import hashlib
import sys
import types

import torch

from ..errors import SpecError

# Names behind which a fingerprint cannot see: what they give may change while the code does not.
_OPAQUE = {"eval", "exec", "getattr", "globals", "locals", "vars", "open", "input", "__import__"}
_OPAQUE_MODULES = {"os", "sys", "time", "random", "importlib", "builtins"}
_SIMPLE = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), torch.dtype, torch.device,
           torch.layout, torch.memory_format, range, slice)


@dataclasses.dataclass
class Place:
    """Where a tensor stands. `get()` reads it, `set(value)` puts another there, `reader` is get() as
    a function without arguments that torch.compile can follow. Places of one `where` are the same."""
    name: str
    reader: object
    set: object
    where: tuple

    def get(self):
        return self.reader()


def _in_cell(name, cell):
    def at():
        return cell

    code = at.__code__.replace(co_freevars=(name,), co_name=name)
    reader = types.FunctionType(code, {}, name, None, (cell,))
    return Place(name, reader, lambda value: setattr(cell, "cell_contents", value),
                 (id(cell),))


def _in_globals(name, space):
    reader = types.FunctionType(compile(f"lambda: {name}", "<kernelwright>", "eval").co_consts[0], space)
    return Place(name, reader, functools.partial(space.__setitem__, name), (id(space), name))


def _in_container(place, key):
    base = place.reader

    def put(value):
        whole = base()
        if isinstance(whole, tuple):
            items = [*whole[:key], value, *whole[key + 1:]]
            place.set(type(whole)(*items) if hasattr(whole, "_fields") else tuple(items))
        else:
            whole[key] = value

    return Place(f"{place.name}_{key}", lambda: base()[key], put, (*place.where, key))


def _in_attribute(place, owner, key):
    base = place.reader if place else (lambda: owner)
    name = f"{place.name}_{key}" if place else key
    return Place(name, lambda: getattr(base(), key), lambda value: setattr(owner, key, value),
                 (id(owner), key))


def is_installed(module_name):
    """Whether a module came with Python or a package, so that its version stands for its text."""
    top = (module_name or "").split(".")[0]
    if top in sys.stdlib_module_names or top in sys.builtin_module_names:
        return top != "__main__"
    module = sys.modules.get(top)
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
    return "site-packages" in file or "dist-packages" in file


def _is_pythons(value):
    """Whether a builtin came with Python: anybody may put more there."""
    return getattr(value, "__module__", None) == "builtins" or any(
        value is constant for constant in (True, False, None, Ellipsis, NotImplemented))


def _is_named_tuple(kind):
    """Whether it reads its items as tuples do: a class of somebody's own may have methods that do not."""
    return hasattr(kind, "_fields") and kind.__bases__ == (tuple,) and not vars(kind).keys() & {"__getitem__", "__iter__", "__getattribute__", "__getattr__"}


def _version(module_name):
    module = sys.modules.get(module_name.split(".")[0])
    return str(getattr(module, "__version__", "")) or sys.version


def global_names(code):
    """Names that the code and the functions in it look up in their module, attributes of any, and modules that they import."""
    names, attributes, imported = set(), set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
        elif step.opname == "IMPORT_NAME":
            imported.add(step.argval)
        elif isinstance(step.argval, str):
            attributes.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more = global_names(constant)
            names, attributes, imported = (a | b for a, b in zip((names, attributes, imported), more))
    return names, attributes, imported


class Dependencies:
    """`places` of the tensors that `function` reaches; `fingerprint` (hexadecimal) or None, and then
    `unhashable` says why."""

    def __init__(self, function):
        self.places, self.unhashable = [], None
        self._hash, self._seen, self._tensors = hashlib.sha256(), {}, {}
        self._say("python", sys.version_info[:3], torch.get_default_dtype())
        self._function(function)
        self.fingerprint = None if self.unhashable else self._hash.hexdigest()

    def _say(self, *facts):
        for fact in facts:
            text = repr(fact).encode()
            self._hash.update(b"%d:" % len(text) + text)

    def _doubt(self, why):
        self.unhashable = self.unhashable or why

    def _function(self, function):
        self._code(function.__code__)
        self._say(function.__name__)
        for name, value in [*enumerate(function.__defaults__ or ()),
                            *sorted((function.__kwdefaults__ or {}).items())]:
            self._value(value, None, set(), f"a default of {function.__name__}")
        names, attributes, imported = global_names(function.__code__)
        for module in sorted(imported):
            self._say("import", module)
            if not is_installed(module) or module.split(".")[0] in _OPAQUE_MODULES:
                self._doubt(f"it imports {module or 'its own package'}")
            else:
                self._say(_version(module))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._say("closure", name)
            try:
                contents = cell.cell_contents
            except ValueError:  # it is filled later, if ever
                self._doubt(f"{name} has no value yet")
                continue
            self._value(contents, _in_cell(name, cell), attributes, name)
        for name in sorted(names):
            self._say("global", name)
            if name in _OPAQUE and name not in function.__globals__:
                self._doubt(f"it calls {name}")
            elif name in function.__globals__:
                self._value(function.__globals__[name], _in_globals(name, function.__globals__),
                            attributes, name)
            elif not hasattr(builtins, name):
                self._say("nowhere")
            elif not _is_pythons(getattr(builtins, name)):
                self._doubt(f"it reads {name}, which was put among the builtins")
        for key, value in sorted(vars(function).items()):  # f.window = 64
            if key.startswith("__kernelwright_"):  # where a function of flex stands, for messages
                continue
            self._say("attribute", key)
            self._value(value, _in_attribute(None, function, key), set(), f"{function.__name__}.{key}")

    def _code(self, code):
        self._say(code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
                  code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount,
                  getattr(code, "co_exceptiontable", b""))
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._code(constant)
            elif isinstance(constant, frozenset):
                self._say("frozenset", sorted(map(repr, constant)))
            else:
                self._say(type(constant).__name__, constant)

    def _value(self, value, place, attributes, name):
        """One value that the code can reach. `attributes`: what the code calls attributes of anything."""
        if isinstance(value, torch.Tensor):
            self._tensor(value, place, name)
        elif type(value) in _SIMPLE:
            self._say(type(value).__name__, value)
        elif isinstance(value, enum.Enum):
            self._say(type(value).__qualname__, value.name, repr(value.value))
        elif isinstance(value, types.ModuleType):
            self._module(value, place, attributes)
        elif id(value) in self._seen:  # met before: by its number, so that cycles end
            self._say("again", self._seen[id(value)])
        else:
            self._seen[id(value)] = len(self._seen)
            self._object(value, place, attributes, name)

    def _tensor(self, value, place, name):
        if place is None:
            raise SpecError(f"{name} is a tensor, which a kernel cannot be given there",
                            hint="make it an argument, or a variable of the module")
        if place.where not in self._tensors:
            self._tensors[place.where] = len(self.places)
            self.places.append(place)
        self._say("tensor", self._tensors[place.where])

    def _object(self, value, place, attributes, name):
        if isinstance(value, types.FunctionType):
            if value.__closure__ is None and is_installed(value.__module__):
                self._say(value.__module__, value.__qualname__, _version(value.__module__))
            else:
                self._function(value)
        elif type(value) in (list, tuple) or _is_named_tuple(type(value)):
            self._say(type(value).__name__, len(value))
            for n, item in enumerate(value):
                self._value(item, place and _in_container(place, n), attributes, f"{name}[{n}]")
        elif type(value) is dict:
            self._say("dict", len(value))
            for key, item in value.items():
                self._value(key, None, attributes, f"a key of {name}")
                self._value(item, place and _in_container(place, key), attributes, f"{name}[{key!r}]")
        elif type(value) in (set, frozenset):
            if not all(type(item) in _SIMPLE for item in value):
                self._doubt(f"{name} is a set of objects")
            self._say("set", sorted(map(repr, value)))
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self._value(part, None, attributes, f"a part of {name}")
        elif isinstance(value, types.SimpleNamespace) or (
                dataclasses.is_dataclass(value) and not isinstance(value, type)):
            self._say(type(value).__qualname__)
            for key, item in vars(value).items():
                self._say(key)
                self._value(item, place and _in_attribute(place, value, key), attributes, f"{name}.{key}")
        elif is_installed(getattr(value, "__module__", None)) and hasattr(value, "__qualname__"):
            self._say(value.__module__, value.__qualname__, _version(value.__module__))
        elif "torch._ops" in type(value).__module__:
            self._say(str(value))
        else:
            self._doubt(f"{name} is of the type {type(value).__qualname__}")

    def _module(self, module, place, attributes):
        self._say("module", module.__name__)
        if module.__name__.split(".")[0] in _OPAQUE_MODULES:
            self._doubt(f"it reaches the module {module.__name__}")
        elif is_installed(module.__name__):
            self._say(_version(module.__name__))
        elif id(module) not in self._seen:
            self._seen[id(module)] = len(self._seen)
            for key in sorted(attributes & vars(module).keys()):
                self._say(key)
                self._value(vars(module)[key], _in_attribute(place, module, key), attributes,
                            f"{module.__name__}.{key}")
