# error spec.index at line 8: which PyTorch counts from the end
import torch


def index_from_the_end(q, k, v, table):
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])
    bias = table[:, (j - i).clamp(-128, 127)]
    return (q @ k.mT * 0.125 + bias).softmax(-1).to(v.dtype) @ v


def example_inputs():
    return *(torch.randn(2, 4, 64, 64, dtype=torch.bfloat16) for _ in range(3)), torch.randn(4, 256)
