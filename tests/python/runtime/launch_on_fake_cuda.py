"""Run by test_launch.py with the stand-in driver in LD_LIBRARY_PATH; prints one JSON object.

Device memory is host memory there, so tensors of the CPU that call themselves CUDA's will do."""

import json
import sys

import torch

from kernelwright.launch import Kernel, LaunchError


class OnGpu(torch.Tensor):
    is_cuda = True
    device = torch.device("cuda", 0)


def on_gpu(tensor):
    return tensor.as_subclass(OnGpu)


def refusal(call):
    try:
        call()
    except LaunchError as error:
        return str(error)
    return None


def main(folder):
    kernel = Kernel(folder, device=0)
    x = on_gpu(torch.randn(2, 5, 3, 64).to(torch.bfloat16).transpose(1, 2))
    y, lse = on_gpu(torch.zeros_like(x)), on_gpu(torch.zeros(2, 3, 5))
    outputs = kernel(x, y=y, lse=lse, stream=0)
    other = on_gpu(torch.randn(2, 5, 3, 64).to(torch.bfloat16).transpose(1, 2))
    launch = kernel.prepare(other, y=on_gpu(torch.zeros_like(x)), lse=lse, stream=0)
    again = launch()
    allocated = kernel._allocate("y", {"x": torch.Tensor(x)})
    print(json.dumps({
        "inputs": kernel.inputs, "outputs": kernel.outputs,
        "copied": bool(torch.equal(outputs[0], x)), "lse": bool((lse == other[..., 0]).all()),
        "prepared": bool(torch.equal(again[0], other)), "plans": len(kernel._plans),
        "output_strides": allocated.stride(),
        "lse_shape": kernel._allocate("lse", {"x": torch.Tensor(x)}).shape,
        "too_many": refusal(lambda: kernel(x, x, stream=0)),
        "missing": refusal(lambda: kernel(y=y, lse=lse, stream=0)),
        "twice": refusal(lambda: kernel(x, x=x, stream=0)),
        "on_cpu": refusal(lambda: kernel(torch.zeros(2, 3, 5, 64), y=y, lse=lse, stream=0)),
        "shape": refusal(lambda: kernel(x, y=y[:, :, :4], lse=lse, stream=0)),
        "dtype": refusal(lambda: kernel(on_gpu(x.half()), y=y, lse=lse, stream=0)),
        "folder": refusal(lambda: Kernel(folder + "/..", device=0)),
    }))


if __name__ == "__main__":
    main(sys.argv[1])
