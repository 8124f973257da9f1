"""Captures many specs in one process, so that PyTorch is imported once.

python capture_all.py OUT SPEC.py...  writes OUT/NAME for each; a refused one gets a file
OUT/NAME/problems.json with the diagnostics.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

import torch  # noqa: E402

from kernelwright.capture import goldens  # noqa: E402
from kernelwright.capture.capture import capture_file  # noqa: E402
from kernelwright.capture.diagnostic import Problem  # noqa: E402

torch.set_num_threads(1)  # the tensors are small
goldens.CASES = [(1, 1, 1), (2, 63, 65), (6, 17, 12), (1, 33, 129), (1, 130, 77)]

out = pathlib.Path(sys.argv[1])
for path in sys.argv[2:]:
    folder = out / pathlib.Path(path).stem
    try:
        capture_file(path, None, None, folder)
    except Problem as problem:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "problems.json").write_text(
            json.dumps({"diagnostics": [problem.to_json(path)]}))
