"""The integer divisions of a kernel's text, compiled for the host, at the ends of an int.

tests/gpu/conformance/scalars.cu asks the same of them on a GPU. Here the functions' own lines, of the device vocabulary
and of kernels in CuTe, run with the compiler's checks of overflow, and every quotient is held against 64 bits.
"""

import re
import subprocess

import pytest
from kernelwright_cli import ROOT

HOST = """
#include <climits>
#include <cstdio>
#include <initializer_list>
#define __clz __builtin_clz
%s
long long floor_of(long long a, long long b) { return a / b - (a %% b < 0); }
int main() {
  for (int b : {1, 2, 3, 64, 96, 100, 1000003, 1 << 30, INT_MAX - 1, INT_MAX})
    for (long long near : {(long long)INT_MIN, (long long)INT_MIN + b, 0ll, (long long)INT_MAX - b, (long long)INT_MAX})
      for (long long a = near - 2; a <= near + 2; ++a) {
        if (a < INT_MIN || a > INT_MAX) continue;
        if (floor_div(int(a), b) != floor_of(a, b)) printf("floor_div(%%lld, %%d)\\n", a, b);
        if (floor_mod(int(a), b) != a - floor_of(a, b) * b) printf("floor_mod(%%lld, %%d)\\n", a, b);
        if (ceil_div(int(a), b) != -floor_of(-a, b)) printf("ceil_div(%%lld, %%d)\\n", a, b);
      }
}
"""


@pytest.mark.parametrize("file", ["cuda/kw/scalar.cuh", "src/cute/prelude_scalars.inc"])
def test_divisions_are_exact_and_do_not_overflow_for_any_int(file, tmp_path):
    text = (ROOT / file).read_text()
    functions = [re.search(rf"^\w+_DEVICE (int {name}\(int a, int b\) {{.*?}}\n)(?! |}})", text, re.M | re.S)[1]
                 for name in ("floor_div", "floor_mod", "ceil_div")]  # fmt: skip
    source, program = tmp_path / "divisions.cpp", tmp_path / "divisions"
    source.write_text(HOST % "inline ".join(["", *functions]))
    subprocess.run(["g++", "-std=c++17", "-O1", "-fsanitize=undefined", source, "-o", program], check=True)
    run = subprocess.run([program], capture_output=True, text=True, check=True)
    assert not run.stdout + run.stderr, run.stdout + run.stderr
