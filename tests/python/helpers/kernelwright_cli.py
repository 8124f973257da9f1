"""How tests call the built command, and what a user may expect of every refusal."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).parents[3]
COMMAND = ROOT / "build/kernelwright"
KERNEL = ROOT / "kernels/sm90/attention_fwd.cu"
SCREEN = 25  # lines
# The command's Python: captures start in a process that has imported PyTorch (warm_capture.py). It has a name beside
# the real one, where the command looks for libraries of the same environment; conftest.py makes it. That process is in no sandbox.
WARM = {"KERNELWRIGHT_PYTHON": str(ROOT / ".venv/bin/warm-python"), "KERNELWRIGHT_ISOLATION": "none"}


def call(*words, cwd=ROOT, stdin="", timeout=300, **environment):
    return subprocess.run([str(COMMAND), *map(str, words)], cwd=cwd, input=stdin, text=True,
                          capture_output=True, timeout=timeout, env={**os.environ, **WARM, **environment})


def assert_refused(run, code, *parts, exit_code=2):
    """One screen on standard error with the code and every part; no traceback, no result."""
    said = run.stderr
    assert run.returncode == exit_code, said
    assert f"[{code}]" in said, said
    for part in parts:
        assert str(part) in said, said
    assert "Traceback" not in said and len(said.splitlines()) <= SCREEN, said


SPEC = """import torch


def attention(q, k, v{more}):
    {body}


def example_inputs():
    q, k, v = (torch.randn({shape}, dtype=torch.{dtype}) for _ in range(3))
    return q, k, v{values}
"""


def write_spec(folder, body="return (q @ k.mT * 128**-0.5).softmax(-1) @ v", more="", values="",
               shape="2, 4, 96, 128", dtype="bfloat16"):
    path = folder / "attention.py"
    path.write_text(SPEC.format(body=body, more=more, values=values, shape=shape, dtype=dtype))
    return path


def cubin_check(certificate):
    """What a certificate says of the cubin."""
    return next(c["coverage"] for c in certificate["checked"] if c["check"] == "cubin")
