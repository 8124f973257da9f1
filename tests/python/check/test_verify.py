"""`kernelwright verify`, the certificate's schema, and what a GPU adds.

A full rerun costs as much as a check, so there is one; what is refused or found by hash is quick."""

import copy
import hashlib
import json
import shutil

import jsonschema
import pytest

from kernelwright_cli import ROOT, assert_refused, call

SCHEMA = json.loads((ROOT / "docs/certificate.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


@pytest.fixture
def copied(makes, tmp_path):
    """A folder that make wrote, to be spoilt."""
    return shutil.copytree(makes("prefix_lm").folder, tmp_path / "copied")


@pytest.fixture(scope="module")
def certificate(makes):
    return makes("prefix_lm").json("certificate.json")


def items_of(run):
    """what -> its item; standard output is JSON."""
    facts = json.loads(run.stdout)
    return facts["verdict"], {i["what"]: i for i in facts["items"]}


# --- the schema

def test_the_schema_is_one_and_every_certificate_fits_it(made):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(made.json("certificate.json"))


def paths(value, at=()):
    """Every place in a JSON value, but single files, single sentences and the like."""
    yield at
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    for key, child in children:
        yield from paths(child, (*at, key))


def parent(value, path):
    for key in path[:-1]:
        value = value[key]
    return value


def spoilt(certificate):
    """(words, a certificate with a field removed, or of another type), for each of its fields."""
    for path in paths(certificate):
        if not path:
            continue
        other = copy.deepcopy(certificate)
        holder, key = parent(other, path), path[-1]
        was = holder[key]
        holder[key] = 7.5 if not isinstance(was, (int, float)) or isinstance(was, bool) else "text"
        yield f"{path} of another type", other
        # Which files and rules there are, and how many cases, differs from kernel to kernel.
        optional = len(path) == 2 and path[0] == "files" and path[1].startswith(("kw/", "prove/", "from/"))
        if isinstance(key, str) and not optional:
            other = copy.deepcopy(certificate)
            del parent(other, path)[key]
            yield f"{path} removed", other


def test_each_field_removed_or_of_another_type_is_refused(certificate):
    count = 0
    for words, other in spoilt(certificate):
        assert not VALIDATOR.is_valid(other), words
        count += 1
    assert count > 200


def test_verify_refuses_what_the_schema_refuses(copied, certificate):
    """The same schema, read by our own program: a sample, spread over all fields."""
    file = copied / "certificate.json"
    cases = list(spoilt(certificate))
    for words, other in cases[:: len(cases) // 12]:
        file.write_text(json.dumps(other))
        run = call("verify", file)
        code = "certificate.schema" if "'schema'" in words else "certificate.form"
        assert_refused(run, code, "/")


# --- verify

def test_a_new_certificate_still_holds_item_by_item(makes):
    run = call("verify", makes("prefix_lm").folder, "--json")
    verdict, items = items_of(run)
    assert run.returncode == 0 and verdict == "holds", run.stdout
    assert {i["standing"] for i in items.values()} == {"still holds"}, run.stdout
    assert {"vocabulary", "capture", "expert", "transfer", "lens", "launch", "verdict", "laws", "values", "key_blocks",
            "exact", "schedules", "not_checked", "prove.json", "goldens", "cubin", "checked", "trusted", "report",
            "tools"} <= set(items)


def test_one_byte_of_any_file_is_found(copied, certificate):
    for name in certificate["files"]:
        file = copied / name
        good = file.read_bytes()
        at = len(good) // 2
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:] if good else b"\n")
        run = call("verify", copied / "certificate.json", "--json")
        verdict, items = items_of(run)
        assert run.returncode == 1 and verdict == "refuted", name
        assert items[f"file {name}"]["standing"] == "changed", run.stdout
        assert "was" in items[f"file {name}"]["detail"] and len(items) == 2
        file.write_bytes(good)
    assert call("verify", copied, "--quick").returncode == 3  # all as it was; nothing was rerun


def rewrite(folder, change):
    """Another text of a file, with its hash put right: as somebody would who wants to deceive."""
    certificate = json.loads((folder / "certificate.json").read_text())
    change(certificate)
    for name in certificate["files"]:
        certificate["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    lines = "".join(f"{hash}  {name}\n" for name, hash in sorted(certificate["files"].items()))
    certificate["root"] = hashlib.sha256(lines.encode()).hexdigest()
    (folder / "certificate.json").write_text(json.dumps(certificate))


def quick(certificate):
    """So that the check takes a second; its items then change, too."""
    certificate["effort"] = "quick"


def test_a_claim_that_was_never_true_is_found(copied):
    """The kernel, the source and what was counted are changed, hashes and all."""
    kernel = copied / "kernel.cu"
    kernel.write_text(kernel.read_text().replace("j < kw::min", "j <= kw::min"))
    source = copied / "from/prefix_lm.py"
    source.write_text(source.read_text().replace("<=", "<"))
    launch = json.loads((copied / "launch.json").read_text())
    launch["threads"] += 128
    (copied / "launch.json").write_text(json.dumps(launch))

    def change(certificate):
        quick(certificate)
        values = next(c for c in certificate["checked"] if c["check"] == "values")
        values["coverage"]["rows"] += 1
        certificate["not_checked"].pop()
    rewrite(copied, change)
    run = call("verify", copied, "--json")
    verdict, items = items_of(run)
    assert run.returncode == 1 and verdict == "refuted"
    for what in ["capture", "lens", "launch", "verdict", "cubin", "not_checked"]:
        assert items[what]["standing"] == "changed" and items[what]["detail"], what
    assert "threads" in items["launch"]["detail"]


def test_without_pytorch_it_says_what_could_not_be_rerun(copied, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"No module named 'torch'\" >&2\nexit 1\n")
    python.chmod(0o755)
    run = call("verify", copied, "--json", KERNELWRIGHT_PYTHON=str(python),
               VIRTUAL_ENV=str(ROOT / ".venv"))
    verdict, items = items_of(run)
    assert run.returncode == 3 and verdict == "inconclusive", run.stdout
    assert items["capture"]["standing"] == "could not be rerun"
    assert "PyTorch" in items["capture"]["detail"] or "torch" in items["capture"]["detail"]
    assert items["lens"]["standing"] == "still holds"


def test_bad_input_is_refused_with_two_facts_and_what_to_do(copied, tmp_path):
    file = copied / "certificate.json"
    text = file.read_text()
    assert_refused(call("verify", tmp_path / "none.json"), "certificate.file", "none.json", "help:")
    assert_refused(call("verify", tmp_path), "certificate.file", tmp_path, "help:")
    file.write_text(text[: len(text) // 2])
    assert_refused(call("verify", file), "certificate.json", "cannot be read as JSON", "line", "help:")
    file.write_text(text.replace("certificate/2", "certificate/99"))
    assert_refused(call("verify", file), "certificate.schema", "certificate/99", "certificate/2", "help:")
    file.write_text("[]")
    assert_refused(call("verify", file), "certificate.schema", "help:")
    inside = json.loads(text)
    inside["files"]["../secret"] = "0" * 64
    file.write_text(json.dumps(inside))
    assert_refused(call("verify", file), "certificate.form", "../secret", "help:")
    file.write_text(text)
    (copied / "kernel.tl").unlink()
    run = call("verify", file)
    assert run.returncode == 1 and "is not there" in run.stderr


# --- a GPU's word

def report_for(folder, **other):
    report = {"cubin_sha256": hashlib.sha256((folder / "kernel.cubin").read_bytes()).hexdigest(),
              "machine": {"gpu": "NVIDIA H200", "driver": "13.0"}, "verdict": "holds",
              "cases": [{"name": "golden B1 64x64", "verdict": "holds"}], "not_run": 0}
    return json.dumps({**report, **other})


def certify(folder, report):
    return call("certify", folder, "--proof", "-", stdin=report)


def test_a_proof_of_this_cubin_is_added(copied):
    run = certify(copied, report_for(copied))
    assert run.returncode == 0, run.stderr
    certificate = json.loads((copied / "certificate.json").read_text())
    VALIDATOR.validate(certificate)
    assert certificate["gpu"]["machine"]["gpu"] == "NVIDIA H200" and certificate["verdict"] == "holds"
    assert certificate["gpu"]["cases"] == ["golden B1 64x64"]
    assert not any("this machine ran none" in line for line in certificate["not_checked"])
    assert call("verify", copied, "--quick").returncode == 3
    assert certify(copied, report_for(copied)).returncode == 0  # again: the later one counts
    again = json.loads((copied / "certificate.json").read_text())
    assert again["not_checked"] == certificate["not_checked"]


def test_a_proof_that_refutes_changes_the_verdict(copied):
    assert certify(copied, report_for(copied, verdict="refuted")).returncode == 0
    assert json.loads((copied / "certificate.json").read_text())["verdict"] == "refuted"


@pytest.mark.parametrize("report", ["{}", "no JSON", "[]", None])
def test_another_kernels_proof_is_refused(copied, report):
    before = (copied / "certificate.json").read_text()
    run = certify(copied, report or report_for(copied, cubin_sha256="0" * 64))
    assert_refused(run, "certificate.proof", "help:")
    assert (copied / "certificate.json").read_text() == before and not (copied / "gpu.json").exists()
