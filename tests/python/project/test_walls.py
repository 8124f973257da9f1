"""Who may include whom: the table of docs/architecture.md, held against every #include."""
import re

from kernelwright_cli import ROOT

MAY_INCLUDE = {
    "support": set(),
    "models": {"support"},
    "num": {"support"},
    "compile": {"support"},
    "runtime": {"support", "num", "compile"},
    "tl": {"support"},
    "operator": {"support", "num"},
    "lift": {"support", "tl"},
    "exec": {"support", "num", "tl"},
    "schedules": {"support", "num", "tl", "exec"},
    "lower": {"support", "tl", "lift"},
    "cute": {"support", "tl", "lower"},
    "proofs": {"support", "tl", "operator"},
    "check": {"support", "num", "tl", "operator", "exec", "schedules", "proofs"},
    "transfer": {"support", "num", "tl", "operator"},
    "propose": {"support", "tl", "operator", "check", "transfer", "models"},
    "foreign": {"support", "tl", "operator", "check", "lower", "compile", "runtime", "models", "propose"},
    "timeline": {"support", "num", "tl", "exec", "schedules"},
    "sketch": {"support", "tl", "timeline"},
    "author": {"support", "tl", "operator", "check", "models", "propose", "sketch"},
    "report": {"support", "num", "tl", "operator", "lift", "exec", "transfer", "timeline"},
    "driver": {"author", "sketch", "foreign", "propose", "models", "report", "timeline", "support", "num", "tl",
               "operator", "lift", "exec", "schedules", "lower", "check", "transfer", "compile", "runtime"},
    "eval": {"author", "cute", "sketch", "driver", "compile", "runtime", "models", "support", "num", "tl", "operator",
             "lift", "lower", "check", "transfer", "propose"},
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


FAMILIES = re.findall(r"^FAMILY\((\w+)\)", (ROOT / "src/operator/families.def").read_text(), re.M)


def family_of(path):
    """The family that a file is a part of, of families/gemm.cpp and families/gemm/tiles.cpp gemm."""
    below = path.partition("families/")[2]
    return next((f for f in FAMILIES if re.match(rf"{f}(?![a-z])", below)), None)


def strangers(path, text):
    """Other families whose parts a family's file includes; latent attention is a special case of attention, and
    gradients are those of attention."""
    own = family_of(path)
    of = {family_of(name) for name in includes(text)} - {own, None}
    return of - {"attention"} if own in ("latent", "attention_bwd") else of if own else set()


def test_no_family_includes_another():
    for path in (ROOT / "src").glob("*/families/**/*"):
        if path.suffix in {".h", ".cpp"}:
            assert not strangers(str(path.relative_to(ROOT)), path.read_text()), path
    assert strangers("src/check/families/gemm.cpp", '#include "check/families/attention.h"') == {"attention"}
    assert not strangers("src/check/families/latent.cpp", '#include "check/families/attention.h"')


def test_every_family_has_its_part_in_every_layer():
    for layer in ("operator", "check", "transfer", "propose", "report", "driver"):
        parts = {family_of(str(p.relative_to(ROOT))) for p in (ROOT / "src" / layer / "families").rglob("*.cpp")}
        assert parts == set(FAMILIES), layer


def test_only_a_family_s_own_files_ask_which_it_is():
    asks = re.compile(r"form(\(\))?\.product\b|->product\b|form(\(\))?\.norm\b|->norm\b|form_?(\(\))?\.gradients\b|->gradients\b|values_are_of_keys")
    for path in [*(ROOT / "src").rglob("*.cpp"), *(ROOT / "src").rglob("*.h"), *(ROOT / "tools").rglob("*.cpp")]:
        if "/families/" not in str(path):
            assert not asks.search(path.read_text()), path


def test_the_two_walls_that_never_fall_would_be_noticed():
    assert crossings("exec", '#include "lower/lower.h"') == {"lower"}
    assert crossings("lower", '#include "exec/run.h"') == {"exec"}
    assert crossings("operator", '#include "tl/program.h"') == {"tl"}
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
