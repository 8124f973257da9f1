"""Kernels that are made when a library's function is first called in some way.

A library has one attention function with many options. Each set of them that is in use is a *kind*, a function of its own in
plain PyTorch, compiled at its first call and kept. A kind with gradients is another one than without, since other kernels run,
and a traced call could make none: so a first call is left out of a trace, and later ones are traced as one operator. Replicas of
DataParallel are threads: a lock is around what makes kernels.
"""
import threading

import torch


class Kinds:
    """The kernels of one library's function, by kind: whatever its answer depends on but the arguments' values."""

    def __init__(self):
        self._compiled = {}
        self._making = threading.Lock()

    def call(self, kind, make, given):
        """What the kernel of a kind gives of its arguments; `make()` gives the kernel, a `Compiled`, at the first call."""
        differentiated = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in given)
        kernel = self._compiled.get((*kind, differentiated))
        if kernel is None:
            return self._first_call(kind, differentiated, make, given)
        return kernel(*given)

    @torch.compiler.disable(reason="kernels are made here")
    def _first_call(self, kind, differentiated, make, given):
        """Its kernel is kept, and those of its gradients where it needs them."""
        with self._making:  # another thread's, or of no gradients
            kernel = self._compiled.get((*kind, differentiated)) or self._compiled.get((*kind, not differentiated)) or make()
            output = kernel(*given)
            self._compiled[(*kind, differentiated)] = kernel
            return output
