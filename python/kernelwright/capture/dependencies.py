"""What a function reaches without being given it: tensors in closures and globals, and everything
that its meaning depends on.

Both come from one walk over the function. A *tensor* that is found becomes one more argument of the
kernel: its `Place` (places.py) says how to read it at each call and how to put a traced one there while the
function is captured. Everything else goes into a *fingerprint*: byte code and constants, defaults,
closures, the globals that the code names, functions in turn, the classes of what is found, attributes of modules
(those that the code names). What was installed (origin.py) stands there by its version: but for what others put into it,
`torch.nn.functional.softmax = mine`, and what has no text of its own, a number. Two functions of one fingerprint compute the
same, so the second need not be captured. It is better to know too little than too much: what cannot
be hashed (an object of a class of one's own, `getattr`, the environment) leaves no fingerprint, and
the function is captured again each time.

What is hard is that code does not say of what it names attributes. So a name stands for every module and class that is
reached, by whichever function: modules come last, until nothing new is found.
"""

import builtins
import contextlib
import dis
import enum
import functools
import hashlib
import importlib
import operator
import sys
import types

import torch

from ..errors import SpecError
from .class_parts import is_named_tuple, parts
from .origin import OF_C, is_installed, is_installed_class, is_plain_instance, package_of, version
from .places import in_attribute, in_cell, in_container, in_globals

# Packages that are there to read files, which they open in C: outside.py hears nothing of it.
OF_FILES = ("safetensors", "h5py", "pyarrow", "lmdb", "zarr", "netCDF4", "tables", "pandas", "polars", "tensorstore", "sqlite3")
# Names behind which a fingerprint cannot see: what they give may change while the code does not.
_OPAQUE = {"eval", "exec", "getattr", "globals", "locals", "vars", "open", "input", "__import__"}
_OPAQUE_MODULES = {"os", "sys", "time", "random", "importlib", "builtins", "inspect", "linecache", "traceback", "gc", "ctypes", "dis", "weakref",
                   *OF_FILES}
# The same, under any name; and what code may read of itself, its text and its lines.
_OPAQUE_VALUES = [*(getattr(builtins, name) for name in _OPAQUE), operator.attrgetter, operator.methodcaller]
_OF_ITSELF = {"__doc__", "__annotations__", "__code__", "__globals__", "__builtins__", "__closure__", "__file__", "__spec__", "__loader__",
              "__subclasses__", "__dataclass_fields__", "co_firstlineno", "attrgetter", "methodcaller", "get_type_hints", "fields"}
_SIMPLE = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), torch.dtype, torch.device,
           torch.layout, torch.memory_format, range, slice)
# Namespaces of torch.ops whose operators PyTorch has.
_OPERATORS = {"aten", "prim", "prims", "higher_order"}


def _is_pythons(value):
    """Whether a builtin came with Python: anybody may put more there."""
    return any(value is constant for constant in (True, False, None, Ellipsis, NotImplemented)) or (
        isinstance(value, (types.BuiltinFunctionType, type)) and value.__module__ == "builtins")


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
        self._alive = []  # what `_seen` knows by id()
        self._attributes, self._owners, self._named = set(), [], set()  # of all code; (module or class, place); (id, name)
        self._say("python", sys.version_info[:3], torch.get_default_dtype())
        self._function(function)
        self._class(torch.Tensor)  # whose methods are called by operators, too
        self._owners += [(torch, None), (torch.nn.functional, None)]
        self._attributes_of_owners()
        self.fingerprint = None if self.unhashable else self._hash.hexdigest()

    def _say(self, *facts):
        for fact in facts:
            text = repr(fact).encode()
            self._hash.update(b"%d:" % len(text) + text)

    def _doubt(self, why):
        self.unhashable = self.unhashable or why

    def _is_again(self, value):
        """Whether it was met before, and then its number is said, so that cycles end."""
        if id(value) in self._seen:
            self._say("again", self._seen[id(value)])
            return True
        self._seen[id(value)] = len(self._seen)
        self._alive.append(value)
        return False

    def _function(self, function):
        self._code(function.__code__)
        self._say(function.__name__)
        for name, value in [*enumerate(function.__defaults__ or ()),
                            *sorted((function.__kwdefaults__ or {}).items())]:
            self._value(value, None, f"a default of {function.__name__}")
        names, attributes, imported = global_names(function.__code__)
        self._attributes |= attributes
        for name in sorted((attributes | names) & _OF_ITSELF):
            self._doubt(f"it reads {name}")
        for module in sorted(imported):
            self._say("import", module)
            if not is_installed(module) or module.split(".")[0] in _OPAQUE_MODULES:
                self._doubt(f"it imports {module or 'its own package'}")
            else:
                with contextlib.suppress(ImportError):  # as the function will: a module that comes later would be another answer
                    importlib.import_module(module)
                self._say(version(module))
                self._owners += [(sys.modules[part], None) for part in _and_parents(module) if part in sys.modules]
        self._closure(function)
        for name in sorted(names):
            self._say("global", name)
            if name in _OPAQUE and name not in function.__globals__:
                self._doubt(f"it calls {name}")
            elif name in function.__globals__:
                self._value(function.__globals__[name], in_globals(name, function.__globals__), name)
            elif not hasattr(builtins, name):
                self._say("nowhere")
            elif not _is_pythons(getattr(builtins, name)):
                self._doubt(f"it reads {name}, which was put among the builtins")
        for key, value in sorted(vars(function).items()):  # f.window = 64
            if key.startswith("__kernelwright_"):  # where a function of flex stands, for messages
                continue
            self._say("attribute", key)
            self._value(value, in_attribute(None, function, key), f"{function.__name__}.{key}")

    def _closure(self, function):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self._say("closure", name)
            try:
                contents = cell.cell_contents
            except ValueError:  # it is filled later, if ever
                self._doubt(f"{name} has no value yet")
                continue
            self._value(contents, in_cell(name, cell), name)

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

    def _value(self, value, place, name):
        """One value that the code can reach."""
        if isinstance(value, torch.Tensor):
            self._tensor(value, place, name)
        elif type(value) in _SIMPLE:
            self._say(type(value).__name__, value)
        elif any(value is opaque for opaque in _OPAQUE_VALUES):
            self._doubt(f"{name} is {value.__name__}")
        elif isinstance(value, types.ModuleType):
            self._module(value, place)
        elif isinstance(value, OF_C):
            self._of_c(value, name)
        elif isinstance(value, type) and is_installed_class(value):
            self._class(value)
        elif not self._is_again(value):
            self._object(value, place, name)

    def _tensor(self, value, place, name):
        if place is None:
            raise SpecError(f"{name} is a tensor, which a kernel cannot be given there",
                            hint="make it an argument, or a variable of the module")
        if place.where not in self._tensors:
            self._tensors[place.where] = len(self.places)
            self.places.append(place)
        self._say("tensor", self._tensors[place.where])
        if not is_installed_class(type(value)):
            self._class(type(value))

    def _of_c(self, value, name):
        """A function of C: with what it is bound to, where that is an object."""
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, (type, types.ModuleType)):
            self._doubt(f"{name} is a method of an object")
        self._say(getattr(owner, "__name__", None) or getattr(getattr(value, "__objclass__", None), "__qualname__", None),
                  value.__module__ if hasattr(value, "__module__") else None, value.__qualname__)

    def _object(self, value, place, name):
        if isinstance(value, types.FunctionType):
            if package_of(value) is None:
                self._function(value)
            else:  # what is in its closure may be anybody's: functools, torch.no_grad and flex wrap functions
                self._say(value.__module__, value.__qualname__, version(package_of(value)))
                self._attributes |= global_names(value.__code__)[1] if value.__closure__ else set()
                self._closure(value)
        elif isinstance(value, enum.Enum):
            self._say(value.name)
            self._class(type(value))
        elif type(value) in (list, tuple) or is_named_tuple(type(value)):
            self._class(type(value))
            self._say(type(value).__name__, len(value))
            for n, item in enumerate(value):
                self._value(item, place and in_container(place, n), f"{name}[{n}]")
        elif type(value) is dict:
            self._say("dict", len(value))
            for key, item in value.items():
                self._value(key, None, f"a key of {name}")
                self._value(item, place and in_container(place, key), f"{name}[{key!r}]")
        elif type(value) in (set, frozenset):
            if not all(type(item) in _SIMPLE for item in value):
                self._doubt(f"{name} is a set of objects")
            self._say("set", sorted(map(repr, value)))
        elif isinstance(value, types.MethodType):
            self._value(value.__func__, None, name)
            self._value(value.__self__, None, name)
        elif type(value) is functools.partial:
            for part in (value.func, value.args, value.keywords):
                self._value(part, None, f"a part of {name}")
        elif type(value) is functools._lru_cache_wrapper:
            self._say("cached")
            if value.cache_info().currsize:  # outside.py does not hear what it took then
                self._doubt(f"{name} has kept what an earlier call gave")
            self._value(value.__wrapped__, None, name)
        elif isinstance(value, type):
            self._doubt(f"{name} is the class {value.__qualname__}")
        elif type(value) is types.SimpleNamespace or hasattr(type(value), "__dataclass_fields__") or is_plain_instance(value):
            self._class(type(value))
            held = vars(value) if hasattr(value, "__dict__") else {
                key: getattr(value, key) for key in type(value).__dataclass_fields__ if hasattr(value, key)}
            if hasattr(value, "__dict__") and any(vars(kind).get("__slots__") for kind in type(value).__mro__):
                self._doubt(f"{name} holds what no name says")
            for key, item in held.items():
                self._say(key)
                self._value(item, place and in_attribute(place, value, key), f"{name}.{key}")
        elif "torch._ops" in type(value).__module__:
            self._say(str(value))
            if str(value).split(".")[0] not in _OPERATORS:
                self._doubt(f"{name} is an operator of a library of one's own")
        elif is_installed_class(type(value)) and callable(value) and hasattr(value, "__name__"):  # numpy.add
            self._say(type(value).__qualname__, value.__name__)
        else:
            self._doubt(f"{name} is of the type {type(value).__qualname__}")

    def _class(self, kind):
        """What a class has: all of a user's own; of an installed one, whose version stands for it, what others put there."""
        if self._is_again(kind):
            return
        if is_installed_class(kind):
            self._say(kind.__module__, kind.__qualname__, version(kind.__module__))
            self._owners.append((kind, None))
            return
        self._say("class", kind.__qualname__)
        for base in (*kind.__bases__, type(kind)):
            self._class(base)
        for key, part in parts(kind):
            self._say(key)
            self._value(part, None if isinstance(part, tuple) else in_attribute(None, kind, key), f"{kind.__qualname__}.{key}")

    def _module(self, module, place):
        self._say("module", module.__name__)
        if module.__name__.split(".")[0] in _OPAQUE_MODULES:
            self._doubt(f"it reaches the module {module.__name__}")
        elif is_installed(module.__name__):
            self._say(version(module.__name__))
        elif "__getattr__" in vars(module):
            self._doubt(f"{module.__name__} computes its attributes, by a __getattr__ of its own")
        if type(module) is not types.ModuleType and not is_installed_class(type(module)):
            self._doubt(f"{module.__name__} is a module of the class {type(module).__qualname__}")
        if all(module is not other for other, _ in self._owners):
            self._owners.append((module, place))

    def _attributes_of_owners(self):
        """Of each module and each installed class that is reached, what the code names; and functions that others put into an
        installed one, which its own may call."""
        before = -1
        while before != len(self._named):
            before = len(self._named)
            for owner, place in self._owners:  # it grows meanwhile
                is_class = isinstance(owner, type)
                installed = is_class or is_installed(owner.__name__)
                # What appears when it is first asked for would make another fingerprint of the same function.
                late = vars(owner).keys() if type(owner).__module__ == "torch._ops" else vars(owner).get("_lazy_modules", ())
                for key, value in parts(owner) if is_class else sorted(vars(owner).items()):
                    put = installed and _is_put(value)
                    if not put and (key not in self._attributes or key in late) or (id(owner), key) in self._named:
                        continue
                    self._named.add((id(owner), key))
                    self._say(owner.__name__, key)
                    self._value(value, in_attribute(place, owner, key), f"{owner.__name__}.{key}")
                if owner is torch.ops and not self._attributes.isdisjoint(_namespaces() - _OPERATORS):
                    self._doubt("it names operators of a library of one's own")


def _is_put(value):
    """Of what is in an installed module or class: whether it is a function of others, or made of one."""
    if isinstance(value, tuple):  # class_parts.py, of a property
        return any(isinstance(part, types.FunctionType) and package_of(part) is None for part in value)
    return isinstance(value, types.FunctionType) and package_of(value) is None


@functools.cache
def _and_parents(module):
    parts = module.split(".")
    return [".".join(parts[:n + 1]) for n in range(len(parts))]


def _namespaces():
    return {name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names()}
