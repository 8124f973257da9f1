"""The gradients of the captured graph, by PyTorch's autograd in fp64, and those that the user's own function has in
its own types, on the same inputs: the truth of a backward kernel, and what it is excused by.

Of each case the gradient of the output, and of the log-sums where the function returns them too, is drawn like an
operand, under a name of its own. What is kept are the gradients of all floating tensors, of two heads; of an argument with fewer heads, those that the two read.
"""

import contextlib
import traceback

import numpy as np
import torch
import torch.utils.checkpoint

from . import cut_gradients, goldens
from .agreement import refuse_other_gradient
from .diagnostic import Problem, first_line_of, last_line_in, of_isolation
from .graph import operator_name, place_of
from .trace import is_operand

OF_OUTPUTS = ["forward.d_o", "forward.d_lse"]  # spec::Gradients::kOfOutput, kOfLogSum
DRAWN = {"kind": "normal", "scale": 1.0}


def make(spec, traced, cases):
    """Returns the index (for JSON), the gradients and the own errors, each one flat array, as goldens.make does."""
    _refuse_detached(spec, traced)
    axis = goldens.head_axis(traced)
    interpreter = goldens.InFp64(traced.program.graph_module)
    index, truths, errors = [], [], []
    for entry, inputs, output, _, *others in goldens.run_cases(spec, traced, cases):
        given = []  # of each output its gradient
        shapes = [x.shape for x in (output, *others)][:len(OF_OUTPUTS)]
        for n, shape in enumerate(shapes):
            stream = len(traced.values) + n
            given.append(goldens.draw(DRAWN, entry["seed"], stream, torch.float32 if n else traced.dtype, shape))
            entry["draws"].append({"name": OF_OUTPUTS[n], "stream": stream, "shape": list(shape), **DRAWN})
        entry["gradients"] = []
        heads = output.shape[axis] if axis is not None else 1
        for n, (truth, own) in truth_and_own(spec, traced, interpreter, inputs, given).items():
            error = goldens.row_errors(own.double(), truth)
            kept, picked = _picked(traced, n, truth, heads, goldens.two_heads(len(index), heads))
            entry["gradients"].append({"of": spec.names[n], "heads": picked, "shape": list(kept.shape),
                                       "rows": list(error.shape)})
            truths.append(kept.contiguous().numpy().ravel())
            errors.append(error.ravel())
        index.append(entry)
    return {"cases": index}, np.concatenate(truths), np.concatenate(errors)


def truth_and_own(spec, traced, interpreter, inputs, of_outputs):
    """{number of an argument: its gradient in fp64, and the function's own}; zeros where nothing depends on it."""
    learn = [n for n, value in enumerate(inputs) if isinstance(value, torch.Tensor) and value.dim() and
             value.is_floating_point()]
    exact = [value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
             for value in inputs]
    own = goldens.as_called(spec, inputs)
    for n in learn:
        exact[n] = exact[n].requires_grad_()
        own[n] = own[n].detach().clone().requires_grad_()
    with torch.enable_grad():
        given = _called(spec, own)
        truth = goldens.outputs(traced, interpreter, exact)
    truths = _differentiate(truth, [exact[n] for n in learn], of_outputs)
    owns = _differentiate(given, [own[n] for n in learn], of_outputs)
    own_graph = lambda n: _of_graph_in_own_types(spec, traced, inputs, n, of_outputs)
    for n, a, b in zip(learn, truths, owns):
        refuse_other_gradient(spec, n, inputs, a, b, own_graph)
    zero = lambda gradient, like: torch.zeros_like(like) if gradient is None else gradient
    return {n: (zero(a, exact[n]), zero(b, own[n])) for n, a, b in zip(learn, truths, owns)}


def _called(spec, own):
    """What the function gives of arguments that require gradients; refuses one whose derivative is not its trace's."""
    try:
        with _no_saved_tensors_hooks(spec), cut_gradients.watched(spec) as watch:
            given = spec.function(*own)
    except Problem:
        raise
    except Exception as error:
        raise Problem("spec.gradient", f"where its arguments require gradients, {spec.name} raises {type(error).__name__}: "
                      f"{first_line_of(error)}", last_line_in(spec.file, error) or spec.line, hint=of_isolation(error)) from None
    _refuse_own_backward(spec, given)
    cut_gradients.refuse(watch)
    return given


@contextlib.contextmanager
def _no_saved_tensors_hooks(spec):
    """Hooks on what is kept for the gradient may give back other tensors, and are in no trace. Checkpointing has such, too,
    which compute the same once more."""
    push = torch._C._autograd._push_saved_tensors_default_hooks

    def refusing(pack, unpack):
        made_by = {getattr(getattr(hook, "__code__", None), "co_filename", None) for hook in (pack, unpack)}
        if made_by == {torch.utils.checkpoint.__file__}:
            return push(pack, unpack)
        frames = [frame for frame in traceback.extract_stack() if frame.filename == spec.file]
        raise Problem("spec.gradient", f"{spec.name} sets hooks on the tensors that are kept for its gradient here (saved_tensors_hooks): a trace "
                      "has the functions that are computed, and not what such hooks give back", frames[-1].lineno if frames else spec.line,
                      hint="leave them away: a kernel keeps no scores; torch.utils.checkpoint is no such hook")

    torch._C._autograd._push_saved_tensors_default_hooks = refusing
    try:
        yield
    finally:
        torch._C._autograd._push_saved_tensors_default_hooks = push


def _refuse_own_backward(spec, outputs):
    """A derivative that the user wrote (torch.autograd.Function), or a hook, is in no trace."""
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    waiting, seen = [output.grad_fn for output in outputs], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            what = f"has a gradient of its own, of {type(node).__name__.removesuffix('Backward')}"
            raise Problem("spec.gradient", f"{spec.name} {what}: a trace has the functions that are computed, and not such gradients",
                          spec.line, hint=cut_gradients.HINT)
        waiting += [following for following, _ in node.next_functions]


def _differentiate(outputs, inputs, of_outputs):
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    pairs = [(output, of.to(output.dtype)) for output, of in zip(outputs, of_outputs)]
    return torch.autograd.grad([output for output, _ in pairs], inputs, [of for _, of in pairs], allow_unused=True)


def _of_graph_in_own_types(spec, traced, inputs, n, of_outputs):
    """The gradient of the graph by one argument, rounding as the user's function does."""
    own = goldens.as_called(spec, inputs)
    own[n] = own[n].detach().clone().requires_grad_()
    with torch.enable_grad():
        given = goldens.in_own_types(traced, own)
    return _differentiate(given, own[n], of_outputs)[0]


EMBEDDING = {"padding_idx": -1, "scale_grad_by_freq": False, "sparse": False}  # behind the weights and the indices, and what is none


def _refuse_detached(spec, traced):
    """A derivative that the function stops, or that an embedding changes, is none of the form's."""
    of_arguments = set()
    for node in traced.program.graph.nodes:
        reads = any(source in of_arguments for source in node.all_input_nodes)
        example = node.meta.get("val")
        floats = isinstance(example, torch.Tensor) and example.is_floating_point()
        if node.op == "placeholder" and node.name in traced.program.graph_signature.user_inputs or reads and floats:
            of_arguments.add(node)
        if reads and floats and "detach" in str(node.target):
            raise Problem("spec.gradient", f"{spec.name} detaches what it computes of its arguments here: no kernel of gradients "
                          "leaves a derivative out", place_of(node)[0] or spec.line,
                          hint=cut_gradients.HINT)
        if node.op == "call_function" and operator_name(node) == "embedding" and node.args[0] in of_arguments:
            _refuse_embedding(spec, node)


def _refuse_embedding(spec, node):
    """In the forward direction they change nothing."""
    given = {**dict(zip(EMBEDDING, node.args[2:])), **node.kwargs}
    name = next((name for name, none in EMBEDDING.items() if given.get(name, none) != none), None)
    if name:
        raise Problem("spec.gradient", f"{spec.name} looks up an embedding with {name} here, which changes the gradient of its table: "
                      "no kernel of gradients does, it adds up what each entry was read for", place_of(node)[0] or spec.line,
                      hint=f"leave {name} away: table[index]; an entry that is not to be learned, an optimiser can leave as it is")


def _picked(traced, n, gradient, heads, picked):
    """The gradient of these heads of the output, and which of its own they are; all of what has no heads."""
    example = traced.values[n]
    own = [d for d in range(1, gradient.dim() - 1) if is_operand(example) and heads % gradient.shape[d] == 0 and
           gradient.dim() == 4 and isinstance(_size(traced, n, d), int)]
    if not own:
        return gradient, None
    count = gradient.shape[own[0]]
    which = sorted({h * count // heads for h in picked})
    return gradient.index_select(own[0], torch.tensor(which)), which


def _size(traced, n, d):
    """A dimension as the graph has it: a number where it is a constant."""
    key = traced.program.graph_signature.user_inputs[sum(traced.is_argument[:n])]
    node = next(x for x in traced.program.graph.nodes if x.op == "placeholder" and x.name == key)
    return node.meta["val"].shape[d]
