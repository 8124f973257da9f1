# attention: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    (j - i) % 7 < 6 and (j - i) // 3 < 40 and -9 < where(i < j, (j - i) // 5 * -1, (i - j) // 5) and where(i < j, (j - i) % 4 * -1, (i - j) % 4) < 3
#   softmax over j
import torch


def attention(q, k, v):
    """Divisions by negative numbers, and some that round toward zero."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)[None, :]
    near = (i - j) // -3 < 40
    every = (i - j) % -7 > -6
    back = torch.div(i - j, 5, rounding_mode="trunc") > -9
    odd = torch.fmod(i - j, -4) < 3
    s = (q @ k.mT * 0.125).masked_fill(~(near & every & back & odd), -torch.inf)
    return s.softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 200, 64, dtype=torch.bfloat16) for _ in range(3))
