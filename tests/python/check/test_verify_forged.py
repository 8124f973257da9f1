"""Made folders that somebody changed: what `kernelwright verify` finds, and that it never waits.

First, entries of a folder that are not what its certificate names; hashes alone find those. Then a forger, who makes
every hash and the root right again (`seal`): only deriving the part again finds that, and the item that says so is the
one that is about it. A full rerun costs seconds, so forgeries that different items find share one."""

import hashlib
import json
import os
import shutil
import socket
import struct
import subprocess

import pytest

from kernelwright_cli import ROOT, SCREEN, assert_refused, call

CERTIFICATE = "certificate.json"


@pytest.fixture
def folder(makes, tmp_path):
    """A folder that make wrote, to be spoilt."""
    made = makes("limited")
    assert made.run.returncode == 0, made.run.stderr
    return shutil.copytree(made.folder, tmp_path / "made")


def load(folder, name=CERTIFICATE):
    return json.loads((folder / name).read_text())


def root_of(files):
    return hashlib.sha256("".join(f"{files[n]}  {n}\n" for n in sorted(files)).encode()).hexdigest()


def seal(folder, change=lambda certificate: None):
    """Changes the certificate, and makes it name what lies in the folder now."""
    certificate = load(folder)
    certificate["files"] = {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
                            for p in sorted(folder.rglob("*")) if p.is_file() and p.name != CERTIFICATE}
    certificate["root"] = root_of(certificate["files"])
    change(certificate)
    (folder / CERTIFICATE).write_text(json.dumps(certificate))


def verify(folder, *options):
    """The verdict, its exit code, and each item by its name; within a time that no waiting fits in."""
    run = call("verify", folder, "--json", *options, timeout=100)
    facts = json.loads(run.stdout)
    return facts["verdict"], run.returncode, {i["what"]: i for i in facts["items"]}


# ---- what hashes find

def swap(path, make):
    path.unlink()
    make(path)


def bind(path):
    here = os.open(path.parent, os.O_RDONLY)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def outside(folder, name):
    """A folder elsewhere with the same files, and a link to it in the place of the one here."""
    shutil.move(folder / name, folder.parent / "elsewhere")
    (folder / name).symlink_to(folder.parent / "elsewhere")


def flip(path, at=0.5, bit=1):
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= bit
    path.write_bytes(data)


STRAYS = {  # name: (what is done, the item that tells, words of it)
    "a missing file": (lambda f: (f / "kernel.tl").unlink(), "file kernel.tl", "is not there"),
    "a missing golden": (lambda f: (f / "prove/0.o.npy").unlink(), "file prove/0.o.npy", "is not there"),
    "a renamed file": (lambda f: (f / "launch.h").rename(f / "launch.hpp"), "file launch.hpp", "names none"),
    "another byte": (lambda f: flip(f / "kernel.cubin"), "file kernel.cubin", "was"),
    "another page": (lambda f: (f / "report.html").write_text("<p>Holds"), "file report.html", "was"),
    "a shorter file": (lambda f: os.truncate(f / "kernel.cu", 10), "file kernel.cu", "was"),
    "a file of a terabyte": (lambda f: os.truncate(f / "kernel.cu", 1 << 40), "file kernel.cu", "1099511627776 bytes"),
    "one file more": (lambda f: (f / "kw/more.cuh").write_text(""), "file kw/more.cuh", "names none"),
    "a hidden file": (lambda f: (f / ".more").write_text(""), "file .more", "names none"),
    "one folder more": (lambda f: (f / "more").mkdir(), "file more", "is a folder"),
    "another certificate": (lambda f: shutil.copy(f / CERTIFICATE, f / "from"), f"file from/{CERTIFICATE}", "names none"),
    "a name that is no text": (lambda f: open(bytes(f) + b"/\x1b[31m\xff\n", "w").close(), "file \\x1b[31m\\xff\\x0a", "names none"),
    "a link to the same file": (
        lambda f: (shutil.move(f / "kernel.cu", f.parent), (f / "kernel.cu").symlink_to(f.parent / "kernel.cu")),
        "file kernel.cu", "is a symbolic link"),
    "a link into nothing": (lambda f: (f / "more").symlink_to("/nowhere"), "file more", "is a symbolic link"),
    "a link to a folder": (lambda f: outside(f, "kw"), "file kw", "is a symbolic link"),
    "a link to itself": (lambda f: (f / "prove/loop").symlink_to("."), "file prove/loop", "is a symbolic link"),
    "a FIFO for a file": (lambda f: swap(f / "kernel.tl", os.mkfifo), "file kernel.tl", "is a FIFO"),
    "a FIFO more": (lambda f: os.mkfifo(f / "from/more"), "file from/more", "is a FIFO"),
    "a socket": (lambda f: swap(f / "launch.json", bind), "file launch.json", "is a socket"),
    "a folder for a file": (lambda f: swap(f / "prove.json", os.mkdir), "file prove.json", "is a folder"),
}


@pytest.mark.parametrize("what", STRAYS)
def test_an_entry_that_is_not_the_named_file_is_found_and_not_opened(what, folder):
    spoil, item, words = STRAYS[what]
    spoil(folder)
    for options in [["--quick"], []]:  # nothing is rerun of a folder that is not the certificate's
        verdict, code, items = verify(folder, *options)
        assert (verdict, code) == ("refuted", 1)
        assert items[item]["standing"] == "changed" and words in items[item]["detail"], items
        assert items["readings"]["standing"] == "could not be rerun"


def test_a_thousand_strays_are_one_screen(folder):
    for n in range(1000):
        (folder / f"more{n}").touch()
    run = call("verify", folder)
    assert run.returncode == 1 and "and 988 more" in run.stderr
    assert len(run.stderr.splitlines()) <= SCREEN and "help:" in run.stderr


def test_the_root_is_of_the_named_hashes_and_is_what_coreutils_say(folder):
    lines = ("find . -type f ! -path ./certificate.json -printf '%P\\n' | LC_ALL=C sort | "
             "xargs -d '\\n' sha256sum | sha256sum")
    said = subprocess.run(lines, shell=True, cwd=folder, capture_output=True, text=True, check=True).stdout
    certificate = load(folder)
    assert said.split()[0] == certificate["root"] == root_of(certificate["files"])
    other = "0" * 64
    (folder / CERTIFICATE).write_text(json.dumps({**certificate, "root": other}))
    verdict, code, items = verify(folder, "--quick")
    assert (verdict, code) == ("refuted", 1)
    assert other[:12] in items["root"]["detail"] and certificate["root"][:12] in items["root"]["detail"]


def test_quick_says_that_it_compared_hashes_alone(folder):
    run = call("verify", folder, "--quick", KERNELWRIGHT_PYTHON="/no/python")
    assert run.returncode == 3 and run.stdout == "inconclusive\n"
    assert "files still holds" in run.stderr and "only hashes were asked for" in run.stderr
    assert "nothing that the certificate claims was done again" in run.stderr


@pytest.mark.parametrize("make, what", [(os.mkfifo, "a FIFO"), (os.mkdir, "a folder"), (bind, "a socket"),
                                        (lambda p: p.symlink_to("kernel.cu"), "a symbolic link")])
def test_a_certificate_that_is_no_file_is_refused(make, what, folder):
    swap(folder / CERTIFICATE, make)
    assert_refused(call("verify", folder, timeout=60), "certificate.file", f"{CERTIFICATE}' is {what}", "help:")


def test_a_certificate_of_the_version_before_is_refused_with_what_to_do(folder):
    certificate = load(folder)
    del certificate["root"]
    (folder / CERTIFICATE).write_text(json.dumps({**certificate, "schema": "kernelwright.certificate/1"}))
    for options in [["--quick"], []]:
        assert_refused(call("verify", folder, *options), "certificate.schema", "kernelwright.certificate/1",
                       "kernelwright.certificate/2", "help: make the kernel again")


def test_a_certificate_that_says_something_twice_is_refused(folder):
    """Other readers of JSON take the other value."""
    text = (folder / CERTIFICATE).read_text()
    (folder / CERTIFICATE).write_text(text.replace('"effort":', '"holds_for": "every launch", "effort":', 1))
    assert_refused(call("verify", folder), "certificate.json", "'holds_for' twice", "help:")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "kw/../../secret", "kw//kw.cuh", "./kernel.cu"])
def test_a_name_that_is_no_place_in_the_folder_is_refused(name, folder):
    certificate = load(folder)
    certificate["files"][name] = "0" * 64
    (folder / CERTIFICATE).write_text(json.dumps(certificate))
    assert_refused(call("verify", folder), "certificate.form", name, "help:")


# ---- what only deriving again finds

@pytest.fixture(scope="module")
def forge(makes, tmp_path_factory):
    """Verifies a forged copy: `change` spoils the folder, `claim` the certificate; then all hashes are right, and the
    page shows the claims, until `after` spoils it."""
    def forged(change, claim=lambda certificate: None, after=lambda folder: None):
        folder = shutil.copytree(makes("limited").folder, tmp_path_factory.mktemp("forged") / "made")
        change(folder)
        seal(folder, claim)
        assert call("report", folder).returncode == 0
        after(folder)
        seal(folder)
        assert verify(folder, "--quick")[1] == 3  # hashes find nothing
        return verify(folder)
    return forged


def edit(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1))


def check_named(certificate, name):
    return next(c for c in certificate["checked"] if c["check"] == name)


def many_files(folder):
    edit(folder / "kw/scalar.cuh", "ex2.approx", "sqrt.approx")
    golden = bytearray((folder / "prove/0.o.npy").read_bytes())
    golden[-8:] = struct.pack("<d", 2 * struct.unpack("<d", golden[-8:])[0])
    (folder / "prove/0.o.npy").write_bytes(golden)
    cases = load(folder, "prove.json")
    cases["cases"].pop()
    (folder / "prove.json").write_text(json.dumps(cases, indent=1))
    launch = load(folder, "launch.json")
    launch["requires"] = [r for r in launch["requires"] if r != ["<=", "M", 46340]]
    (folder / "launch.json").write_text(json.dumps(launch, indent=1))
    graph = load(folder, "from/graph.json")
    graph["arguments"][0]["name"] = "query"
    (folder / "from/graph.json").write_text(json.dumps(graph))


def another_page(folder):
    edit(folder / "report.html", "</main>", "<p>It was proved.</p></main>")


def many_claims(certificate):
    certificate["holds_for"] = "every launch"
    certificate["not_checked"].pop()
    certificate["trusted"].pop()
    certificate["kernelwright"] = "9.9.9"
    certificate["transfer"]["conditions"].pop(0)
    check_named(certificate, "indices")["coverage"]["limits"].pop(0)
    check_named(certificate, "values")["claim"] = "the kernel is right for all inputs"
    check_named(certificate, "exact")["coverage"]["rows"] *= 10
    check_named(certificate, "key_blocks")["holds"] = False
    check_named(certificate, "laws")["coverage"]["laws"] += 1
    check_named(certificate, "lens")["claim"] = "the kernel is the expert's own"
    check_named(certificate, "cubin")["coverage"]["registers_at_entry"] = 32
    certificate["checked"].append({**check_named(certificate, "values"), "claim": "it is right on every GPU"})


@pytest.fixture(scope="module")
def many(forge):
    verdict, code, items = forge(many_files, many_claims, another_page)
    assert (verdict, code) == ("refuted", 1)
    return items


@pytest.mark.parametrize("item, words", {
    "vocabulary": ["kw/scalar.cuh is ", "in this build's vocabulary"],
    "goldens": ["prove/0.o.npy", "the specification gives", "0.5 apart"],
    "prove.json": ["/cases: was", "was not there"],
    "launch": ["launch.json: /requires: was", '["<=","M",46340] was not there'],
    "capture": ["from/graph.json: 'arguments'"],
    "report": ["report.html", "another page"],
    "verdict": ['/holds_for: was "every launch", is "one order of the agents"'],
    "not_checked": ["the default check's further cases", "was not there"],
    "trusted": ["was 2 long, is 3", '"PyTorch\'s fp64 operators" was not there'],
    "transfer": ['/conditions: was [], is [{"holds":"heat > 1.0e-12"'],
    "indices": ['/coverage/limits: was ["N <= 46340"], is ["M <= 46340","N <= 46340"]'],
    "values": ['/claim: was "the kernel is right for all inputs", is "the program on a CPU'],
    "exact": ["/coverage/rows: was"],
    "key_blocks": ["/holds: was false, is true"],
    "laws": ["/coverage/laws: was"],
    "lens": ['/claim: was "the kernel is the expert\'s own", is "lifting'],
    "cubin": ["/coverage/registers_at_entry: was 32, is"],
    "checked": ["was", '"cubin","values"]', '"cubin"]'],
}.items())
def test_a_part_that_was_changed_with_its_hash_is_found_by_deriving_it_again(item, words, many):
    assert many[item]["standing"] == "changed", many[item]
    for word in words:
        assert word in many[item]["detail"], many[item]


def test_what_nobody_changed_still_holds_beside_it(many):
    assert many["expert"]["standing"] == "still holds"
    assert many["tools"]["remark"] and '/kernelwright: was "9.9.9"' in many["tools"]["detail"]


def more_files(folder):
    (folder / "from/NOTES").write_text("proved for every size")
    (folder / "more.cubin").write_bytes((folder / "kernel.cubin").read_bytes())


def test_a_file_that_no_command_makes_is_found_though_the_certificate_names_it(forge):
    verdict, code, items = forge(more_files)
    assert (verdict, code) == ("refuted", 1)
    found = {what: i["detail"] for what, i in items.items() if i["standing"] == "changed"}
    assert set(found) == {"file from/NOTES", "file more.cubin"} and "neither is it made" in found["file more.cubin"], found


def other_kernel(folder):
    """Another program, written into the expert's text as make would have: it drops the diagonal."""
    edit(folder / "kernel.tl", "min(N, i + 1)", "min(N, i)")
    run = call("lower", folder / "kernel.tl", "--reference", folder / "from/expert.cu", "--out", folder / "kernel.cu")
    assert run.returncode == 0, run.stderr


def test_the_proposer_is_not_the_rules_where_they_give_another_program(forge, tmp_path):
    os.mkfifo(tmp_path / "expert.cu")
    verdict, code, items = forge(other_kernel, lambda c: c["expert"].update(name=f"kernels/../../..{tmp_path}/expert.cu"))
    assert (verdict, code) == ("refuted", 1)
    assert "of this build is not there" in items["expert"]["detail"]  # nothing outside of it was opened
    said = items["transfer"]
    assert said["standing"] == "changed" and 'the proposer is "rules"' in said["detail"], said
    assert "the rules write `" in said["detail"] and "where kernel.tl has `" in said["detail"]
    assert "min(N, i + 1)" in said["detail"] and "min(N, i)" in said["detail"]
    assert items["verdict"]["standing"] == "changed" and "refuted" in items["verdict"]["detail"]


def another_expert(folder):
    """A comment, which no run of the kernel would show."""
    for name in ["from/expert.cu", "kernel.cu"]:
        edit(folder / name, "//", "// By somebody else.\n//")


def nobodys_model(certificate):
    certificate["transfer"]["proposer"] = "model (of somebody)"
    certificate["expert"]["sha256"] = certificate["files"]["from/expert.cu"]


def test_another_experts_text_and_a_model_that_nobody_asked_are_found(forge):
    verdict, code, items = forge(another_expert, nobodys_model)
    assert (verdict, code) == ("refuted", 1)
    assert "kernels/sm90/attention_fwd.cu of this build is" in items["expert"]["detail"], items["expert"]
    assert "there is no from/attempts.json" in items["transfer"]["detail"], items["transfer"]
    for item in ["launch", "proof"]:  # they need the transfer
        assert items[item]["standing"] == "could not be rerun"


def last_bit(folder):
    path = folder / "prove/1.o.npy"
    data = bytearray(path.read_bytes())
    data[-8] ^= 1
    path.write_bytes(data)


def test_macros_that_double_reach_no_preprocessor(folder):
    """Neither clang's nor NVRTC's, which is asked for the cubin whatever lifting said: 2^40 words."""
    text = (folder / "kernel.cu").read_text()
    macros = "#define A0 int x;\n" + "".join(f"#define A{n} A{n - 1} A{n - 1}\n" for n in range(1, 40))
    assert text.count('#include "kw/kw.cuh"\n') == 1
    (folder / "kernel.cu").write_text(text.replace('#include "kw/kw.cuh"\n', f'#include "kw/kw.cuh"\n{macros}') +
                                      "\n__global__ void more() { A39 }\n")
    seal(folder)
    verdict, code, items = verify(folder)
    assert (verdict, code) == ("refuted", 1)
    assert all("found 'define'" in items[item]["detail"] for item in ("lens", "cubin")), items


def test_a_goldens_last_bit_never_holds_and_everything_else_does(forge):
    """Another C library may have moved it, so it is not refuted."""
    verdict, code, items = forge(last_bit)
    assert (verdict, code) == ("inconclusive", 3), items
    said = items.pop("goldens")
    assert said["standing"] == "could not be rerun" and "prove/1.o.npy is not what this machine" in said["detail"]
    assert {i["standing"] for i in items.values()} == {"still holds"}, items
