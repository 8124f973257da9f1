#!/usr/bin/env python3
"""What one run takes of tests that are too much for every run.

scripts/sample.py SHARE COMMIT [PATTERN] < `ctest -N`: one test in SHARE, as `ctest -I` takes them. With a
PATTERN only tests are sampled whose names match it; all others are taken.
scripts/sample.py --words SHARE COMMIT < WORDS: one word in SHARE, at least one, a line each.

A test is taken by a hash of its name and the commit, so that a commit runs the same tests every time,
and every test is run by one commit in SHARE."""

import hashlib
import re
import sys

words = sys.argv[1] == "--words"
share, commit, pattern = [*sys.argv[1 + words:], ""][:3]


def rank(name):
    return int(hashlib.sha256(f"{name} {commit}".encode()).hexdigest(), 16)


text = sys.stdin.read()
if words:
    taken = sorted(text.split(), key=rank)[: -(-len(text.split()) // int(share))]
    print(f"sample of commit {commit}: {' '.join(sorted(taken))}", file=sys.stderr)
    print("\n".join(sorted(taken)))
else:
    tests = re.findall(r"^ *Test +#(\d+): (\S+)", text, re.M)
    taken = [number for number, name in tests if not re.search(pattern, name) or rank(name) % int(share) == 0]
    if not taken:
        sys.exit(f"sample.py: none of {len(tests)} tests was chosen")
    print(f"sample of commit {commit}: {len(taken)} of {len(tests)} tests", file=sys.stderr)
    print(f"0,0,0,{','.join(taken)}")
