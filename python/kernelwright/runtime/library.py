"""libkernelwright_launch.so as Python sees it: include/kernelwright/launch_c.h, and nothing more.

The library is found in KERNELWRIGHT_LAUNCH, beside this file, in the wheel's lib/, or in the build
folder of a checkout.
"""

import ctypes
import os
from pathlib import Path


class LaunchError(RuntimeError):
    """A launch that does not fit, or a GPU that cannot run it: the launcher's findings, one a line."""


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_char_p), ("data", ctypes.c_uint64),
                ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64))]


class _Scalar(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


def _find_library():
    name = "libkernelwright_launch.so"
    here = Path(__file__).resolve()
    places = [here.with_name(name), here.parents[1] / "lib" / name,
              *(top / "build/src/runtime/c_abi" / name for top in here.parents[3:4])]
    if os.environ.get("KERNELWRIGHT_LAUNCH"):
        places = [Path(os.environ["KERNELWRIGHT_LAUNCH"])]
    for place in places:
        if place.exists():
            return str(place)
    raise LaunchError(f"{name} is in none of: " + ", ".join(map(str, places)))


_library = None


def library():
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


def enqueue():
    """kw_plan_enqueue for whoever counts microseconds: addresses come as bytes, a plan and a stream
    as they are. A status comes back, for check()."""
    function = library()["kw_plan_enqueue"]  # another object than the attribute of that name
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    return function


def check(status):
    if status:
        raise LaunchError(library().kw_last_error().decode().rstrip())


def new_plan(kernel, tensors, scalars):
    """The handle of a plan. `tensors`: (name, dtype, address, shape, strides in elements) of each;
    `scalars`: the caller's numbers by name."""
    views = (_Tensor * len(tensors))()
    for view, (name, dtype, address, shape, strides) in zip(views, tensors):
        sizes = ctypes.c_int64 * len(shape)
        view.name, view.dtype = name.encode(), dtype.encode()
        view.data, view.rank = address, len(shape)
        view.shape, view.strides = sizes(*shape), sizes(*strides)
    numbers = (_Scalar * len(scalars))(*[(n.encode(), float(x)) for n, x in scalars.items()])
    plan = ctypes.c_void_p()
    check(library().kw_kernel_plan(kernel, views, len(views), numbers, len(numbers),
                                   ctypes.byref(plan)))
    return plan
