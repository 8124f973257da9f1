# error spec.operand at line 7: dimension 2 of k is used as if it were longer by 1
import torch


def one_more_key(q, k, v):
    nothing = k.new_zeros(k.shape[0], k.shape[1], 1, 64)
    keys = torch.cat([k, nothing], 2)
    return (q @ keys.mT * 0.125).softmax(-1) @ torch.cat([v, nothing], 2)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
