"""The function that comes back: the user's own operators around the kernels, written out.

It has the user's parameters and calls PyTorch's operators in the user's order, with the compiled operators in the place of their
regions, so that autograd and torch.compile see plain calls. Parameters and buffers are read where they stand at each call. What a
call must be like is asked first (sizes.py), and what was not a tensor in the example (a flag, a number, None) must be equal to it:
the trace followed its side of every `if`.
"""

import builtins
import hashlib
import heapq
import inspect
import linecache

import torch
from torch.utils._pytree import tree_flatten_with_path, tree_unflatten

from ...errors import ArgumentError, SpecError
from .effects import is_random
from .regions import LOG_SUMS
from .sizes import Sizes
from .text import Writer, fresh, operator_name


def compose(whole, chosen, args, keywords, device):
    """(the function, the steps in order: nodes and Chosen)."""
    return _Composer(whole, chosen, args, keywords, device).function()


class _Composer:
    def __init__(self, whole, chosen, args, keywords, device):
        self.whole, self.chosen = whole, chosen
        self.space = {"torch": torch, "Tensor_": torch.Tensor, "__builtins__": builtins}
        self.head, self.lines, self.bound = [], [], {}
        self.names, self.asked = {}, set()
        signature = inspect.signature(whole.target.forward if isinstance(whole.target, torch.nn.Module) else whole.target)
        self.parameters = list(signature.parameters.values())
        self.reserved = {p.name: p.name for p in self.parameters}
        self.given = signature.bind(*args, **keywords).arguments
        self.args, self.keywords, self.device = args, keywords, device

    def function(self):
        head = self._signature()
        self._leaves()
        self._modes()
        steps = self._steps()
        self._held(steps)
        writer = Writer(self.names, self.device, self._device_text(), bind=self._bind)
        for key, name in [*self.reserved.items(), *((k, k) for k in self.space)]:
            self.names.setdefault(("reserved", key), name)
        for step in steps:
            self.lines.append(self._call(step, writer) if not isinstance(step, torch.fx.Node) else self._statement(step, writer))
        self.lines.append(f"return {self._returned(writer)}")
        text = "\n".join([head, *(f"    {line}" for line in [*self.head, *self.lines]), ""])
        return self._made(text), steps, text

    # ---- parameters

    def _signature(self):
        shown, self.fixed = [], []
        for n, p in enumerate(self.parameters):
            if p.kind == p.VAR_POSITIONAL:
                shown.append(f"*{p.name}")
            elif p.kind == p.VAR_KEYWORD:
                shown.append(f"**{p.name}")
            else:
                if p.kind == p.KEYWORD_ONLY and not any(s.startswith("*") for s in shown):
                    shown.append("*")
                self.space[f"default_{n}_"] = p.default
                shown.append(p.name + ("" if p.default is p.empty else f"=default_{n}_"))
            if p.name not in self.given:
                default = {p.VAR_POSITIONAL: (), p.VAR_KEYWORD: {}}.get(p.kind, p.default)
                self.fixed.append((p.name, default))
        return f"def composed({', '.join(shown)}):"

    def _leaves(self):
        """Names for the tensors that a call gives, and what else its arguments must be."""
        texts = []  # of each leaf, in the order of the whole's
        for value, text in self._in_order_of_leaves():
            for path, leaf in tree_flatten_with_path(value, is_leaf=lambda x: x is None)[0]:
                texts.append((text + "".join(map(_accessor, path)), leaf))
            self._structure(value, text)
        nodes = {i.index: node for node, i in self.whole.inputs.items() if i.kind == "given"}
        first, n = {}, -1
        for text, leaf in texts:
            if not isinstance(leaf, torch.Tensor):
                self.fixed.append((text, leaf))
                continue
            n += 1
            node = nodes[n]
            name = text
            if not text.isidentifier():
                name = fresh(text, [*self.reserved.values(), *self.names.values()])
                self.head.append(f"{name} = {text}")
            if id(leaf) in first:
                self._same(first[id(leaf)], name)
            first.setdefault(id(leaf), name)
            self.names[node] = name
        self.space["constant_"] = _constant_of(self.whole.name)
        for n, (text, value) in enumerate(self.fixed):
            self.space[f"fixed_{n}_"] = value
            self.head.insert(0, f"if {text} is not fixed_{n}_ and (isinstance({text}, Tensor_) or {text} != fixed_{n}_): "
                                f"constant_({text!r}, {text}, fixed_{n}_)")
        given = {node: name for node, name in self.names.items() if node in self.whole.inputs}
        sizes = Sizes(self.whole, given)
        if sizes.checks:
            self.space["refuse_"] = sizes.refusal(self.whole.name, self.space)
            values = ", ".join(f"{name}={name}" for name in dict.fromkeys(given.values()))
            self.head.append(f"if not ({sizes.condition()}): refuse_({values})")
        self.sizes = sizes

    def _modes(self):
        """The modules whose mode the trace depends on must be in that of the example."""
        if not self.whole.modes:
            return
        asked = []
        for module, training in self.whole.modes:
            self.space[self._owner(module)] = module
            asked.append(f"{'not ' * training}{self._owner(module)}.training")
        def refuse():
            module, training = next((m, t) for m, t in self.whole.modes if m.training != t)
            words = {True: "training", False: "evaluation"}
            raise ArgumentError(self.whole.name, type(module).__name__, f"is in {words[not training]} mode",
                                f"be in {words[training]} mode, as when it was compiled", "compile it again in the other mode")
        self.space["mode_"] = refuse
        self.head.append(f"if {' or '.join(asked)}: mode_()")

    def _in_order_of_leaves(self):
        """(value, text) of each argument, in the order that the whole's leaves have: positional ones, then keywords by name."""
        positional = [p for p in self.parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        rest = next((p.name for p in self.parameters if p.kind == p.VAR_POSITIONAL), None)
        for n, value in enumerate(self.args):
            yield value, positional[n].name if n < len(positional) else f"{rest}[{n - len(positional)}]"
        known = {p.name for p in self.parameters}
        others = next((p.name for p in self.parameters if p.kind == p.VAR_KEYWORD), None)
        for key, value in self.keywords.items():
            yield value, key if key in known else f"{others}[{key!r}]"
        extra = [key for key in self.keywords if key not in known]
        if rest and rest in self.given:
            self._check_structure(rest, list(range(len(self.given[rest]))))
        if others and extra:
            self._check_structure(others, sorted(extra))

    def _structure(self, value, text):
        """Containers must have the example's parts."""
        if isinstance(value, dict):
            self._check_structure(text, sorted(value, key=str))
            parts = [(part, f"{text}[{key!r}]") for key, part in value.items()]
        elif isinstance(value, (tuple, list)):
            if not hasattr(value, "_fields"):
                self._check_structure(text, list(range(len(value))))
            parts = [(part, f"{text}[{n}]") for n, part in enumerate(value)]
        else:
            return
        for part, at in parts:
            self._structure(part, at)

    def _check_structure(self, text, keys):
        self.space["structure_"] = _structure_of(self.whole.name)
        if keys and isinstance(keys[0], int) or not keys:
            self.head.append(f"if len({text}) != {len(keys)}: structure_({text!r}, {text}, {keys!r})")
        else:
            self.head.append(f"if len({text}) != {len(keys)} or {' or '.join(f'{key!r} not in {text}' for key in keys)}: "
                             f"structure_({text!r}, {text}, {keys!r})")

    def _same(self, first, name):
        def refuse(first=first, name=name):
            raise ArgumentError(self.whole.name, name, f"is another tensor than {first}", f"be the same, as in the example: the function may "
                                "take another way where they are", "compile it with different tensors")
        n = len(self.space)
        self.space[f"same_{n}_"] = refuse
        self.head.append(f"if {name} is not {first}: same_{n}_()")

    # ---- what is read and called

    def _held(self, steps):
        used = {v for step in steps for v in (step.all_input_nodes if isinstance(step, torch.fx.Node) else step.function.inputs)}
        used |= set(self.whole.graph.output_node().all_input_nodes)
        for n, (node, given) in enumerate(self.whole.inputs.items()):
            if given.kind == "given" or node not in used:
                continue
            name = fresh(given.name.replace(".", "_"), [*self.reserved.values(), *self.names.values(), *self.space])
            self.names[node] = name
            if given.kind == "constant":
                self.space[f"constant_{n}_"] = given.value
                self.lines.append(f"{name} = constant_{n}_.to({self._device_text()})")
            elif given.key:
                self.space[self._owner(given.owner)] = given.owner
                self._in_place(given)
                access = f".{given.key}" if given.key.isidentifier() else f"._parameters[{given.key!r}]"
                self.lines.append(f"{name} = {self._owner(given.owner)}{access}")
            else:
                self.space[f"reached_{n}_"] = given.owner.reader
                self.lines.append(f"{name} = reached_{n}_()")

    def _in_place(self, given):
        """The modules whose tensors are read must be those that were traced: an adapter in the place of a projection is another function."""
        if not given.path or id(given.owner) in self.asked:
            return
        self.asked.add(id(given.owner))
        root, *names = given.path
        self.space[self._owner(root)] = root
        above = self._owner(root) + "".join(f"._modules[{name!r}]" for name in names[:-1]) + f"._modules.get({names[-1]!r})"
        self.space["replaced_"] = _replaced_of(self.whole.name)
        self.head.append(f"if {above} is not {self._owner(given.owner)}: replaced_({'.'.join(names)!r})")

    def _device_text(self):
        first = next((self.names[n] for n in self.names if n in self.whole.inputs and self.whole.inputs[n].kind == "given"), None)
        return f"{first}.device" if first else "torch.device('cpu')"

    def _owner(self, module):
        return self.bound.setdefault(id(module), f"module_{len(self.bound)}_")

    def _bind(self, value):
        name = self.bound.setdefault(id(value), f"object_{len(self.bound)}_")
        self.space[name] = value
        return name

    @staticmethod
    def _statement(node, writer):
        off = node.meta.get("autocast_off")
        return (f"with torch.autocast({off!r}, enabled=False): " if off else "") + writer.statement(node)

    def _call(self, chosen, writer):
        """`o = kernel(q.to(bf16), k, v).to(fp32)`"""
        function = chosen.function
        n = self.chosen.index(chosen) + 1
        self.space[f"kernel_{n}_"] = chosen.call
        given = []
        for node in function.inputs:
            text = self.names[node]
            text += f".to({function.values[0].dtype})" if node in function.cast else ""
            text += function.borders.get(node, ("", ""))[0]
            given.append(text + (".contiguous()" if node in function.copied else ""))
        outputs = []
        for node in chosen.region.outputs:
            self.names[node] = fresh(f"attention_{n}", self.names.values())
            outputs.append(self.names[node])
        call = f"kernel_{n}_({', '.join(given)})"
        line = f"{', '.join(outputs)} = {call}"
        for node, name in zip(chosen.region.outputs, outputs):
            if node in function.borders:
                line += f"; {name} = {name}{function.borders[node][1]}"
            if function.cast or operator_name(node) in LOG_SUMS:
                line += f"; {name} = {name}.to({node.meta['val'].dtype})"
        return line

    def _steps(self):
        """Nodes and kernels, in the user's order as far as what they need allows."""
        graph = self.whole.graph
        order = {node: n for n, node in enumerate(graph.nodes)}
        of = {node: c for c in self.chosen for node in c.region.outputs}
        needs, waiting = {}, [of.get(n, n) for n in graph.output_node().all_input_nodes]
        waiting += [n for n in graph.nodes if is_random(n)]
        while waiting:
            step = waiting.pop()
            if step in needs or isinstance(step, torch.fx.Node) and step.op == "placeholder":
                continue
            inputs = step.all_input_nodes if isinstance(step, torch.fx.Node) else step.function.inputs
            needs[step] = {of.get(n, n) for n in inputs if n.op != "placeholder"}
            waiting += needs[step]
        rank = {s: order[s] if isinstance(s, torch.fx.Node) else order[s.region.nodes[-1]] for s in needs}
        users, ready, left = {}, [], {s: len(n) for s, n in needs.items()}
        for step, inputs in needs.items():
            for given in inputs:
                users.setdefault(given, []).append(step)
        ready = [(rank[s], n, s) for n, s in enumerate(needs) if not left[s]]
        heapq.heapify(ready)
        steps, count = [], len(needs)
        while ready:
            _, _, step = heapq.heappop(ready)
            steps.append(step)
            for user in users.get(step, ()):
                left[user] -= 1
                if not left[user]:
                    count += 1
                    heapq.heappush(ready, (rank[user], count, user))
        if len(steps) != len(needs):
            raise SpecError(f"what {self.whole.name} computes of its attention comes back into it", code="inside.cycle")
        return steps

    # ---- what is given back

    def _returned(self, writer):
        flat = [writer.value(x) for x in self.whole.graph.output_node().args[0]]
        text = _literal(self.whole.output_spec, iter(flat))
        if text is not None:
            return text
        self.space |= {"unflatten_": tree_unflatten, "output_spec_": self.whole.output_spec}
        return f"unflatten_([{', '.join(flat)}], output_spec_)"

    def _made(self, text):
        file = f"<kernelwright around {self.whole.name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), self.space)
        call = self.space["composed"]
        call.__name__ = call.__qualname__ = self.whole.name
        call.__module__ = getattr(self.whole.target, "__module__", __name__)
        call.__doc__ = getattr(self.whole.target, "__doc__", None)
        return call


def _accessor(key):
    if hasattr(key, "idx"):
        return f"[{key.idx}]"
    if hasattr(key, "key"):
        return f"[{key.key!r}]"
    return f".{key.name}"


def _literal(spec, flat):
    """Python text of a structure of tuples, lists and dictionaries; None of another."""
    if spec.is_leaf():
        return next(flat)
    if spec.type not in (tuple, list, dict):
        return None
    parts = [_literal(child, flat) for child in spec.children()]
    if None in parts:
        return None
    if spec.type is dict:
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(spec.context, parts)) + "}"
    return f"[{', '.join(parts)}]" if spec.type is list else f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _constant_of(function):
    def refuse(name, was, due):
        raise ArgumentError(function, name, f"is {_short(was)}", f"be {_short(due)}, as in the example: the trace followed its way",
                            "compile the function again with the other value")
    return refuse


def _structure_of(function):
    def refuse(name, was, due):
        has = sorted(was, key=str) if isinstance(was, dict) else len(was)
        raise ArgumentError(function, name, f"has {has}", f"have {due if due and isinstance(due[0], str) else len(due)}, as in the example",
                            "compile the function again with such arguments")
    return refuse


def _replaced_of(function):
    def refuse(name):
        raise ArgumentError(function, name, "is another module than when it was compiled", "be the same",
                            "compile it again: what a module is made of is traced once")
    return refuse


def _short(value):
    text = f"a tensor of shape {list(value.shape)}" if isinstance(value, torch.Tensor) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
