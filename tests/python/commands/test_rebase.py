"""`kernelwright rebase`: a variant goes onto a newer kernel with its rules and with every edit by hand, or
the edit is refused with both places."""

import shutil

import pytest

from engineers import capture_causal, own_tiles, replaced, write_kernel
from kernelwright_cli import ROOT, assert_refused, call

SLACK = "float slack = 8.0f / scale;"
EDIT = "float slack = 10.0f / scale;"  # by hand
STAGES = "Q_SLOTS = 2, STAGES = 2;"


@pytest.fixture(scope="session")
def ported(tmp_path_factory):
    """(the variant's folder, the kernel's file)."""
    top = tmp_path_factory.mktemp("rebase")
    kernel = write_kernel(top / "fmha.cu")
    run = call("port", kernel, "--spec", capture_causal(top), "--check", "quick", "--out", top / "variant")
    assert run.returncode == 0, run.stderr
    return top / "variant", kernel


@pytest.fixture
def variant(ported, tmp_path):
    shutil.copytree(ported[0], tmp_path / "variant")
    return tmp_path / "variant"


def edit(path, old, new):
    path.write_text(replaced(path.read_text(), old, new))


def newer(tmp_path, *changes):
    """The next version of the kernel, by its author: deeper rings, and a new first line."""
    def change(text):
        text = "// The next version.\n//\n" + replaced(own_tiles(text), STAGES, "Q_SLOTS = 2, STAGES = 3;")
        for old, new in changes:
            text = replaced(text, old, new)
        return text
    return write_kernel(tmp_path / "next.cu", change)


def rebase(variant, onto, out, *words):
    return call("rebase", variant, "--onto", onto, "--out", out, "--check", "quick", *words)


def test_rules_are_replayed_on_the_new_kernel(variant, tmp_path, ported):
    run = rebase(variant, newer(tmp_path), tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert "no edits by hand" in run.stderr
    text = (tmp_path / "out/kernel.cu").read_text()
    assert text.startswith("// The next version.\n//\n") and "STAGES = 3;" in text and "i + 1" in text
    # The same as a port of the new kernel.
    port = call("port", tmp_path / "next.cu", "--spec", ported[1].parent / "causal", "--check", "quick", "--out", tmp_path / "port")
    assert port.returncode == 0 and (tmp_path / "port/kernel.cu").read_text() == text


def test_an_edit_by_hand_survives_two_rebases_and_the_result_verifies(variant, tmp_path):
    edit(variant / "kernel.cu", SLACK, EDIT)
    edit(variant / "kernel.cu", "kw::registers_down<LOADER_REGISTERS>();",
         "kw::registers_down<LOADER_REGISTERS>();  // by hand")
    run = rebase(variant, newer(tmp_path), tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert "2 edits by hand" in run.stderr
    text, patch = ((tmp_path / "out" / name).read_text() for name in ("kernel.cu", "kernel.patch"))
    assert EDIT in text and "// by hand" in text and "STAGES = 3;" in text
    assert EDIT in patch and "10.0 / scale" in (tmp_path / "out/kernel.tl").read_text()
    verified = call("verify", tmp_path / "out")
    assert verified.returncode == 0, verified.stderr
    again = rebase(tmp_path / "out", write_kernel(tmp_path / "third.cu"), tmp_path / "third")
    assert again.returncode == 0, again.stderr
    text = (tmp_path / "third/kernel.cu").read_text()
    assert EDIT in text and "// by hand" in text and "STAGES = 2;" in text


def test_an_edit_of_the_program_is_an_edit_by_hand(variant, tmp_path):
    edit(variant / "kernel.tl", "slack: f32 = 8.0 / scale", "slack: f32 = 10.0 / scale")
    run = rebase(variant, newer(tmp_path), tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert EDIT in (tmp_path / "out/kernel.cu").read_text()


def test_a_conflicting_edit_is_refused_with_both_places(variant, tmp_path):
    edit(variant / "kernel.cu", SLACK, EDIT)
    onto = newer(tmp_path, (SLACK, "float slack = 6.0f / scale;"))
    run = rebase(variant, onto, tmp_path / "out")
    mine, theirs = (next(n for n, line in enumerate(path.read_text().splitlines(), 1) if "float slack" in line)
                    for path in (variant / "kernel.cu", onto))
    assert mine != theirs
    assert_refused(run, "rebase.conflict", f"{variant}/kernel.cu:{mine}:", f"{onto}:{theirs}:", "8.0f", "10.0f", "6.0f")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("old, new, code", [
    ("kw::fence_async();", "kw::fence_async(); __syncthreads();", "lift.unrecognised"),
    ("kw::sync_warpgroup(me);", "", "store.C4"),
])
def test_an_edit_that_is_no_kernel_is_refused_in_the_edited_file(old, new, code, variant, tmp_path, ported):
    edit(variant / "kernel.cu", old, new)
    line = next(n for n, text in enumerate((variant / "kernel.cu").read_text().splitlines(), 1)
                if (new and new in text) or (not new and "kw::store(acc" in text))
    assert_refused(rebase(variant, ported[1], tmp_path / "out"), code, f"{variant}/kernel.cu:{line}:")


def test_an_edit_that_takes_an_argument_away_is_refused(variant, tmp_path, ported):
    text = (variant / "kernel.cu").read_text()
    (variant / "kernel.cu").write_text(text.replace("'D'> q;", "'D'> query;").replace("args.q,", "args.query,"))
    assert_refused(rebase(variant, ported[1], tmp_path / "out"), "rebase.argument", "`q`")


def test_an_argument_that_nobody_gives_is_refused(variant, tmp_path, ported):
    edit(variant / "kernel.cu", "    " + SLACK, "    float extra;\n    float slack = extra / scale;")
    run = rebase(variant, ported[1], tmp_path / "out")
    assert_refused(run, "check.binding", "the kernel takes extra")


def test_an_edit_that_makes_it_wrong_is_refuted(variant, tmp_path, ported):
    edit(variant / "kernel.cu", "i + 1) ? x", "i) ? x")
    run = rebase(variant, ported[1], tmp_path / "out")
    assert run.returncode == 1, run.stderr
    assert "refuted" in run.stderr and not (tmp_path / "out").exists()


def test_edits_that_would_be_lost_are_refused(variant, tmp_path, ported):
    edit(variant / "launch.h", "#pragma once", "#pragma once  // mine")
    assert_refused(rebase(variant, ported[1], tmp_path / "out"), "rebase.edited", "launch.h")
    shutil.copy(ported[0] / "launch.h", variant)
    edit(variant / "from/causal.py", "triu(1)", "triu(2)")
    assert_refused(rebase(variant, ported[1], tmp_path / "out"), "rebase.edited", "from/causal.py")
    shutil.copy(ported[0] / "from/causal.py", variant / "from")
    edit(variant / "kernel.tl", "slack: f32 = 8.0 / scale", "slack: f32 = 9.0 / scale")
    edit(variant / "kernel.cu", SLACK, EDIT)
    assert_refused(rebase(variant, ported[1], tmp_path / "out"), "rebase.two_edits", "9.0", "10.0")
    assert not (tmp_path / "out").exists()


def test_the_variant_is_only_read(variant, ported):
    before = {p: p.read_bytes() for p in variant.rglob("*") if p.is_file()}
    assert_refused(call("rebase", variant, "--onto", ported[1], "--out", variant), "driver.out", "only read")
    assert {p: p.read_bytes() for p in variant.rglob("*") if p.is_file()} == before


def test_a_folder_of_somebody_elses_is_refused(tmp_path, ported):
    (tmp_path / "other").mkdir()
    assert_refused(call("rebase", tmp_path / "other", "--onto", ported[1]), "rebase.variant", "certificate.json")


def test_constants_that_the_rules_set_are_set_again(tmp_path):
    """A variant of the corpus with other head dimensions: a foreign kernel has no rows of its own."""
    spec = tmp_path / "small.py"
    spec.write_text((ROOT / "examples/causal.py").read_text().replace("128", "64"))
    made = call("make", spec, "--check", "quick", "--function", "causal", "--out", tmp_path / "small")
    assert made.returncode == 0, made.stderr
    constants = [line for line in (tmp_path / "small/kernel.tl").read_text().splitlines()
                 if line.startswith(("param", "toggle"))]
    onto = write_kernel(tmp_path / "next.cu", lambda text: "// The next version.\n" + text)
    run = rebase(tmp_path / "small", onto, tmp_path / "out")
    assert run.returncode == 0, run.stderr
    assert [line for line in (tmp_path / "out/kernel.tl").read_text().splitlines()
            if line.startswith(("param", "toggle"))] == constants


@pytest.mark.parametrize("name", ["kernel.cu", "certificate.json", "from"])
def test_a_link_is_not_followed(name, variant, tmp_path, ported):
    shutil.move(variant / name, tmp_path / "secret")
    (variant / name).symlink_to(tmp_path / "secret")
    run = rebase(variant, ported[1], tmp_path / "out")
    assert_refused(run, "rebase.variant" if name == "certificate.json" else "rebase.edited", f"{variant}/{name}", "link")
