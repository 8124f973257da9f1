# bucket_table: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125 + table[h, bucket[min(abs(j - i), 31)]]
#   softmax over j
import torch


def bucket_table(q, k, v, table, bucket):
    distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])[None, :]
    return (q @ k.mT * 0.125 + table[:, bucket[distance.abs().clamp(max=31)]]).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4, 8), torch.arange(32) // 4
