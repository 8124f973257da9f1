"""What a function asks about where and how it runs: `if q.is_cuda`, `torch.compiler.is_compiling()`.

A trace runs on a CPU, while it is traced, once. A function that asks whether it does is another function
elsewhere, and neither the trace nor the goldens, which are made here, see which. It is found in the text of
the code, as built_in.py finds constants: in the function and in those of the same file that it calls. And a
function that changes what it reads, a counter among its globals, is found by looking at them before and behind
a call.
"""

import dis
import inspect
import types

from .diagnostic import Problem

ASKED = {"is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu", "is_compiling", "is_dynamo_compiling", "is_exporting",
         "is_tracing", "is_scripting", "is_available", "get_device_name", "get_device_capability", "get_device_properties",
         "current_device", "is_grad_enabled", "is_inference_mode_enabled", "is_autocast_enabled", "requires_grad"}
OF_DEVICE = {"type", "index"}


def refuse_questions(spec):
    """Raises Problem where the user's code asks for what is otherwise elsewhere."""
    for function in functions_of(spec):
        for code in _codes(function.__code__):
            line, before = code.co_firstlineno, None
            for step in dis.get_instructions(code):
                line = step.starts_line if isinstance(step.starts_line, int) and step.starts_line > 1 else line
                name = step.argval if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL", "LOAD_NAME") else None
                asked = name if name in ASKED else f"device.{name}" if before == "device" and name in OF_DEVICE else None
                if asked:
                    raise Problem("spec.elsewhere", f"{function.__name__} asks for {asked}; it is traced once, on a CPU, and what it "
                                  "does elsewhere nobody sees", line,
                                  hint="write what the kernel is to compute, without the question")
                before = name


def functions_of(spec):
    """The user's function, and those of the same file that it calls by name."""
    found, waiting = [], [inspect.unwrap(spec.function)]
    while waiting:
        function = waiting.pop()
        if not isinstance(function, types.FunctionType) or function in found or function.__code__.co_filename != spec.file:
            continue
        found.append(function)
        names = [n for code in _codes(function.__code__) for n in code.co_names]
        waiting += [function.__globals__[n] for n in names if n in function.__globals__]
        waiting += [cell for cell in _held(function).values()]
    return found


def state(spec):
    """What the function and its helpers read beside their arguments, where it can change: for comparison."""
    seen = {}
    for function in functions_of(spec):
        names = {n for code in _codes(function.__code__) for n in code.co_names}
        read = {n: function.__globals__[n] for n in names if n in function.__globals__}
        for name, value in {**read, **_held(function), **vars(function)}.items():
            if isinstance(value, (bool, int, float, str, list, dict, set, bytearray)):
                seen[name] = repr(value)
            elif hasattr(value, "__dict__") and not isinstance(value, (types.ModuleType, types.FunctionType, type)):
                seen[name] = repr({k: v for k, v in vars(value).items() if isinstance(v, (bool, int, float, str, list, dict, set))})
    return seen


def refuse_change(spec, before):
    """Raises Problem where a call changed what state() saw."""
    after = state(spec)
    for name, value in before.items():
        if after.get(name) != value:
            raise Problem("spec.not_a_function", f"{spec.name} changes {name}, which it reads: {value[:40]} before a call, "
                          f"{after.get(name, 'nothing')[:40]} behind it", spec.line,
                          hint="a kernel computes one function of its arguments: pass what changes as an argument")


def _codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _held(function):
    held = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            held[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return held
