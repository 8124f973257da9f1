"""kernelwright.compile: from the user's function to an operator that launches its kernel.

    fast = kernelwright.compile(attention, (q, k, v))

Warm, this is a look into the cache (cache.py) with the function's fingerprint (capture/dependencies.py)
and an operator made from what lies there (operators.py): no capture, no check, no compiler. Cold
(cache_miss.py), the function is captured in this process, `kernelwright make` is run on what was captured,
and its folder is kept.

What comes back is a plain function with the user's parameters that calls the operator, so that
torch.compile follows it without knowing anything of this package.
"""

import builtins
import functools
import inspect
import pathlib
import sys
import types
import typing

import torch

from .. import errors
from ..capture.dependencies import Dependencies
from ..errors import ArgumentError, MachineError
from .cache import Cache, digest
from .inside.plan import Plan
from .operators import load, operator
from .program import identity
from .skip_dispatcher import may_skip_dispatcher
from .training import Training

FORMAT = 1  # of what the cache holds


class Compiled(typing.Protocol):
    """What `compile` returns: a plain function with the name and the parameters of the user's, so that
    torch.compile follows it, and some attributes. Of several kernels `operator`, `folder`, `certificate` and `source`
    are those of each one in `kernels`."""

    plan: Plan  # what runs in a kernel, what beside it, and why
    kernels: tuple  # of Compiled: itself, where a kernel computes the whole
    operator: object  # the operator of torch.library that it calls; opaque to compilers
    folder: pathlib.Path  # what `kernelwright make` wrote: kernel.cu, kernel.patch, report.html, ...
    certificate: dict  # what was checked and what was not: docs/certificate.md
    source: str  # the CUDA text, kernel.cu

    def __call__(self, *args, **kwargs):
        """What the function returns, computed by its kernel on the current stream of q's GPU.

        args, kwargs: the function's own. Tensors may have any strides with the last dimension contiguous
            and the others multiples of 16 bytes, at addresses that are multiples of 16 bytes.

        Outputs have q's memory layout where they have its shape, and the kernel's types: q's, and fp32
        for a log-sum-exp. A row that keeps no key gives 0, and -inf for its log-sum-exp.

        Raises ArgumentError, naming the argument, for a device, type, shape, stride or address that
        the kernel does not take; GradientError where an argument requires a gradient of which no kernel
        can be made; MachineError where the GPU or its driver cannot run the kernel. Nothing falls back to
        another implementation."""


def compile(function=None, example_inputs=None, *, keywords=None, target=None, proposer="rules", check="quick",
            backward=None, deterministic=None, dtype=None, strict=False):
    """A `Compiled` that computes `function`, with a kernel made for it or for the attention in it.

    function: plain PyTorch, of q, k, v and anything else that examples/ shows; or a function, a module or a method
        of a module that contains attention: then kernels compute the largest parts that they can hold, and PyTorch's
        own operators what is before and behind (`plan` says which). Tensors that it reaches through closures
        and globals, parameters and buffers are read at each call.
    example_inputs: its positional arguments, or a function that gives them: tensors of four dimensions
        on any device ([B, H, S, D] or [B, S, H, D], bf16 or f16), tables, Python numbers; of a module what it
        takes. Types, head counts and head dimensions are those of every call; batch and lengths are not.
    keywords: arguments by keyword, {name: value}.
    target: "sm_90a", "sm_80", "sm_86", "sm_89", "sm_90" or "sm_75" (f16 only); by default the
        current GPU's.
    proposer: "rules", the only one there is.
    check: "quick" (seconds; one order of the warps), "default" (half a minute more; every order) or
        "full" (and the exhaustive checker of orders), as of `kernelwright make`.
    backward: None: kernels for the gradients of q, k and v are made at the first call that needs them;
        True: now, which torch.compile(fullgraph=True) needs; or "recompute": gradients by differentiating
        `function` in pieces of query rows that take about 512 MiB.
    deterministic: True: kernels whose gradients have the same bits in every run; False: any; None: what
        torch.use_deterministic_algorithms says when a gradient is first asked for, at each call.
    dtype: torch.bfloat16 or torch.float16: operands in fp32 are cast to it where they come into a kernel, and what it
        gives back to fp32; None: fp32 is refused.
    strict: True: SpecError where anything would run outside of a kernel.

    Without `function` it is a decorator: @kernelwright.compile(example_inputs=(q, k, v)).

    What was made is kept in a cache, so it is made once for a function, a target and a version of the
    tools; a line on standard error says when it is made.

    Raises SpecError where the function cannot be captured or transferred, ArgumentError for an option
    without such a value, GradientError where "recompute" cannot cut the function's rows, MachineError
    where target is None and there is no GPU, or where the program that makes kernels is missing,
    Refuted and Inconclusive where the check does not hold, InternalError for a fault of ours.
    """
    if function is None:
        return lambda decorated: compile(decorated, example_inputs, keywords=keywords, target=target, proposer=proposer, check=check,
                                         backward=backward, deterministic=deterministic, dtype=dtype, strict=strict)
    for name, value, known in (("proposer", proposer, ("rules",)), ("backward", backward, (None, True, "recompute")),
                               ("check", check, ("quick", "default", "full")), ("deterministic", deterministic,
                                                                                (None, True, False)),
                               ("dtype", dtype, (None, torch.bfloat16, torch.float16)), ("strict", strict, (True, False))):
        if value not in known:
            raise ArgumentError("compile", name, f"is {value!r}", f"be one of {', '.join(map(repr, known))}")
    if deterministic and backward == "recompute":
        raise ArgumentError("compile", "deterministic", "is True", "be None beside backward='recompute'",
                            hint="PyTorch computes these gradients: torch.use_deterministic_algorithms(True)")
    try:
        return _compile_any(function, example_inputs, keywords or {}, (target, check, backward, deterministic), dtype, strict)
    except errors.InternalError:
        raise
    except errors.Error as error:  # somebody's mistake: where we noticed it is of no use
        raise error.with_traceback(None) from None


# Refusals that say of a function that it is none of its arguments, or that a trace does not show it: no part of it is one either.
_OF_ANY_PART = {"spec.elsewhere", "spec.default_dtype", "spec.not_a_function", "spec.other_function", "spec.inputs"}

# Refusals of a function as a whole that say nothing of the attention in it, and beside which refusals of its parts they say more.
_OF_NO_ATTENTION = {"spec.not_attention": ("spec.run", None), "spec.product": ("spec.run", None),
                    "spec.dtype": ("spec.run", "inside.no_attention", None)}


def _compile_any(function, example_inputs, keywords, options, dtype, strict):
    """A function that a kernel holds whole by that kernel alone; anything else by its parts (inside/)."""
    values = example_inputs() if callable(example_inputs) else example_inputs
    if not isinstance(values, (tuple, list)):
        raise ArgumentError("compile", "example_inputs", f"is of the type {type(values).__name__}",
                            "be a tuple of the function's arguments, or give one")
    refusal = None
    if isinstance(function, types.FunctionType) and not keywords and dtype is None:
        try:
            call = _compile(function, values, *options)
        except errors.SpecError as error:
            if strict or error.code in _OF_ANY_PART:
                raise
            refusal = error
        else:
            call.plan, call.kernels = Plan(function.__name__, True, 1), (call,)
            return call
    elif not callable(function):
        raise ArgumentError("compile", "function", f"is of the type {type(function).__name__}", "be a function or a module")
    from .inside.inside import compile_inside
    try:
        call = compile_inside(function, tuple(values), keywords, functools.partial(_compile_part, options), dtype, strict,
                              learns=options[2] != "recompute")
    except errors.SpecError as error:
        if refusal is not None and (refusal.code not in _OF_NO_ATTENTION or error.code in _OF_NO_ATTENTION[refusal.code]):
            raise refusal from None
        raise
    outside = sum(not o.where.startswith("kernel") for o in call.plan.operators)
    if outside:
        print(f"kernelwright: {call.plan.name}: {outside} operators run in PyTorch around {call.plan.kernels} "
              f"kernel{'s' * (call.plan.kernels != 1)}; `plan` says which, and why", file=sys.stderr)
    if len(call.kernels) == 1:
        for name in ("operator", "folder", "certificate", "source"):
            setattr(call, name, getattr(call.kernels[0], name))
    return call


def _compile_part(options, function, values):
    """A part of a function. Which parts are refused is kept, too: the largest is tried first in every process."""
    target, check = options[0] or current_target(), options[1]
    cache = Cache()
    key = function_key(Dependencies(function), values, target, check)
    stem = key and f"{key}.{identity(cache) or 'none'}"
    known = stem and cache.read("refused_parts", stem)
    if known and known["kind"] != "SpecError":
        raise getattr(errors, known["kind"])(known["message"])
    if known:
        raise errors.SpecError(known["message"], function.__code__.co_filename if known["line"] else None, known["line"], known["column"],
                               known["code"], known["hint"])
    try:
        return _compile(function, values, *options)
    except (errors.SpecError, errors.Refuted, errors.Inconclusive) as error:
        if stem and identity(cache):
            own = getattr(error, "file", None) == function.__code__.co_filename
            said = {name: getattr(error, name, None) for name in ("line", "column", "code", "hint")}
            cache.write("refused_parts", stem, said | {"kind": type(error).__name__, "message": getattr(error, "message", str(error)),
                                                       "line": said["line"] if own else None})
        raise


def _compile(function, values, target, check, backward, deterministic):
    here, target = target is None, target or current_target()
    cache, reached = Cache(), Dependencies(function)
    def made(training, deterministic=False, values=values):
        key = function_key(reached, values, target, check, training, deterministic)
        return find(cache, key) or _make(cache, key, function, values, reached.places, target, check, training,
                                         deterministic)

    record, folder, certificate = made("")
    training = Training(function, reached.fingerprint, functools.partial(made, values=[_light(v) for v in values]),
                        deterministic)
    if backward is True:
        training.prepare()
    call = _wrap(function, values, reached.places, record, folder, certificate, backward, training)
    if here:  # not at the first call, which a CUDA graph may capture
        load(call.operator, torch.device("cuda", torch.cuda.current_device()))
    return call


def _light(value):
    """An example of the same type, shape and strides: an operand's values are not asked for, and keep no memory."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() >= 3):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)


def function_key(reached, values, target, check, training="", deterministic=False):
    """What the cache knows a function by; None for one without a fingerprint."""
    if reached.fingerprint is None:
        return None
    return digest(FORMAT, reached.fingerprint, target, check, training, deterministic, [_kind(v) for v in values],
                  [_kind(place.get()) for place in reached.places])


def current_target():
    if not torch.cuda.is_available():
        raise MachineError("PyTorch finds no GPU here\n  help: name the one to compile for, as in "
                           'compile(..., target="sm_90a")')
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def _kind(value):
    """What the kernel depends on of an example: not a tensor's values, nor its batch and lengths."""
    if not isinstance(value, torch.Tensor):
        return [type(value).__name__, repr(value)]
    order = sorted(range(value.dim()), key=lambda d: -value.stride(d))
    return [str(value.dtype), list(value.shape), order]


def find(cache, key):
    """(record, folder, certificate) of a function that was compiled before, with the tools that are
    here now. Where there is no program, with any: a cache may be brought to a machine without it."""
    if key is None:
        return None
    tools = identity(cache)
    for stem in [f"{key}.{tools}"] if tools else cache.keys("functions", key):
        record = cache.read("functions", stem)
        kernel = record and cache.kernel(record["kernel"])
        if kernel:
            return record, *kernel
    return None


def _make(*arguments):
    """Captures, makes and keeps."""
    from .cache_miss import make  # imports what only a cold start needs
    return make(*arguments)


# ---- the function that is returned


def _wrap(function, values, places, record, folder, certificate, backward, training):
    name, differentiate = record["operator"], None
    if backward == "recompute":
        from .recompute import Recompute  # traces the function: seconds that others need not wait
        name, differentiate = name + "_recompute", Recompute(function, values, places, record["signature"])
        print(f"kernelwright: {function.__name__}: {differentiate.cost()}", file=sys.stderr)
    made = operator(name, function.__name__, record["signature"], folder, differentiate)
    call = _caller(function, len(values), places, record["signature"], made, training)
    call.operator, call.folder, call.certificate = made.overload, pathlib.Path(folder), certificate
    call.source = (call.folder / "kernel.cu").read_text()
    return call


def _refuse_place(name, places):
    """Raises ArgumentError where a tensor that the function reaches is no longer to be found."""
    for place in places:
        try:
            place.get()
        except (LookupError, NameError, AttributeError, TypeError) as error:
            raise ArgumentError(name, place.name, f"is not where the function reaches it: {type(error).__name__}: {error}",
                                "be there at each call, as it was when the function was compiled") from None


def _caller(function, count, places, signature, made, training):
    """A function of the user's parameters that calls the operator. It is written out, so that
    torch.compile traces one call and nothing else."""
    parameters = list(inspect.signature(function).parameters.values())
    space = {"operator_": made.overload, "refuse_": made.refuse_call,
             "refuse_constant_": made.refuse_constant}
    shown, given = [], []
    for n, parameter in enumerate(parameters):
        if parameter.kind == parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        default = "" if parameter.default is parameter.empty else f"=default_{n}_"
        space[f"default_{n}_"] = parameter.default
        shown.append(parameter.name + default)
    for argument in signature["arguments"]:
        if not argument["reached"]:
            given.append(argument["name"])
    for n, place in enumerate(places):
        space[f"reached_{n}_"] = place.reader
        given.append(f"reached_{n}_value_")
    read = "".join(f"        reached_{n}_value_ = reached_{n}_()\n" for n in range(len(places)))
    if read:
        space["refuse_place_"] = functools.partial(_refuse_place, function.__name__, places)
        read = f"    try:\n{read}    except (LookupError, NameError, AttributeError, TypeError):\n        refuse_place_()\n        raise\n"
    fixed = dict(signature["constants"])
    for parameter in parameters[count:]:  # they had no example: they keep their defaults
        fixed[parameter.name] = parameter.default
    lines = []
    for n, (name, value) in enumerate(fixed.items()):
        space[f"fixed_{n}_"] = value
        lines.append(f"    if {name} is not fixed_{n}_ and {name} != fixed_{n}_:\n"
                     f"        refuse_constant_({name!r}, {name}, fixed_{n}_)\n")
    arguments = ", ".join(given)
    direct = ""
    if not made.differentiable:
        # A call that needs gradients goes to another operator; others go to this one's own function where the
        # dispatcher would only find it.
        wants = [f"getattr({name}, 'requires_grad', False)" for name, a in zip(given, signature["arguments"])
                 if a["tensor"] and a["dtype"] in ("bf16", "f16", "f32")]
        space |= {"grad_enabled_": torch.is_grad_enabled, "train_": training, "traced_": torch.compiler.is_compiling,
                  "differentiable_": training.overload, "returned_": training.returned}
        # What is not made yet cannot be made while a call is traced: the operator below refuses it then.
        traced = (f"            made_ = differentiable_()\n            if made_ is not None:\n"
                  f"                return returned_(made_({arguments}))\n")
        if wants:
            direct += (f"    if grad_enabled_() and ({' or '.join(wants)}):\n        try:\n"
                       f"            if not traced_():\n                return train_({arguments})\n{traced}"
                       f"        except (RuntimeError, TypeError, NotImplementedError):\n"
                       f"            refuse_(({arguments},))\n            raise\n")
        space |= {"may_skip_dispatcher_": may_skip_dispatcher, "launch_": made.launch,
                  "plain_": made.takes_plainly}
        direct += (f"    if may_skip_dispatcher_() and plain_({arguments}):\n"
                  f"        return launch_({arguments})\n")
    text = (f"def kernel_call({', '.join(shown)}):\n{''.join(lines)}{read}{direct}"
            f"    try:\n        return operator_({arguments})\n"
            f"    except (RuntimeError, TypeError, NotImplementedError):\n"
            f"        refuse_(({arguments},))\n        raise\n")
    exec(builtins.compile(text, f"<kernelwright {function.__name__}>", "exec"), space)
    call = space["kernel_call"]
    call.__name__, call.__doc__, call.__module__, call.__qualname__ = (
        function.__name__, function.__doc__, function.__module__, function.__qualname__)
    return call
