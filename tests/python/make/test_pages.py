"""Keys and values in pages: how functions that read them are captured, what is made of them, and what slips in it are refuted."""

import json

import pytest
from kernelwright.capture import capture
from kernelwright_cli import call

SPEC = """import torch


def attention(q, k, v, table, lengths{more}):
    k, v = {read}
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    s = (q @ k.mT).float() * 0.125
    j = torch.arange(k.shape[2], device=q.device)
    s = s.masked_fill(j >= lengths[:, None, None, None], -torch.inf)
    return (s.softmax(-1).nan_to_num().to(v.dtype) @ v).transpose(1, 2)


def example_inputs():
    q = torch.randn(2, {queries}, 4, 64).bfloat16()
    k, v = torch.randn(2, {shape}, 64).bfloat16()
    return q, k, v, torch.randperm(10, dtype=torch.{type}).view(2, 5), torch.tensor([70, 33], dtype=torch.int32){example}
"""
WORDS = {"more": "", "read": "(x[table.long()].flatten(1, 2) for x in (k, v))", "queries": 1, "shape": "10, 16, 2", "type": "int32", "example": ""}
OTHER_TABLE = {"more": ", other", "read": "k[table.long()].flatten(1, 2), v[other.long()].flatten(1, 2)",
               "example": ", torch.randperm(10, dtype=torch.int32).view(2, 5)"}
HEADS_FIRST = {"read": "(x[table.long()].transpose(2, 3).flatten(1, 2) for x in (k, v))", "shape": "10, 2, 16"}


def captured(folder, **words):
    path = folder / "attention.py"
    path.write_text(SPEC.format(**WORDS | words))
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


@pytest.mark.parametrize("words, read", [
    ({}, "k[table[b, j // 16], j % 16, h // 2, d]"), ({"type": "int64"}, "k[table[b, j // 16], j % 16, h // 2, d]"),
    (HEADS_FIRST, "k[table[b, j // 16], h // 2, j % 16, d]"), ({"shape": "10, 64, 2"}, "k[table[b, j // 64], j % 64, h // 2, d]"),
    ({"shape": "10, 8, 4", "queries": 3}, "k[table[b, j // 8], j % 8, h, d]")])
def test_a_read_of_pages_is_part_of_the_form(words, read, tmp_path):
    run = call("capture", captured(tmp_path, **words), "--form")
    assert run.returncode == 0, run.stderr
    assert f"k pages {read}" in run.stdout and "T\n" in run.stdout.splitlines(True)[0], run.stdout
    assert "computes with the number of heads" not in run.stdout, run.stdout


@pytest.mark.parametrize("words, said", [
    (OTHER_TABLE, "v is read in pages of 16 rows by other, where a page of it has 16, and k by table"),
    ({"more": ", other", "read": "k[table.long()].flatten(1, 2), other", "example": ", torch.randn(2, 80, 2, 64).bfloat16()"},
     "one of k and other lies in pages, the other does not"),
    ({"read": "(x[table.long()][:, :, :8].flatten(1, 2) for x in (k, v))"}, "k is read in pages of 8 rows by table, where a page of it has 16")])
def test_other_reads_are_refused_with_both_facts(words, said, tmp_path):
    path = tmp_path / "attention.py"
    path.write_text(SPEC.format(**WORDS | words))
    run = call("capture", path, "--form")
    assert run.returncode == 2 and said in run.stderr, run.stderr


def check(program, source):
    return call("check", program, "--spec", source, "--check", "quick")


@pytest.mark.parametrize("name, queries, proved", [("attention_decode", 1, "where heads are rows of a tile nothing is proved"),
                                                   ("attention_fwd", 77, "obligations proved for every size by")])
def test_a_kernel_reads_its_pages_and_slips_are_refuted(name, queries, proved, tmp_path):
    source = captured(tmp_path, queries=queries)
    run = call("make", source, "--target", "sm_90a", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0 and f"{name}.cu" in run.stderr and proved in run.stderr, run.stderr
    program = tmp_path / "made" / "kernel.tl"
    text = program.read_text()
    requires = json.loads((tmp_path / "made" / "launch.json").read_text())["requires"]
    assert (["<=", "N", 2**24] in requires) == (queries > 1), requires  # N is computed of what the table has
    lines = [line for line in text.splitlines() if "tma_load_pages" in line]
    assert len(lines) == 2
    slips = [(lines[0], lines[0].replace("[c.b, ", "[0, ")), (lines[1], lines[1].replace("[c.b, ", "[0, ")),
             (lines[1], lines[1].replace(", g, ", ", 0, ")), (lines[1], lines[1].replace("BN]", "BN + 16]")),
             ("* W\n" if "* W\n" in text else "* R\n", "* 32\n")]
    for was, becomes in slips:
        assert was in text and was != becomes
        program.write_text(text.replace(was, becomes))
        run = check(program, source)
        assert run.returncode == 1, becomes + "\n" + run.stdout + run.stderr


@pytest.mark.parametrize("words, said", [
    ({"type": "int64"}, "table is i64, and pages are numbered in i32"),
    ({"shape": "10, 104, 2"}, "k lies in pages of 104 rows, and this kernel copies ")])
def test_tables_and_pages_that_no_copy_takes_are_refused_with_those_that_fit(words, said, tmp_path):
    run = call("make", captured(tmp_path, **words), "--target", "sm_90a", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 2 and said in run.stderr, run.stderr
    assert "torch.int32" in run.stderr or "pages may have 8, 16, " in run.stderr and "rows, or a multiple of " in run.stderr, run.stderr


FAR = [("n * BN]", "(n + where(M > 50000, 1, 0)) * BN]"), ("[c.b, g,", "[where(B > 500, 0, c.b), g,"), ("[c.b, g,", "[c.b, where(G > 100, 0, g),"),
       ("N: size = S * R", "N: size = min(S, 5000) * R"), ("N: size = S * R", "N: size = min(S * R, 1000000)"),
       ("N: size = S * R", "N: size = min(S * R, BM * BN * H)")]


def test_slips_at_sizes_beyond_all_cases_are_not_proved(tmp_path):
    source = captured(tmp_path, queries=77)
    run = call("make", source, "--target", "sm_90a", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    program = tmp_path / "made" / "kernel.tl"
    text = program.read_text()
    head, copies = text[:text.index("tma_load_pages")], text[text.index("tma_load_pages"):]
    for was, becomes in FAR:
        changed = head.replace(was, becomes) + copies if was in head else head + copies.replace(was, becomes, 1)
        assert changed != text
        program.write_text(changed)
        run = call("check", program, "--spec", source, "--check", "quick", "--require", "proof")
        assert run.returncode in (1, 3), becomes + "\n" + run.stdout
