"""Gradients by kernels: a forward kernel that saves what they take, and a backward kernel.

    fast(q, k, v).backward(g)

A call that needs a gradient goes to another operator than one that needs none: its forward kernel also
writes the row sums' logarithms and the output as it is before it is rounded, and its backward kernel reads
both. The two are made at the first such call, or with `backward=True` by compile, and are kept like any
kernel.

What is saved between them are the operands, and these two. A gradient may have any layout: one that the
kernel cannot copy (sum().backward() gives a single number with strides of 0) is made contiguous first.
"""

import torch

from ..capture.dependencies import Dependencies
from ..errors import GradientError, SpecError
from .operators import NAMESPACE, operator
from .signature import BYTES, COPIED
from .skip_dispatcher import may_skip_dispatcher

RECOMPUTE = 'call it under torch.no_grad(), or say compile(..., backward="recompute")'


class Training:
    """A call of the function that is to be differentiated.

    `make(training)`: (record, folder, certificate) of the kernel for that part (compiler.py). `function`: the user's;
    `fingerprint`: its own, of when it was compiled."""

    def __init__(self, function, fingerprint, make):
        self._function, self._fingerprint, self._make = function, fingerprint, make
        self.overload = None  # of torch.library, once it is made: the output, and what is saved

    def prepare(self):
        """Makes both kernels. Raises as compile does."""
        backward, folder, _ = self._make("backward")
        backward_kernel = operator(backward["operator"], self._function.__name__, backward["signature"], folder)
        gradients = Gradients(backward_kernel, backward["signature"]["gradients"])
        forward, folder, _ = self._make("forward")
        made = operator(forward["operator"], self._function.__name__, forward["signature"], folder, gradients)
        self._plain, self._apply = made.takes_plainly, gradients.function(made.launch).apply
        self.overload = made.overload

    def __call__(self, *arguments):
        """The function's output. Raises GradientError where no kernel is made of its gradients."""
        if self.overload is None:
            if self._fingerprint is not None and Dependencies(self._function).fingerprint != self._fingerprint:
                raise GradientError(f"{self._function.__name__} has changed since it was compiled: what it reaches is "
                                    "another value now\n  help: compile it again, or say compile(..., backward=True)")
            try:
                self.prepare()
            except SpecError as error:
                raise GradientError(f"{self._function.__name__}: an argument requires a gradient, and no kernel of it is "
                                    f"made: {error}\n  help: {RECOMPUTE}") from None
        if may_skip_dispatcher() and self._plain(*arguments):
            return self._apply(*arguments)
        return self.overload(*arguments)[0]


class Gradients:
    """What makes a forward operator differentiable. `backward`: the Operator of its backward kernel, which takes the
    output's gradient (twice: by tiles and by rows), the function's arguments and what the forward kernel saved; `of`: the
    numbers of the arguments that its outputs are the gradients of."""

    def __init__(self, backward, of):
        self.backward, self.of = backward, of
        backward.no_gradient = ("a gradient of its gradients is asked for, and no kernel computes one\n"
                                "  help: differentiate without create_graph")
        given = backward.signature.arguments
        self._names = [a["name"] for a in given[2:-2]]  # the function's: what was saved is behind them
        self._others = [n for n in range(len(self._names)) if n not in of]  # that no kernel differentiates by
        gradient = given[0]
        self._columns, self._unit = gradient["kernel_dims"][-1], COPIED // BYTES[gradient["dtype"]]

    def register(self, forward, library):
        """For calls that others see: torch.compile, modes, transformations."""
        def keep(ctx, inputs, output):
            self._refuse_others(ctx)
            _keep(ctx, inputs, output[1:])

        def differentiate(ctx, gradient, *_):
            return self._of(ctx, gradient, self.backward.overload)
        torch.library.register_autograd(f"{NAMESPACE}::{forward.name}", differentiate, setup_context=keep, lib=library)

    def function(self, forward):
        """For calls that nobody else sees: the two launches without the dispatcher. `forward`: that of the first."""
        class Differentiable(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                self._refuse_others(ctx)
                output, *saved = forward(*inputs)
                _keep(ctx, inputs, saved)
                return output

            @staticmethod
            def backward(ctx, gradient):
                return self._of(ctx, gradient, self.backward.launch)
        return Differentiable

    def _of(self, ctx, gradient, launch):
        out = [None] * len(ctx.numbers)
        if gradient is not None:
            tensors = iter(ctx.saved_tensors)
            inputs = [next(tensors) if x is None else x for x in ctx.numbers]
            gradient = self._copyable(gradient)
            for n, found in zip(self.of, launch(gradient, gradient, *inputs, *tensors)):
                out[n] = found if ctx.needs_input_grad[n] else None
        return tuple(out)

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


def _keep(ctx, inputs, saved):
    ctx.save_for_backward(*[x for x in inputs if isinstance(x, torch.Tensor)], *saved)
    ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in inputs]
    ctx.set_materialize_grads(False)
