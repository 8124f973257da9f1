"""A captured function on some of its query rows: what differentiating it in pieces takes.

A piece must know where it is. A row's index comes into a graph in few ways, and each is cut here: a
range as long as q becomes rows `begin` to `begin + count` of itself, and so does an argument's dimension
of that length; a triangle's diagonal moves by `begin`; a causal flag becomes a mask. A size that an
operator takes for a shape becomes the piece's, a size in arithmetic (N - M) stays the whole's.

Whether that was all is tried, not argued: on small inputs the pieces' outputs, put together, must be
those of the user's function. One whose rows mix (a mean over queries) fails that, and is refused.
"""

import torch

from ..capture import live_function, trace
from ..capture.diagnostic import Problem, first_line_of
from ..capture.graph import Sizes, operator_name
from ..errors import GradientError, SpecError
from ..runtime.bindings import query_dimension

# Operators whose sizes are those of what they give.
_SHAPED = {"view", "reshape", "_unsafe_view", "expand", "broadcast_to", "ones", "zeros", "full", "empty",
           "new_ones", "new_zeros", "new_full", "new_empty", "repeat", "unflatten"}
_TRIALS = ((2, 37, 50, 16), (1, 64, 33, 23))  # batch, queries, keys, rows of a piece


class _Piece(torch.fx.Interpreter):
    """Runs the graph on rows begin to begin + count; `whole` values every symbol."""

    def __init__(self, function, whole, begin, count, device):
        super().__init__(function.module)
        self.cut, self.whole, self.begin, self.device = function, whole, begin, device
        self.part = {**whole, function.rows: count}
        self.count, self.node = count, None

    def run_node(self, node):
        self.node = node
        value = node.meta.get("val")
        if node.op == "call_function" and "assert" in str(node.target):
            return None
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            number = self.cut.sizes.expr(value).subs(self.whole)
            return int(number) if isinstance(value, torch.SymInt) else float(number)
        result = super().run_node(node)
        if isinstance(result, torch.Tensor) and self._is_created(node):
            for d in self.cut.row_dims(value):
                result = result.narrow(d, self.begin, self.count)
        return result

    def _is_created(self, node):
        """Whether the operator made it of sizes alone, and of all rows."""
        return (node.op == "call_function" and operator_name(node) not in _SHAPED and
                not any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes))

    def fetch_args_kwargs_from_env(self, node):
        symbols = self.part if operator_name(node) in _SHAPED else self.whole

        def load(n):
            value = n.meta.get("val")
            return int(self.cut.sizes.expr(value).subs(symbols)) if isinstance(value, torch.SymInt) else self.env[n]

        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), load)
        return args, {name: self.device if name == "device" else x for name, x in kwargs.items()}

    def call_function(self, target, args, kwargs):
        name = operator_name(self.node)
        if name in ("tril", "triu"):
            rows, rank = self.cut.row_dims(self.node.args[0].meta["val"]), args[0].dim()
            shift = self.begin * ((rank - 2 in rows) - (rank - 1 in rows))
            return target(args[0], (args[1] if len(args) > 1 else 0) + shift)
        if name == "scaled_dot_product_attention" and len(args) > 5 and args[5]:
            keep = torch.ones(args[0].shape[-2], args[1].shape[-2], dtype=torch.bool, device=self.device)
            return target(*args[:3], keep.tril(self.begin), args[4], False, *args[6:], **kwargs)
        return super().call_function(target, args, kwargs)


class QueryRows:
    """A function of `values` (examples) and `places`. signature: describe()'s record.

    Raises GradientError where the function cannot be cut, with the reason."""

    def __init__(self, function, values, places, signature):
        spec, _ = live_function.user_spec(function, values, places)
        try:
            with torch.device("cpu"), torch.inference_mode(False):
                traced = trace.trace(spec, trace.convert(spec, None))
        except Problem as problem:
            raise SpecError(problem.message, spec.file, problem.line, problem.column) from None
        self.name, self.spec, self.traced = spec.name, spec, traced
        self.module = traced.program.graph_module
        self.sizes = Sizes(self.module.graph)
        self.placeholders = [n for n in self.module.graph.nodes if n.op == "placeholder"]
        keys = set(traced.program.graph_signature.user_inputs)
        self.inputs = [n.meta["val"] for n in self.placeholders if n.name in keys]
        self.given = [n.name in keys for n in self.placeholders]
        self._find_rows({a["kernel"]: (n, query_dimension(a)) for n, a in enumerate(signature["arguments"])
                         if a["kernel"] in ("q", "k", "v")})
        self._try()

    def _refuse(self, why, hint=None):
        raise GradientError(f'{self.name}: backward="recompute" cuts query rows, and {why}'
                            + (f"\n  help: {hint}" if hint else ""))

    def _find_rows(self, operands):
        length = {name: self.sizes.expr(self.inputs[n].shape[d]) for name, (n, d) in operands.items()}
        self.rows, self.keys = length["q"], length["k"]
        if not self.rows.is_Symbol:
            self._refuse(f"their number is fixed at {self.rows} in the function")
        if self.rows in (length["k"], length["v"]):
            self._refuse("the function makes queries and keys one length",
                         "take the number of rows from q, and that of columns from k")
        self.batch = self.sizes.expr(self.inputs[operands["q"][0]].shape[0])

    def row_dims(self, value):
        """Dimensions of a traced tensor that are as long as q has rows."""
        return [d for d, size in enumerate(value.shape) if self.sizes.expr(size) == self.rows]

    def symbols(self, values):
        """What every symbol is at a call."""
        known = {}
        for fake, value in zip(self.inputs, values):
            for size, actual in zip(fake.shape, value.shape):
                if self.sizes.expr(size).is_Symbol:
                    known[self.sizes.expr(size)] = int(actual)
        return known

    def cut(self, values, begin, count):
        """Of each value the part that these rows have to do with."""
        return [self.cut_one(n, value, begin, count) for n, value in enumerate(values)]

    def cut_one(self, n, value, begin, count):
        for d in self.row_dims(self.inputs[n]):
            value = value.narrow(d, begin, count)
        return value

    def run(self, parts, whole, begin, count):
        """The outputs of rows begin to begin + count, of what `cut` gave."""
        program, given = self.traced.program, iter(parts)
        device = next(x.device for x in parts if x.dim())
        lifted = {**program.graph_signature.inputs_to_lifted_tensor_constants,
                  **program.graph_signature.inputs_to_buffers}
        known = {**program.state_dict, **program.constants}
        inputs = [next(given) if mine else known[lifted[n.name]].to(device)
                  for n, mine in zip(self.placeholders, self.given)]
        outputs = _Piece(self, whole, begin, count, device).run(*inputs)
        return [x for x in outputs if isinstance(x, torch.Tensor)]

    # ---- the trial

    def _try(self):
        for batch, m, n, rows in _TRIALS:
            examples = [v for v, argument in zip(self.traced.values, self.traced.is_argument) if argument]
            whole = self.symbols(examples)
            wanted = {self.batch: batch, self.rows: m, self.keys: n}
            whole |= {s: min(size, whole[s]) for s, size in wanted.items() if s in whole}
            values = [self._draw(fake, example, whole) for fake, example in zip(self.inputs, examples)]
            try:
                pieces = [self.run(self.cut(values, r, c), whole, r, c) for r, c in
                          chunks(whole[self.rows], rows)]
                own = self._own(values)
            except Exception as error:
                self._refuse(f"rows {rows} at a time it raises {type(error).__name__}: {first_line_of(error)}")
            for output, parts in zip(own, zip(*pieces)):
                self._compare(output, parts)

    def _draw(self, fake, example, whole):
        shape = [int(self.sizes.expr(size).subs(whole)) for size in fake.shape]
        if not shape:
            return example
        if example.is_floating_point():
            return torch.randn(shape).to(example.dtype)
        flat = example.flatten()
        return flat[torch.randint(len(flat), shape)]

    def _own(self, values):
        """What the user's function gives, numbers as numbers and constants in their places."""
        given, arguments = iter(values), []
        for value, is_argument in zip(self.spec.values, self.traced.is_argument):
            x = next(given) if is_argument else value
            arguments.append(x.item() if isinstance(x, torch.Tensor) and x.dim() == 0 else x)
        with torch.no_grad():
            out = self.spec.function(*arguments)
        return list(out) if isinstance(out, (tuple, list)) else [out]

    def _compare(self, output, parts):
        dims = [d for d in range(output.dim())
                if sum(part.shape[d] for part in parts) == output.shape[d] and len(parts) > 1]
        for d in dims:
            together = torch.cat(parts, dim=d)
            if together.shape == output.shape and torch.allclose(together.float(), output.float(), rtol=0.05,
                                                                 atol=0.05, equal_nan=True):
                return
        self._refuse("in pieces of them it gives other values than whole",
                     "a row of the output must depend on its own row of q alone")


def chunks(total, rows):
    """(begin, count) of pieces of `rows` rows."""
    return [(begin, min(rows, total - begin)) for begin in range(0, total, rows)]
