"""A row of ops.def that has nothing but itself: scripts/check_docs.py lists every place that lacks it."""
import shutil
import subprocess
import sys

from kernelwright_cli import ROOT

FOLDERS = ["src/tl", "src/exec", "src/schedules", "src/timeline", "cuda/kw", "docs", "tests/ops",
           "tests/laws", "tests/gpu"]
ROW = """OP(frob, scheduled, body, none, map, warp, "t:u", none, any,
   "kw::frob($t:accumulator);", "frob $t", "")
"""


def check(root, *words):
    run = subprocess.run([sys.executable, ROOT / "scripts/check_docs.py", "--root", root, *words], text=True,
                         capture_output=True)
    return run.returncode, run.stdout.splitlines()[:-1]


def test_every_place_that_lacks_a_new_statement_is_listed(tmp_path):
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    table = tmp_path / "src/tl/ops.def"
    table.write_text(table.read_text() + ROW)
    assert check(tmp_path, "frob") == (1, [
        "frob: no law_frob in src/tl/laws",
        "frob: no exec_frob in src/exec",
        "frob: no line in src/schedules/dispatch.cpp",
        "frob: no cost in src/timeline/cost.cpp: it would be free",
        "frob: no kw::frob in cuda/kw",
        "frob: no conformance test of kw::frob in tests/gpu/conformance",
        "frob: no tests/ops/GROUP/frob.tl",
        "frob: ops.def has it, docs/tl/text has no section",
    ])
    assert check(tmp_path, "map") == (0, [])


def test_a_row_without_its_columns_is_an_error(tmp_path):
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    table = tmp_path / "src/tl/ops.def"
    table.write_text(table.read_text() + 'OP(frob, scheduled, body, none, "", "frob", "")\n')
    code, _ = check(tmp_path)
    assert code == 1
