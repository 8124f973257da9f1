"""The pages of docs/ that scripts/generated_docs.py writes are what it would write."""

import re
import subprocess
import sys

from kernelwright_cli import COMMAND, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import generated_docs  # noqa: E402


def test_the_pages_are_current():
    run = subprocess.run([sys.executable, ROOT / "scripts/generated_docs.py", "--check"], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + "run scripts/generated_docs.py"


def test_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generated_docs, "ROOT", tmp_path)
    monkeypatch.setattr(generated_docs, "pages", lambda build: {"page.md": "new\n"})
    monkeypatch.setattr(sys, "argv", ["generated_docs.py", "--check"])
    (tmp_path / "page.md").write_text("old\n")
    assert generated_docs.main() == 1 and "page.md is not what" in capsys.readouterr().out


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
    page = (ROOT / "docs/c_abi.md").read_text()
    for function in re.findall(r"^\S.*?\b(kw_\w+)\(", header, re.M):
        assert re.search(rf"^```c\n[^`]*\b{function}\([^`]*```\n\n[A-Z]", page, re.M), function
    for section in ["Errors", "Lifetime", "Threads", "Streams", "Graphs"]:
        assert f"## {section}\n" in page


def test_every_error_of_the_c_interface_is_documented():
    # what a workspace holds is looked at by the prover alone; launch.json is also a file's name
    others = {"launch.workspace"}
    said = "".join((ROOT / f"src/runtime/{name}").read_text()
                   for name in ["launch.cpp", "launch_spec.cpp", "pack.cpp", "driver_api.cpp", "c_abi/launch_c.cpp"])
    codes = set(re.findall(r'"((?:launch|driver)\.[a-z_]+)"', said)) - others - {"launch.json"}
    page = (ROOT / "docs/c_abi.md").read_text()
    assert len(codes) > 12 and not [code for code in sorted(codes) if not re.search(rf"\b{code}\b", page)]
