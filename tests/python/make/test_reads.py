"""A function that reads data for each query and key, from the file to the kernel."""

from kernelwright_cli import ROOT, call


def test_documents_are_made_checked_and_compiled_without_spills(tmp_path):
    run = call("make", ROOT / "examples/documents.py", "--check", "quick", "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    assert "keep j <= i and document[b, i] == document[b, j]" in run.stderr
    assert " 0 spills" in run.stderr
    kernel = (tmp_path / "made/kernel.cu").read_text()
    assert "kw::Tensor<const kw::i64, 'B', 'M'> document;" in kernel
    assert "kw::set_columns(document_j, key_block(args, c, n) * BN" in kernel
    assert "d == d2 && j < kw::min(args.N, i + 1)" in kernel
