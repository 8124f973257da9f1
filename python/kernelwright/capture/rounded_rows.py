"""The truth of a function whose rows of q, k or v change before the product, with these rows rounded.

Tensor cores take 16-bit operands, so a changed row is rounded once more, by the kernel and by the
user's function alike. They need not round the same numbers: `x * cos + y * sin` is rounded once in a
kernel that computes it in fp32, three times in bf16. Both are right, and the user's own error on a
row, one draw of what such roundings do, does not bound the other's.

What the kernel rounds is known, though: each factor of a product that no product has computed is
the fp64 one to the nearest 16-bit number. So the graph is run once more with these factors rounded,
everything else in fp64, and what is left of a right kernel's error is what any kernel's is without
such rows. No constant is wider; a row that is wrong is as far from this truth as from the other.

A number that the kernel rounds another way than this, since fp32 lies across a tie, is one of the
row's many. Factors that are arguments are of 16 bits and stay what they are.

Not followed: a factor of the whole row that is no power of two (`rotated(q) * 0.3`). A kernel leaves it to
the score (docs/rules.md) and rounds the row without it; here it is rounded with it, to other numbers. Some
rows of such a kernel may then be called wrong that are not; none is called right that is wrong.
"""

import torch

from .goldens import InFp64
from .graph import operator_name

# Where the factors of a product stand among an operator's arguments.
FACTORS = {"matmul": (0, 1), "bmm": (0, 1), "mm": (0, 1), "baddbmm": (1, 2), "addmm": (1, 2),
           "einsum": (1,), "scaled_dot_product_attention": (0, 1, 2)}


class RoundedRows(InFp64):
    """Runs a graph in fp64, but for factors of products that come from no product: those have the
    numbers of `dtype`."""

    def __init__(self, module, dtype):
        super().__init__(module)
        self.dtype = dtype
        self.from_product = set()
        for node in module.graph.nodes:
            if _factors(node) or self.from_product.intersection(node.all_input_nodes):
                self.from_product.add(node)

    def fetch_args_kwargs_from_env(self, node):
        rounded = _factors(node) - self.from_product
        load = lambda n: self.env[n].to(self.dtype).double() if n in rounded else self.env[n]
        return torch.fx.node.map_arg((node.args, node.kwargs), load)


def _factors(node):
    """Nodes that are factors of this one; none of one that is no product."""
    if node.op != "call_function":
        return set()
    places = [node.args[place] for place in FACTORS.get(operator_name(node), ())]
    return {n for place in places for n in (place if isinstance(place, (list, tuple)) else [place])}
