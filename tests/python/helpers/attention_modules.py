"""Modules that contain attention, as people write them: what `kernelwright.compile` must take as it is.

Each is small (256 columns, heads of 64) and in the style of a public model; HOW gives what each is called with, of a batch and a length."""

import math

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS = 256, 4


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


class Llama(nn.Module):
    """A norm, one projection for all, a rotation, grouped heads, and the residual."""

    def __init__(self, groups=2, head=64):
        super().__init__()
        self.norm, self.groups, self.head = RMSNorm(WIDTH), groups, head
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * groups) * head, bias=False)
        self.out = nn.Linear(HEADS * head, WIDTH, bias=False)
        self.register_buffer("frequencies", 1 / 10000 ** (torch.arange(0, head, 2).float() / head), persistent=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).split([HEADS * self.head, self.groups * self.head, self.groups * self.head], -1)
        q = q.view(batch, length, HEADS, self.head).transpose(1, 2)
        k, v = (t.view(batch, length, self.groups, self.head).transpose(1, 2) for t in (k, v))
        angle = torch.arange(length, device=x.device).float()[:, None] * self.frequencies
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return x + self.out(o.transpose(1, 2).reshape(batch, length, -1))


class GPT2(nn.Module):
    """nanoGPT's: q, k and v of one projection, causal, dropout by the mode."""

    def __init__(self, dropout=0.1):
        super().__init__()
        self.norm, self.c_attn, self.c_proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout, self.residual = dropout, nn.Dropout(dropout)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in self.c_attn(self.norm(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0, is_causal=True)
        return x + self.residual(self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width)))


class ViT(nn.Module):
    """timm's, with the perceptron behind it, whose two products are no attention."""

    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 512), nn.ReLU(), nn.Linear(512, WIDTH))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(batch, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        weights = ((q * (width // HEADS) ** -0.5) @ k.transpose(-2, -1)).softmax(dim=-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(x)


class T5(nn.Module):
    """A bias by distance, from an embedding."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.relative = nn.Embedding(32, HEADS)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part(x).view(batch, length, HEADS, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        i = torch.arange(length, device=x.device)
        bias = self.relative((i[None] - i[:, None]).clamp(-15, 16) + 15).permute(2, 0, 1)[None]
        weights = (q @ k.transpose(3, 2) + bias).float().softmax(-1).type_as(q)
        return self.o((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Cross(nn.Module):
    """Keys of another sequence, a mask of padding or none, and more than one output."""

    def __init__(self, context=128):
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(WIDTH, WIDTH), nn.Linear(context, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, context, mask=None):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, HEADS, -1).transpose(1, 2)
        k, v = self.kv(context).view(batch, context.shape[1], 2, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None, :], float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)), {"keys": context.shape[1], "q": q}


class MinGPT(nn.Module):
    """KernelBench's: the causal mask is a buffer; `weights` is softmax or ReLU."""

    def __init__(self, weights=lambda scores: scores.softmax(-1), block=512, dropout=0.1):
        super().__init__()
        self.c_attn, self.c_proj, self.weights = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), weights
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = (t.view(batch, length, HEADS, width // HEADS).transpose(1, 2) for t in self.c_attn(x).split(width, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        y = self.dropout(self.weights(scores)) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class Plain(nn.Module):
    """KernelBench's scaled_dot_product_attention: nothing but it."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class Two(nn.Module):
    """Two layers that are alike, and a norm."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = GPT2(), GPT2(), nn.LayerNorm(WIDTH)

    def forward(self, x):
        return self.norm(self.second(self.first(x)))


class Again(nn.Module):
    """What is behind the attention reads q once more."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q = q * 1.5
        y = F.softmax(q @ k.transpose(-1, -2) * 0.125, -1) @ v
        return self.out((y * q.sigmoid() + q).transpose(1, 2).reshape(batch, length, width)), q.sum()


class Guarded(nn.Module):
    """Under autocast, with factors that are made without gradients."""

    def __init__(self):
        super().__init__()
        self.layer = ViT()

    def forward(self, x):
        with torch.no_grad():
            factors = x.square().mean(-1, keepdim=True).sqrt()
        with torch.autocast("cpu", torch.bfloat16):
            return self.layer(x * factors)


def hidden(batch, length, dtype=torch.bfloat16, width=WIDTH):
    torch.manual_seed(length)
    return torch.randn(batch, length, width).to(dtype)


def of_hidden(batch, length):
    return (hidden(batch, length),)


def of_context(batch, length):
    return hidden(batch, length), hidden(batch, length + 9, width=128)


def of_padding(batch, length):
    return (*of_context(batch, length), torch.arange(length + 9).expand(batch, -1) < length)


def of_heads(batch, length):
    return tuple(hidden(batch * 8, length, width=64).view(batch, 8, length, 64) for _ in range(3))


def of_the_same(batch, length):
    return (hidden(batch, length),) * 3


# {name: (makes the module, its arguments of a batch and a length, its keywords)}
HOW = {
    "mha": (lambda: nn.MultiheadAttention(WIDTH, HEADS, batch_first=True), of_the_same, {"need_weights": False}),
    "mha_length_first": (lambda: nn.MultiheadAttention(WIDTH, HEADS), of_the_same, {"need_weights": False}),
    "llama": (Llama, of_hidden, {}),
    "gpt2": (GPT2, of_hidden, {}),
    "vit": (ViT, of_hidden, {}),
    "t5": (T5, of_hidden, {}),
    "cross": (Cross, of_context, {}),
    "cross_padded": (Cross, of_padding, {}),
    "mingpt": (MinGPT, of_hidden, {}),
    "relu": (lambda: MinGPT(torch.relu), of_hidden, {}),
    "plain": (Plain, of_heads, {}),
    "two": (Two, of_hidden, {}),
    "again": (Again, of_hidden, {}),
}
