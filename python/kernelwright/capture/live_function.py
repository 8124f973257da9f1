"""A function that exists already, as capture takes it: load.UserSpec without a file to read.

The tensors that the function reaches (dependencies.py) become arguments after its own. While it is traced,
each stands where the user's stood, so that whatever the function calls finds it there. A tensor that
is reached in a way that nobody saw would be built into the kernel as it is today, and be wrong when it
changes; a run on fake tensors finds those, and refuses them.
"""

import ast
import contextlib
import inspect
import linecache
import pathlib
import textwrap

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ..errors import SpecError
from . import elsewhere
from .diagnostic import Problem
from .load import UserSpec
from .outside import Outside


def parameters(function, count):
    """The names that `count` positional arguments have. Raises SpecError where they do not fit."""
    known = list(inspect.signature(function).parameters.values())
    for parameter in known:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SpecError(f"{function.__name__} takes *{parameter.name}; a kernel's arguments have "
                            "names", *place_of(function))
    positional = [p for p in known if p.kind != p.KEYWORD_ONLY]
    required = [p for p in known if p.default is p.empty and p.kind != p.KEYWORD_ONLY]
    if not len(required) <= count <= len(positional):
        raise SpecError(f"{function.__name__} takes {len(positional)} arguments, example_inputs has "
                        f"{count}", *place_of(function))
    return [p.name for p in positional[:count]]


def name_of(function):
    """A function's name as an identifier: a lambda has none."""
    return function.__name__ if function.__name__.isidentifier() else "attention"


def place_of(function):
    """(file, line) for messages. A function that `flex` wrote stands where the user's own does."""
    at = getattr(function, "__kernelwright_place__", None)
    return at or (function.__code__.co_filename, function.__code__.co_firstlineno)


def user_spec(function, values, places):
    """values: of the function's own arguments; places: of the tensors that it reaches."""
    names = parameters(function, len(values))
    file, line = place_of(function)
    lines, columns = _places_of_names(function, names)
    taken, reached = set(names), []
    for place in places:
        reached.append(free_name(place.name, taken))
        taken.add(reached[-1])

    def call(*arguments):
        with _put(places, arguments[len(names):]), call.__kernelwright_outside__.noted():
            return function(*arguments[: len(names)])

    call.__wrapped__ = function  # built_in.py reads its code
    call.__kernelwright_outside__ = Outside(file)
    tensors = [place.get() for place in places]
    spec = UserSpec(file, name_of(function), call, [on_cpu(v) for v in [*values, *tensors]],
                    names + reached, lines + [line] * len(reached), columns + [1] * len(reached), line)
    _refuse_scalars(spec)
    before = elsewhere.state(spec)
    _refuse_hidden_tensors(spec)
    try:  # a function may be another in its first call alone
        elsewhere.refuse_change(spec, before)
    except Problem as problem:
        raise SpecError(problem.message, file, problem.line, code=problem.code, hint=problem.hint) from None
    return spec, reached


def free_name(name, taken):
    """An identifier like `name` that is not among `taken`."""
    name = "".join(c if c.isalnum() else "_" for c in name)
    name = name if name.isidentifier() else f"reached_{name}"
    while name in taken:
        name += "_"
    return name


def on_cpu(value):
    return value.detach().cpu() if isinstance(value, torch.Tensor) else value


def source_of(function):
    """The text of the user's file, for the certificate; of a function typed at a prompt there is none. Of one that
    was written here (compiling/inside/) Python knows the lines."""
    try:
        written = linecache.cache.get(function.__code__.co_filename)
        if written and written[1] is None:  # it is of no file
            return "".join(written[2]).encode()
        return pathlib.Path(place_of(function)[0]).read_bytes()
    except OSError:
        return f"# {function.__name__} was not read from a file\n".encode()


@contextlib.contextmanager
def _put(places, values):
    before = [place.get() for place in places]
    try:
        for place, value in zip(places, values):
            place.set(value)
        yield
    finally:
        for place, value in zip(places, before):
            place.set(value)


def _places_of_names(function, names):
    """(lines, columns) of the arguments' names, as far as the text can be read."""
    first = function.__code__.co_firstlineno
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        found = {a.arg: (first + a.lineno - 1, a.col_offset + 1) for a in ast.walk(tree)
                 if isinstance(a, ast.arg)}
    except (OSError, TypeError, SyntaxError):
        found = {}
    if hasattr(function, "__kernelwright_place__"):
        found, first = {}, place_of(function)[1]
    both = [found.get(name, (first, 1)) for name in names]
    return [line for line, _ in both], [column for _, column in both]


def _refuse_scalars(spec):
    for name, value, line in zip(spec.names, spec.values, spec.lines):
        if isinstance(value, torch.Tensor) and value.dim() == 0:
            raise SpecError(f"{name} is a tensor without dimensions, whose value no launch can know",
                            spec.file, line, hint="make it a Python number, or of shape [1]")


class _Hidden(TorchDispatchMode):
    """Real tensors that come to an operator while all arguments are fake."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if "lift_fresh" not in str(func):  # a literal, torch.tensor([1, 2])
            self.found += [x for x in tree_leaves((args, kwargs))
                           if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor) and x.dim()]
        return func(*args, **(kwargs or {}))


def _refuse_hidden_tensors(spec):
    mode, hidden = FakeTensorMode(allow_non_fake_inputs=True), _Hidden()
    fakes = [mode.from_tensor(v) if isinstance(v, torch.Tensor) else v for v in spec.values]
    with contextlib.suppress(Exception), torch.no_grad(), mode, hidden:  # trace() explains failures
        spec.function(*fakes)
    if hidden.found:
        tensor = hidden.found[0]
        raise SpecError(f"{spec.name} reaches a tensor of shape {list(tensor.shape)} through an object, "
                        "where its later values would not be seen", spec.file, spec.line,
                        hint="pass it as an argument, or keep it in a variable that the function names")
