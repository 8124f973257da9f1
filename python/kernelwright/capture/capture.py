"""An attention function becomes a folder: graph.json, the goldens beside it, and source.py, the text that
was read. `python -m kernelwright.capture` does this for a file, `kernelwright.compile` for a live function.
"""

import dataclasses
import json
import os
import pathlib
import platform
import shutil
import time


@dataclasses.dataclass
class Captured:
    """What was captured, before it is written: graph.json as an object, the goldens, the text read."""
    graph: dict
    index: dict  # goldens.json
    truths: object
    errors: object
    source: bytes
    constants: dict  # arguments that are built in, by name
    traced: object  # trace.Trace
    outside: list = dataclasses.field(default_factory=list)  # (what, line) that a live function took from outside: outside.py


def capture(spec, dtype=None, cases=None, source=b"", training=""):
    """Captures a function (load.UserSpec). `dtype`: "bf16" or "f16" for operands of fp32; `cases`: the
    goldens' (B, M, N), goldens.CASES by default; `source`: the text that the function stands in;
    `training`: "forward" where a kernel is to save what gradients take, "backward" for the gradients themselves.
    Raises Problem where the user's file is at fault."""
    import torch

    from . import branches, built_in, elsewhere, exactness, goldens, gradients, graph, integers_of_reals, memory, more_heads, questions, \
        rounded_positions, sixteen_bits, trace, wrapping
    from .diagnostic import Problem

    types = {"bf16": torch.bfloat16, "f16": torch.float16, "fp16": torch.float16, None: None}
    started = time.monotonic()
    try:
        elsewhere.refuse_default_dtype(spec)
        elsewhere.refuse_questions(spec)
        before = elsewhere.state(spec)
        with elsewhere.sizes_are_no_text(spec):
            converted = trace.convert(spec, types[dtype])
            questions.refuse(spec, spec.values)
            traced = trace.trace(spec, converted)
        elsewhere.refuse_change(spec, before)
        graph.refuse_operators(traced.program.graph, traced.product or traced.rows)
        memory.refuse_shared_writes(traced.program.graph)
        branches.refuse_guards(spec, traced)
        known = exactness.refuse_lost_integers(traced)
        sixteen_bits.refuse_coarse_decisions(traced)
        integers_of_reals.refuse_integers_of_data(traced, known)
        rounded_positions.refuse_rounded_positions(traced)
        taken = wrapping.refuse_wrapped_integers(traced)
        text = graph.to_json(spec, traced)
    except Problem as problem:
        raise problem.of_text(spec.file, spec.text)
    text["built_in"] = built_in.lines(spec, traced) + taken
    text["made_by"] = {"python": platform.python_version(), "torch": torch.__version__}
    traced_at = time.monotonic()
    if training:
        text["training"] = training
    text["heads"] = more_heads.alike(spec, traced)
    if text["heads"] != "any":
        fixed = "number of heads" if text["heads"] == "own" else "number of query heads to a key head"
        traced.notes.append((f"the function computes with the {fixed}, or fixes it: launches have the example's", spec.line))
    index, truths, errors = (gradients if training == "backward" else goldens).make(spec, traced, cases or goldens.CASES)
    text["notes"] = [{"message": message, "line": line} for message, line in traced.notes]
    text["seconds"] = {"trace": round(traced_at - started, 3),
                       "goldens": round(time.monotonic() - traced_at, 3)}
    constants = {name: value for name, value, given in zip(spec.names, spec.values, traced.is_argument)
                 if not given}
    heard = getattr(spec.function, "__kernelwright_outside__", None)
    return Captured(text, index, truths, errors, source, constants, traced, heard.found if heard else [])


def capture_file(path, function, dtype, out, more_cases=(), training=""):
    """Captures a file's function into the folder `out`, as capture() does."""
    from . import goldens, load
    spec = load.load(path, function)
    captured = capture(spec, dtype, [*goldens.CASES, *more_cases], spec.text.encode(), training)
    captured.graph["asked"] = {"function": spec.asked, "dtype": dtype or ""}
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
