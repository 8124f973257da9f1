"""A kernel's dimensions beside those of the user's tensors, as a certificate's bindings give them."""


def to_kernel(tensor, dims):
    """A view of the user's tensor as the kernel's: dimension k is the user's dims[k], -1 is new."""
    view = tensor.permute([d for d in dims if d >= 0])
    for k, d in enumerate(dims):
        view = view.unsqueeze(k) if d < 0 else view
    return view


def to_user(tensor, dims):
    """The inverse of to_kernel."""
    view = tensor
    for k in reversed(range(len(dims))):
        view = view.squeeze(k) if dims[k] < 0 else view
    kept = [d for d in dims if d >= 0]
    return view.permute([kept.index(d) for d in range(len(kept))])
