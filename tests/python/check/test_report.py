"""report.html, held against the files that it is about: the certificate, the patch, kernel.tl, the mask
as PyTorch computes it; given hostile text; and opened in a browser."""

import hashlib
import json
import re
import shutil
import sys

import html5lib
import pytest
import torch

import browser
from kernelwright_cli import ROOT, assert_refused, call

sys.path.insert(0, str(ROOT / "bench"))
HTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 500_000  # bytes


def parse(path):
    """The page's tree; HTML5's parser in strict mode raises at the first error of form."""
    return html5lib.HTMLParser(strict=True).parse(path.read_text())


def text_of(element):
    return "".join(element.itertext())


def classes(element):
    return element.get("class", "").split()


def all_of(tree, name, tag=None):
    return [e for e in tree.iter() if name in classes(e) and (tag is None or e.tag == tag)]


@pytest.fixture(scope="session")
def folder(makes):
    result = makes("prefix_lm")
    assert result.run.returncode == 0, result.run.stderr
    return result.folder


@pytest.fixture
def copy(folder, tmp_path):
    return shutil.copytree(folder, tmp_path / "made")


def rewrite(folder, name, change):
    """Changes a file of a folder, and the certificate so that it names what is there then."""
    path = folder / name
    path.write_text(change(path.read_text()))
    edit(folder, lambda c: c["files"].update({name: hashlib.sha256(path.read_bytes()).hexdigest()}))


def edit(folder, change):
    path = folder / "certificate.json"
    certificate = json.loads(path.read_text())
    change(certificate)
    path.write_text(json.dumps(certificate))


def again(folder, *options):
    run = call("report", folder, *options)
    assert run.returncode == 0, run.stderr
    return parse(folder / "report.html")


# ---- the page

def test_the_page_is_well_formed_stands_alone_and_is_small(made):
    page = made.folder / "report.html"
    tree = parse(page)
    assert page.stat().st_size < LARGEST
    tags = {e.tag.rpartition("}")[2] for e in tree.iter() if isinstance(e.tag, str)}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image"}
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name not in ("src", "action"), (element.tag, name)
            assert name != "href" or value.startswith("#"), value
    policy = [e.get("content") for e in tree.iter(HTML + "meta")
              if e.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "url(" not in page.read_text() and "@import" not in page.read_text()


def said(value):
    """Each fact of a certificate, as the page says numbers and strings."""
    if isinstance(value, dict):
        for one in value.values():
            yield from said(one)
    elif isinstance(value, list):
        for one in value:
            yield from said(one)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        yield f"{value:,}"
    elif isinstance(value, float):
        yield f"{value:.3g}"
    elif value:
        yield value.strip()


def test_the_page_contains_every_fact_of_the_certificate(made):
    page = text_of(parse(made.folder / "report.html"))
    certificate = made.json("certificate.json")
    for left_out in ("schema", "holds_for", "verdict"):  # said in other words
        certificate.pop(left_out)
    certificate.pop("root"), certificate["files"].pop("report.html")  # of the page itself
    certificate["expert"].pop("from")
    certificate["expert"].pop("sha256")  # stands there as that of from/expert.cu
    for hidden in ("graph_sha256", "function", "dtype"):
        certificate["spec"].pop(hidden)
    for fact in said(certificate):
        assert fact in page or fact.replace("e-", "e-0") in page, fact


def rows(tree):
    """(old line, new line, changed) of the diff, each line with its number or None."""
    for row in all_of(tree, "row", HTML + "div"):
        if "head" in classes(row):
            continue
        old, new = ((int(cell.get("data-line")), text_of(cell)) if cell.get("data-line") else None
                    for cell in row.findall(HTML + "code")[:2])
        yield old, new, "changed" in classes(row)


def test_the_diff_shows_the_lines_of_the_patch_and_no_others(made):
    tree = parse(made.folder / "report.html")
    patch = (made.folder / "kernel.patch").read_text().splitlines()[2:]
    changed = [(old, new) for old, new, is_changed in rows(tree) if is_changed]
    assert [old[1] for old, _ in changed if old] == [line[1:] for line in patch if line[:1] == "-"]
    assert [new[1] for _, new in changed if new] == [line[1:] for line in patch if line[:1] == "+"]
    assert all(old[1] == new[1] for old, new, is_changed in rows(tree) if not is_changed)
    for file, side in (("from/expert.cu", 0), ("kernel.cu", 1)):
        lines = (made.folder / file).read_text().splitlines()
        shown = [row[side] for row in rows(tree) if row[side]]
        assert shown == list(enumerate(lines, 1)), file


def test_the_page_says_how_many_lines_changed_as_make_does(made):
    words = text_of(all_of(parse(made.folder / "report.html"), "lines", HTML + "p")[0])
    made_says = re.search(r"(\d+ of \d+ lines changed)", made.run.stderr)[1]
    assert made_says in words or (made_says.startswith("0 ") and "No line changed" in words)


def test_every_statement_of_the_program_stands_beside_a_line(made):
    tree = parse(made.folder / "report.html")
    beside = [line for cell in all_of(tree, "tl", HTML + "code") for span in cell
              if "gone" not in classes(span) for line in text_of(span).splitlines()]
    program = [line.strip() for line in (made.folder / "kernel.tl").read_text().splitlines()]
    assert sorted(beside) == sorted(program)


def test_prefix_is_marked_as_what_is_new_in_the_mask_and_its_line(folder):
    tree = parse(folder / "report.html")
    assert text_of(next(tree.iter(HTML + "mark"))) == "j ≤ i or j < prefix[b]"
    inserted = " ".join(text_of(e) for e in tree.iter(HTML + "ins"))
    assert "kept" in inserted and "work" in inserted


# ---- the mask

ROWS, KEYS = 64, 128  # of a tile


def expected_tiles(keep):
    """"none", "all" or "partial" of every tile of a mask."""
    blocks = keep.unflatten(0, (-1, ROWS)).unflatten(2, (-1, KEYS))
    every, some = blocks.all(3).all(1), blocks.any(3).any(1)
    return [["all" if e else "partial" if s else "none" for e, s in zip(*both)]
            for both in zip(every.tolist(), some.tolist())]


def drawn_tiles(picture):
    """The same, of the strokes of a picture."""
    _, _, width, height = map(int, picture.get("viewBox").split())
    tiles = [["none"] * (width // KEYS) for _ in range(height // ROWS)]
    for name, kind in (("full", "all"), ("partial", "partial")):
        for path in all_of(picture, name, SVG + "path"):
            for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d")):
                for n in range(int(x) // KEYS, (int(x) + int(length)) // KEYS):
                    tiles[int(y) // ROWS][n] = kind
    return tiles


def masks_of(page):
    return all_of(parse(page), "mask", SVG + "svg")


def test_the_tiles_of_the_picture_are_those_of_the_mask(folder):
    i, j = torch.arange(1024)[:, None], torch.arange(1024)
    expected = [expected_tiles((j <= i) | (j < 4 * prefix)) for prefix in (17, 130)]
    drawn = [drawn_tiles(picture) for picture in masks_of(folder / "report.html")]
    assert sorted(drawn) == sorted(expected)


def test_the_legend_counts_the_tiles_of_the_picture(folder):
    tree = parse(folder / "report.html")
    tiles = [tile for row in drawn_tiles(all_of(tree, "mask", SVG + "svg")[0]) for tile in row]
    counts = [int(text_of(next(item.iter(HTML + "b")))) for item in all_of(tree, "legend")[0]]
    assert counts == [tiles.count(kind) for kind in ("none", "all", "partial")]


def test_the_mask_follows_the_examples_data_and_not_its_name(copy):
    def fewer(graph):
        graph = json.loads(graph)
        graph["examples"]["prefix"]["values"] = [100, 256]
        return json.dumps(graph)
    rewrite(copy, "from/graph.json", fewer)
    i, j = torch.arange(1024)[:, None], torch.arange(1024)
    drawn = [drawn_tiles(p) for p in all_of(again(copy), "mask", SVG + "svg")]
    assert sorted(drawn) == sorted(expected_tiles((j <= i) | (j < n)) for n in (400, 1024))


def test_a_mask_whose_data_is_not_kept_is_not_drawn_and_the_page_says_so(copy):
    def without(graph):
        graph = json.loads(graph)
        graph["examples"]["prefix"]["values"] = None
        return json.dumps(graph)
    rewrite(copy, "from/graph.json", without)
    tree = again(copy)
    assert not all_of(tree, "mask", SVG + "svg")
    assert "The mask is not drawn: the mask reads 'prefix'" in text_of(tree)


# ---- what others wrote

HOSTILE = "</script></style></title><img src=x onerror=alert(1)><script>alert(2)</script>'\"&amp;\x01"


def test_hostile_text_stays_text(copy):
    rewrite(copy, "from/prefix_lm.py", lambda text: f"# {HOSTILE}\n{text}")
    for name in ("kernel.cu", "from/expert.cu", "kernel.patch"):
        rewrite(copy, name, lambda text: text.replace("// one tile of the output", f"// {HOSTILE}"))

    def names(certificate):
        certificate["spec"]["name"] = certificate["spec"]["form"] = HOSTILE
        certificate["expert"]["name"] = HOSTILE
        certificate["not_checked"].append(HOSTILE)
        certificate["tools"]["clang"] = HOSTILE
        certificate["transfer"]["notes"] = [HOSTILE]
        certificate["transfer"]["rules"][0] |= {"rule": HOSTILE, "after": HOSTILE}
    edit(copy, names)
    tree = again(copy)
    assert not list(tree.iter(HTML + "script")) and not list(tree.iter(HTML + "img"))
    shown = HOSTILE.replace("\x01", "\ufffd")
    assert text_of(tree).count(shown) >= 10
    assert any(shown in text_of(e) for e in tree.iter(HTML + "title"))
    after = html5lib.parse(browser.document(copy / "report.html"))
    assert not list(after.iter(HTML + "script")) and not list(after.iter(HTML + "img"))


def test_a_file_that_is_not_the_certificates_is_refused(copy):
    with open(copy / "kernel.cu", "a") as kernel:
        kernel.write("// better\n")
    assert_refused(call("report", copy), "report.files", "kernel.cu", "SHA-256")


def test_a_folder_without_a_certificate_is_refused(tmp_path):
    assert_refused(call("report", tmp_path), "certificate.file", tmp_path)


# ---- what a GPU says

def verdict(tree):
    header = next(tree.iter(HTML + "header"))
    return classes(header), text_of(all_of(header, "verdict")[0])


def certify(folder, tmp_path, **report):
    cubin = hashlib.sha256((folder / "kernel.cubin").read_bytes()).hexdigest()
    proof = tmp_path / "proof.json"
    proof.write_text(json.dumps({"cubin_sha256": cubin,
                                 "machine": {"gpu": "NVIDIA H200", "driver": "13.0"}, **report}))
    run = call("certify", folder, "--proof", proof)
    assert run.returncode == 0, run.stderr
    return again(folder)


def case(name, ratio, **more):
    return {"name": name, "goldens": [{"rows": 9, "worst_ratio": ratio}], "findings": [], **more}


def test_without_a_gpu_the_page_says_that_none_ran_and_nothing_was_measured(folder):
    tree = parse(folder / "report.html")
    tone, words = verdict(tree)
    assert tone == ["good"] and "Holds." in words and "no GPU has run it yet" in words
    page = text_of(tree)
    assert "Not run on a GPU yet" in page and "Not measured." in page
    assert "TFLOP/s measured" not in page and not all_of(tree, "roofline")


def test_a_gpus_refutation_turns_the_verdict(copy, tmp_path):
    wrong = case("golden 2", 7.5) | {"findings": [{"code": "prove.row", "message": "row 3 of o differs"}]}
    tree = certify(copy, tmp_path, verdict="refuted", cases=[wrong])
    tone, words = verdict(tree)
    assert tone == ["bad"] and "Wrong." in words and "Holds" not in words
    assert "worst error 7.50 of what is accepted: row 3 of o differs." in text_of(tree)


def test_a_gpu_that_could_not_decide_leaves_it_open(copy, tmp_path):
    tone, words = verdict(certify(copy, tmp_path, verdict="inconclusive", cases=[]))
    assert tone == ["unsure"] and "Undecided." in words


def test_a_proof_is_told_with_its_error_and_its_time(copy, tmp_path):
    name = next(c["name"] for c in json.loads((copy / "prove.json").read_text())["cases"] if c.get("timed"))
    tree = certify(copy, tmp_path, verdict="holds", cases=[
        case("golden 2", 0.25), case(name, 0.61, time={"median_ms": 0.5, "tflops": 432.1})])
    page = text_of(tree)
    assert "Holds on NVIDIA H200" in page and "worst error 0.61" in page
    assert "432 TFLOP/s measured" in page and "989 TFLOP/s" not in page
    assert len(all_of(tree, "point")) == 1 and "1071 TFLOP/s of products, 4.8 TB/s" in page


def test_a_quick_check_is_not_told_as_one_of_all_launches(copy):
    edit(copy, lambda c: c.update(holds_for="one order of the agents"))
    tone, words = verdict(again(copy))
    assert tone == ["unsure"] and "races and deadlocks were not looked for" in words


# ---- what was measured

def benchmark(folder, tmp_path, change=lambda text: text):
    """A JSON as bench.py writes it, of this folder or of one that differs."""
    import bench
    other = tmp_path / "measured"
    other.mkdir()
    shutil.copy(folder / "launch.json", other)
    (other / "kernel.cubin").write_bytes(change((folder / "kernel.cubin").read_bytes()))
    versions = {"gpu": "NVIDIA H200", "driver": "580.1", "torch": "2.11.0+cu130", "cuda": None}
    row = {"status": "ok", "rounds_ms": [0.8, 0.9, 1.0], "burst_ms": 0.7}
    file = tmp_path / "bench.json"
    file.write_text(json.dumps({"mode": "sustained", "cases": {"prefix_lm B2 H16 S8192 D128": {
        "signature": bench.signature(versions, [("", other)]), "environment": versions,
        "date": "2026-11-22", "rows": {
            "cuBLAS 8192^3": {**row, "tflops": 671.0}, "ours": {**row, "tflops": 655.4},
            "FlashAttention-4": {**row, "tflops": 570.2},
            "cuDNN": {"status": "failed: no"}}}}}))
    return file


def test_a_benchmark_of_this_cubin_is_shown_beside_its_peers(copy, tmp_path):
    tree = again(copy, "--bench", benchmark(copy, tmp_path))
    table = [[text_of(cell) for cell in row] for row in all_of(tree, "bars")[0].iter(HTML + "tr")]
    assert [(name, figure) for name, _, figure in table] == [
        ("this kernel", "655"), ("cuBLAS 8192^3", "671"), ("FlashAttention-4", "570")]
    assert len(all_of(tree, "point")) == 1 and "sustained, bench.py, 2026-11-22" in text_of(tree)
    assert "655 TFLOP/s measured" in text_of(again(copy))  # it stays with the folder


def test_a_benchmark_of_another_cubin_is_refused(copy, tmp_path):
    other = benchmark(copy, tmp_path, lambda cubin: cubin + b"\0")
    assert_refused(call("report", copy, "--bench", other), "report.bench",
                   "has 1 cases, and none was measured with the cubin")
    shutil.copy(other, copy / "bench.json")
    assert "Not measured." in text_of(again(copy))


# ---- in a browser

def colours(image, colour):
    wanted = tuple(int(colour[n:n + 2], 16) for n in (1, 3, 5))
    return sum(count for count, found in image.getcolors(1 << 24)
               if max(abs(a - b) for a, b in zip(found, wanted)) <= 2)


@pytest.mark.parametrize("scheme, paper, verdict_paper, full", [
    (browser.LIGHT, "#ffffff", "#e6f4ec", "#7cc4a4"), (browser.DARK, "#14181c", "#14301f", "#2f8f68")],
    ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 900, 1600])
def test_a_browser_shows_verdict_and_mask_on_the_first_screens(folder, tmp_path, width, scheme, paper,
                                                               verdict_paper, full):
    image = browser.screenshot(folder / "report.html", tmp_path / "page.png", width, 1200, scheme)
    assert image.size == (width, 1200)
    assert colours(image, paper) > 0.2 * width * 1200
    assert colours(image, verdict_paper) > 20_000  # the verdict's field
    assert colours(image, full) > 10_000  # tiles that are kept whole


def test_nothing_is_wider_than_a_narrow_window(folder, tmp_path):
    """A browser that scrolls sideways shows paper where a wider window has text."""
    wide = tmp_path / "wide.html"
    page = (folder / "report.html").read_text()
    wide.write_text(page.replace("<body>", '<body style="width:400px;overflow:visible">'))
    image = browser.screenshot(wide, tmp_path / "page.png", 560, 9000)
    beyond = image.crop((402, 140, 560, 9000))
    assert len(beyond.getcolors(1 << 24)) == 1, "something reaches past 400 pixels"
