"""docs/variants.md and its pictures are of today's examples; and how the page is written."""

import json
import re
import sys

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
from variants import cubridge_table, mask_picture, page as variants_page  # noqa: E402
from test_bench import result, row  # noqa: E402
from variants.rows import ROWS  # noqa: E402

torch.set_num_threads(1)
PAGE = (ROOT / "docs/variants.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
AGAIN = "run bench/variants/page.py again"


@pytest.mark.parametrize("example", variants_page.EXAMPLES)
def test_the_page_and_its_picture_are_of_todays_example(example):
    text = SECTIONS[example]
    assert f"<!-- {variants_page.digest(example)} -->" in text, AGAIN
    assert f"](variants/{example}.svg)" in text and variants_page.says(example) in text, AGAIN
    drawn = (ROOT / f"docs/variants/{example}.svg").read_text()
    assert drawn == mask_picture.picture(example), AGAIN
    assert len(drawn) < 9000


def test_the_page_has_nothing_else():
    chapters = {"Speed", "Why", "CuBridge's eight"}
    assert set(SECTIONS) - chapters == set(variants_page.EXAMPLES)
    pictures = {path.stem for path in (ROOT / "docs/variants").glob("*.svg")}
    assert pictures == set(variants_page.EXAMPLES)


def test_the_page_says_the_form_and_the_diff_of_a_kernel_made_today(makes):
    made = makes("prefix_lm")
    certificate, text = made.json("certificate.json"), SECTIONS["prefix_lm"]
    assert certificate["spec"]["form"].strip() in text, AGAIN
    gone, new, lines = variants_page.diff(made.folder)
    assert f"Lines: -{gone} +{new}, {100 * max(gone, new) / lines:.0f} %." in text, AGAIN
    assert re.search(rf"`{certificate['expert']['name']}`, {lines} lines", PAGE), AGAIN


# ---- pictures

def test_a_picture_has_each_kept_run_and_each_tiles_class():
    assert mask_picture.runs([True, True, False, True]) == [(0, 2), (3, 1)]
    cells = torch.zeros(16, 16, dtype=torch.bool)
    cells[:8, :8] = True
    cells[8, 3] = True
    full, partial = mask_picture.tiles(cells)
    assert full.tolist() == [[True, False], [False, False]]
    assert partial.tolist() == [[False, False], [True, False]]
    assert mask_picture.path([[False], [True]], 8) == "M0 12h8"
    assert 'stroke="#cfe8cf"' in mask_picture.picture("causal")


# ---- words of speed

ROW = next(row for row in ROWS["variants"] if row.example == "prefix_lm")
CELL = next(row for row in ROWS["cubridge"] if row.label == "Comb" and row.length == 8192)


def run_of(tmp_path, mode, cases):
    path = tmp_path / f"{mode}.json"
    path.write_text(json.dumps({"mode": mode, "rows": "variants", "peers": "all", "left_out": {},
                                "cases": cases}))
    return path


def test_speeds_and_masks_stand_beside_the_example(tmp_path):
    rows = {"cuBLAS 8192^3": row(700), "ours": row(600),
            "FlexAttention FLASH": row(500) | {"mask_ms": 3.0, "with_mask_tflops": 250},
            "FlexAttention Triton": row(300), "FlashAttention-4 known": row(800),
            "SDPA math": {"status": "failed: no"}}
    modes, runs = variants_page.read_runs([run_of(tmp_path, "sustained", {ROW.name: result(rows)})])
    assert variants_page.speed([ROW], modes) == [
        f"{ROW.name}, sustained: 600 TFLOP/s; fastest peer 500 (FlexAttention FLASH), 1.20x, 250 where "
        "each call has its own mask (3.0 ms)"]
    assert variants_page.table(modes, runs)[-2].startswith("H, driver 570; torch 2.11; 2025-01-02.")
    assert variants_page.table(modes)[2] == (
        f"| [{ROW.name}](#prefix_lm) | 600 | 500 FlexAttention FLASH | 1.20 (0.75 known) | 2.00 | 3.0 "
        "| 700 |")
    assert variants_page.speed([ROW], {}) == ["not measured"]


def test_a_wrong_kernel_has_no_speed(tmp_path):
    rows = {"cuBLAS 8192^3": row(700), "ours": {"status": "WRONG: row error"}}
    assert variants_page.figures(result(rows)) == "WRONG: row error"
    assert "| WRONG: row error | - | - | - | - | 700 |" in variants_page.table(
        {"burst": {ROW.name: result(rows)}})[2]


def test_cubridges_cells_are_beside_the_best_flexattention_and_what_is_published_is_marked():
    rows = {"cuBLAS 8192^3": row(700), "ours": row(600), "FlexAttention Triton": row(200),
            "FlexAttention FLASH": row(300), "PyTorch": row(20)}
    lines = cubridge_table.markdown({"burst": {CELL.name: result(rows)}})
    assert "| Comb | 32/32 | - | - | - | 600 (2.00, 30.00) |" in lines
    assert "| Comb | 64/8 | - | - | - | - |" in lines
    text = "\n".join(lines)
    assert "2.00x the best FlexAttention (1 cells, 2.00 to 2.00)" in text
    assert "Published (not measured here)" in text and "| CuBridge | 552 | 152 | 573 |" in text
    gone = rows | {"ours": {"status": "WRONG: x"}}
    assert cubridge_table.cell(result(gone)) == "WRONG"
    assert "Not measured" in "\n".join(cubridge_table.markdown({}))


def test_a_kernel_of_another_text_is_refused(tmp_path):
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "certificate.json").write_text(json.dumps({"spec": {"file": {"sha256": "0" * 64}}}))
    with pytest.raises(SystemExit, match="another text of full.py"):
        variants_page.section("full", tmp_path, {})
