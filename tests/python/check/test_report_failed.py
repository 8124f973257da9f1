"""The page of a make or a check that did not hold: what is on it, where it lies, and that no kernel lies
beside it. Programs are made wrong on purpose, each in another way."""

import json
import re
import shutil

import html5lib
import pytest

import browser
from engineers import replaced, write_kernel
from kernelwright_cli import KERNEL, assert_refused, call, write_spec
from test_report import HTML, all_of, colours, parse, text_of, verdict

# ReLU attention: comparisons of scores are what the exact reading cannot decide.
BODY = """s = q @ k.mT * 128**-0.5
    j, i = torch.arange(k.shape[2]), torch.arange(q.shape[2])[:, None]
    return s.relu().masked_fill(j > i, 0) / k.shape[2] @ v"""


@pytest.fixture(scope="module")
def top(tmp_path_factory):
    """A captured folder, and the program of its function."""
    top = tmp_path_factory.mktemp("failed")
    steps = [("capture", write_spec(top, BODY), "--out", top / "captured"),
             ("lift", KERNEL, "--out", top / "expert.tl"),
             ("transfer", top / "expert.tl", "--spec", top / "captured", "--out", top / "right.tl")]
    for words in steps:
        run = call(*words)
        assert run.returncode == 0, run.stderr
    return top


def checked(top, old, new, page):
    """`kernelwright check` of the program with one edit."""
    (top / "edited.tl").write_text(replaced((top / "right.tl").read_text(), old, new))
    return call("check", top / "edited.tl", "--spec", top / "captured", "--check", "quick", "--report", page)


def blamed(tree):
    return [" ".join(text_of(line).split()) for line in all_of(tree, "blamed", HTML + "code")]


# ---- check --report

MASK = ("j < min(N, i + 1)", "j < min(N, i)")


def test_a_wrong_value_is_shown_in_red_with_its_row_and_its_statement(top, tmp_path):
    run = checked(top, *MASK, tmp_path / "page.html")
    assert run.returncode == 1, run.stderr
    tree = parse(tmp_path / "page.html")
    tone, words = verdict(tree)
    assert tone == ["bad"] and "REFUTED." in words and re.search(r"batch \d+, head \d+, query 0", words), words
    assert "No kernel was written" not in words  # a check writes none
    row = next(line for line in run.stdout.splitlines() if " got " in line)
    got, want = re.search(r"got (\S+) +want (\S+)", row).groups()
    cells = [text_of(cell) for cell in all_of(tree, "numbers")[0].iter(HTML + "td")]
    assert cells[:2] == [got, want]
    statement = re.search(r"line (\d+).*\n +(.*)\n +(.*)", run.stdout)
    assert blamed(tree) == [statement[2]] and statement[3] in text_of(tree)
    line = all_of(tree, "blamed")[0].get("data-line")
    assert (top / "edited.tl").read_text().splitlines()[int(line) - 1].strip() == statement[2]
    assert all_of(tree, "mask") and "those with j ≤ i" in text_of(tree)


def test_a_fault_is_shown_with_the_statement_that_goes_wrong(top, tmp_path):
    text = (top / "right.tl").read_text()
    wait = re.search(r"\n *wait v_full\[t\](?=\n)", text)[0]
    run = checked(top, wait, "", tmp_path / "page.html")
    assert run.returncode == 1, run.stderr
    tree = parse(tmp_path / "page.html")
    tone, words = verdict(tree)
    assert tone == ["bad"] and "is read before a wait for" in words
    assert "exec.not_arrived" in text_of(tree) and "last filled by" in text_of(tree)
    assert blamed(tree) == ["wgmma_add acc += p @ v_s[t]"] and not all_of(tree, "numbers")


def test_what_cannot_be_decided_is_amber_and_says_why(top, tmp_path):
    run = checked(top, "max(s[i, j] * scale, 0.0)", "max(s[i, j], 0.0) * scale", tmp_path / "page.html")
    assert run.returncode == 3, run.stderr
    tree = parse(tmp_path / "page.html")
    tone, words = verdict(tree)
    assert tone == ["unsure"] and "INCONCLUSIVE." in words and "knows too little about: order" in words
    assert "REFUTED" not in text_of(tree) and "Nothing was found to be wrong" in text_of(tree)
    advice = [text_of(item) for item in all_of(tree, "advice")[0]]
    assert advice[0].startswith("Write the operation as the specification does")


def test_a_program_that_holds_leaves_no_page(top, tmp_path):
    (tmp_path / "page.html").write_text("of an earlier check")
    run = checked(top, "0.0)", "0.0)", tmp_path / "page.html")
    assert run.returncode == 0 and not (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_written_is_said(top, tmp_path):
    run = checked(top, *MASK, tmp_path / "none/page.html")
    assert run.returncode == 1 and "driver.write" in run.stderr


# ---- make, port and rebase

def leave_pages(target):
    """What earlier makes left beside a target."""
    for verdict_of in ("inconclusive", "refuted"):
        left = target.parent / f"{target.name}.{verdict_of}"
        left.mkdir()
        for name in ("report.html", "program.tl"):
            (left / name).write_text("of an earlier make")


@pytest.fixture(scope="module")
def refused(top):
    """(the run, its folder's path) of a rebase with a person's wrong edit, over an earlier page."""
    kernel = write_kernel(top / "fmha.cu")
    leave_pages(top / "variant")
    run = call("port", kernel, "--spec", top / "captured", "--check", "quick", "--out", top / "variant")
    assert run.returncode == 0, run.stderr
    assert not list(top.glob("variant.*"))  # a make that holds takes the pages of earlier ones away
    cuda = top / "variant/kernel.cu"
    cuda.write_text(replaced(cuda.read_text(), "kw::min(args.N, i + 1) ? x", "kw::min(args.N, i + 2) ? x"))
    leave_pages(top / "again")
    return call("rebase", top / "variant", "--onto", kernel, "--out", top / "again", "--check", "quick")


def test_a_refuted_make_leaves_a_page_and_no_kernel(refused, top):
    assert refused.returncode == 1 and f"{top}/again.refuted/report.html" in refused.stderr
    assert not (top / "again").exists() and not (top / "again.inconclusive").exists()
    left = {p.name for p in (top / "again.refuted").iterdir()}
    assert left == {"report.html", "program.tl", "captured"}
    assert not list((top / "again.refuted").rglob("*.cu*"))


def test_the_page_has_the_statement_in_both_languages_the_edit_and_the_change(refused, top):
    tree = parse(top / "again.refuted/report.html")
    tone, words = verdict(tree)
    assert tone == ["bad"] and "No kernel was written." in words
    said = re.search(r"first statement that differs \(line (\d+), .*:(\d+):\d+\):\n +(.*)", refused.stderr)
    tl, cuda = all_of(tree, "blamed", HTML + "code")
    assert (tl.get("data-line"), cuda.get("data-line")) == (said[1], said[2])
    assert text_of(tl).strip() == said[3] and text_of(cuda).strip().startswith("kw::map(acc, ")
    assert f"Edits by hand in {top}/variant/kernel.cu" in text_of(tree)
    changed = [text_of(row) for row in all_of(tree, "changed", HTML + "div")]
    assert any("i + 2) ? x" in line for line in changed)


def test_the_page_stands_alone(refused, top):
    page = top / "again.refuted/report.html"
    tags = {e.tag.rpartition("}")[2] for e in parse(page).iter() if isinstance(e.tag, str)}
    assert not tags & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.read_text()


def test_the_folder_can_be_checked_again_as_its_page_says(refused, top):
    tree = parse(top / "again.refuted/report.html")
    command = text_of([pre for pre in all_of(tree, "advice")[0].iter(HTML + "pre")][-1])
    assert command.startswith("kernelwright check program.tl --spec captured")
    run = call(*command.split()[1:], cwd=top / "again.refuted")
    assert run.returncode == 1 and text_of(all_of(tree, "blamed")[0]).strip() in run.stdout


def test_a_capture_without_cases_is_refused_and_decides_nothing(top, tmp_path):
    shutil.copytree(top / "captured", tmp_path / "captured")
    goldens = tmp_path / "captured/goldens.json"
    goldens.write_text(json.dumps({**json.loads(goldens.read_text()), "cases": []}))
    assert_refused(call("make", tmp_path / "captured"), "spec.capture", "goldens.json holds no cases")


def test_an_undecided_make_leaves_its_page_beside_what_somebody_else_put_there(refused, top, tmp_path):
    shutil.copytree(top / "variant", tmp_path / "variant")
    cuda = tmp_path / "variant/kernel.cu"
    text = replaced(cuda.read_text(), "kw::min(args.N, i + 2) ? x", "kw::min(args.N, i + 1) ? x")
    cuda.write_text(replaced(text, "kw::max(x * args.scale, 0.0f)", "kw::max(x, 0.0f) * args.scale"))
    (tmp_path / "now.refuted").mkdir()
    (tmp_path / "now.refuted/notes.txt").write_text("mine")
    run = call("rebase", tmp_path / "variant", "--onto", top / "fmha.cu", "--out", tmp_path / "now", "--check", "quick")
    assert run.returncode == 3, run.stderr
    assert verdict(parse(tmp_path / "now.inconclusive/report.html"))[0] == ["unsure"]
    assert not (tmp_path / "now").exists() and (tmp_path / "now.refuted/notes.txt").exists()


# ---- in a browser

@pytest.mark.parametrize("scheme, paper, mark", [(browser.LIGHT, "#fce8e6", "#f6bfb9"),
                                                 (browser.DARK, "#3c1a18", "#6d2f2b")], ids=["light", "dark"])
def test_a_browser_shows_red_and_the_blamed_lines_on_the_first_screen(refused, top, tmp_path, scheme, paper, mark):
    image = browser.screenshot(top / "again.refuted/report.html", tmp_path / "page.png", 1400, 1000, scheme)
    assert colours(image, paper) > 50_000  # the verdict's field
    assert colours(image, mark) > 10_000  # the statement, in both languages


def test_hostile_text_stays_text(top, tmp_path):
    hostile = "# </pre><script>alert(1)</script><img src=x onerror=alert(2)>\n"
    shutil.copytree(top / "captured", tmp_path / "captured")
    source = next((tmp_path / "captured").glob("*.py"))
    source.write_text(hostile + source.read_text())
    (tmp_path / "edited.tl").write_text(hostile + replaced((top / "right.tl").read_text(), *MASK))
    run = call("check", tmp_path / "edited.tl", "--spec", tmp_path / "captured", "--check", "quick",
               "--report", tmp_path / "page.html")
    assert run.returncode == 1, run.stderr
    after = html5lib.parse(browser.document(tmp_path / "page.html"))
    assert not list(after.iter(HTML + "script")) and not list(after.iter(HTML + "img"))
    assert "onerror=alert(2)" in text_of(after)
