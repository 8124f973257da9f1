"""A function is held against its trace: what it gives must be what the graph gives, but for rounding.

The graph is what everybody after capture believes. It was traced once, with one set of sizes, so it may
be of another function than the user's: a branch that other sizes take, a random number that became a
constant, a counter that has moved on. Each golden case therefore asks three things of the function as it
is called:

- twice on the same input it gives the same, bit for bit, and changes nothing that it reads beside its arguments (asked of
  a few cases: a call is dear);
- it writes to none of its arguments (a kernel would not, and the caller would miss it);
- each row is within LARGEST_ERROR of the graph in fp64, or else is what the graph gives in the function's own
  types: then its arithmetic is coarse (a mean taken in bf16, -1e9 added to scores), but it is the same function.
"""

import torch
from torch.utils._pytree import tree_leaves

from . import elsewhere, questions
from .diagnostic import Problem

LARGEST_ERROR = 2.0**-5  # bf16 errs by 2^-8 a rounding
SAME_TYPES = 2.0**-6  # of the same operators on the same numbers; nearly always it is none


def called(spec, inputs, twice):
    """What the function returns; `twice` calls it again and refuses another answer."""
    versions = [value._version if isinstance(value, torch.Tensor) else 0 for value in inputs]
    before = elsewhere.state(spec) if twice else {}
    with questions.watched(spec):
        own = spec.function(*inputs)
    _refuse_other_outputs(spec, own)
    elsewhere.refuse_change(spec, before)
    for name, value, version, line in zip(spec.names, inputs, versions, spec.lines):
        if isinstance(value, torch.Tensor) and value._version != version:
            raise written(spec, name, line)
    if twice and not _same(own, spec.function(*inputs)):
        raise Problem("spec.not_a_function", f"{spec.name} called twice on the same inputs, of shapes "
                      f"{shapes_of(inputs)}, gave two different results", spec.line,
                      hint="a kernel computes one function of its arguments: take random numbers, counters and "
                      "other state out, or pass them as arguments")
    return own


def _refuse_other_outputs(spec, own):
    for value in own if isinstance(own, (tuple, list)) else [own]:
        if not isinstance(value, torch.Tensor):
            raise Problem("spec.output", f"{spec.name} returns {'' if value is own else 'among others '}a {type(value).__name__}, "
                          "and what a kernel gives is tensors", spec.line,
                          hint="return the output, or the output and the log-sums in a tuple")


def written(spec, name, line):
    return Problem("spec.writes", f"argument {name} is written to here; a kernel leaves its arguments as they are",
                   line or spec.line, hint=f"compute a new tensor instead, such as {name} * 2.0 for {name}.mul_(2.0)")


def shapes_of(inputs):
    return ", ".join(str(list(v.shape)) for v in inputs if isinstance(v, torch.Tensor) and v.dim())


def _same(a, b):
    a, b = tree_leaves(a), tree_leaves(b)
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and bool(((x == y) | ((x != x) & (y != y))).all())
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) else x is y or x == y for x, y in zip(a, b))


def refuse_disagreement(spec, inputs, truth, own, errors, in_own_types):
    """errors: of each row (goldens.row_errors). in_own_types: what the graph gives without fp64, when called.

    A row where both are NaN keeps no key, and says nothing."""
    apart = torch.isnan(truth).any(-1) != torch.isnan(own).any(-1)
    far = (torch.from_numpy(errors) > LARGEST_ERROR) | apart
    if not far.any():
        return
    graph = in_own_types()
    for at in far.nonzero().tolist():
        at = tuple(at)
        gives, due = own[at].double(), graph[at].double()
        if _close(gives, due):
            continue
        column = _worst(gives, due)
        raise Problem("spec.other_function", f"{spec.name} gives {float(gives[column]):.4g} where its trace gives "
                      f"{float(due[column]):.4g}, in element {column} of row {list(at)} for inputs of shapes "
                      f"{shapes_of(inputs)}: a relative error of the row of {float(errors[at]):.3g}, which no rounding explains",
                      spec.line, hint="the trace is of the example's sizes and values: a Python `if` on a size, or a value that "
                      "changes between calls, makes another function elsewhere; choose with torch.where")


def refuse_other_gradient(spec, n, inputs, truth, own, in_own_types):
    """truth: the trace's gradient by the n-th argument in fp64, own: the function's; None where nothing depends on it."""
    norm = lambda x: 0.0 if x is None else float(x.double().nan_to_num(0).norm())
    if norm(truth) == norm(own) == 0 or (truth is not None and own is not None and
                                         _far_apart(own.double(), truth) <= LARGEST_ERROR):
        return
    due = in_own_types(n)
    if own is not None and (due is None or _far_apart(own.double(), due.double()) <= SAME_TYPES):
        return
    if norm(own) == norm(due) == 0:
        return
    raise Problem("spec.other_function", f"the gradient of {spec.name} by {spec.names[n]} has the norm {norm(own):.4g} where its "
                  f"trace's has {norm(due):.4g}, for inputs of shapes {shapes_of(inputs)}", spec.lines[n] or spec.line,
                  hint="torch.no_grad(), detach() and gradients of one's own are no part of a trace: differentiate the whole function")


def _far_apart(a, b):
    a, b = a.nan_to_num(0), b.nan_to_num(0)
    return float((a - b).norm() / b.norm().clamp(min=1e-30))


def _worst(gives, due):
    apart = torch.isnan(gives) != torch.isnan(due)
    return int(apart.nonzero()[0]) if apart.any() else int((gives - due).abs().nan_to_num(0).argmax())


def _close(gives, due):
    same = (gives == due) | (gives.isnan() & due.isnan())  # infinities too
    rest = torch.where(same, 0.0, gives - due).norm()
    return bool(rest <= SAME_TYPES * torch.where(same, 0.0, due).norm()) if not same.all() else True
