"""Of which numbers of heads a function is the same: it is called with each head twice.

Head counts are constants of a trace: `q.shape[1] * 0.01` is 0.08 there, and nothing in the graph says where it came from. A kernel
whose heads are used alike takes any number of them, so it would give with 16 heads what the function gives with 8. With each head
twice, such a function gives other numbers, raises, or gives another shape; one that uses heads alike gives each result twice.
So it is asked again with twice as many query heads to a key head. What it computes of a head's own number (`slopes = 2 ** -h`)
stands in the form, and is asked there. What a number makes of positions beyond the rows of the case (a window of 32 a head) is not seen.
"""

import torch

from . import agreement, goldens
from .graph import Sizes
from .pages import Pages
from .trace import is_operand

ROWS, SCORES = 701, 8e6  # of the case: as many as that, and no more scores in all
ALIKE = 2.0**-7  # of a row, relative: PyTorch may add in another order where there are more heads


def alike(spec, traced):
    """"any" numbers of heads, "grouped": any with as many query heads to a key head, or its "own"."""
    heads = _heads(traced)
    if traced.product or traced.rows or not heads:
        return "any"
    rows = int(min(ROWS, (SCORES / max(heads)) ** 0.5)) | 1  # a head count is no length then
    _, inputs, _, own = next(goldens.run_cases(spec, traced, [(1, rows, rows)], first=3, run=goldens.run_own))
    axis = goldens.head_axis(traced)
    axis = own.dim() - 1 if axis is None else axis
    columns = {v.shape[-1] for v, given in zip(traced.values, traced.is_argument) if given and is_operand(v)}
    if True not in _answers(spec, traced, inputs, heads, columns, torch.cat, torch.cat([own, own], axis)):
        return "own"
    if len(heads) == 1:
        return "any"
    # Another number of query heads to a key head is nothing to a function that raises then, unless it fixes their ratio.
    again = _answers(spec, traced, inputs, {max(heads)}, columns, _each_twice, _each_twice([own, own], axis))
    return "any" if True in again else "grouped"


def _answers(spec, traced, inputs, heads, columns, double, want):
    """Whether this is what the function gives of each head twice; None where it raises. Asked once more with vectors of D numbers as
    they are, where D is a number of heads."""
    tables = Pages(traced, Sizes(traced.program.graph)).tables  # which have no heads
    for of_others in (heads, heads - columns):
        twice = [_twice(x, example, heads if is_operand(example) else of_others, double) if given and n not in tables else x
                 for n, (x, example, given) in enumerate(zip(inputs, traced.values, traced.is_argument))]
        yield _gives(spec, twice, want)


def _heads(traced):
    """The numbers of heads that operands have: sizes between the first and the last that a trace fixes, but a page's rows; but 1, for
    all heads."""
    rows = set(Pages(traced, Sizes(traced.program.graph)).rows.values())
    return {size for shape in goldens.shapes_of_operands(traced) for size in shape[1:-1] if isinstance(size, int)} - {1} - rows


def _each_twice(pair, d):
    return pair[0].repeat_interleave(2, d)


def _twice(x, example, heads, double):
    """Each dimension of so many as an example has heads, but an operand's columns, twice."""
    for d in range(x.dim() - is_operand(example)):
        if example.shape[d] in heads and x.shape[d] == example.shape[d]:
            x = double([x, x], d)
    return x


def _gives(spec, inputs, want):
    try:
        got = agreement.called(spec, goldens.as_called(spec, inputs), False)
    except Exception:  # noqa: BLE001  whatever it says of more heads
        return None
    got = got[0] if isinstance(got, (tuple, list)) else got
    if got.shape != want.shape:
        return False
    got, want = got.double().nan_to_num(), want.double().nan_to_num()
    return bool(((got - want).norm(dim=-1) <= ALIKE * want.norm(dim=-1)).all())
