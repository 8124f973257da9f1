"""What runs where: a `Plan`, which the compiled function has as `plan`.

A kernel that computes a part of a function says nothing of the rest by itself, and who measures a layer wants to know whether a
rotation, a cast or a norm went into the kernel or costs a launch of its own. So each operator stands here once, with the user's line, and
each one beside a kernel says why it is there; and so does each tensor between the two, with its bytes.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Operator:
    """One operator of the user's function."""
    name: str  # softmax, of aten.softmax.int
    where: str  # "before", "kernel 1", "between" or "behind"
    place: str  # the user's line, "model.py:31"
    reason: str = ""  # why it is not in a kernel


@dataclasses.dataclass(frozen=True)
class Crossing:
    """A tensor that a kernel is given or gives."""
    name: str  # the kernel's argument
    kernel: str  # "kernel 1"
    direction: str  # "in" or "out"
    shape: tuple  # the example's
    dtype: str
    bytes: int  # the example's
    note: str = ""  # what is done to it at the border: a cast, a copy


@dataclasses.dataclass(frozen=True)
class Plan:
    """What runs where; `str(plan)` for a person."""
    name: str  # the function's, or the module's class
    whole: bool  # one kernel computes all of it
    kernels: int  # how many attentions run as kernels; equal ones share one
    operators: tuple = ()  # of Operator, in the order in which they run
    crossings: tuple = ()  # of Crossing
    notes: tuple = ()  # attentions that no kernel holds

    def __str__(self):
        if self.whole:
            return f"{self.name}: all of it in one kernel"
        lines = [f"{self.name}: {self.kernels} kernel{'s' * (self.kernels != 1)}, the rest by PyTorch's own operators"]
        where = None
        for operator in self.operators:
            if operator.where != where:
                where = operator.where
                lines += self._heading(where)
            lines.append(f"    {operator.name:<30} {operator.place:<28} {operator.reason}".rstrip())
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _heading(self, where):
        crossing = [c for c in self.crossings if c.kernel == where]
        lines = [f"  {where}"]
        for c in crossing:
            note = f", {c.note}" if c.note else ""
            lines.append(f"    {c.direction:<4}{c.name:<26} {list(c.shape)} {c.dtype}, {c.bytes} bytes{note}")
        return lines
