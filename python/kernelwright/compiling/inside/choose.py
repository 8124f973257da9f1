"""Which region of a core a kernel holds: the largest that the capture, the rules and the check take.

There is no second opinion here on what a kernel can be made for. A region is tried as a function, from large to small; what refuses it
names a line, and the line an operator. That operator is left outside from then on, with what comes before it, and the refusal is the
reason that the plan gives for it. A refusal that names none, or one of the core's own, takes the next smaller kind of region. What
refuses the core alone is the answer to the user, at the user's line.

Regions of one text and one kind of arguments are compiled once.
"""

import dataclasses

from ...errors import Inconclusive, Refuted, SpecError
from . import cores, regions
from .effects import dropout_of
from .places import short
from .region_function import make, meaning
from .text import is_size, operator_name

MOST_TRIES = 12


@dataclasses.dataclass(eq=False)
class Chosen:
    """A region with its kernel. `reasons`: {node: why it is not inside}; `call`: what computes the region."""
    region: regions.Region
    function: object  # RegionFunction
    compiled: object
    call: object
    reasons: dict


class Chooser:
    """`compile_function(function, values)`: as the compiler compiles a function that is an attention; raises as it does."""

    def __init__(self, whole, examples, place, compile_function, dtype, device, learns):
        self.whole, self.examples, self.place = whole, examples, place
        self.compile_function, self.dtype, self.device, self.learns = compile_function, dtype, device, learns
        self.sizes = {node: _elements(value) for node, value in examples.items()}
        self.made, self.taken = {}, set()

    def choose(self, core):
        """The Chosen of a core. Raises SpecError with the reason for the core, at the user's line."""
        self._refuse_dropout(core)
        self._refuse_weights(core)
        banned = {n: "" for n in self.taken} | (self._of_learned_rows(core) if self.learns else {})
        level, tried, function, error = 0, set(), None, None
        while level < len(regions.LEVELS) and len(tried) < MOST_TRIES:
            region = regions.grow(core, self.whole.graph, self.sizes, regions.LEVELS[level], frozenset(banned))
            if region.nodes in tried:
                level += 1
                continue
            tried.add(region.nodes)
            try:
                function = None
                function = self._function(region)
                compiled = self._compiled(function)
            except (SpecError, Inconclusive, Refuted) as refusal:
                error = refusal
                node = self._node_of(refusal, function)
                if node is not None and node in region.nodes and node not in core.nodes:
                    banned[node] = _reason(refusal)
                else:
                    level += 1
                continue
            self.taken |= set(region.nodes)
            reasons = {node: why for node, why in banned.items() if why}
            if error is not None:
                reasons.setdefault(None, _reason(error))
            return Chosen(region, function, compiled, call_of(compiled, function), reasons)
        raise self._of_core(error, core, function)

    def _of_learned_rows(self, core):
        """What changes rows by a parameter that is learned: the weight of a norm has no gradient from a kernel."""
        learned = {node for node, i in self.whole.inputs.items() if i.kind == "held" and getattr(i.value, "requires_grad", False)}
        return {node: "it changes rows by a parameter that requires a gradient, and no kernel gives that; requires_grad_(False) takes it in"
                for node in regions.ancestors(core) if learned & set(node.all_input_nodes) and operator_name(node) not in cores.PRODUCTS}

    def _function(self, region):
        behind = regions.descendants_of_all(region.outputs)
        for node in region.inputs:
            if node in behind:
                raise SpecError(f"{operator_name(node)} is made of what the attention gives, and comes into it", code="inside.cycle")
        return make(region, _snake(self.whole.name), self.examples, self.device, self.place, self.dtype)

    def _compiled(self, function):
        key = meaning(function.text), tuple((v.dtype, tuple(v.shape), v.stride()) for v in function.values)
        if key not in self.made:
            self.made[key] = self.compile_function(function.function, function.values)
        return self.made[key]

    def _node_of(self, refusal, function):
        """The operator that a refusal is about, by the line of the generated text."""
        if getattr(refusal, "node", None) is not None:
            return refusal.node
        line = getattr(refusal, "line", None)
        if function is None or line is None or getattr(refusal, "file", None) != function.function.__code__.co_filename:
            return None
        return function.lines.get(line)

    def _refuse_dropout(self, core):
        for node in core.nodes:
            if dropout_of(node):
                raise SpecError(f"{operator_name(node)} drops weights with probability {dropout_of(node)}, since the module is in training mode; "
                                "a kernel's weights are not random", *(self.place(node) or (None, None)), 1, "spec.dropout",
                                "set the attention's dropout to 0 to train, or call .eval()")

    def _refuse_weights(self, core):
        """Of weights that others read: a kernel keeps none. The logarithms of their sums it can give."""
        for node in self.whole.graph.nodes:
            readers = [u for u in node.users if u not in core.nodes and not is_size(u) and operator_name(u) not in regions.LOG_SUMS]
            if node in core.nodes and node is not core.last and readers:
                by = "the output" if readers[0].op == "output" else f"{operator_name(readers[0])}{_at(self.place(readers[0]))}"
                raise SpecError(f"what {operator_name(node)} gives is read by {by}, too, and a kernel keeps neither scores nor weights",
                                *(self.place(node) or (None, None)), 1, "inside.weights",
                                "give only what is made of the weighted values back: need_weights=False, output_attentions=False")

    def _of_core(self, error, core, function):
        if not isinstance(error, SpecError):
            return error
        node = self._node_of(error, function) or core.first[0]
        at = self.place(node) or (self.whole.file, self.whole.line)
        hint = error.hint
        if error.code == "spec.dtype" and hint and "--dtype" in hint:
            hint = "say dtype=torch.bfloat16 (or float16): operands are cast where they come into the kernel, and the output back"
        return SpecError(error.message, *at, 1, error.code, hint)


def call_of(compiled, function):
    """What the composed function calls for a region: its kernel. Tests, which have no GPU, put the region's own function here."""
    return compiled


def _at(place):
    return f" in {short(place)}" if place else ""


def _reason(refusal):
    """The line of a refusal that says why: the first of a capture's, the last of a counterexample's."""
    if isinstance(refusal, SpecError):
        return refusal.message.splitlines()[0]
    lines = [line.strip() for line in str(refusal).splitlines() if line.strip()] or [""]
    return f"the check refutes it: {lines[-1]}" if isinstance(refusal, Refuted) else f"the check is inconclusive: {lines[0]}"


def _elements(value):
    return value.numel() if hasattr(value, "numel") else 0


def _snake(name):
    out = "".join(f"_{c.lower()}" if c.isupper() and n and not name[n - 1].isupper() else c.lower() for n, c in enumerate(name))
    out = out.strip("_") or "function"
    return out if "attention" in out else f"{out}_attention"
