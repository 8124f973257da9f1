"""compile_inside: from a function or a module that contains attention to one that runs kernels in it.

The steps are those of the files beside this one: trace the whole, find cores, choose a region for each, write what stands around them.
What the whole gives for the example is computed once, operator by operator, because a region is captured with example inputs like any
function, and these are values in the middle of the user's.

Only the regions become kernels, by the same way as everything else here (compiler.py); what is around them is PyTorch's and is not checked
by anybody but agreement.py, which holds the composed function against the user's.
"""

import torch

from ...capture.diagnostic import first_line_of
from ...errors import Error, InternalError, SpecError
from . import agreement, cores, regions, whole
from .choose import Chooser
from .compose import compose
from .places import place_of, short
from .plan import Crossing, Operator, Plan
from .text import is_size, operator_name


def compile_inside(target, args, keywords, compile_function, dtype, strict, learns=True):
    """The composed function, with `plan`, `kernels` (as compile_function gives them) and `text`.

    compile_function(function, values): compiles a region. learns: whether kernels' own gradients are asked for. Raises SpecError where no part of the target can be a kernel, by the reason
    for its attention, and with `strict` where anything is outside."""
    try:
        return _compile_inside(target, args, keywords, compile_function, dtype, strict, learns)
    except Error:
        raise
    except Exception as error:
        raise InternalError(f"the attention inside {whole.name_of(target)}: {type(error).__name__}: {first_line_of(error)}") from error


def _compile_inside(target, args, keywords, compile_function, dtype, strict, learns):
    traced = whole.export(target, args, keywords)
    found = cores.find(traced.graph, traced.inputs)
    if constant := whole.widths_of_heads(traced, found):
        traced = whole.export(target, args, keywords, constant)
        found = cores.find(traced.graph, traced.inputs)

    def place(node):
        return place_of(node, traced.file)

    if not found:
        raise _no_core(traced, place)
    device = next((i.value.device for i in traced.inputs.values() if i.kind == "given"), torch.device("cpu"))
    examples = _values(traced)
    chooser = Chooser(traced, examples, place, compile_function, dtype, device, learns)
    chosen, refused = [], []
    for core in found:
        try:
            chosen.append(chooser.choose(core))
        except SpecError as error:
            refused.append((core, error))
    if not chosen:
        raise refused[0][1]
    composed, steps, text = compose(traced, chosen, args, keywords, device)
    plan = _plan(traced, chosen, refused, steps, examples, place)
    if strict and not plan.whole:
        first = next(o for o in plan.operators if not o.where.startswith("kernel"))
        at = next(place(s) for s in steps if isinstance(s, torch.fx.Node)) or (traced.file, traced.line)
        raise SpecError(f"{first.name} is not part of the attention kernel: {first.reason}", *at, 1, "inside.strict",
                        "leave strict away, and PyTorch runs what is outside")
    traced.no_exceptions = agreement.no_exceptions(traced, chosen, args, keywords, device)
    traced.ones_differ = not agreement.hold(traced, chosen, args, keywords, device)
    if traced.ones_differ or traced.no_exceptions:
        composed, steps, text = compose(traced, chosen, args, keywords, device)
    composed.plan, composed.kernels, composed.text = plan, tuple({id(c.compiled): c.compiled for c in chosen}.values()), text
    return composed


def _values(traced):
    """{node: its value in the example}."""
    held = {node.name: i.value for node, i in traced.inputs.items()}
    interpreter = _Keeping(traced.module)
    try:
        with torch.no_grad():
            interpreter.run(*[held[n.name] for n in traced.graph.nodes if n.op == "placeholder"])
    except Exception as error:  # noqa: BLE001  of what data decide: the trace has symbols for it
        raise SpecError(f"{traced.name} raises {type(error).__name__}: {first_line_of(error)}", traced.file, traced.line, 1, "spec.run") from None
    return interpreter.values


class _Keeping(torch.fx.Interpreter):
    def __init__(self, module):
        super().__init__(module, garbage_collect_values=False)
        self.values = {}

    def run_node(self, n):
        value = self.values[n] = super().run_node(n)
        return value


def _no_core(traced, place):
    """Why there is none, as far as it can be said: the products that there are, or that there is none."""
    products = [n for n in traced.graph.nodes if n.op == "call_function" and operator_name(n) in cores.PRODUCTS]
    at = next((place(n) for n in products), None) or (traced.file, traced.line)
    what = "no product of two matrices that a call gives" if not products else (
        f"{len(products)} products of matrices, and in none of them weights that another product gave come to values")
    return SpecError(f"{traced.name} contains no attention: it has {what}", *at, 1, "inside.no_attention",
                     "attention is scaled_dot_product_attention, or weights of q @ k.mT that are multiplied with v")


# ---- the plan


def _plan(traced, chosen, refused, steps, examples, place):
    operators, crossings = [], []
    outside = [s for s in steps if isinstance(s, torch.fx.Node) and not is_size(s)]
    last = max((n for n, s in enumerate(steps) if not isinstance(s, torch.fx.Node)), default=0)
    first = next(n for n, s in enumerate(steps) if not isinstance(s, torch.fx.Node))
    why = _Reasons(chosen, refused)
    for n, step in enumerate(steps):
        if isinstance(step, torch.fx.Node):
            if not is_size(step):
                where = "before" if n < first else "behind" if n > last else "between"
                operators.append(Operator(operator_name(step), where, short(place(step)), why.of(step)))
            continue
        where = f"kernel {chosen.index(step) + 1}"
        operators += [Operator(operator_name(node), where, short(place(node))) for node in step.region.nodes if not is_size(node)]
        crossings += _crossings(step, where, examples)
    notes = [f"the attention in {short(place(core.first[0]))} is PyTorch's: {error.message}" for core, error in refused]
    return Plan(traced.name, not outside and len(chosen) == 1, len(chosen), tuple(operators), tuple(crossings), tuple(notes))


def _crossings(step, where, examples):
    found, function = [], step.function
    for node, name in zip(function.inputs, function.names):
        notes = [f"cast to {_type(function.values[0])}"] * (node in function.cast) + ["made contiguous"] * (node in function.copied)
        found.append(_crossing(name, where, "in", examples[node], ", ".join(notes)))
    for node in step.region.outputs:
        note = f"cast back to {_type(examples[node])}" if function.cast else ""
        found.append(_crossing(f"output ({operator_name(node)})", where, "out", examples[node], note))
    return found


def _crossing(name, where, direction, value, note):
    return Crossing(name, where, direction, tuple(value.shape), _type(value), value.numel() * value.element_size(), note)


def _type(value):
    return str(value.dtype).removeprefix("torch.")


class _Reasons:
    """Why an operator is beside a kernel."""

    def __init__(self, chosen, refused):
        self.said = {node: why for c in chosen for node, why in c.reasons.items() if node is not None}
        self.general = {c.region: c.reasons.get(None) for c in chosen}
        self.of_refused = {node: error.message for core, error in refused for node in core.nodes}
        self.chosen = chosen

    def of(self, node):
        name = operator_name(node)
        if node in self.said:
            return self.said[node]
        if node in self.of_refused:
            return self.of_refused[node]
        if name in cores.PRODUCTS:
            return "a product with weights"
        if cores.is_view(node):
            return "it says where rows lie: the kernel reads any strides"
        if node in regions.NEVER or name in regions.NEVER:
            return "no operator on an attention's rows or scores"
        ahead = next((n for n in node.users if n in self.said or operator_name(n) in cores.PRODUCTS), None)
        if ahead is not None:
            return f"it comes before {operator_name(ahead)}, which is outside"
        if not any(node in regions.descendants_of_all(c.region.outputs) for c in self.chosen):
            wider = next((why for why in self.general.values() if why), None)
            return f"a larger part was refused: {wider}" if wider else "it comes before what is outside"
        return "it comes behind what is outside"
