"""A function that is not in the cache: capture it, make its kernel, keep both.

Capture runs in this process, since the function lives here; everything after it is the program's. The
kernel's key is what the program reads: the graph and the goldens without times, the target, the effort
of the check, and the program itself. So a function without a fingerprint is captured anew in each
process, and still made once.
"""

import contextlib
import json
import logging
import pathlib
import sys
import time
import warnings

import torch

from ..capture import capture, goldens, live_function
from ..capture.diagnostic import Problem
from ..errors import Inconclusive, InternalError, Refuted, SpecError
from . import program
from .cache import digest
from .signature import describe


def make(cache, key, function, values, places, target, check, training="", deterministic=False):
    """(record, folder, certificate), as compiler.find() gives them."""
    part = {"": "a kernel", "forward": "a forward kernel that saves", "backward": "a backward kernel"}[training]
    part += ", deterministic," if deterministic else ""
    _say(f"kernelwright: {part} for {function.__name__}, {target}; kept in {cache.root}")
    started = time.monotonic()
    captured, reached = _capture(function, values, places, check, training)
    if captured.traced.product:
        raise SpecError(f"{function.__name__} is a product of matrices; compile() takes attention",
                        captured.graph["file"], captured.graph["line"], 1, "spec.product",
                        "`kernelwright make` makes its kernel, and launch.h launches it")
    _say(f"capture   {function.__name__} in {time.monotonic() - started:.1f} s")
    for what, line in captured.outside[:3]:
        _say(f"          it takes {what}{f' in line {line}' if line else ''}, whose later contents no fingerprint shows: it is captured "
             "again in each process")
    key = None if captured.outside else key
    identity = program.identity(cache)
    kernel = digest(_meaning(captured), captured.index, target, check, identity, deterministic)
    found = cache.kernel(kernel)
    if found is None:
        with cache.making() as staging:
            capture.write(captured, staging / "captured")
            try:
                program.make(staging / "captured", staging / "kernel", target, check, _say, deterministic)
            except (Refuted, Inconclusive) as error:
                error.report = cache.keep_refused(kernel, staging)
                raise
            found = cache.add_kernel(kernel, staging / "kernel")
        if found is None:
            raise InternalError(f"what kernelwright make wrote of {function.__name__} is not whole")
    folder, certificate = found
    launch = json.loads((folder / "launch.json").read_text())
    suffix = (f"_{training}" if training else "") + ("_deterministic" if deterministic else "")
    record = {"kernel": kernel, "operator": f"{live_function.name_of(function)}{suffix}_{(key or kernel)[:10]}",
              "signature": describe(captured.graph, certificate, launch, reached, _constants(captured),
                                    goldens.least_sizes(captured.traced))}
    if key:
        cache.write("functions", f"{key}.{identity}", record)
    return record, folder, certificate


def _say(line):
    print(line, file=sys.stderr, flush=True)


def _meaning(captured):
    """graph.json without times and places on a disk."""
    return {name: part for name, part in captured.graph.items() if name not in ("seconds", "file")}


def _constants(captured):
    for name, value in captured.constants.items():
        if not isinstance(value, (type(None), bool, int, float, str)):
            raise SpecError(f"{name} is of the type {type(value).__name__}; arguments of a kernel are "
                            "tensors and numbers", captured.graph["file"], captured.graph["line"])
    return captured.constants


def _capture(function, values, places, check, training):
    spec, reached = live_function.user_spec(function, values, places)
    level = logging.root.manager.disable
    try:
        # Captured on the CPU, whatever the process prefers; PyTorch logs what it then raises. Whoever asks may be a checkpointed
        # layer, whose hooks would keep nothing of the capture's own gradients, and run the layer again for them.
        as_it_is = lambda x: x  # noqa: E731
        with (warnings.catch_warnings(), torch.device("cpu"), torch.inference_mode(False),
              torch.autograd.graph.saved_tensors_hooks(as_it_is, as_it_is)):
            warnings.simplefilter("ignore")
            logging.disable(logging.CRITICAL)
            # A quick check looks at eight cases; goldens take half of a cold start.
            cases = goldens.CASES[::2] if check == "quick" else goldens.CASES
            return capture.capture(spec, None, cases, live_function.source_of(function), training), reached
    except Problem as problem:
        raise SpecError(problem.message, spec.file, problem.line, problem.column, problem.code,
                        problem.hint or None) from None
    finally:
        logging.disable(level)
