# error spec.operand at line 6: dimension 2 of k is used as if it had another length
import torch


def keys_of_two_arguments(q, k, v, old_k, old_v):
    keys, values = torch.cat([k, old_k], 2), torch.cat([v, old_v], 2)
    return (q @ keys.mT * 0.125).softmax(-1) @ values


def example_inputs():
    return tuple(torch.randn(2, 4, n, 64, dtype=torch.bfloat16) for n in (96, 96, 96, 40, 40))
