"""Operators that write into memory which several tensors share: `s[..., 5000:].fill_(-inf)`, `s.mT.clamp_(max=30)`.

A graph has values and no memory. PyTorch's trace gives the tensor that is written its new value, and no other tensor that
shares its memory: a view of it, or what it is a view of. Where such a one is read later, the graph's value is not the
function's.
"""

import operator

import torch

from .diagnostic import Problem
from .graph import place_of


def refuse_shared_writes(graph):
    """Raises Problem at an operator that writes where another tensor, which is read behind it, lies, too."""
    memory, at = {}, {}  # of a node: which memory it lies in, and where it stands in the graph
    last = {}  # of a memory: the operator that wrote it last
    for n, node in enumerate(graph.nodes):
        at[node] = n
        for value in node.all_input_nodes:
            writer = last.get(memory.get(value))
            if writer is not None and at[value] < at[writer]:
                line, column = place_of(writer)
                raise Problem("spec.shared_memory", f"{writer.target} writes into memory that another tensor shares, which is read in "
                              f"line {place_of(node)[0] or line}; a kernel's form has values and no memory", line, column,
                              "give the new value a name: s = s.masked_fill(...), torch.where(...), s.clamp(...)")
        lies, written = _aliased(node)
        memory[node] = memory.get(lies, lies) if lies is not None else node
        if written is not None:
            last[memory.get(written, written)] = node


def _aliased(node):
    """The argument whose memory the result lies in, and the one that is written; None for none."""
    if node.target is operator.getitem:
        return node.args[0], None
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return None, None
    lies = written = None
    for n, argument in enumerate(node.target._schema.arguments):
        value = node.kwargs.get(argument.name, node.args[n] if n < len(node.args) else None)
        if argument.alias_info is None or not isinstance(value, torch.fx.Node):
            continue
        lies = value
        if argument.alias_info.is_write:
            written = value
    returned = any(r.alias_info is not None for r in node.target._schema.returns)
    return (lies if returned or written is not None else None), written
