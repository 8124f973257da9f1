"""python -m kernelwright.capture SPEC.py [--function NAME] [--dtype bf16|f16] [--case B,M,N] [--training forward|backward] --out DIR

Traces an attention function and writes DIR/graph.json, the goldens beside it, and source.py, the
text that was read. What is wrong with the user's file goes to standard output as
{"diagnostics": [...]}, with exit code 2. A fault of ours is one line on standard error, exit code 70.
"""

import argparse
import contextlib
import json
import logging
import os
import pathlib
import sys
import warnings

# Before PyTorch is loaded: threads that wait for small products would take turns of whoever runs beside.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from .capture import capture_file
from .diagnostic import Problem, fault, of_machine


def _case(text):
    sizes = tuple(int(part) for part in text.split(","))
    if len(sizes) != 3 or min(sizes) < 1:
        raise ValueError(text)
    return sizes


def _refuse(problem, spec):
    """Never returns. A name of a file may have bytes that are no text: they come as question marks."""
    text = json.dumps({"diagnostics": [problem.to_json(spec)]}, ensure_ascii=False)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(prog="kernelwright.capture")
    parser.add_argument("spec")
    parser.add_argument("--function")
    parser.add_argument("--dtype", choices=["bf16", "f16", "fp16"])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[], type=_case, metavar="B,M,N",
                        help="one more golden case of these sizes")
    parser.add_argument("--training", choices=["forward", "backward"], default="",
                        help="with what gradients take, or the gradients")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch logs what it then raises
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the user's code prints
            capture_file(arguments.spec, arguments.function, arguments.dtype, arguments.out,
                         arguments.case, arguments.training)
    except (SystemExit, KeyboardInterrupt) as error:  # the user's code: ours raises none
        _refuse(Problem("spec.exits", f"the specification raises {type(error).__name__}, which ends Python", 1,
                        hint="return the output; what cannot be computed may raise an error"), arguments.spec)
    except Exception as error:
        refused = error if isinstance(error, Problem) else of_machine(error)
        if refused is not None:
            _refuse(refused, arguments.spec)
        print(fault(error), file=sys.stderr)
        sys.exit(70)


if __name__ == "__main__":
    main()
