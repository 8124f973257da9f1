"""Arithmetic of TL on whole numbers as Python: it is written alike but for `let`, `true` and `false`."""

import ast
import re


def expression(text):
    text = re.sub(r"\btrue\b", "True", re.sub(r"\bfalse\b", "False", text))
    return compile(text, "kernel.tl", "eval")


def parts(text):
    """[(name or None, text)] between the commas of a list, the named ones first."""
    call = ast.parse(f"f({text})", mode="eval").body
    return [(keyword.arg, ast.unparse(keyword.value)) for keyword in call.keywords] + [
        (None, ast.unparse(argument)) for argument in call.args]


def lets(line):
    """[(name, code)] of a line `let a = x, b = y`, where y may use a."""
    return [(name, expression(value)) for name, value in parts(line.removeprefix("let "))]


def ceil_div(a, b):
    return -(-a // b)


def where(condition, a, b):
    return a if condition else b
