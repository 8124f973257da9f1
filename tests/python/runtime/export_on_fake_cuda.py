"""Run by test_export_hf.py: loads an exported repository by Hugging Face's `kernels` and prints one JSON object.

With the stand-in driver in LD_LIBRARY_PATH the kernel runs, too: device memory is host memory there, so
tensors of the CPU that call themselves CUDA's will do."""

import json
import sys
import types
from pathlib import Path

import torch
from kernels import get_loaded_kernels, get_local_kernel


class OnGpu(torch.Tensor):
    is_cuda = True
    device = torch.device("cuda", 0)


def on_gpu(tensor):
    return tensor.as_subclass(OnGpu)


def pretend():
    """PyTorch takes the stand-in for a GPU, as far as a launch asks it."""
    empty = torch.empty
    torch.empty = lambda *shape, device=None, **more: on_gpu(empty(*shape, **more))
    torch.cuda.current_stream = lambda device: types.SimpleNamespace(cuda_stream=0)


def refusal(module, call):
    try:
        call()
    except module.LaunchError as error:
        return str(error)
    return None


def main(repository, runs):
    module = get_local_kernel(Path(repository))
    metadata = get_loaded_kernels()[0].metadata
    function = module.full_rows
    q, k, v = (torch.randn(2, rows, heads, 128).to(torch.bfloat16)
               for rows, heads in [(70, 4), (90, 2), (90, 2)])
    said = {"name": metadata.name.python_name, "version": metadata.version, "archs": metadata.backend.archs,
            "licence": metadata.license, "exports": module.__all__, "doc": function.__doc__,
            "from": str(Path(module.__file__).parent),
            "on_cpu": refusal(module, lambda: function(q, k, v)),
            "missing": refusal(module, lambda: function(q, k)),
            "unknown": refusal(module, lambda: function(q, k, v, window=3)),
            "gradient": refusal(module, lambda: function(on_gpu(q).requires_grad_(), k, v))}
    if runs:
        pretend()
        there = [on_gpu(t) for t in (q, k, v)]
        out = function(*there)
        truth = torch.nn.functional.scaled_dot_product_attention(
            *(t.double().transpose(1, 2) for t in (q, k, v)), enable_gqa=True).transpose(1, 2)
        out = torch.Tensor(out)
        said.update(strides=out.stride(), shape=out.shape, error=((out.double() - truth).norm() / truth.norm()).item(),
                    wrong_heads=refusal(module, lambda: function(there[0][..., :3, :], *there[1:])))
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], len(sys.argv) > 2)
