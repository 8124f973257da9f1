"""Every example's gradients on a GPU, from end to end, at three ragged shapes: each row of every gradient within twice the error of
bf16's own autograd, and, since its terms may cancel, twice half an ulp of a row of usual size. Inputs are the capture's, and so is the
truth: autograd in fp64 of the captured graph.

Functions whose rows change before their product have a test of their own (test_rows_gradients.py).
"""

import pathlib

import pytest
import torch

import kernelwright
from kernelwright.capture import goldens, gradients, load, trace

pytestmark = pytest.mark.gpu
ROOT = pathlib.Path(__file__).parents[2]
HALF_ULP = 2.0**-8  # of bf16; num/dtype.h
SHAPES = [(2, 130, 77), (1, 257, 300), (3, 33, 190)]
OF_ROWS = {"rope", "rope_interleaved", "qk_norm", "qk_norm_rope"}


@pytest.fixture(scope="module", params=sorted({path.stem for path in (ROOT / "examples").glob("*.py")} - OF_ROWS))
def trained(request):
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("a kernel for Hopper")
    spec = load.load(str(ROOT / f"examples/{request.param}.py"))
    fast = kernelwright.compile(spec.function, tuple(spec.values), target="sm_90a", backward=True)
    return fast, spec, trace.trace(spec, trace.convert(spec, None))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_autograds_row_by_row(trained, shape):
    fast, spec, traced = trained
    truth = goldens.InFp64(traced.program.graph_module)
    for entry, inputs, output, _, *others in goldens.run_cases(spec, traced, [shape]):
        outputs = [output, *others]
        of_outputs = [goldens.draw(gradients.DRAWN, entry["seed"], 1000 + n, torch.float32 if n else traced.dtype, x.shape)
                      for n, x in enumerate(outputs)]
        given = [x.cuda() if isinstance(x, torch.Tensor) and x.dim() else x for x in goldens.as_called(spec, inputs)]
        for n, (want, own) in gradients.truth_and_own(spec, traced, truth, inputs, of_outputs).items():
            leaf = given[n].detach().clone().requires_grad_()
            try:
                made = fast(*given[:n], leaf, *given[n + 1:])
                made = made if isinstance(made, tuple) else (made,)
                pairs = [(x, of.cuda().to(x.dtype)) for x, of in zip(made, of_outputs) if x.requires_grad]
                got, = torch.autograd.grad([x for x, _ in pairs], leaf, [of for _, of in pairs])
            except kernelwright.GradientError as error:
                assert n >= 3, error
                print(f"{spec.name} {shape} {spec.names[n]}: no gradient, {str(error).splitlines()[0]}")
                continue
            holds(f"{spec.name} {shape} {spec.names[n]}", got.double().cpu(), want, own.double(), rows=n < 3)


def holds(what, got, want, own, rows):
    """Of a sum, the whole of it: a number of it may cancel, as may a row of those."""
    open_rows = want.isnan().any(dim=-1, keepdim=True)  # a row without a key, and all that meet it, are NaN in PyTorch
    if open_rows.all():
        return
    got, want, own = (x.masked_fill(open_rows.expand_as(x), 0) for x in (got, want, own))
    of = (lambda x: x.norm(dim=-1)) if rows else (lambda x: x.norm()[None])
    size, off, theirs = of(want), of(got - want), of(own.nan_to_num() - want)
    usual = size.square().mean().sqrt()
    theirs = torch.minimum(theirs, 0.1 * size + 2.0**-5 * usual)  # of a row of one key the gradient of a score is 0
    ratios = off / (2 * torch.maximum(theirs, HALF_ULP * size) + 2 * HALF_ULP * usual + 1e-6)
    ratio, at = ratios.max().item(), ratios.argmax()
    whole = ((got - want).norm() / want.norm().clamp(min=1e-9)).item()
    print(f"{what}: worst {ratio:.2f} of accepted, whole {whole:.2e}")
    assert not got.isnan().any() and ratio <= 1, (
        f"{what}, row {at.item()} of {list(size.shape)}: off {off.flatten()[at]:.2g}, size {size.flatten()[at]:.2g}, "
        f"usual {usual:.2g}, autograd's off {of(own.nan_to_num() - want).flatten()[at]:.2g}")
