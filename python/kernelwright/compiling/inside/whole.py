"""A function or a module as one graph, with everything that it reads as an input.

    whole = export(target, args, keywords)

`torch.export` traces it once, on fake tensors, with every dimension of the user's tensors free to vary. Parameters and buffers of a
module, and tensors that a function reaches, become inputs of the graph that are read at each call where they stand (`Input.reader`):
an optimizer's step is seen. What a module is *made of* is taken as it is now, as everywhere here.

What is hard is what a trace does not show. Two arguments that are one tensor in the example are one in the graph; a decision on a
size leaves no operator; a write changes what others see; code may ask where it runs. The first are looked at in each call (`sizes.py`),
writes are taken apart or refused here (`effects.py`), and questions are refused as the capture of a kernel refuses them.
"""

import contextlib
import dataclasses
import types

import torch
from torch.export import Dim
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._pytree import tree_flatten, tree_unflatten

from ...capture import branches, elsewhere, live_function, trace
from ...capture.code import is_others, names, read
from ...capture.dependencies import Dependencies
from ...capture.diagnostic import Problem, first_line_of
from ...capture.load import UserSpec
from ...errors import SpecError
from . import cores, effects
from .inline import inline
from .places import place_of
from .text import operator_name


@dataclasses.dataclass
class Input:
    """What a placeholder of the graph is. `kind`: "given" (by the call), "held" (by a module, or reached by the function) or
    "constant" (a literal of the user's code). `value`: the example's, or what it is."""
    kind: str
    name: str
    value: object
    index: int = 0  # of a given one: which leaf of the arguments
    owner: object = None  # of a held one: the module, and the attribute's name; or a places.Place
    key: str = ""
    path: tuple = ()  # of a part of a module: the module, and the names that lead from it to the owner


@dataclasses.dataclass
class Whole:
    """A traced target. `inputs`: {placeholder: Input}; `leaves`, `spec`: of (args, keywords); `output_spec`: of what it gives."""
    name: str
    target: object
    file: str
    line: int
    graph: torch.fx.Graph
    module: torch.nn.Module
    inputs: dict
    leaves: list
    spec: object
    output_spec: object
    decisions: list  # (condition that held, line)
    owners: list  # modules
    modes: list = dataclasses.field(default_factory=list)  # (module, training) that the graph may depend on
    same: dict = dataclasses.field(default_factory=dict)  # {symbol: another that it equals, though the trace did not ask}
    no_exceptions: set = dataclasses.field(default_factory=set)  # conditions that a size is not some number, and that are none
    ones_differ: bool = False  # agreement.py: whether sizes of 1 make the function another


class _Root(torch.nn.Module):
    """The target as torch.export takes it: given tensors alone, with the modules that it holds as its own."""

    def __init__(self, target, owners, places, leaves, spec):
        super().__init__()
        for n, owner in enumerate(owners):
            self.add_module(f"owner_{n}", owner)
        self.calls = (target, places, leaves, spec)
        self.output = types.SimpleNamespace(spec=None)  # an attribute of a module would be put back after the trace

    def forward(self, *tensors):
        target, places, leaves, spec = self.calls
        count = len(tensors) - len(places)
        remaining = iter(tensors[:count])
        args, keywords = tree_unflatten([next(remaining) if isinstance(x, torch.Tensor) else x for x in leaves], spec)
        with live_function._put(places, tensors[count:]):
            out, self.output.spec = tree_flatten(target(*args, **keywords))
        return out


def owners_of(target):
    """The modules whose parameters a target reads: itself, what it is a method of, or those that a function names."""
    if isinstance(target, torch.nn.Module):
        return [target]
    if isinstance(target, types.MethodType):
        return [target.__self__] if isinstance(target.__self__, torch.nn.Module) else []
    return [value for value, _ in read(target).values() if isinstance(value, torch.nn.Module)]


def code_of(target):
    """The function whose text and parameters are the target's."""
    if isinstance(target, torch.nn.Module):
        target = target.forward
    return getattr(target, "__func__", target)


def name_of(target):
    if isinstance(target, torch.nn.Module):
        return type(target).__name__
    return live_function.name_of(code_of(target))


def place_of_target(target):
    """(file, line) for messages: a class of PyTorch's stands nowhere in the user's files."""
    return live_function.place_of(code_of(target))


def export(target, args, keywords, constant=frozenset()):
    """Traces a target. Raises SpecError where it cannot be traced, asks where it runs, or writes into what others see.

    constant: which sizes of what a call gives are those of the example, {(its place among the tensors, dimension)}; others are open."""
    name, (file, line) = name_of(target), place_of_target(target)
    owners, places = owners_of(target), []
    if isinstance(target, types.FunctionType):
        held = {id(t) for owner in owners for t in [*owner.parameters(), *owner.buffers()]}
        places = [p for p in Dependencies(target).places if id(p.get()) not in held]
    leaves, spec = tree_flatten((tuple(args), dict(keywords)))
    if not any(isinstance(x, torch.Tensor) for x in leaves):
        raise SpecError(f"{name} is given no tensor by its example", file, line, 1, "spec.inputs", "give example_inputs as calls have them")
    # A layer of PyTorch's or transformers' is nobody's own text: it may ask what it likes.
    user = UserSpec(f"<{name}>" if is_others(file) and not file.startswith("<") else file, name, target, [], [], [], [], line)
    try:
        elsewhere.refuse_default_dtype(user)
        elsewhere.refuse_questions(user)
        before = elsewhere.state(user)
        with elsewhere.sizes_are_no_text(user):
            program, root, decisions, given, order = _exported(user, owners, places, leaves, spec, constant)
        elsewhere.refuse_change(user, before)
    except Problem as problem:
        raise SpecError(problem.message, file, problem.line, problem.column, problem.code, problem.hint or None) from None
    module = program.graph_module
    inputs = _inputs(program, owners, places, given, order, name, file, line)
    _clean(module, file, line)
    modes = _modes(user, owners, places, leaves, spec, constant, str(module.graph), file, line)
    return Whole(name, target, file, line, module.graph, module, inputs, leaves, spec, root.output.spec, decisions, owners, modes,
                 _keys_of_attention(module.graph))


def widths_of_heads(traced, found):
    """`constant` for another trace: sizes that decide how wide heads are, as the last of [B, S, H * D] does. A kernel has one width."""
    decide = set()
    for core in found:
        for size in cores.widths(core):
            if isinstance(size, torch.SymInt) and len(size.node.expr.free_symbols) == 1:  # in others, batches cancel each other
                decide |= size.node.expr.free_symbols
    return frozenset((i.index, d) for node, i in traced.inputs.items() if i.kind == "given" for d, size in enumerate(node.meta["val"].shape)
                     if isinstance(size, torch.SymInt) and size.node.expr.free_symbols & decide)


def _keys_of_attention(graph):
    """Of keys and values: how many there are is asked by no trace of scaled_dot_product_attention, nor by its kernels on a CPU."""
    same = {}
    for node in graph.nodes:
        if node.op == "call_function" and operator_name(node) == "scaled_dot_product_attention":
            k, v = (x.meta["val"].shape for x in node.args[1:3])
            for a, b in zip(k[:-1], v[:-1]):
                if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
                    a, b = (x.node.expr.xreplace(same) for x in (a, b))
                    own = [s for s in sorted(b.free_symbols - a.free_symbols, key=str) if (b - s).free_symbols.isdisjoint({s})]
                    if a != b and own:  # b is a sum with this one in it, as where both are behind a cache
                        same[own[0]] = a - (b - own[0])
    return same


def _clean(module, file, line):
    inline(module)
    effects.clean(module.graph, file, line)
    module.graph.lint()
    module.recompile()


def _modes(user, owners, places, leaves, spec, constant, traced, file, line):
    """The modules on whose mode the graph depends: none where it is the same in the other mode, but for what asks nothing."""
    asking = list({id(m): m for owner in owners for m in owner.modules() if _asks_for_mode(m)}.values())
    if not asking:
        return []
    before = [(m, m.training) for m in asking]
    try:
        for m, training in before:
            m.training = not training
        other = _exported(user, owners, places, leaves, spec, constant)[0].graph_module
        _clean(other, file, line)
        other = str(other.graph)
    except (SpecError, Problem):
        other = None
    finally:
        for m, training in before:
            m.training = training
    return [] if other == traced else before


def _asks_for_mode(module):
    """By what it is, or by the text of its methods."""
    if isinstance(module, (torch.nn.modules.dropout._DropoutNd, torch.nn.modules.batchnorm._NormBase)):
        return True
    functions = [f for kind in type(module).__mro__ if kind is not torch.nn.Module for f in vars(kind).values()
                 if isinstance(f, types.FunctionType)]
    return any("training" in names(f.__code__) for f in functions if f.__name__ not in ("__init__", "train", "eval"))


def _exported(user, owners, places, leaves, spec, constant):
    """(program, the root that was traced, decisions on sizes, the tensors given, which leaf each is)"""
    target = user.function
    order = [n for n, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
    given = _without_ones([leaves[n].detach() for n in order])
    for tensors in (given, [leaves[n].detach() for n in order]):
        stand_ins = list(leaves)
        for n, tensor in zip(order, tensors):
            stand_ins[n] = tensor
        root = _Root(target, owners, places, stand_ins, spec)
        decisions = branches.Decisions(user.file)
        reached = [p.get().detach() for p in places]
        dims = (tuple({d: Dim.STATIC if (n, d) in constant else Dim.AUTO for d in range(x.dim())} for n, x in enumerate(tensors))
                + tuple({} for _ in reached),)
        tensors = _same_where_same([leaves[n] for n in order], tensors)
        try:
            with _quietly(), decisions, trace._LogarithmsOfSizes():
                program = torch.export.export(root, (*tensors, *reached), dynamic_shapes=dims, strict=False)
            return program, root, decisions.taken, tensors, order
        except Problem:
            raise
        except Exception as error:  # noqa: BLE001  whatever the user's code raises
            failure = error
            if all(a.shape == leaves[n].shape for a, n in zip(given, order)):
                break
    place = place_of(failure.__traceback__, user.file)
    if isinstance(failure, GuardOnDataDependentSymNode):
        raise SpecError("what happens next depends on a tensor's value, which is known only when it runs", *(place or (user.file, user.line)), 1,
                        "spec.branch_on_value", "choose with torch.where, or pass the value as a Python number") from None
    raise SpecError(f"{user.name} raises {type(failure).__name__}: {first_line_of(failure)}", *(place or (user.file, user.line)), 1,
                    "spec.run") from None


def _same_where_same(examples, tensors):
    """What is one tensor in the example is one in the trace."""
    first = {}
    return [first.setdefault(id(example), tensor) for example, tensor in zip(examples, tensors)]


@contextlib.contextmanager
def _quietly():
    import logging
    import warnings
    level = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(level)


def _without_ones(tensors):
    """A size of 1 in an example would be a constant of the trace: where all tensors have a batch of 1, it is 2."""
    if any(x.dim() == 0 or x.shape[0] != 1 for x in tensors):
        return tensors
    return [x.expand(2, *x.shape[1:]).clone() for x in tensors]


def _inputs(program, owners, places, given, order, name, file, line):
    signature = program.graph_signature
    held = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    constants = signature.inputs_to_lifted_tensor_constants
    users = {key: n for n, key in enumerate(signature.user_inputs)}
    inputs = {}
    for node in program.graph.nodes:
        if node.op != "placeholder":
            continue
        if node.name in users and users[node.name] < len(order):
            n = users[node.name]
            inputs[node] = Input("given", f"argument_{n}", given[n], n)
        elif node.name in users:
            place = places[users[node.name] - len(order)]
            inputs[node] = Input("held", place.name, place.get(), owner=place)
        elif node.name in held or node.name in constants:
            inputs[node] = _held(node, held.get(node.name) or constants[node.name], program, owners, name, file, line)
    return inputs


def _held(node, path, program, owners, name, file, line):
    """A parameter, a buffer, another attribute that is a tensor; or a literal, which is nowhere but in the text."""
    root, _, rest = path.partition(".")
    if root.startswith("owner_") and rest:
        owner = owners[int(root.removeprefix("owner_"))]
        *above, key = rest.split(".")
        for part in above:
            owner = owner._modules.get(part) if isinstance(owner, torch.nn.Module) else None
        if isinstance(getattr(owner, key, None), torch.Tensor):  # a literal has the name of a module, too
            path = (owners[int(root.removeprefix("owner_"))], *above) if above else ()
            return Input("held", rest, getattr(owner, key), owner=owner, key=key, path=path)
    value = program.constants[path]
    if all("lift_fresh" in str(user.target) for user in node.users):
        return Input("constant", path, value)
    for owner in owners:
        for prefix, part in owner.named_modules():
            for key, attribute in vars(part).items():
                if isinstance(attribute, torch.Tensor) and attribute is value:
                    return Input("held", f"{prefix}.{key}".strip("."), value, owner=part, key=key)
    at = next((place_of(user) for user in node.users), None) or (file, line)
    raise SpecError(f"{name} reaches a tensor of shape {list(value.shape)} through an object, where its later values would not be seen",
                    *at, 1, "spec.hidden", "pass it as an argument, or make it a buffer of the module")
