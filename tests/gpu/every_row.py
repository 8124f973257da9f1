"""Holds every row of a generated kernel's output against fp64, at three ragged shapes.

    python tests/gpu/every_row.py examples/full.py=out/full examples/causal.py=out/causal ...

Needs a GPU and libkernelwright_launch.so (KERNELWRIGHT_LAUNCH says where). SPEC=FOLDER: the user's
file and what `kernelwright make` wrote for it. kernelwright-prove looks at sampled heads; here no
row is left out. The truth is the traced graph run in fp64 on the CPU (python/kernelwright/capture/
goldens.py), where the user's own function runs too, in its own type: a row of the kernel may be off
by twice the larger of the function's own error and half a unit in the last place. Of a kernel that
changes rows of q, k or v beforehand the truth may be that of these rows rounded to 16 bits, as a
product takes them (python/kernelwright/capture/rounded_rows.py). A row that sees no key must be zero. Both
layouts in memory are run, [B, H, S, D] and [B, S, H, D], each into an output full of NaNs, so that a
row nobody writes is seen. The second output, the logarithms of the row sums, is not in the user's
graph and not looked at: kernelwright-prove does.

Exit status 0: every row holds; 1: one does not, or a launch failed; 2: an argument is at fault.
"""

import argparse
import dataclasses
import hashlib
import json
import logging
import sys
import time
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from kernelwright.capture import goldens, load, trace  # noqa: E402
from kernelwright.capture.diagnostic import Problem  # noqa: E402
from kernelwright.capture.rounded_rows import RoundedRows  # noqa: E402
from kernelwright.runtime.bindings import to_kernel, to_user  # noqa: E402
from kernelwright.runtime.launch import DTYPES, Kernel  # noqa: E402

# B, M, N; M alone where N must be equal. The first draws words of bits that are all 0, so it is not the longest.
SHAPES = [(1, 333, 1111), (2, 1000, 777), (3, 130, 515)]
HALF_ULP = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
LAYOUTS = {"[B,H,S,D]": (0, 1, 2, 3), "[B,S,H,D]": (0, 2, 1, 3)}  # in the order of the memory


# ---- judging

@dataclasses.dataclass
class Verdict:
    rows: int
    worst: float  # error over accepted error
    out: list  # places of rows that are out, in the user's order of dimensions

    def __str__(self):
        text = f"{self.rows} rows, worst error {self.worst:.3f} of the accepted one"
        if not self.out:
            return text + ": holds"
        return text + f": WRONG, {len(self.out)} rows, the first at {self.out[0]}"


def judge(output, truths, own, half_ulp):
    """Every row of `output` against the nearest of `truths`, of which the first is the fp64 one;
    `own` is what the user's function gives."""
    output, truth = output.cpu(), truths[0]
    if output.shape != truth.shape:
        return Verdict(0, float("inf"), [f"shape {list(output.shape)}, not {list(truth.shape)}"])
    own_error = errors_of_rows(own, truth).nan_to_num(0, 0, 0)
    error = torch.stack([errors_of_rows(output, zero_without_keys(t)) for t in truths])
    error = error.nan_to_num(float("inf"), float("inf")).amin(0)
    share = error / (2 * own_error.clamp(min=half_ulp))
    out = [tuple(place) for place in (share > 1).nonzero().tolist()]
    return Verdict(share.numel(), share.max().item(), out)


def errors_of_rows(output, truth):
    return torch.from_numpy(goldens.row_errors(output.double(), truth))


def zero_without_keys(truth):
    """Softmax of nothing is NaN in PyTorch."""
    return truth.masked_fill(truth.isnan().all(-1)[..., None], 0)


# ---- the kernel's arguments

def laid_out(tensor, order):
    """The same tensor with its dimensions in memory in this order; other ranks are contiguous."""
    if tensor.dim() != len(order):
        return tensor.contiguous()
    back = [order.index(d) for d in range(len(order))]
    return tensor.permute(order).contiguous().permute(back)


def arguments_of(bindings, given, arguments, order):
    """(inputs by the kernel's names, name of the output, its dims and group)."""
    inputs, output = {}, None
    for binding in bindings:
        name, place = binding["argument"], (binding["dims"], binding.get("group", 1))
        if not binding["user"]:
            output = output or (name, place)
            continue
        value = given[binding["user"]]
        if arguments[name]["kind"] == "scalar":
            inputs[name] = value.item() if isinstance(value, torch.Tensor) else value
        else:
            inputs[name] = laid_out(to_kernel(value, *place).to(DTYPES[arguments[name]["dtype"]]),
                                    order)
    return inputs, *output


# ---- one kernel

@dataclasses.dataclass
class Claim:
    """What a folder says: that its kernel computes the function of a file."""

    spec: object
    traced: object
    bindings: list
    arguments: dict  # of launch.json, by name

    def changes_rows(self):
        """Whether a pre-pass writes rows of an operand; lists in a scratch are words, without dims."""
        return any(a["kind"] == "scratch" and "dims" in a for a in self.arguments.values())

    def truths(self, inputs, truth):
        if not self.changes_rows():
            return [truth]
        rounded = RoundedRows(self.traced.program.graph_module, self.traced.dtype)
        return [truth, goldens.truth_of(self.traced, rounded, inputs)]

    @staticmethod
    def read(file, folder):
        certificate = json.loads((Path(folder) / "certificate.json").read_text())
        launch = json.loads((Path(folder) / "launch.json").read_text())
        if certificate["spec"]["file"]["sha256"] != hashlib.sha256(
                Path(file).read_bytes()).hexdigest():
            raise Problem("every_row.other_file", f"{folder} was made from another text of {file}",
                          hint="run kernelwright make again")
        spec = load.load(file)
        traced = trace.trace(spec, trace.convert(spec, None))
        return Claim(spec, traced, certificate["transfer"]["bindings"],
                     {a["name"]: a for a in launch["arguments"]})


def check(claim, kernel, shapes=SHAPES, say=print):
    """True if every row holds. `kernel(inputs, the output's name, a tensor for it)` launches and
    gives that tensor, whose dimensions are in the kernel's order."""
    holds = True
    for entry, inputs, truth, own in goldens.run_cases(claim.spec, claim.traced, shapes):
        given = dict(zip(claim.spec.names, inputs))
        sizes = ", ".join(f"{d['name']} {d['shape']}" for d in entry["draws"] if d["shape"])
        say(f"  {sizes}")
        truths = claim.truths(inputs, truth)
        for layout, order in LAYOUTS.items():
            bound, name, place = arguments_of(claim.bindings, given, claim.arguments, order)
            nans = torch.full(truth.shape, float("nan"),
                              dtype=DTYPES[claim.arguments[name]["dtype"]])
            output = kernel(bound, name, laid_out(to_kernel(nans, *place), order))
            verdict = judge(to_user(output, *place), truths, own, HALF_ULP[claim.traced.dtype])
            say(f"    {layout}  {verdict}")
            holds = holds and not verdict.out
    return holds


def on_gpu(folder):
    """The kernel as `check` wants it."""
    kernel = Kernel(folder)

    def launch(inputs, name, empty):
        here = {n: v.cuda() if isinstance(v, torch.Tensor) else v for n, v in inputs.items()}
        output = empty.cuda()
        kernel(**here, **{name: output})
        torch.cuda.synchronize()
        return output
    return launch


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("claims", nargs="+", metavar="SPEC=FOLDER")
    claims = [argument.partition("=")[::2] for argument in parser.parse_args().claims]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch logs what it then raises
    if not torch.cuda.is_available():
        print("no GPU that PyTorch can use", file=sys.stderr)
        return 2
    holds = True
    for file, folder in claims:
        started = time.monotonic()
        print(f"{folder} computes {file}", flush=True)
        try:
            claim = Claim.read(file, folder)
        except (Problem, OSError, ValueError, KeyError) as error:
            print(f"{file}={folder}: {error!r}", file=sys.stderr)
            return 2
        try:
            holds = check(claim, on_gpu(folder), say=lambda s: print(s, flush=True)) and holds
        except RuntimeError as error:  # a launch that is refused, or that breaks the context
            print(f"  FAILED: {error}", flush=True)
            holds = False
        print(f"  {time.monotonic() - started:.1f} s", flush=True)
    print("every row holds" if holds else "NOT every row holds")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
