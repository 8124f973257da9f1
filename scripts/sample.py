#!/usr/bin/env python3
"""What one run takes of tests that are too much for every run.

scripts/sample.py COMMIT SHARE PATTERN [SHARE PATTERN]... < `ctest -N`: of the tests whose names match a PATTERN,
the first that does, one in SHARE; all others are taken. As `ctest -I` takes them.
scripts/sample.py --words COMMIT SHARE < WORDS: one word in SHARE, at least one, a line each.

A test is taken by a hash of its name and the commit, so that a commit runs the same tests every time,
and every test is run by one commit in SHARE."""

import hashlib
import re
import sys

words = sys.argv[1] == "--words"
commit, *shares = sys.argv[1 + words:]
shares = [(int(share), pattern) for share, pattern in zip(shares[::2], shares[1::2] or [""], strict=True)]


def rank(name):
    return int(hashlib.sha256(f"{name} {commit}".encode()).hexdigest(), 16)


text = sys.stdin.read()
if words:
    taken = sorted(text.split(), key=rank)[: -(-len(text.split()) // shares[0][0])]
    print(f"sample of commit {commit}: {' '.join(sorted(taken))}", file=sys.stderr)
    print("\n".join(sorted(taken)))
else:
    tests = re.findall(r"^ *Test +#(\d+): (\S+)", text, re.M)
    share = {name: next((s for s, pattern in shares if re.search(pattern, name)), 1) for _, name in tests}
    taken = [number for number, name in tests if rank(name) % share[name] == 0]
    if not taken:
        sys.exit(f"sample.py: none of {len(tests)} tests was chosen")
    print(f"sample of commit {commit}: {len(taken)} of {len(tests)} tests", file=sys.stderr)
    print(f"0,0,0,{','.join(taken)}")
