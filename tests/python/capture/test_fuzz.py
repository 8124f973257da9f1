"""Functions of the fuzzer's grammar, as Python through the real capture, have the form of the graph
that the fuzzer emits for them. All that were ever tried: spec_fuzz --python FOLDER 1 300, then
capture_many.py FOLDER 1 300, then spec_fuzz --captured FOLDER 1 300."""

import subprocess
import sys

from kernelwright_cli import ROOT

FUZZ = ROOT / "build" / "tests" / "spec_fuzz"


def test_a_dozen_functions_have_the_form_that_was_emitted(tmp_path):
    where = [str(tmp_path), "1", "12"]
    subprocess.run([FUZZ, "--python", *where], check=True)
    subprocess.run([sys.executable, ROOT / "tests/fuzz/capture_many.py", *where], check=True)
    done = subprocess.run([FUZZ, "--captured", *where], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert "12 the same" in done.stdout


def test_another_function_has_another_form(tmp_path):
    subprocess.run([FUZZ, "--python", tmp_path, "1", "2"], check=True)
    (tmp_path / "1.py").write_text((tmp_path / "2.py").read_text())
    subprocess.run([sys.executable, ROOT / "tests/fuzz/capture_many.py", tmp_path, "1", "1"], check=True)
    done = subprocess.run([FUZZ, "--captured", tmp_path, "1", "1"], text=True, capture_output=True)
    assert done.returncode == 1 and "1 different" in done.stdout
