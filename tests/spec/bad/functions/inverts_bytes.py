# error spec.wraps at line 6: aten.bitwise_not makes uint8 of what may be -256 to 1
import torch


def inverts_bytes(q, k, v, ids):
    dropped = (~ids[:, None, None, :]).bool()
    return (q @ k.mT * 0.125).masked_fill(dropped, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.zeros(2, 96, dtype=torch.uint8)
