"""What a call's arguments must be so that the traced graph is the user's function for them.

The trace leaves batch and lengths open and says under which conditions it holds: sizes that are constants, sizes that are equal,
and decisions that the user's code or an operator took on a size. They are written out as one condition over the arguments, which
a call asks once; only where it does not hold is looked for what does not, and ArgumentError names it. Nothing is computed for sizes
that the user's code would treat otherwise.
"""

import sympy
import torch

from ...errors import ArgumentError
from .text import expression_of_sizes


class Sizes:
    """`names`: {placeholder: text of the argument in the generated function}. `texts`: {symbol: text of a size}."""

    def __init__(self, whole, names):
        self.whole, self.names = whole, names
        self.texts, self.checks, self.examples, self.exceptions = {}, [], {}, []
        env = None
        for node, name in names.items():
            value = node.meta["val"]
            self._check(f"isinstance({name}, Tensor_)", name, f"is of the type {{type({name}).__name__}}", "be a tensor")
            self._check(f"{name}.dim() == {value.dim()}", name, f"has {{{name}.dim()}} dimensions",
                        f"have {value.dim()}, as in the example")
            dtype = whole.inputs[node].value.dtype
            self._check(f"{name}.dtype == {dtype}", name, f"is {{str({name}.dtype)[6:]}}", f"be {str(dtype)[6:]}",)
            for d, size in enumerate(value.shape):
                text = f"{name}.shape[{d}]"
                if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
                    env = size.node.shape_env
                    self._of_symbol(size.node.expr, text, name, d, whole.inputs[node].value.shape[d])
                else:
                    self._check(f"{text} == {int(size)}", name, f"has {{{text}}} in dimension {d}",
                                f"have {int(size)}, which the function fixes")
        self._decisions(env)

    def _check(self, condition, name, was, should):
        self.checks.append((condition, name, was, should))

    def _of_symbol(self, expression, text, name, d, example):
        expression = expression.xreplace(self.whole.same)
        if expression.is_Symbol and expression not in self.texts:
            self.texts[expression], self.examples[expression] = text, example
            if self.whole.ones_differ:
                self._check(f"{text} != 1", name, f"has 1 in dimension {d}", "have 2 or more: of one the function makes something else")
            return
        due = expression_of_sizes(expression, self.texts)
        if due is not None:
            self._check(f"{text} == {due}", name, f"has {{{text}}} in dimension {d}", f"have {{{due}}}, which is {due}")
        else:
            self._check(f"{text} == {int(example)}", name, f"has {{{text}}} in dimension {d}", f"have {int(example)}, as in the example")

    def _decisions(self, env):
        conditions = [(c, line) for c, line in self.whole.decisions]
        if env is not None:
            conditions += [(guard.expr, None) for guard in env.guards]
        seen = set()
        for condition, line in conditions:
            for _ in range(8):
                after = condition.xreplace(env.replacements) if env is not None else condition
                if after == condition:
                    break
                condition = after
            condition = condition.xreplace(self.whole.same)
            if isinstance(condition, sympy.Ne) and line is None:
                self.exceptions.append(condition)
                if condition in self.whole.no_exceptions:
                    continue
            if condition in seen or condition in (True, sympy.true) or not getattr(condition, "free_symbols", None):
                continue
            seen.add(condition)
            text = expression_of_sizes(condition, self.texts)
            if text is None:
                self._as_in_the_example(condition)
                continue
            first = next(iter(sorted(self.texts[s] for s in condition.free_symbols if s in self.texts)), "a size")
            at = f", which line {line} decides by" if line else ""
            self._check(text, first.split(".shape")[0], f"is of a size for which {text} does not hold", f"be of one for which it does{at}")

    def _as_in_the_example(self, condition):
        """Of a condition that is not written here: it holds for the example's sizes."""
        for symbol in sorted(condition.free_symbols & self.texts.keys(), key=str):
            text, size = self.texts[symbol], int(self.examples[symbol])
            self._check(f"{text} == {size}", text.split(".shape")[0], f"is of the size {{{text}}}", f"be of {size}, as in the example")

    def condition(self):
        """One expression over the arguments; "" where there is nothing to ask."""
        return " and ".join(f"({c})" if " or " in c else c for c, *_ in self.checks)

    def refusal(self, function, space):
        """What raises for a call whose arguments do not fit, by the names that the text gives them."""
        checks, hint = self.checks, "compile it again with an example like this call"

        def refuse(**values):
            scope = {**space, **values}
            for condition, name, was, should in checks:
                if not eval(condition, scope):
                    raise ArgumentError(function, name, _filled(was, scope), _filled(should, scope), hint)
            raise ArgumentError(function, "a size", "is not the example's", "be like it", hint)
        return refuse


def _filled(text, scope):
    """A message with the values of the expressions in braces."""
    return eval("f" + repr(text), scope) if "{" in text else text
