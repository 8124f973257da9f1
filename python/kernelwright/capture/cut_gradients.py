"""Where the user's function computes something of its arguments without its gradient: under `torch.no_grad()`, in inference
mode, behind a guard of dispatch keys, by `.data`.

A trace has the operators and not what was in force around them, so the graph's gradient has the derivative that the function
leaves out, and where the goldens' numbers do not come to the place (`where(i > 20000, frozen(s), s)`) no number tells. What
is in force has no list of names either. So the *effect* is looked at, of each operator that the function calls on tensors that
require gradients: a floating result that requires none, although the same operator, asked in a thread of its own that has none
of the guards, gives one that does. An operator that has no derivative by itself (`zeros_like`, `floor_divide`, `a.to(q)`) has
none there either; the graph has the same operator, and so the same gradient.

What is hard is what hides. An operator that writes into a tensor leaves it requiring a gradient, of what it was: it is
refused under any guard. And an operator that PyTorch runs without telling the watch, as `torch._C.DisableTorchFunction` makes
it, is seen below, where operators are dispatched, outside of any call that the watch knows.
"""

import contextlib
import threading
import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from .diagnostic import Problem

# They give numbers of a tensor that are another's by definition, without any guard.
DETACHING = {"detach", "detach_", "detach_copy", "data", "tensor", "new_tensor", "asarray"}
AUTOGRAD = ("AutogradCPU", "AutogradOther", "AutogradFunctionality", "ADInplaceOrView")
HINT = 'kernelwright.compile(..., backward="recompute") differentiates it in PyTorch'


@contextlib.contextmanager
def watched(spec):
    """While the user's function runs on tensors that require gradients. Gives what refuse() takes."""
    watch = _Watch(spec)
    try:
        with _Below(watch), watch:
            yield watch
    except Exception:
        refuse(watch)
        raise


def refuse(watch):
    """Raises Problem at the first line that cut a gradient."""
    if watch.problem:
        raise watch.problem


def _learns(value):
    return (value.is_floating_point() or value.is_complex()) and value.requires_grad


def _tensors(*values):
    return [x for x in tree_leaves(values) if isinstance(x, torch.Tensor)]


def _is_guarded():
    """Whether something is in force under which PyTorch notes no gradient. Asked where no operator runs."""
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded
    return (not torch.is_grad_enabled() or torch.is_inference_mode_enabled() or
            any(excluded(getattr(torch._C.DispatchKey, key)) for key in AUTOGRAD))


def _version(tensor):
    return None if tensor.is_inference() else tensor._version


class _Watch(TorchFunctionMode):
    """Sees each operator, and each getter and method of tensors, as the user's code calls it."""

    def __init__(self, spec):
        super().__init__()
        self.spec, self.problem, self.inside = spec, None, 0

    def note(self, what):
        """The first is told, when the function has ended: one may have written a derivative, and that says more."""
        if self.problem is None:
            lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == self.spec.file]
            self.problem = Problem("spec.gradient", f"{self.spec.name} {what}: no kernel of gradients leaves a derivative out",
                                   lines[-1] if lines else self.spec.line, hint=HINT)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, _name(function)
        given = _tensors(args, kwargs)
        learning = [x for x in given if _learns(x)]
        if not learning:
            return self._called(function, args, kwargs)
        if any(type(x) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) for x in given):
            self.note(f"computes {name} of tensors of a class of its own here, which may leave out gradients")
        versions, guarded = [_version(x) for x in given], _is_guarded()
        out = self._called(function, args, kwargs)
        if not all(x.requires_grad for x in learning):
            self.note(f"lets {name} take its gradient from a tensor here")
        for x, version in zip(given, versions):
            if _version(x) != version and (x.is_floating_point() or x.is_complex()) and (guarded or not x.requires_grad):
                self.note(f"writes into a tensor by {name} without a gradient here (torch.no_grad, inference_mode or another guard)")
        self._look(function, name, args, kwargs, _tensors(out), guarded)
        return out

    def _called(self, function, args, kwargs):
        self.inside += 1
        try:
            return function(*args, **kwargs)
        finally:
            self.inside -= 1

    def _look(self, function, name, args, kwargs, results, guarded):
        given = {id(x) for x in _tensors(args, kwargs)}
        floating = [x.is_floating_point() or x.is_complex() for x in results]
        if any(x.requires_grad and x.grad_fn is None and id(x) not in given for x in results):
            self.note(f"makes a tensor with a gradient of its own of what it computes, by {name}, here")
        cut = [n for n, x in enumerate(results) if floating[n] and not x.requires_grad and id(x) not in given]
        if cut and name in DETACHING:
            self.note("detaches what it computes of its arguments here")
        if cut and _without_guards(function, args, kwargs, cut):
            under = "torch.no_grad, inference_mode or another guard" if guarded else "by a guard of its own"
            self.note(f"computes {name} of its arguments without its gradient here ({under})")


class _Below(TorchDispatchMode):
    """Sees each operator where it is dispatched, and notes those that the watch above was not told of."""

    supports_higher_order_operators = True

    def __init__(self, watch):
        super().__init__()
        self.watch = watch

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not self.watch.inside and any(_learns(x) for x in _tensors(args, kwargs or {})):
            self.watch.note(f"computes {function} here where PyTorch tells nobody of its operators (torch._C.DisableTorchFunction), "
                              "or makes a tensor of another class")
        return function(*args, **(kwargs or {}))


def _name(function):
    name = getattr(function, "__name__", str(function))
    if name in ("__get__", "__set__"):
        name = getattr(getattr(function, "__self__", None), "__name__", name)
    return str(function).split(".")[1] if isinstance(function, torch._ops.OpOverload) else name


def _without_guards(function, args, kwargs, cut):
    """Whether any of the results numbered `cut` requires a gradient where nothing is in force around the call."""
    found = []

    def stand_in(value):
        if not isinstance(value, torch.Tensor):
            return value
        copy = value.detach().clone()
        return copy.requires_grad_().clone() if _learns(value) else copy  # no leaf: it may be written to

    def ask():
        try:
            given, named = tree_map(stand_in, (tuple(args), dict(kwargs)))
            results = _tensors(function(*given, **named))
            found.append(any(n >= len(results) or results[n].requires_grad for n in cut))
        except Exception:  # it may keep what it says to itself: it is no operator that has no derivative
            found.append(True)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]
