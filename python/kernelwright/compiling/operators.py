"""Compiled functions as operators of torch.library, in the namespace `kernelwright`.

An operator has an implementation for CUDA (a launch), one for the CPU (a refusal) and one for fake
tensors (shapes only). What differs from call to call is found with one look into a dictionary: types,
shapes, strides and numbers lead to a `_Plan`, which holds the packed argument struct. A new length or
batch size costs a new plan, some microseconds, and nothing is compiled.

Host time is what this file is about, so the implementation for CUDA is written out for the operator's
arguments, as dataclasses do it, instead of looping over them. Three things make it quick: addresses
go to the launcher as one bytes object; tensors are never reordered, since strides and dimensions are
only looked at when a plan is made; and an output that the user's function does not return (the
log-sum-exp) is written to one buffer that nobody reads.
"""

import ctypes
import math
import os
import re
import struct

import torch

from ..errors import ArgumentError, GradientError, InternalError, MachineError
from ..runtime import library
from ..runtime.bindings import kernel_view
from .signature import BYTES, Signature

NAMESPACE = "kernelwright"
KEPT_PLANS = 4096  # a plan is some kilobytes of host memory
DISPATCH_KEY = "CUDA"  # a test that has a stand-in driver launches on the CPU

_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_operators = {}  # by name


class _Plan:
    """A plan of the launcher's, and what a call must allocate: (shape, strides, dtype) of each output
    that is returned. It is freed when the last call that uses it ends."""

    def __init__(self, handle, outputs, discarded, free):
        self.handle, self.outputs, self.discarded, self._free = handle, outputs, discarded, free

    def __del__(self):
        self._free(self.handle)


class _Nothing:
    """In place of a plan where an output has no elements: nothing is launched."""

    def __init__(self, outputs):
        self.handle, self.outputs, self.discarded = None, outputs, ()


NO_GRADIENT = ("an argument requires a gradient, and this kernel computes none\n"
               "  help: call the compiled function itself, or say compile(..., backward=True) before torch.compile")


class Operator:
    """`function`: the user's name; `record`: signature.describe(); `folder`: of the kernel;
    `backward`: what differentiates it (recompute.py), or None."""

    def __init__(self, name, function, record, folder, backward=None):
        self.name, self.function, self.folder = name, function, folder
        self.signature = Signature(function, record)
        self.plans = {}
        self._kernels, self._discarded, self._order = {}, {}, record["order"]
        self._pack = struct.Struct(f"{len(self._order)}Q").pack
        self._on_gpu = DISPATCH_KEY == "CUDA"
        self.differentiable = backward is not None
        self.no_gradient = NO_GRADIENT  # what a call that asks for one is told
        _library.define(name + self.signature.schema())
        self.launch = self._launcher()
        self.takes_plainly = self._plainness()
        _library.impl(name, self.launch, DISPATCH_KEY)
        if self._on_gpu:
            _library.impl(name, self._refuse_cpu, "CPU")
        torch.library.register_fake(f"{NAMESPACE}::{name}", self._fake, lib=_library)
        if backward is not None:
            backward.register(self, _library)
        self.overload = getattr(getattr(torch.ops, NAMESPACE), name).default

    # ---- a call

    @staticmethod
    def _enqueue(plan, addresses, count, stream):
        """Replaced by the launcher's own function when the first plan is made."""
        raise InternalError("a launch without a plan")

    def _stream(self):
        return getattr(torch._C, "_cuda_getCurrentRawStream", None) if self._on_gpu else lambda device: 0

    def _asks_gradients(self):
        return False if self.differentiable else torch.is_grad_enabled()

    def _launcher(self):
        """The implementation for CUDA, written out for the arguments at hand: a0, a1, ..."""
        outputs = self.signature.outputs
        arguments = [(f"a{n}", argument) for n, argument in enumerate(self.signature.arguments)]
        names = ", ".join(name for name, _ in arguments)
        tensors = [name for name, argument in arguments if argument["tensor"]]
        key = ", ".join(f"{name}.dtype, {name}.get_device(), {name}.shape, {name}.stride()"
                        if name in tensors else name for name, _ in arguments)
        wants = " or ".join(f"{name}.requires_grad" for name, argument in arguments
                            if name in tensors and argument["dtype"] in ("bf16", "f16", "f32"))
        made = [f"out_{o['kernel']}" for o in outputs if o["returned"]]
        given = {argument["kernel"]: f"{name}.data_ptr()" for name, argument in arguments}
        given |= {o["kernel"]: f"out_{o['kernel']}.data_ptr()" if o["returned"] else
                  f"plan.discarded['{o['kernel']}']" for o in outputs}
        addresses = ", ".join(given[name] for name in self._order)
        allocate = "\n".join(f"    shape, strides, dtype = plan.outputs[{n}]\n"
                             f"    {name} = empty(shape, strides, dtype=dtype, device={tensors[0]}.device)"
                             for n, name in enumerate(made))
        result = made[0] if len(made) == 1 else f"({', '.join(made)})"
        text = f"""
def {self.name}({names}):
    if asks_gradients() and ({wants}):
        refuse_gradient()
    key = ({key},)
    plan = plans.get(key) or new_plan(key, ({names},))
{allocate}
    if plan.handle is None:
        return {result}
    if enqueue(plan.handle, pack({addresses}), {len(self._order)}, stream({tensors[0]}.get_device())):
        refuse(({names},))
    return {result}
"""
        space = {"asks_gradients": self._asks_gradients, "plans": self.plans, "new_plan": self._new_plan,
                 "empty": torch.empty_strided, "enqueue": self._enqueue, "pack": self._pack,
                 "stream": self._stream(), "refuse": self._refuse_launch,
                 "refuse_gradient": self._refuse_gradient}
        self._space = space
        exec(compile(text, f"<kernelwright {self.name}>", "exec"), space)
        return space[self.name]

    def _plainness(self):
        """Whether arguments are such that `launch` may be called without the dispatcher: tensors of no
        subclass, the first on a GPU (a plan compares the others with it), numbers of the schema's type."""
        names = [f"a{n}" for n in range(len(self.signature.arguments))]
        asked = [f"type({name}) is " + ("Tensor" if a["tensor"] else "int" if a["dtype"] == "i32" else "float")
                 for name, a in zip(names, self.signature.arguments)]
        if self._on_gpu:
            asked.append(next(n for n, a in zip(names, self.signature.arguments) if a["tensor"]) + ".is_cuda")
        return eval(f"lambda {', '.join(names)}: {' and '.join(asked)}", {"Tensor": torch.Tensor})

    # ---- what a call of new shapes needs

    def _new_plan(self, key, values):
        """Checks the call, and keeps a plan for calls like it."""
        signature = self.signature
        known = signature.sizes(values)
        tensors = [v for a, v in zip(signature.arguments, values) if a["tensor"]]
        shapes = signature.output_shapes(known)
        outputs = signature.empty_outputs(values, shapes)
        layouts = [(tuple(o.shape), o.stride(), o.dtype) for o in outputs]
        if any(o.numel() == 0 for o in outputs):
            plan = _Nothing(layouts)
        else:
            signature.check_memory(values)
            plan = self._pack_plan(values, shapes, outputs, layouts, tensors[0])
        if len(self.plans) >= KEPT_PLANS:
            self.plans.pop(next(iter(self.plans)), None)
        self.plans[key] = plan
        return plan

    def _pack_plan(self, values, shapes, outputs, layouts, like):
        views, scalars, discarded = {}, {}, {}
        for argument, value in zip(self.signature.arguments, values):
            if argument["kernel"] is None:
                continue
            if argument["tensor"]:
                shape, strides = kernel_view(value.shape, value.stride(), argument["kernel_dims"],
                                             argument["group"])
                views[argument["kernel"]] = (argument["dtype"], value.data_ptr(), shape, strides)
            else:
                scalars[argument["kernel"]] = value
        returned = iter(outputs)
        for output, shape in zip(self.signature.outputs, shapes):
            if output["returned"]:
                memory = next(returned)
                address, strides = memory.data_ptr(), memory.stride()
                shape, strides = kernel_view(shape, strides, output["kernel_dims"], output["group"])
            else:
                address = discarded[output["kernel"]] = self._buffer(output, shape, like)
                strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
            views[output["kernel"]] = (output["dtype"], address, shape, strides)
        kernel = self.kernel(like.device)
        try:
            handle = library.new_plan(kernel, [(name, *views[name]) for name in self._order], scalars)
        except library.LaunchError as error:
            self._refuse_finding(str(error))
        self._space["enqueue"] = library.enqueue()
        return _Plan(handle, layouts, discarded, library.library().kw_plan_free)

    def _buffer(self, output, shape, like):
        """The address of memory that is written and never read: one for a device, doubled when it is
        too small. What was too small stays, since a CUDA graph may still write there."""
        needed = math.prod(shape) * BYTES[output["dtype"]]
        kept = self._discarded.setdefault((output["kernel"], like.device), [])
        if not kept or kept[-1].numel() < needed:
            size = 1 << (needed - 1).bit_length()
            kept.append(torch.empty(size, dtype=torch.uint8, device=like.device))
        return kept[-1].data_ptr()

    def kernel(self, device):
        """The launcher's kernel on a GPU, loaded once."""
        kernel = self._kernels.get(device)
        if kernel is None:
            handle = ctypes.c_void_p()
            path, number = os.fsencode(self.folder), device.index or 0
            try:
                library.check(library.library().kw_kernel_load(path, number, ctypes.byref(handle)))
            except library.LaunchError as error:
                machine = re.search(r"error\[(driver\.\w+|launch\.target)\]", str(error))
                kind = MachineError if machine else InternalError
                raise kind(f"{self.function}: {error}") from None
            kernel = self._kernels[device] = handle
        return kernel

    # ---- refusals

    def _refuse_finding(self, text):
        """What the launcher found in a call, in whose words an argument is the kernel's."""
        found = re.match(r"error\[launch\.(\w+)\]: (?:tensor |scalar )?(\w+)(.*)", text, re.S)
        if not found:
            raise InternalError(f"{self.function}: {text}")
        names = {a["kernel"]: a["name"] for a in self.signature.arguments}
        argument = names.get(found[2], "a size")
        raise ArgumentError(self.function, argument, f"does not fit ({found[2]}{found[3]})",
                            "be what the kernel was made for")

    def _refuse_launch(self, values):
        """A plan's launch failed: another address than its plan's may be unaligned."""
        text = library.library().kw_last_error().decode().rstrip()
        self.signature.check_memory(values)
        raise MachineError(f"{self.function}: {text}")

    def _refuse_gradient(self):
        raise GradientError(f"{self.function}: {self.no_gradient}")

    def refuse_call(self, values):
        """Says in the user's words why torch.library did not take a call; returns if it does not know."""
        self.signature.sizes(values)
        for argument, value in zip(self.signature.arguments, values):
            number = (int, torch.SymInt) if argument["dtype"] == "i32" else (int, float, torch.SymFloat)
            if not argument["tensor"] and not isinstance(value, number):
                kind = "an integer" if argument["dtype"] == "i32" else "a number"
                self.signature.refuse(argument, f"is of the type {type(value).__name__}", f"be {kind}")

    def refuse_constant(self, name, was, due):
        raise ArgumentError(self.function, name, f"is {was!r}", f"be {due!r}, which is built into the "
                            "kernel", "compile the function again with the other value")

    def _refuse_cpu(self, *values):
        self.signature.sizes(values)
        first = next(a for a in self.signature.arguments if a["tensor"])
        self.signature.refuse(first, "is on the CPU", "be on a GPU, where the kernel runs")

    def _fake(self, *values):
        """Shapes, types and strides of what comes out, for torch.compile and torch.export."""
        if self._asks_gradients() and any(isinstance(v, torch.Tensor) and v.requires_grad for v in values):
            self._refuse_gradient()
        outputs = self.signature.empty_outputs(values, self.signature.output_shapes(
            self.signature.sizes(values)))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


def operator(name, function, record, folder, backward=None):
    """The operator of that name; made once a process."""
    if name not in _operators:
        _operators[name] = Operator(name, function, record, folder, backward)
    return _operators[name]


def load(overload, device):
    """Loads an operator's kernel on a GPU now, and not at its first call there.

    overload: the `operator` of what `compile` returned.
    device: a torch.device with a number: torch.device("cuda", 1).

    Raises MachineError where the kernel cannot run there."""
    _operators[overload.name().split("::")[1]].kernel(device)
