"""Gradients by kernels: a forward kernel that saves what they take, and a backward kernel.

    fast(q, k, v).backward(g)

A call that needs a gradient goes to another operator than one that needs none: its forward kernel also
writes the row sums' logarithms and the output as it is before it is rounded, and its backward kernel reads
both. The two are made at the first such call, or with `backward=True` by compile, and are kept like any
kernel.

What is saved between them are the operands, and these two; of weights that are no softmax, the operands alone. A gradient may have any layout: one that the
kernel cannot copy (sum().backward() gives a single number with strides of 0) is made contiguous first.
"""

import warnings

import torch

from ..capture.dependencies import Dependencies
from ..errors import GradientError, SpecError
from .operators import NAMESPACE, operator
from .signature import BYTES, COPIED, DTYPES, evaluate
from .skip_dispatcher import may_skip_dispatcher

RECOMPUTE = 'call it under torch.no_grad(), or say compile(..., backward="recompute")'


class Training:
    """A call of the function that is to be differentiated.

    `make(training, deterministic)`: (record, folder, certificate) of the kernel for that part (compiler.py). `function`:
    the user's; `fingerprint`: its own, of when it was compiled. `deterministic`: whether gradients have the same bits in
    every run; None: as torch.use_deterministic_algorithms says at the call."""

    def __init__(self, function, fingerprint, make, deterministic=None):
        self._function, self._fingerprint, self._make = function, fingerprint, make
        self._deterministic = deterministic
        self._no_order = None  # why no kernel adds in one order
        self._made = {}  # by whether they are deterministic: an Operator, what its own calls apply, the outputs returned

    def _wanted(self):
        return torch.are_deterministic_algorithms_enabled() if self._deterministic is None else self._deterministic

    def overload(self):
        """Of torch.library: what the function returns, and what is saved; None before it is made."""
        made = self._made.get(self._wanted())
        return None if made is None else made[0].overload

    def prepare(self):
        """Makes both kernels. Raises as compile does."""
        self._prepare(self._wanted())

    def _prepare(self, deterministic):
        backward, folder, _ = self._make("backward", deterministic)
        backward_kernel = operator(backward["operator"], self._function.__name__, backward["signature"], folder)
        gradients = Gradients(backward_kernel)
        forward, folder, _ = self._make("forward")
        own = forward["signature"]["own"]
        name = forward["operator"] + ("_deterministic" if deterministic else "")
        made = operator(name, self._function.__name__, forward["signature"], folder, gradients)
        self._made[deterministic] = made, gradients.function(made.launch, own).apply, own

    def __call__(self, *arguments):
        """What the function returns. Raises GradientError where no kernel is made of its gradients."""
        wanted = self._wanted()
        made, apply, own = self._made.get(wanted) or self._at_the_first(wanted)
        if may_skip_dispatcher() and made.takes_plainly(*arguments):
            return apply(*arguments)
        return _first(made.overload(*arguments), own)

    def _at_the_first(self, deterministic):
        """What `_made` has of a first call."""
        name = self._function.__name__
        if self._fingerprint is not None and Dependencies(self._function).fingerprint != self._fingerprint:
            raise GradientError(f"{name} has changed since it was compiled: what it reaches is "
                                "another value now\n  help: compile it again, or say compile(..., backward=True)")
        try:
            if deterministic and self._no_order is not None:
                raise self._no_order
            self._prepare(deterministic)
        except SpecError as error:
            if error.code != "transfer.deterministic":
                raise GradientError(f"{name}: an argument requires a gradient, and no kernel of it is made: {error}\n"
                                    f"  help: {RECOMPUTE}") from None
            self._no_order = error
            if self._deterministic is None and torch.is_deterministic_algorithms_warn_only_enabled():
                warnings.warn(f"{name}: gradients are added up in any order: {error.message}", stacklevel=3)
                return self._made.get(False) or self._at_the_first(False)
            raise GradientError(f"{name}: gradients with the same bits in every run are asked for "
                                f"({'torch.use_deterministic_algorithms' if self._deterministic is None else 'deterministic=True'}), "
                                f"and no kernel adds them up in one order: {error.message}\n  help: compile(..., "
                                'deterministic=False), or backward="recompute"') from None
        return self._made[deterministic]

    def returned(self, outputs):
        """Of what the forward operator gives, what the function returns."""
        return _first(outputs, self._made[self._wanted()][2])


class Gradients:
    """What makes a forward operator differentiable. `backward`: the Operator of its backward kernel, which takes the
    gradients of the function's outputs (that of a softmax's output twice: by tiles and by rows), the function's arguments
    and what the forward kernel saved."""

    def __init__(self, backward):
        record = backward.signature.record
        self.backward = backward
        self.of = record["gradients"]  # the numbers of the arguments that its outputs are the gradients of
        self.saved, self._of_outputs = record["saved"], record["of_outputs"]
        backward.no_gradient = ("a gradient of its gradients is asked for, and no kernel computes one\n"
                                "  help: differentiate without create_graph")
        given = backward.signature.arguments
        own = given[len(self._of_outputs):len(given) - self.saved]
        self._names = [a["name"] for a in own]
        self._others = [n for n in range(len(self._names)) if n not in self.of]  # that no kernel differentiates by
        self._like = [given[self._of_outputs.index(n)] for n in sorted(set(self._of_outputs))]
        gradient = self._like[0]
        self._columns, self._unit = gradient["kernel_dims"][-1], COPIED // BYTES[gradient["dtype"]]

    def register(self, forward, library):
        """For calls that others see: torch.compile, modes, transformations."""
        def keep(ctx, inputs, output):
            self._refuse_others(ctx)
            _keep(ctx, inputs, _last(output, self.saved))

        def differentiate(ctx, *gradients):
            return self._of(ctx, gradients, self.backward.overload)
        torch.library.register_autograd(f"{NAMESPACE}::{forward.name}", differentiate, setup_context=keep, lib=library)

    def function(self, forward, own):
        """For calls that nobody else sees: the two launches without the dispatcher. `forward`: that of the first, which
        gives `own` outputs that the function returns."""
        saved = self.saved

        class Differentiable(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                self._refuse_others(ctx)
                found = forward(*inputs)
                _keep(ctx, inputs, _last(found, saved))
                return _first(found, own)

            @staticmethod
            def backward(ctx, *gradients):
                return self._of(ctx, gradients, self.backward.launch)
        return Differentiable

    def _of(self, ctx, gradients, launch):
        out = [None] * len(ctx.numbers)
        gradients = gradients[:len(self._like)]
        if any(gradient is not None for gradient in gradients):
            tensors = iter(ctx.saved_tensors)
            inputs = [next(tensors) if x is None else x for x in ctx.numbers]
            given = self._given(gradients, inputs)
            for n, found in zip(self.of, launch(*[given[n] for n in self._of_outputs], *inputs, *tensors)):
                out[n] = found if ctx.needs_input_grad[n] else None
        return tuple(out)

    def _given(self, gradients, inputs):
        """The gradients of the function's outputs as the kernel reads them; zeros of an output that nobody used."""
        if all(gradient is not None for gradient in gradients):
            return [self._copyable(gradients[0]), *(gradient.contiguous() for gradient in gradients[1:])]
        known = self.backward.signature.sizes_of(self._names, inputs)
        like = next(gradient for gradient in gradients if gradient is not None)
        zeros = [torch.zeros([evaluate(size, known) for size in a["dims"]], dtype=DTYPES[a["dtype"]], device=like.device)
                 for a in self._like]
        return self._given([zero if gradient is None else gradient for gradient, zero in zip(gradients, zeros)], inputs)

    def _refuse_others(self, ctx):
        for n in self._others:
            if ctx.needs_input_grad[n]:
                raise GradientError(f"{self.backward.function}: {self._names[n]} requires a gradient, and kernels compute those "
                                    f"of {', '.join(self._names[k] for k in self.of)}\n"
                                    f"  help: pass {self._names[n]}.detach(), or say compile(..., backward=\"recompute\")")

    def _copyable(self, gradient):
        """Rows are copied 16 bytes at a time: signature.check_memory would refuse other tensors."""
        fits = gradient.is_contiguous() or all(
            stride == 1 if d == self._columns else stride > 0 and stride % self._unit == 0
            for d, stride in enumerate(gradient.stride()) if gradient.shape[d] > 1)
        if type(gradient) is torch.Tensor and not torch.compiler.is_compiling():
            fits = fits and gradient.data_ptr() % COPIED == 0
        return gradient if fits else gradient.clone(memory_format=torch.contiguous_format)


def _first(outputs, count):
    """An operator with one output gives no tuple; neither does a function. Log-sums may be the function's own and saved."""
    return outputs if isinstance(outputs, torch.Tensor) else outputs[0] if count == 1 else outputs[:count]


def _last(outputs, count):
    return outputs[len(outputs) - count:] if count else ()


def _keep(ctx, inputs, saved):
    ctx.save_for_backward(*[x for x in inputs if isinstance(x, torch.Tensor)], *saved)
    ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
    ctx.set_materialize_grads(False)
