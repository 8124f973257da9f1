"""The pages of docs/ that scripts/generated_docs.py writes are what it would write."""

import ast
import re
import subprocess
import sys

import pytest

from kernelwright_cli import COMMAND, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import generated_docs  # noqa: E402
import python_reference  # noqa: E402
import speed_chart  # noqa: E402
import statement_pages as statements  # noqa: E402
import support_matrix  # noqa: E402
import test_docs  # noqa: E402


def test_the_pages_are_current():
    run = subprocess.run([sys.executable, ROOT / "scripts/generated_docs.py", "--check"], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + "run scripts/generated_docs.py"


def test_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generated_docs, "ROOT", tmp_path)
    monkeypatch.setattr(generated_docs, "pages", lambda build: {"page.md": "new\n"})
    monkeypatch.setattr(sys, "argv", ["generated_docs.py", "--check"])
    (tmp_path / "page.md").write_text("old\n")
    assert generated_docs.main() == 1 and "page.md is not what" in capsys.readouterr().out


def test_the_readme_is_one_screen_and_every_page_has_a_reader():
    assert len((ROOT / "README.md").read_bytes()) <= 6144
    index = (ROOT / "docs/README.md").read_text()
    pages = [str(page.relative_to(ROOT / "docs")) for page in test_docs.PAGES]
    assert len(pages) > 30 and not [page for page in pages if page != "README.md" and f"({page})" not in index]


def test_links_between_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#\s$]+)(?:#[^)]*)?\)", page.read_text())]
    assert len(links) > 100
    assert not [(str(page), link) for page, link in links if "://" not in link and not (page.parent / link).exists()]


def a_tree(tmp_path, *files):
    """A folder with copies of some of the project's files, to be changed."""
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def test_the_support_matrix_follows_the_tables(tmp_path):
    table = support_matrix.table(ROOT)
    assert "| `sm_90a` | bf16, f16 | 64, 96, 128, 192/128, 256 | yes | yes | e4m3 | H200 |" in table
    assert "| `sm_75` | f16 | sketch | sketch | yes | – | – |" in table
    root = a_tree(tmp_path, "src/support/targets.cpp", "kernels/sm80/tiles.json", "gpus/a100.json", "gpus/t4.json")
    tiles = root / "kernels/sm80/tiles.json"
    tiles.write_text(tiles.read_text().replace('"sm_80"', '"sm_75"'))
    gpu = root / "gpus/a100.json"
    gpu.write_text(gpu.read_text().replace("Nothing of ours was measured on it", "Measured"))
    changed = support_matrix.table(root)
    assert "| `sm_80` | bf16, f16 | sketch | sketch | sketch | – | A100 |" in changed
    assert "| `sm_75` | f16 | 64, 128, 256 | sketch | sketch | – | – |" in changed


def test_the_chart_has_the_tables_figures(tmp_path):
    root = a_tree(tmp_path, "docs/performance.md")
    assert speed_chart.page(root) == (ROOT / "docs/images/speeds.svg").read_text()
    page = root / "docs/performance.md"
    page.write_text(page.read_text().replace("| full | 794 |", "| full | 500 |"))
    assert ">500</text>" in speed_chart.page(root) and ">794</text>" not in speed_chart.page(root)
    page.write_text(page.read_text().replace("| documents of 1024 |", "| documents |"))
    with pytest.raises(AssertionError, match="no row .'documents of 1024'."):
        speed_chart.page(root)


def test_a_statements_section_has_both_spellings_its_level_and_its_laws():
    page = (ROOT / "docs/tl/statements.md").read_text()
    ops, laws = statements.statements(ROOT), statements.laws(ROOT)
    assert len(ops) > 100 and len(laws) > 300
    for word, (level, tl, cuda) in ops.items():
        section = page.split(f"\n### {word}\n", 1)[1].split("\n### ", 1)[0]
        assert f"`{tl}` · {level}" in section and (not cuda or f"In CUDA `{cuda}`" in section), word
    assert not [code for code, law in laws.items() if f": {law}\n" not in page]


def test_every_command_has_a_section_with_its_options():
    page = (ROOT / "docs/commands.md").read_text()
    for command in generated_docs.commands_in(generated_docs.help_of(COMMAND)):
        section = re.search(rf"^## kernelwright {command}\n\n```\n(.*?)```", page, re.M | re.S)
        assert section and "Usage: kernelwright " + command in section[1], command
    assert "## kernelwright export hf\n" in page and "## kernelwright-prove\n" in page


def test_help_fits_a_hundred_columns():
    lines = (ROOT / "docs/commands.md").read_text().splitlines()
    assert not [line for line in lines[2:] if len(line) > 100]


def test_every_function_of_the_c_interface_is_documented():
    header = (ROOT / "include/kernelwright/launch_c.h").read_text()
    page = (ROOT / "docs/deployment/c_abi.md").read_text()
    for function in re.findall(r"^\S.*?\b(kw_\w+)\(", header, re.M):
        assert re.search(rf"^```c\n[^`]*\b{function}\([^`]*```\n\n[A-Z]", page, re.M), function
    for section in ["Errors", "Lifetime", "Threads", "Streams", "Graphs"]:
        assert f"## {section}\n" in page


def test_every_public_name_of_python_is_in_its_reference():
    import kernelwright
    page = (ROOT / "docs/python_reference.md").read_text()
    assert set(kernelwright.__all__) == {*python_reference.public(), "__version__"}
    for name in python_reference.public():
        assert f"### kernelwright.{name}\n" in page, name


def documented():
    """(where, function, docstring) of everything in the reference that can be called."""
    for _, _, modules in python_reference.SECTIONS:
        for module, names in modules:
            found, _ = python_reference.definitions(module)
            for name in names:
                node = found[name]
                methods = [m for m in getattr(node, "body", []) if isinstance(m, ast.FunctionDef)
                           and (m.name == "__call__" or not m.name.startswith("_")) and ast.get_docstring(m)]
                for function in [node] if isinstance(node, ast.FunctionDef) else methods:
                    yield f"{module}.{name}: {function.name}", function, ast.get_docstring(function)


@pytest.mark.parametrize("function, docstring", [pytest.param(f, d, id=where) for where, f, d in documented()])
def test_every_argument_of_the_reference_is_explained_and_every_refusal_named(function, docstring):
    given = function.args
    names = [a.arg for a in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg] if a]
    explained = {n for line in re.findall(python_reference.ITEM, docstring) for n in line.split(", ")}
    assert {n for n in names if n != "self" and not n.startswith("_")} == explained
    raised = {ast.unparse(n.exc.func) for n in ast.walk(function) if isinstance(n, ast.Raise)
              and isinstance(n.exc, ast.Call) and isinstance(n.exc.func, ast.Name)}
    assert all(error in docstring for error in raised)


def test_every_error_of_the_c_interface_is_documented():
    # what a workspace holds is looked at by the prover alone; launch.json is also a file's name
    others = {"launch.workspace"}
    said = "".join(path.read_text() for folder in ["launch", "c_abi"]
                   for path in sorted((ROOT / "src/runtime" / folder).glob("*.cpp")))
    codes = set(re.findall(r'"((?:launch|driver)\.[a-z_]+)"', said)) - others - {"launch.json"}
    page = (ROOT / "docs/deployment/c_abi.md").read_text()
    assert len(codes) > 12 and not [code for code in sorted(codes) if not re.search(rf"\b{code}\b", page)]
