"""Launches a generated kernel on PyTorch tensors.

    kernel = Kernel("out/prefix_lm")          # a folder with kernel.cubin and launch.json
    o, lse = kernel(q, k, v, prefix)          # inputs in launch.json's order, outputs allocated
    kernel(q, k, v, prefix, o=o, lse=lse)     # or given by name
    launch = kernel.prepare(q, k, v, prefix)  # the same launch again and again: launch()

Shapes, strides and types are checked once for each combination and packed into a plan; after that a
call copies an argument struct and launches. Thin over libkernelwright_launch.so (library.py).
"""

import ctypes
import json
import os
from pathlib import Path

import torch

from .library import LaunchError, check, library, new_plan

NAMES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.float64: "f64",
         torch.float8_e4m3fn: "e4m3",
         torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}

LARGEST_SIZE = 2**24  # of a launch, which the library asks too (src/support/largest_size.h): that of what is proved


class Kernel:
    """A kernel on one GPU, with the kernel's own arguments in the kernel's own order of dimensions.

    folder: what `kernelwright make` wrote: kernel.cubin and launch.json are read.
    device: the GPU's number; by default PyTorch's current one.

    `inputs` and `outputs` are the names of its tensors, in launch.json's order. Raises LaunchError where
    the GPU cannot run the kernel."""

    def __init__(self, folder, device=None):
        self._plans, self._handle = {}, None  # __del__ reads them whatever fails here
        self._library = library()
        self._device = torch.cuda.current_device() if device is None else device
        spec = json.loads((Path(folder) / "launch.json").read_text())
        tensors = [a for a in spec["arguments"] if a["kind"] in ("tensor", "tensor_map")]
        self._arguments = {a["name"]: a for a in tensors}
        self.inputs = [a["name"] for a in tensors if a["access"] == "read"]
        self.outputs = [a["name"] for a in tensors if a["access"] == "write"]
        self._constants = spec.get("constants", {})
        handle = ctypes.c_void_p()
        check(library().kw_kernel_load(os.fsencode(folder), self._device, ctypes.byref(handle)))
        self._handle = handle

    def __del__(self):  # perhaps at the interpreter's end, when a module's names are gone
        for plan in self._plans.values():
            self._library.kw_plan_free(plan)
        if self._handle:
            self._library.kw_kernel_free(self._handle)

    def __call__(self, *inputs, stream=None, **named):
        """Launches once; returns the outputs, or the only one.

        inputs: tensors in the order of `inputs`, on the kernel's GPU.
        stream: a CUDA stream's handle (an integer); by default PyTorch's current stream.
        named: inputs and scalars by name, and outputs to be written into; others are allocated.

        Raises LaunchError for what does not fit, naming it."""
        tensors, scalars = self._bind(inputs, named)
        plan = self._plan(tensors, scalars)
        addresses = (ctypes.c_uint64 * len(tensors))(*[t.data_ptr() for t in tensors.values()])
        check(library().kw_plan_enqueue(plan, addresses, len(tensors), self._stream(stream)))
        results = tuple(tensors[name] for name in self.outputs)
        return results[0] if len(results) == 1 else results

    def prepare(self, *inputs, stream=None, **named):
        """A function without arguments that launches on these tensors, and returns the outputs.

        inputs, stream, named: as of a call.

        The stream is the one that is current when the function is called, unless one is given."""
        tensors, scalars = self._bind(inputs, named)
        plan, count, enqueue = self._plan(tensors, scalars), len(tensors), library().kw_plan_enqueue
        addresses = (ctypes.c_uint64 * count)(*[t.data_ptr() for t in tensors.values()])
        results = tuple(tensors[name] for name in self.outputs)
        results = results[0] if len(results) == 1 else results

        def launch(keep_alive=tensors):
            check(enqueue(plan, addresses, count, self._stream(stream)))
            return results

        return launch

    def _stream(self, stream):
        if stream is None:
            stream = torch.cuda.current_stream(self._device).cuda_stream
        return stream or None

    def _bind(self, inputs, named):
        """Tensors by name, in launch.json's order, outputs allocated; and the scalars."""
        if len(inputs) > len(self.inputs):
            raise LaunchError(f"{len(inputs)} inputs are given; the kernel takes "
                              + ", ".join(self.inputs))
        given = dict(zip(self.inputs, inputs))
        if twice := given.keys() & named.keys():
            raise LaunchError(f"{', '.join(sorted(twice))}: given by position and by name")
        given.update(named)
        scalars = {name: given.pop(name) for name in list(given) if name not in self._arguments}
        if missing := [name for name in self.inputs if name not in given]:
            raise LaunchError("missing: " + ", ".join(missing))
        for name in self.outputs:
            if name not in given:
                given[name] = self._allocate(name, given)
        for name, tensor in given.items():
            if not tensor.is_cuda or tensor.device.index != self._device:
                raise LaunchError(f"{name} is on {tensor.device}, the kernel on GPU {self._device}")
        return {name: given[name] for name in self._arguments}, scalars

    def _allocate(self, name, given):
        """An output: in the memory layout of an input of its dims and type, else contiguous."""
        output, sizes = self._arguments[name], dict(self._constants)
        for other in self.inputs:
            argument = self._arguments[other]
            if (argument["dims"], argument["dtype"]) == (output["dims"], output["dtype"]):
                return torch.empty_like(given[other])
            sizes.update(zip(argument["dims"], given[other].shape))
        shape = [d if isinstance(d, int) else sizes[d] for d in output["dims"]]
        device = given[self.inputs[0]].device
        return torch.empty(shape, dtype=DTYPES[output["dtype"]], device=device)

    def _plan(self, tensors, scalars):
        key = (tuple((t.dtype, t.shape, t.stride()) for t in tensors.values()),
               tuple(sorted(scalars.items())))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._new_plan(tensors, scalars)
        return plan

    def _new_plan(self, tensors, scalars):
        views = []
        for name, t in tensors.items():
            if t.dtype not in NAMES:
                raise LaunchError(f"{name} is {t.dtype}, which no kernel of ours takes")
            views.append((name, NAMES[t.dtype], t.data_ptr(), t.shape, t.stride()))
        return new_plan(self._handle, views, scalars)
