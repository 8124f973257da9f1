"""What one run takes of cases that are too many for every run.

The choice is a hash of the sample's name, the case and the commit, so that a commit has one verdict,
today and tomorrow, and another commit takes others. KW_SAMPLE=COMMIT repeats the choice of a commit, and
KW_TEST_ALL=1 takes all. What was chosen is in the last lines of pytest (conftest.py).
"""

import functools
import hashlib
import os
import pathlib
import subprocess

ALL = os.environ.get("KW_TEST_ALL") == "1"
CHOSEN = {}  # what this process chose, by the sample's name


@functools.cache
def commit():
    if given := os.environ.get("KW_SAMPLE"):
        return given
    run = subprocess.run(["git", "rev-parse", "HEAD"], cwd=pathlib.Path(__file__).parent, capture_output=True, text=True)
    return run.stdout.strip() or "no commit"


def sample(name, cases, count=1):
    """`count` of the cases, in their order; all with KW_TEST_ALL=1."""
    cases = list(cases)

    def rank(n):
        return hashlib.sha256(f"{name} {cases[n]} {commit()}".encode()).hexdigest()

    if not ALL:
        cases = [cases[n] for n in sorted(sorted(range(len(cases)), key=rank)[:count])]
    CHOSEN[name] = [str(case) for case in cases]
    return cases
