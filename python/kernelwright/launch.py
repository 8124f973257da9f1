"""Launches a generated kernel on PyTorch tensors.

    kernel = Kernel("out/prefix_lm")          # a folder with kernel.cubin and launch.json
    o, lse = kernel(q, k, v, prefix)          # inputs in launch.json's order, outputs allocated
    kernel(q, k, v, prefix, o=o, lse=lse)     # or given by name
    launch = kernel.prepare(q, k, v, prefix)  # the same launch again and again: launch()

Shapes, strides and types are checked once for each combination and packed into a plan; after that a
call copies an argument struct and launches. Thin over libkernelwright_launch.so, which is found in
KERNELWRIGHT_LAUNCH, beside this file, or in the build folder of a checkout.
"""

import ctypes
import json
import os
from pathlib import Path

import torch

NAMES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32", torch.float64: "f64",
         torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
DTYPES = {name: dtype for dtype, name in NAMES.items()}


class LaunchError(RuntimeError):
    """The library's findings, one a line."""


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("data", ctypes.c_uint64),
                ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64))]


class _Scalar(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


def _find_library():
    name = "libkernelwright_launch.so"
    here = Path(__file__).resolve()
    places = [here.with_name(name), here.parents[2] / "build/src/runtime/c_abi" / name]
    if os.environ.get("KERNELWRIGHT_LAUNCH"):
        places = [Path(os.environ["KERNELWRIGHT_LAUNCH"])]
    for place in places:
        if place.exists():
            return str(place)
    raise LaunchError(f"{name} is in none of: " + ", ".join(map(str, places)))


_library = None


def _lib():
    global _library
    if _library is None:
        lib = ctypes.CDLL(_find_library())
        pointer = ctypes.c_void_p
        lib.kw_last_error.restype = ctypes.c_char_p
        lib.kw_kernel_load.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(pointer)]
        lib.kw_kernel_plan.argtypes = [pointer, ctypes.POINTER(_Tensor), ctypes.c_int,
                                       ctypes.POINTER(_Scalar), ctypes.c_int,
                                       ctypes.POINTER(pointer)]
        lib.kw_plan_enqueue.argtypes = [pointer, ctypes.POINTER(ctypes.c_uint64), ctypes.c_int,
                                        pointer]
        lib.kw_kernel_free.argtypes = lib.kw_plan_free.argtypes = [pointer]
        lib.kw_kernel_free.restype = lib.kw_plan_free.restype = None
        _library = lib
    return _library


def _check(status):
    if status:
        raise LaunchError(_lib().kw_last_error().decode().rstrip())


class Kernel:
    """A kernel on one GPU. `device` is its number; by default PyTorch's current one."""

    def __init__(self, folder, device=None):
        self._plans, self._handle = {}, None
        self._device = torch.cuda.current_device() if device is None else device
        spec = json.loads((Path(folder) / "launch.json").read_text())
        tensors = [a for a in spec["arguments"] if a["kind"] in ("tensor", "tensor_map")]
        self._arguments = {a["name"]: a for a in tensors}
        self.inputs = [a["name"] for a in tensors if a["access"] == "read"]
        self.outputs = [a["name"] for a in tensors if a["access"] == "write"]
        self._constants = spec.get("constants", {})
        handle = ctypes.c_void_p()
        _check(_lib().kw_kernel_load(os.fsencode(folder), self._device, ctypes.byref(handle)))
        self._handle = handle

    def __del__(self):
        for plan in self._plans.values():
            _lib().kw_plan_free(plan)
        if self._handle:
            _lib().kw_kernel_free(self._handle)

    def __call__(self, *inputs, stream=None, **named):
        """Launches once on the current stream; returns the outputs, or the only one."""
        tensors, scalars = self._bind(inputs, named)
        plan = self._plan(tensors, scalars)
        addresses = (ctypes.c_uint64 * len(tensors))(*[t.data_ptr() for t in tensors.values()])
        _check(_lib().kw_plan_enqueue(plan, addresses, len(tensors), self._stream(stream)))
        results = tuple(tensors[name] for name in self.outputs)
        return results[0] if len(results) == 1 else results

    def prepare(self, *inputs, stream=None, **named):
        """A function without arguments that launches on these tensors, and returns the outputs.

        The stream is the one that is current when the function is called, unless one is given."""
        tensors, scalars = self._bind(inputs, named)
        plan, count, enqueue = self._plan(tensors, scalars), len(tensors), _lib().kw_plan_enqueue
        addresses = (ctypes.c_uint64 * count)(*[t.data_ptr() for t in tensors.values()])
        results = tuple(tensors[name] for name in self.outputs)
        results = results[0] if len(results) == 1 else results

        def launch(keep_alive=tensors):
            _check(enqueue(plan, addresses, count, self._stream(stream)))
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
        views = (_Tensor * len(tensors))()
        for view, (name, t) in zip(views, tensors.items()):
            sizes = ctypes.c_int64 * t.dim()
            if t.dtype not in NAMES:
                raise LaunchError(f"{name} is {t.dtype}, which no kernel of ours takes")
            view.name, view.dtype = name.encode(), NAMES[t.dtype].encode()
            view.data, view.rank = t.data_ptr(), t.dim()
            view.shape, view.strides = sizes(*t.shape), sizes(*t.stride())
        numbers = (_Scalar * len(scalars))(*[(n.encode(), float(x)) for n, x in scalars.items()])
        plan = ctypes.c_void_p()
        _check(_lib().kw_kernel_plan(self._handle, views, len(views), numbers, len(numbers),
                                     ctypes.byref(plan)))
        return plan
