"""Who may include whom: the table of docs/architecture.md, held against every #include."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAY_INCLUDE = {
    "support": set(),
    "models": {"support"},
    "num": {"support"},
    "runtime": {"support", "num"},
    "tl": {"support"},
    "spec": {"support", "num"},
    "lift": {"support", "tl"},
    "exec": {"support", "num", "tl"},
    "lower": {"support", "tl", "lift"},
    "cute": {"support", "tl", "lower"},
    "check": {"support", "num", "tl", "spec", "exec"},
    "transfer": {"support", "num", "tl", "spec"},
    "propose": {"support", "tl", "spec", "check", "transfer", "models"},
    "foreign": {"support", "tl", "spec", "check", "lower", "runtime", "models", "propose"},
    "timeline": {"support", "num", "tl", "exec"},
    "sketch": {"support", "tl", "timeline"},
    "author": {"support", "tl", "spec", "check", "models", "propose", "sketch"},
    "report": {"support", "num", "tl", "spec", "lift", "exec", "transfer", "timeline"},
    "driver": {"author", "sketch", "foreign", "propose", "models", "report", "timeline", "support", "num", "tl", "spec", "lift", "exec", "lower", "check", "transfer", "runtime"},
    "eval": {"author", "cute", "sketch", "driver", "runtime", "models", "support", "num", "tl", "spec", "lift", "lower", "check", "transfer", "propose"},
}


def includes(text):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M)


def crossings(folder, text):
    """Folders of src/ that a file of src/`folder` includes without being allowed to."""
    found = {name.split("/")[0] for name in includes(text) if "/" in name}
    return {f for f in found & MAY_INCLUDE.keys() if f != folder and f not in MAY_INCLUDE[folder]}


def test_every_folder_of_src_is_in_the_table():
    folders = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
    assert folders == MAY_INCLUDE.keys()


def test_no_include_crosses_a_wall():
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in {".h", ".cpp", ".def"}:
            folder = path.relative_to(ROOT / "src").parts[0]
            assert not crossings(folder, path.read_text()), path


def test_the_two_walls_that_never_fall_would_be_noticed():
    assert crossings("exec", '#include "lower/lower.h"') == {"lower"}
    assert crossings("lower", '#include "exec/run.h"') == {"exec"}
    assert crossings("spec", '#include "tl/program.h"') == {"tl"}
    assert crossings("num", '  #  include "tl/program.h"') == {"tl"}


def test_the_device_vocabulary_includes_only_itself():
    vocabulary = ROOT / "cuda" / "kw"
    for path in vocabulary.rglob("*.cuh"):
        for name in includes(path.read_text()):
            assert vocabulary in (path.parent / name).resolve().parents, path
        assert not re.search(r"#\s*include\s*<", path.read_text()), path


def test_files_stay_small():
    for path in [*ROOT.glob("src/**/*"), *ROOT.glob("tools/**/*"), *ROOT.glob("cuda/**/*"), *ROOT.glob("python/**/*.py")]:
        if path.is_file() and path.suffix in {".h", ".cpp", ".cuh", ".py", ".def"}:
            assert len(path.read_text().splitlines()) <= 600, path
