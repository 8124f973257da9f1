"""A kernel's dimensions beside those of the user's tensors, as a certificate's bindings give them.

With a group, heads are packed into rows: the kernel's dimensions 1 and 2 are both of the user's heads,
of which each `group` are rows of one kernel head, and the user's queries, of which there is one, are
none of the kernel's dimensions.
"""

import math


def kernel_view(shape, strides, dims, group=1):
    """Shape and strides in the kernel's order of dimensions: dimension k is the user's dims[k], and
    -1 one of size 1 that the user's tensor lacks."""
    theirs = [shape[d] if d >= 0 else 1 for d in dims]
    apart = [strides[d] if d >= 0 else math.prod(shape) for d in dims]
    if group > 1:
        theirs[1], theirs[2] = theirs[1] // group, group
        apart[1] = apart[1] * group
    return theirs, apart


def to_kernel(tensor, dims, group=1):
    """A view of the user's tensor as the kernel's: dimension k is the user's dims[k], -1 is new."""
    if group > 1:
        return tensor.as_strided(*kernel_view(tensor.shape, tensor.stride(), dims, group))
    view = tensor.permute([d for d in dims if d >= 0])
    for k, d in enumerate(dims):
        view = view.unsqueeze(k) if d < 0 else view
    return view


def to_user(tensor, dims, group=1):
    """The inverse of to_kernel."""
    if group > 1:  # heads in one dimension, and the one query
        query = _left_out(dims)
        tensor, dims = tensor.flatten(1, 2).unsqueeze(2), [*dims[:2], query, *dims[3:]]
    view = tensor
    for k in reversed(range(len(dims))):
        view = view.squeeze(k) if dims[k] < 0 else view
    kept = [d for d in dims if d >= 0]
    return view.permute([kept.index(d) for d in range(len(kept))])


def query_dimension(argument):
    """Where an argument of a signature, one of q, k and v, has its queries or keys."""
    dims = argument["kernel_dims"]
    return _left_out(dims) if argument.get("group", 1) > 1 else dims[2]


def _left_out(dims):
    """The user's dimension that packed rows have no use for: its queries."""
    return next(d for d in range(len(dims)) if d not in dims)
