"""What a function asks about where, when and with what it runs: `if q.is_cuda`, `type(n) is int`, `time.time()`.

A trace runs on a CPU, once, with tensors and sizes of its own. A function that asks whether it does is another
function elsewhere, and neither the trace nor the goldens, which are made here, see which. It is found in the text of
the code, as built_in.py finds constants: in the function and in the user's that it calls; what has no name in the text,
questions.py finds while the function runs. A question, too, is `k is v`: arguments are other tensors in the trace, and
a call may give one twice. And a function that changes what it reads, a counter among its globals, is found by looking at
them before and behind a call.
"""

import array
import builtins
import collections
import collections.abc
import contextlib
import contextvars
import functools
import hashlib
import operator
import os
import sys
import types

import numpy

from . import code
from .diagnostic import Problem

# Of modules and tensors, wherever they are read.
ATTRIBUTES = {"is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu", "is_compiling", "is_dynamo_compiling", "is_exporting",
              "is_tracing", "is_scripting", "is_available", "get_device_name", "get_device_capability", "get_device_properties",
              "current_device", "is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled", "requires_grad", "needs_input_grad",
              "device_count", "get_num_threads", "get_default_dtype", "set_default_dtype", "initial_seed", "get_rng_state", "memory_allocated",
              "are_deterministic_algorithms_enabled", "get_float32_matmul_precision", "random", "is_leaf", "grad_fn", "_version",
              "is_pinned", "is_inference", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "is_contiguous",
              "stride", "storage_offset", "data_ptr", "untyped_storage", "__class__", "__dict__", "get_default_device",
              "get_device_module", "current_accelerator", "Generator", "is_", "is_not", "_is_alias_of", "_base", "_cdata",
              "__hash__", "__repr__", "__str__", "__format__", "suppress", "ExitStack", "catch_warnings", "showwarning", "backends"}
FUNCTIONS = {"type", "isinstance", "issubclass", "hasattr", "getattr", "id", "hash", "next", "vars",
             "globals", "locals", "dir", "eval", "exec", "open", "input", "__import__"}
UNDER_ANY_NAME = [*(getattr(builtins, name) for name in FUNCTIONS), operator.is_, operator.is_not, contextlib.suppress, contextlib.ExitStack]
OF_DEVICE = {"type", "index"}
MODULES = {"math", "cmath", "functools", "operator", "itertools", "typing", "collections", "dataclasses", "enum", "os",
           "warnings", "contextlib", "numbers", "types", "copy", "abc", "__future__", "string", "builtins"}
OF_SYSTEM = {"environ", "getenv"}  # what built_in.py says of os


def refuse_questions(spec):
    """Raises Problem where the user's code asks for what is otherwise elsewhere."""
    for function in code.functions_of(spec):
        read, before = code.read(function), []
        if function.__name__ == "__exit__" and (line := _may_swallow(function)):
            _refuse(function, line, "may keep to itself what is raised, by what its __exit__ gives", spec)
        for line, step in code.steps(function):
            asked = _asked(step, before[-1] if before else None, read) or _asks_whether_one(step, before, read)
            if asked:
                _refuse(function, line, asked, spec)
            before.append(step)


def _refuse(function, line, asked, spec):
    where = "" if function.__code__.co_filename == spec.file else f" ({function.__code__.co_filename}:{line})"
    raise Problem("spec.elsewhere", f"{function.__name__}{where} {asked}; it is traced once, on a CPU, and what it "
                  "does elsewhere nobody sees", spec.line if where else line,
                  hint="write what the kernel is to compute, without the question")


def _may_swallow(function):
    """The line where something else than None or False is given back; 0 where there is none."""
    before = None
    for line, step in code.steps(function):
        if step.opname == "RETURN_VALUE" and not (before and before.opname == "LOAD_CONST" and before.argval in (None, False)):
            return line
        if step.opname == "RETURN_CONST" and step.argval not in (None, False):
            return line
        before = step
    return 0


def refuse_default_dtype(spec):
    """Raises Problem where Python's numbers are no fp32: `(i - j) * 0.1` is rounded to the default dtype, and goldens have fp64."""
    import torch
    if torch.get_default_dtype() != torch.float32:
        raise Problem("spec.default_dtype", f"torch's default dtype is {str(torch.get_default_dtype()).removeprefix('torch.')}, which "
                      "integers times Python's numbers are rounded to; it is taken to be float32", spec.line,
                      hint="torch.set_default_dtype(torch.float32) around the capture, and the call")


def _asked(step, before, read):
    """What a step of the code asks for, as a sentence without its subject; None where it is no question."""
    if before is not None and before.opname == "PUSH_EXC_INFO" and step.opname != "WITH_EXCEPT_START":
        return "catches what is raised"
    if step.opname == "MATCH_CLASS":
        return "asks for a class, by a pattern"
    if step.opname == "IMPORT_NAME":
        return _of_module(step.argval)
    if step.opname not in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME"):
        return None
    name = step.argval
    if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        of = before.argval if before is not None and isinstance(before.argval, str) else ""
        if name in ATTRIBUTES or (of in read and read[of][0] is os and name not in OF_SYSTEM):
            return f"asks for {name}"
        return f"asks for device.{name}" if of == "device" and name in OF_DEVICE else None
    value = read[name][0] if name in read else getattr(builtins, name, None)
    if (name in ATTRIBUTES and callable(value)) or any(value is function for function in UNDER_ANY_NAME):
        return f"asks for {name}"
    if isinstance(value, collections.abc.Iterator):
        return f"takes what comes next of {name}"
    return _of_module(value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None))


def _asks_whether_one(step, before, read):
    """Of `a is b`: not where one side is known to be no tensor, as None, or a mode of the user's."""
    if step.opname != "IS_OP" or _put_no_tensor(before, step, read):
        return None
    right = before[-1] if before and before[-1].opname in ("LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME") else None
    return None if right and _put_no_tensor(before[:-1], right, read) else "asks with `is` whether two values are one object"


def _put_no_tensor(steps, then, read):
    known, value = _put(steps, then, read)
    return known and not hasattr(value, "data_ptr")


def _put(steps, then, read):
    """(whether it is known, the value) that the last step puts: None, MODE, Mode.CAUSAL. Not where others lead to what
    comes then, too, as in `v if n else None`."""
    if not steps or then.is_jump_target:
        return False, None
    name, of = steps[-1].argval, steps[-1].opname
    if of in ("LOAD_CONST", "LOAD_SMALL_INT"):
        return True, name
    if of in ("LOAD_GLOBAL", "LOAD_NAME"):
        return (True, read[name][0]) if name in read else (hasattr(builtins, name), getattr(builtins, name, None))
    if of == "LOAD_ATTR":
        known, value = _put(steps[:-1], steps[-1], read)
        return (True, getattr(value, name)) if known and hasattr(value, name) else (False, None)
    return False, None


def _of_module(name):
    top = name.partition(".")[0] if isinstance(name, str) else ""
    return f"asks for {top}" if top in sys.stdlib_module_names and top.lstrip("_") not in MODULES | {"main"} else None


@contextlib.contextmanager
def sizes_are_no_text(spec):
    """While a function is traced, sizes are symbols, and `str(n)` is another text than in a call: raises Problem where
    the user's code asks for it."""
    import torch
    before = {name: getattr(torch.SymInt, name) for name in ("__str__", "__repr__")}

    def refusing(of):
        def as_text(size):
            caller = sys._getframe(1)
            if code.is_users(caller.f_code, spec):
                line = caller.f_lineno if caller.f_code.co_filename == spec.file else spec.line
                raise Problem("spec.elsewhere", f"{caller.f_code.co_name} makes a text of a size; while it is traced a size is a "
                              "symbol, and what it does with a number nobody sees", line,
                              hint="write what the kernel is to compute, of the size as a number")
            return of(size)
        return as_text

    try:
        for name, of in before.items():
            setattr(torch.SymInt, name, refusing(of))
        yield
    finally:
        for name, of in before.items():
            setattr(torch.SymInt, name, of)


def state(spec):
    """What the function and its helpers read beside their arguments, where it can change, for comparison:
    {(whose: by id(), its name, the function that reads it): (as text, the owner, which so lives as long)}."""
    seen = {}
    for function in code.functions_of(spec):
        read = {name: value for name, (value, _) in code.read(function).items()}
        kept = {"a default": (function.__defaults__, function.__kwdefaults__)}
        for name, value in {**read, **vars(function), **kept, **_of_others_modules(function, read)}.items():
            if (held := _held(value)) is not None:
                seen[id(function), name, function] = held, function
    for value in code.objects_of(spec):
        if (held := _held(value)) is not None:
            seen[id(value), f"a {type(value).__name__}", None] = held, value
    return seen


def _of_others_modules(function, read):
    """{"torch.step": its value} of what a function reads of a module that is not the user's: what anybody may have set."""
    found, text, value = {}, "", None
    for _, step in code.steps(function):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            text, value = step.argval, read.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, types.ModuleType):
            text, value = f"{text}.{step.argval}", getattr(value, step.argval, None)
            if not isinstance(value, types.ModuleType):
                found[text] = value
        elif step.opname not in ("COPY", "DUP_TOP", "CACHE"):
            value = None
    return found


def refuse_change(spec, before):
    """Raises Problem where a call changed what state() saw."""
    after = state(spec) if before else {}
    for at, (value, _) in before.items():
        _, name, function = at
        if function is None and at not in after:
            continue  # another object in its place: who holds it is asked too
        now = after[at][0] if at in after else "nothing"
        if now != value:
            was, is_now = _where_they_differ(value, now)
            line, reader = _reader(spec, function)
            raise Problem("spec.not_a_function", f"{spec.name} changes {name}, which {reader} reads: {was} before a call, "
                          f"{is_now} behind it", line,
                          hint="a kernel computes one function of its arguments: pass what changes as an argument")


def _reader(spec, function):
    """(line, in words) of the function that reads what changes: in the specification's file at its own line."""
    if function is None or function in code.entered(spec)[:1]:
        return spec.line, "it"
    line = function.__code__.co_firstlineno
    if function.__code__.co_filename == spec.file:
        return line, function.__name__
    return spec.line, f"{function.__name__} ({function.__code__.co_filename}:{line})"


def _where_they_differ(a, b, most=40):
    """Two texts, from shortly before their first difference on."""
    first = next((n for n, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    start = 0 if first < most else first - most // 2
    return tuple(("..." if start else "") + text[start:start + most] for text in (a, b))


def _held(value, depth=3):
    """A value that can change, as text; None for what computes (functions, modules, types) or is a tensor's."""
    if isinstance(value, (bool, int, float, complex, str, bytes, bytearray, array.array, type(None))):
        return repr(value)
    if isinstance(value, memoryview):
        return repr(value.tobytes())
    if isinstance(value, contextvars.ContextVar):
        return str(_held(value.get(None), depth - 1)) if depth else None
    if isinstance(value, types.ModuleType) and (not getattr(value, "__file__", None) or code.is_others(value.__file__)):
        return None
    if isinstance(value, types.FunctionType) or depth == 0:
        return None
    if isinstance(value, type):
        return _held({k: v for k, v in vars(value).items() if not k.startswith("__")}, depth) if _is_users_type(value) else None
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {_held(v, depth - 1)}' for k, v in value.items())}}}"
    if isinstance(value, functools.partial):
        return f"partial({_held(value.args, depth - 1)}, {_held(value.keywords, depth - 1)})"
    if isinstance(value, numpy.ndarray):
        return f"an array of {list(value.shape)}: {hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return f"[{', '.join(str(_held(v, depth - 1)) for v in value)}]"
    if hasattr(value, "data_ptr"):
        return None  # dependencies.py and agreement.py look at tensors
    inside = {**_in_slots(value), **(vars(value) if hasattr(value, "__dict__") else {})}
    return _held(inside, depth - 1) if inside or hasattr(value, "__dict__") else None


def _in_slots(value):
    """{name: value} of an object of the user's whose class names its attributes in __slots__."""
    if not _is_users_type(type(value)):
        return {}
    inside = {}
    for cls in type(value).__mro__:
        names = vars(cls).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                inside[name] = getattr(value, name)
    return inside


def _is_users_type(value):
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    return bool(file) and not code.is_others(file)
