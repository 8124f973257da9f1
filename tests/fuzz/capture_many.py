"""capture_many.py FOLDER FIRST COUNT: captures FOLDER/SEED.py of each seed to FOLDER/SEED.

One process for all of them, since importing PyTorch takes longer than a capture; and a few golden
cases of each, since spec_fuzz --captured only asks whether the form computes what PyTorch does.
"""

import logging
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "python"))

from kernelwright.capture import capture, goldens  # noqa: E402
from kernelwright.capture.diagnostic import Problem  # noqa: E402


def main():
    folder, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    goldens.CASES = [(1, 1, 1), (2, 33, 40), (1, 40, 17), (3, 9, 70)]
    for seed in range(first, first + count):
        if (folder / str(seed)).exists():
            continue
        try:
            capture.capture_file(folder / f"{seed}.py", "attention", None, folder / str(seed))
        except Problem as problem:
            print(f"seed {seed}: {problem.to_json(str(seed))}", flush=True)


if __name__ == "__main__":
    main()
