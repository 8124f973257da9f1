"""python -m kernelwright.capture SPEC.py [--function NAME] [--dtype bf16|f16] [--case B,M,N] --out DIR

Traces an attention function and writes DIR/graph.json, the goldens beside it, and source.py, the
text that was read. What is wrong with the user's file goes to standard output as
{"diagnostics": [...]}, with exit code 2. A fault of ours is one line on standard error, exit code 70.
"""

import argparse
import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import platform
import shutil
import sys
import time
import warnings


@dataclasses.dataclass
class Captured:
    """What was captured, before it is written: graph.json as an object, the goldens, the text read."""
    graph: dict
    index: list
    truths: object
    errors: object
    source: bytes
    constants: dict  # arguments that are built in, by name


def capture(spec, dtype=None, cases=None, source=b""):
    """Captures a function (load.UserSpec). `dtype`: "bf16" or "f16" for operands of fp32; `cases`: the
    goldens' (B, M, N), goldens.CASES by default; `source`: the text that the function stands in.
    Raises Problem where the user's file is at fault."""
    import torch

    from . import goldens, graph, trace

    types = {"bf16": torch.bfloat16, "f16": torch.float16, "fp16": torch.float16, None: None}
    started = time.monotonic()
    traced = trace.trace(spec, trace.convert(spec, types[dtype]))
    graph.refuse_operators(traced.program.graph)
    text = graph.to_json(spec, traced)
    text["made_by"] = {"python": platform.python_version(), "torch": torch.__version__}
    traced_at = time.monotonic()
    index, truths, errors = goldens.make(spec, traced, cases or goldens.CASES)
    text["seconds"] = {"trace": round(traced_at - started, 3),
                       "goldens": round(time.monotonic() - traced_at, 3)}
    constants = {name: value for name, value, given in zip(spec.names, spec.values, traced.is_argument)
                 if not given}
    return Captured(text, index, truths, errors, source, constants)


def capture_file(path, function, dtype, out, more_cases=()):
    """Captures a file's function into the folder `out`."""
    from . import goldens, load
    captured = capture(load.load(path, function), dtype, [*goldens.CASES, *more_cases],
                       pathlib.Path(path).read_bytes())
    captured.graph["asked"] = {"function": function or "", "dtype": dtype or ""}
    write(captured, out)


def write(captured, out):
    """Writes the folder `out` whole or not at all."""
    from . import goldens
    staging = out.parent / f".{out.name}.{os.getpid()}"
    staging.mkdir(parents=True)
    try:
        goldens.write(staging, captured.index, captured.truths, captured.errors)
        (staging / "source.py").write_bytes(captured.source)
        (staging / "graph.json").write_text(json.dumps(captured.graph, indent=1))
        shutil.rmtree(out, ignore_errors=True)
        staging.rename(out)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _case(text):
    sizes = tuple(int(part) for part in text.split(","))
    if len(sizes) != 3 or min(sizes) < 1:
        raise ValueError(text)
    return sizes


def main():
    parser = argparse.ArgumentParser(prog="kernelwright.capture")
    parser.add_argument("spec")
    parser.add_argument("--function")
    parser.add_argument("--dtype", choices=["bf16", "f16", "fp16"])
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[], type=_case, metavar="B,M,N",
                        help="one more golden case of these sizes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # PyTorch logs what it then raises

    from .problem import Problem, fault
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what the user's code prints
            capture_file(arguments.spec, arguments.function, arguments.dtype, arguments.out,
                         arguments.case)
    except Problem as problem:
        print(json.dumps({"diagnostics": [problem.to_json(arguments.spec)]}))
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        missing = Problem("spec.no_pytorch", f"{sys.executable} has no PyTorch",
                          hint="run capture with a Python that has PyTorch 2.6 or later")
        print(json.dumps({"diagnostics": [missing.to_json(arguments.spec)]}))
        sys.exit(2)
    except Exception as error:
        print(fault(error), file=sys.stderr)
        sys.exit(70)


if __name__ == "__main__":
    main()
