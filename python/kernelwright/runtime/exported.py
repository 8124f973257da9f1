"""An exported kernel as its function: the user's arguments, in the user's order, on any GPU of the process.

`kernelwright export hf` (src/driver/export/export_hf.h) copies this module beside the kernel with what it imports,
so all imports in it are relative, and it takes nothing but PyTorch. What the function's arguments are to
the kernel stands in kernel/signature.json. A GPU gets its own copy of the kernel at the first call there.
"""

import json
from pathlib import Path

import torch

from .bindings import to_kernel, to_user
from .launch import Kernel
from .library import LaunchError


class Function:
    """A kernel that `kernelwright export hf` wrote, called like the function that it was made from.

    folder: of the exported kernel, with kernel.cubin, launch.json and signature.json."""

    def __init__(self, folder):
        self._folder = Path(folder)
        self._signature = json.loads((self._folder / "signature.json").read_text())
        self._kernels = {}
        self.__name__ = self._signature["function"]
        self.__doc__ = (f"{self.__name__}({', '.join(self._signature['arguments'])}), "
                        f"for {self._signature['target']}; made by kernelwright.")

    def __repr__(self):
        return f"<{self.__doc__}>"

    def __call__(self, *values, **named):
        """What the function returned, on the GPU where all tensors are, in the current stream.

        values, named: the function's arguments. Tensors keep that function's order of dimensions; any
            strides that the kernel can follow are taken as they are, without a copy.

        Raises LaunchError, naming the argument, for whatever does not fit: another device, type, shape
        or stride, an argument that is missing or unknown, a gradient that is required."""
        given = self._bind(values, named)
        kernel = self._kernel_of(given)
        inputs = {}
        for binding in self._signature["bindings"]:
            value = given.get(binding["user"])
            if isinstance(value, torch.Tensor):
                value = to_kernel(value, binding["dims"], binding.get("group", 1))
            if value is not None:
                inputs[binding["argument"]] = value
        results = kernel(**inputs)
        results = results if isinstance(results, tuple) else (results,)
        own = {b["argument"]: (b["dims"], b.get("group", 1)) for b in self._signature["bindings"]
               if not b["user"]}
        returned = [to_user(result, *own[name]) if name in own else result
                    for name, result in zip(kernel.outputs, results)][: self._signature["outputs"]]
        return returned[0] if len(returned) == 1 else tuple(returned)

    def _bind(self, values, named):
        names = self._signature["arguments"]
        if len(values) > len(names):
            raise LaunchError(f"{self.__name__} takes {', '.join(names)}; {len(values)} arguments are given")
        given = dict(zip(names, values))
        if wrong := (given.keys() & named.keys()) | (named.keys() - set(names)):
            raise LaunchError(f"{self.__name__} takes {', '.join(names)}, each once; "
                              f"{', '.join(sorted(wrong))}: unknown, or given twice")
        given.update(named)
        if missing := [name for name in names if name not in given]:
            raise LaunchError(f"{self.__name__}: missing {', '.join(missing)}")
        return given

    def _kernel_of(self, given):
        """The kernel on the GPU where all tensors are."""
        device = None
        for name, value in given.items():
            if not isinstance(value, torch.Tensor):
                continue
            if not value.is_cuda:
                raise LaunchError(f"{name} is on {value.device}; {self.__name__} runs on an NVIDIA GPU, "
                                  f"{self._signature['target']}")
            device = value.device.index if device is None else device
            if value.requires_grad and torch.is_grad_enabled():
                raise LaunchError(f"{name} requires a gradient; {self.__name__} has no backward: call it "
                                  "under torch.no_grad(), or on a detached tensor")
        if device not in self._kernels:
            self._kernels[device] = Kernel(self._folder, device)
        return self._kernels[device]
