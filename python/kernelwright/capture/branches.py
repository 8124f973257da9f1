"""Decisions that the user's Python takes on a size while it is traced: `if q.shape[2] > 3000`, `min(N, 512)`.

A trace follows one side of each. What is exported is then right for the sizes of that side alone, and
PyTorch says so in guards that nobody downstream reads. So each decision is seen where it is taken, as a
size is asked for its truth value by code that is not PyTorch's own; and one that other sizes would decide
otherwise refuses the function, with the user's line.

Not refused: what holds for all sizes; equalities that made two sizes one, or fixed one (the form has them
as one size, or as a constant, and a launch with another is refused); and what only a size of 1 decides
otherwise, for golden cases have sizes of 1, and are held against the function itself.
"""

import itertools
import os
import sys

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .diagnostic import Problem

OURS = os.path.dirname(os.path.abspath(__file__))
PYTORCH = os.path.dirname(os.path.abspath(torch.__file__))
SAMPLES = (2, 3, 5, 64, 100, 127, 128, 500, 1009, 4096, 30030, 100003)
LONG = (2**12, 2**16, 2**17, 2**20)
MOST_SAMPLES = 4096


class Decisions:
    """While tracing: notes (condition that held, line) of each decision on sizes, and the line of each guard."""

    def __init__(self, file):
        self.file, self.taken, self.lines = file, [], {}

    def __enter__(self):
        self.of_bool, self.of_int = torch.SymBool.__bool__, torch.SymInt.__bool__
        decisions = self

        def bool_of(value):
            asked = decisions.of_bool(value) if not decisions.is_users(sys._getframe(1)) else None
            if asked is not None:
                return asked
            condition = value.node.expr
            taken = decisions.of_bool(value)
            decisions.note(condition if taken else sympy.Not(condition), sys._getframe(1))
            return taken

        def bool_of_int(value):
            if not decisions.is_users(sys._getframe(1)):
                return decisions.of_int(value)
            size = value.node.expr
            taken = decisions.of_int(value)
            decisions.note(sympy.Ne(size, 0) if taken else sympy.Eq(size, 0), sys._getframe(1))
            return taken

        def evaluated(env, *args, **kwargs):
            before = len(env.guards)
            result = decisions.evaluate(env, *args, **kwargs)
            for guard in env.guards[before:]:
                decisions.lines.setdefault(guard.expr, decisions.users_line(sys._getframe(1)))
            return result

        torch.SymBool.__bool__, torch.SymInt.__bool__ = bool_of, bool_of_int
        self.evaluate, ShapeEnv.evaluate_expr = ShapeEnv.evaluate_expr, evaluated
        return self

    def __exit__(self, *_):
        torch.SymBool.__bool__, torch.SymInt.__bool__ = self.of_bool, self.of_int
        ShapeEnv.evaluate_expr = self.evaluate

    @staticmethod
    def is_users(frame):
        name = os.path.abspath(frame.f_code.co_filename)
        return not name.startswith((PYTORCH + os.sep, OURS + os.sep))

    def users_line(self, frame):
        while frame is not None and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        return frame.f_lineno if frame else None

    def note(self, condition, frame):
        self.taken.append((condition, self.users_line(frame)))


def refuse(spec, decisions, program, is_argument):
    """Raises Problem for the first decision that other sizes would take otherwise."""
    names, env = _names(spec, program, is_argument)
    for condition, line in decisions:
        condition = _replaced(condition, env) if env else condition
        sizes = _against(condition)
        if sizes is None:
            continue
        said, example = _in_words(condition, sizes, names)
        raise Problem("spec.branch_on_size", "what happens next depends on a size: the example's sizes take the side "
                      f"where {said}, and {example} would take the other", line or spec.line,
                      hint="choose with torch.where over positions, or torch.sym_min and torch.sym_max over sizes; or "
                      "write a function for each side")


def refuse_guards(spec, traced):
    """The same of what PyTorch itself decides: `k[:, :, :40000]` of fewer keys is k, `x.split(65536, 2)` one piece.

    Asked for long sequences: what fewer elements than the example's would decide otherwise, golden cases have; what is
    not divisible, PyTorch refuses. And for a size that a condition names, as in `1 + (N == 1477)`, whose truth is a number."""
    names, env = _names(spec, traced.program, traced.is_argument)
    for guard in env.guards if env else ():
        condition = _replaced(guard.expr, env)
        # `int(n * 0.001)`, `n // 128` of Python's numbers: one value for the example's size.
        made = any(isinstance(part, sympy.Float) or "Div" in type(part).__name__ or "Int" in type(part).__name__ and
                   not isinstance(part, sympy.Integer) for part in sympy.preorder_traversal(condition))
        if isinstance(condition, sympy.Eq) and not made:
            continue  # of sizes that must fit each other, PyTorch refuses all others
        sizes = _against(condition, LONG) or isinstance(condition, sympy.Ne) and _against(condition)
        if not sizes:
            continue
        said, example = _in_words(condition, sizes, names)
        raise Problem("spec.branch_on_size", f"an operator does one thing where {said}, as in the example, and another "
                      f"for {example}, and the trace has the first alone", traced.guard_lines.get(guard.expr) or spec.line,
                      hint="a slice or a split at a fixed place, or the truth of a size as a number: choose with torch.where over "
                      "positions instead")


def _names(spec, program, is_argument):
    """({symbol: `q.shape[2]`}, the environment of its symbols)."""
    given = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    arguments = [name for name, argument in zip(spec.names, is_argument) if argument]
    names, env = {}, None
    for name, key in zip(arguments, program.graph_signature.user_inputs):
        for d, size in enumerate(given[key].meta["val"].shape):
            if isinstance(size, torch.SymInt):
                env = size.node.shape_env
                if size.node.expr.is_Symbol:
                    names.setdefault(size.node.expr, f"{name}.shape[{d}]")
    return names, env


def _replaced(condition, env):
    for _ in range(8):
        after = condition.xreplace(env.replacements)
        if after == condition:
            break
        condition = after
    return condition


def _against(condition, among=None):
    """Sizes of two and more, or among these, for which the condition does not hold, or None."""
    symbols = sorted(getattr(condition, "free_symbols", ()), key=str)
    if not symbols:
        return None
    near = {int(c) + off for c in condition.atoms(sympy.Integer) for off in (-1, 0, 1)}
    near |= {2 * n for n in near}
    values = among or sorted(n for n in near | set(SAMPLES) if 2 <= n < 2**31)
    for sizes in itertools.islice(itertools.product(values, repeat=len(symbols)), MOST_SAMPLES):
        at = dict(zip(symbols, map(sympy.Integer, sizes)))
        if condition.subs(at) == False:  # noqa: E712  (sympy's, not Python's)
            return {s: int(n) for s, n in at.items()}
    return None


def _in_words(condition, sizes, names):
    """(the condition, the sizes against it) with `q.shape[2]` for the symbols that have such a name."""
    named = condition.xreplace({s: sympy.Symbol(names[s]) for s in condition.free_symbols if s in names})
    return _text(named), ", ".join(f"{names.get(s, s)} = {n}" for s, n in sizes.items())


def _text(condition):
    if isinstance(condition, sympy.Not):
        return f"not ({condition.args[0]})"
    signs = {sympy.Ne: "!=", sympy.Eq: "=="}
    for kind, sign in signs.items():
        if isinstance(condition, kind):
            return f"{condition.args[0]} {sign} {condition.args[1]}"
    return str(condition)
