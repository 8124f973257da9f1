"""Launches a kernel on tensors whose memory ends where they end: what memcheck.sh runs.

    python3 tests/gpu/exact_launch.py FOLDER M N

Every tensor is an allocation of its own, of exactly its bytes, so that an access past its end is one
that compute-sanitizer sees. (PyTorch's allocator cuts tensors out of larger blocks, and
kernelwright-prove has guards of its own around them.) One batch entry, two heads that share one key
head, M queries and N keys; what the kernel requires otherwise, it gets. Needs numpy, the driver and
libkernelwright_launch.so (KERNELWRIGHT_LAUNCH says where), no PyTorch, which takes seconds to load.

Two launches, since the second finds the workspaces that the first left. Exit status 0: both ended,
and every element of every output was written; 1: not so; 2: an argument is at fault.
"""

import ctypes
import json
import math
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from kernelwright.runtime.library import LaunchError, check, library, new_plan  # noqa: E402

BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i32": 4, "i64": 8, "u8": 1, "bool": 1}
SIZES = {"B": 1, "H": 2, "G": 1}


class Gpu:
    """The driver's calls that this needs. Raises RuntimeError where one fails."""

    def __init__(self):
        self._cuda, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name, *arguments):
        if status := getattr(self._cuda, name)(*arguments):
            raise RuntimeError(f"{name} gives error {status}")

    def upload(self, data):
        """The address of a copy, in an allocation of exactly its bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(data)))
        return address.value

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw


def sizes_of(launch, queries, keys):
    """Every size by name: the small ones, unless the kernel requires another or equal ones. A table
    has 37 entries."""
    letters = {d for a in launch["arguments"] for d in a.get("dims", []) if isinstance(d, str)}
    sizes = {**dict.fromkeys(letters, 37), **SIZES, "M": queries, "N": keys,
             **launch.get("constants", {})}
    for comparison, left, right in launch.get("requires", []):
        if comparison == "==" and isinstance(left, str) and isinstance(right, (int, str)):
            sizes[left] = sizes.get(right, right)
        elif comparison == "==" and isinstance(left, str) and right[0] == "*" and right[1] in sizes and isinstance(right[2], int):
            sizes[left] = sizes[right[1]] * right[2]  # query heads: so many a key head
    return sizes


def drawn(dtype, count, keys, random):
    """`count` elements as bytes: normal numbers, integers that may count keys, or truths."""
    if dtype == "bool":
        return random.integers(0, 2, count).astype("u1").tobytes()
    if dtype in ("i32", "i64"):
        return random.integers(0, keys + 1, count).astype({"i32": "<i4", "i64": "<i8"}[dtype]).tobytes()
    numbers = random.standard_normal(count, dtype=np.float32)
    if dtype == "bf16":
        return (numbers.view(np.uint32) >> 16).astype("<u2").tobytes()
    return numbers.astype({"f16": "<f2", "f32": "<f4", "f64": "<f8"}[dtype]).tobytes()


def unwritten(data, element):
    """How many elements still have every bit set, as none that a kernel computes has."""
    return int((np.frombuffer(data, np.uint8).reshape(-1, element) == 255).all(1).sum())


def launch_twice(folder, queries, keys):
    """{output: elements that were not written}, of the outputs that lack any."""
    launch, gpu = json.loads((Path(folder) / "launch.json").read_text()), Gpu()
    sizes, random = sizes_of(launch, queries, keys), np.random.default_rng(0)
    views, outputs, scalars = [], {}, {}
    for a in launch["arguments"]:
        name = a["name"]
        if a["kind"] == "scalar" and "value" not in a:
            scalars[name] = 1
        if a["kind"] not in ("tensor", "tensor_map"):
            continue
        shape = [d if isinstance(d, int) else sizes[d] for d in a["dims"]]
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        written, bytes_ = a["access"] == "write", math.prod(shape) * BYTES[a["dtype"]]
        address = gpu.upload(b"\xff" * bytes_ if written else
                             drawn(a["dtype"], math.prod(shape), sizes["N"], random))
        views.append((name, a["dtype"], address, shape, strides))
        if written:
            outputs[name] = (address, bytes_, BYTES[a["dtype"]])
    kernel = ctypes.c_void_p()
    check(library().kw_kernel_load(os.fsencode(folder), 0, ctypes.byref(kernel)))
    plan = new_plan(kernel, views, scalars)
    addresses = (ctypes.c_uint64 * len(views))(*[view[2] for view in views])
    for _ in range(2):
        check(library().kw_plan_enqueue(plan, addresses, len(views), None))
        gpu.call("cuCtxSynchronize")
    left = {name: unwritten(gpu.download(address, bytes_), element)
            for name, (address, bytes_, element) in outputs.items()}
    return {name: count for name, count in left.items() if count}


def main():
    if len(sys.argv) != 4 or not all(word.isdigit() for word in sys.argv[2:]):
        print(__doc__.split("\n\n")[1].strip(), file=sys.stderr)
        return 2
    try:
        left = launch_twice(sys.argv[1], *map(int, sys.argv[2:]))
    except (LaunchError, RuntimeError, OSError) as error:
        print(f"{sys.argv[1]}: {error}")
        return 1
    for name, count in left.items():
        print(f"{sys.argv[1]}: {count} elements of {name} were not written")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
