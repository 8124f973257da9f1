#!/usr/bin/env python3
"""scripts/sample.py SHARE COMMIT < `ctest -N`: one test in SHARE, as `ctest -I` takes them.

A test is taken by a hash of its name and the commit, so that a commit runs the same tests every time,
and every test is run by one commit in SHARE."""

import hashlib
import re
import sys

share, commit = int(sys.argv[1]), sys.argv[2]
tests = re.findall(r"^ *Test +#(\d+): (\S+)", sys.stdin.read(), re.M)
chosen = [number for number, name in tests
          if int(hashlib.sha256(f"{name} {commit}".encode()).hexdigest(), 16) % share == 0]
if not chosen:
    sys.exit(f"sample.py: none of {len(tests)} tests was chosen")
print(f"sample of commit {commit}: {len(chosen)} of {len(tests)} tests", file=sys.stderr)
print(f"0,0,0,{','.join(chosen)}")
