"""backward="recompute": gradients by differentiating the user's own function, some query rows at a time.

A kernel for the backward pass is another kernel. This is the honest substitute: the captured function is
run again on a piece of q's rows (query_rows.py) with autograd, and the gradients of all pieces are added
up. It takes as much memory as one piece's scores, whatever the lengths, and the time of plain PyTorch.
Gradients of q come from their own piece; those of everything else are summed in fp32.

The backward pass is an operator too, so that torch.compile sees one call.
"""

import torch

from .query_rows import QueryRows, chunks

PIECE_BYTES = 512 * 2**20  # of a piece's intermediate results, about
_COPIES = 6  # tensors of the scores' size that a piece keeps for its gradients, about


class Recompute:
    def __init__(self, function, values, places, signature):
        self.signature = signature["arguments"]
        self.rows = QueryRows(function, values, places, signature)
        self.heads = next(a["dims"][a["kernel_dims"][1]] for a in self.signature if a["kernel"] == "q")
        self.wanted = [n for n, a in enumerate(self.signature)
                       if a["tensor"] and a["dtype"] in ("bf16", "f16", "f32")]

    def cost(self):
        """What a backward pass takes, in words."""
        return (f"gradients run the function again in plain PyTorch, in pieces of query rows of about "
                f"{PIECE_BYTES >> 20} MiB: the time of its unfused forward and backward, no more memory")

    def register(self, operator, library):
        """Makes `operator` (operators.Operator) differentiable, by an operator of this one's name."""
        name, schema = f"{operator.name}_backward", operator.signature.schema().split(") ->")[0]
        library.define(f"{name}(Tensor?[] gradients, {schema[1:]}) -> Tensor[]")
        library.impl(name, self._backward, "CompositeExplicitAutograd")
        full = f"kernelwright::{name}"
        torch.library.register_fake(full, self._fake, lib=library)
        overload = getattr(torch.ops.kernelwright, name).default

        def keep(ctx, inputs, output):
            ctx.save_for_backward(*[x for x in inputs if isinstance(x, torch.Tensor)])
            ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]

        def backward(ctx, *gradients):
            tensors = iter(ctx.saved_tensors)
            inputs = [next(tensors) if x is None else x for x in ctx.numbers]
            found = iter(overload(list(gradients), *inputs))
            return tuple(next(found) if n in self.wanted else None for n in range(len(inputs)))

        torch.library.register_autograd(f"kernelwright::{operator.name}", backward, setup_context=keep,
                                        lib=library)

    def _fake(self, gradients, *inputs):
        return [torch.empty_like(inputs[n]) for n in self.wanted]

    def _piece_rows(self, whole):
        keys = int(whole.get(self.rows.keys, self.rows.keys))
        batch = int(whole.get(self.rows.batch, self.rows.batch))
        return max(1, PIECE_BYTES // (4 * _COPIES * batch * int(self.heads) * keys))

    def _backward(self, gradients, *inputs):
        """One gradient for each floating tensor, in its type."""
        values = [x.detach() if isinstance(x, torch.Tensor) else torch.tensor(x) for x in inputs]
        whole = self.rows.symbols(values)
        sums = [torch.zeros_like(values[n], dtype=torch.float32) for n in self.wanted]
        for begin, count in chunks(whole[self.rows.rows], self._piece_rows(whole)):
            self._add_piece(sums, values, gradients, whole, begin, count)
        return [total.to(values[n].dtype) for n, total in zip(self.wanted, sums)]

    def _add_piece(self, sums, values, gradients, whole, begin, count):
        parts = self.rows.cut(values, begin, count)
        for n in self.wanted:
            parts[n] = parts[n].detach().requires_grad_()
        with torch.enable_grad():
            outputs = self.rows.run(parts, whole, begin, count)
        asked = [(output, _rows_of(gradient, output, begin, count)) for output, gradient in
                 zip(outputs, gradients) if gradient is not None and output.requires_grad]
        found = torch.autograd.grad([o for o, _ in asked], [parts[n] for n in self.wanted],
                                    [g.to(o.dtype) for o, g in asked], allow_unused=True)
        for total, n, gradient in zip(sums, self.wanted, found):
            if gradient is not None:
                self.rows.cut_one(n, total, begin, count).add_(gradient)


def _rows_of(gradient, output, begin, count):
    """The part of an output's gradient that is of these rows: the dimension that is longer there."""
    for d, (theirs, ours) in enumerate(zip(gradient.shape, output.shape)):
        if theirs != ours:
            return gradient.narrow(d, begin, count)
    return gradient
