#!/usr/bin/env python3
"""scripts/replay.py OLD NEW [SPEC...] [--target sm_90a]... [--check quick] [--out FOLDER]

Whether two builds make the same kernels. OLD and NEW are clones with a build/ each, of two commits of which the
later is to have changed words and not code. Every specification that both have (examples/ where none is named) is
made by each of them; then a line each says whether the cubins are the same, and whether the verdicts and the figures
of the checks in the certificates are equal. Exit 1 where a cubin or a figure differs.

A cubin's symbols have names, those of the kernel's constants among them, which nothing reads: all other bytes must be
the same, and where the names are not, that is said.

What was made before in FOLDER is not made again, so that a run can be taken up.
"""
import argparse
import json
import pathlib
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# What differs from one run to the next, or says how a thing is called.
VARY = {"seconds", "version", "build", "date", "tested", "sha256", "vocabulary", "source", "program", "laws"}


def specs_of(clone):
    return {str(path.relative_to(clone)) for path in (clone / "examples").rglob("*.py") if "foreign" not in path.parts}


def make(clone, spec, target, check, out):
    if (out / "certificate.json").exists():
        return ""
    run = subprocess.run([clone / "build/kernelwright", "make", clone / spec, "--target", target, "--check", check,
                          "--out", out], capture_output=True, text=True, cwd=clone)
    if run.returncode == 0:
        return ""
    lines = run.stderr.strip().splitlines() or ["?"]
    # Without the path of the clone, in which the two differ.
    return f"exit {run.returncode}: {next((line for line in lines if 'error[' in line), lines[-1])}".replace(f"{clone}/", "")


def figures(value, path=""):
    """{path: number or verdict} of a certificate's checks."""
    if isinstance(value, dict):
        pairs = [(k, v) for k, v in value.items() if k not in VARY]
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        return {path: value} if isinstance(value, (int, float, bool)) or path.endswith(("verdict", "result")) else {}
    return {p: v for k, x in pairs for p, v in figures(x, f"{path}.{k}").items()}


def sections(cubin):
    """{name of a section: bytes} of an ELF file, without the names of symbols; and these names."""
    table, = struct.unpack_from("<Q", cubin, 40)
    size, count, names_at = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + k * size) for k in range(count)]
    word = lambda at: cubin[at:cubin.index(b"\0", at)].decode()  # noqa: E731
    found = {}
    for head in heads:
        name, kind, offset, length = word(heads[names_at][4] + head[0]), head[1], head[4], head[5]
        content = b"" if kind == 8 else cubin[offset:offset + length]  # 8: it takes no room in the file
        if name == ".symtab":
            content = b"".join(content[k + 4:k + 24] for k in range(0, length, 24))
        found[name] = (head[1:3], head[6:], content)
    return {k: v for k, v in found.items() if k != ".strtab"}, found[".strtab"][2].split(b"\0")


def compare(old, new):
    """What differs between two made folders; and which names of symbols and how many laws do. In words."""
    (was, named), (now, names) = (sections((folder / "kernel.cubin").read_bytes()) for folder in (old, new))
    said = [f"other {name} in the cubin" for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]
    renamed = [f"{a.decode()} is now {b.decode()}" for a, b in zip(named, names) if a != b]
    checked = [json.loads((folder / "certificate.json").read_text())["checked"] for folder in (old, new)]
    laws = [next(c["coverage"]["laws"] for c in checks if c["check"] == "laws") for checks in checked]
    if laws[0] != laws[1]:
        renamed.append(f"{laws[0]} laws are now {laws[1]}")
    was, now = map(figures, checked)
    said += [f"{path}: {was.get(path)} -> {now.get(path)}" for path in sorted(was.keys() | now.keys())
             if was.get(path) != now.get(path)]
    return said, renamed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--target", action="append")
    parser.add_argument("--check", default="quick")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/replay"))
    options = parser.parse_intermixed_args()
    clones = {"old": options.old.resolve(), "new": options.new.resolve()}
    specs = options.specs or sorted(specs_of(clones["old"]) & specs_of(clones["new"]))
    out, same, differ, refused = options.out.resolve(), 0, 0, 0
    for target in options.target or ["sm_90a"]:
        for spec in specs:
            folders = {name: out / name / target / spec.removesuffix(".py") for name in clones}
            with ThreadPoolExecutor(2) as pool:
                ends = list(pool.map(lambda n: make(clones[n], spec, target, options.check, folders[n]), clones))
            if any(ends):
                alike = ends[0] == ends[1]
                refused += alike
                differ += not alike
                print(f"{target} {spec}: {'both refuse: ' + ends[0] if alike else ends}", flush=True)
                continue
            said, renamed = compare(folders["old"], folders["new"])
            same += not said
            differ += bool(said)
            but = f" ({'; '.join(renamed)})" if renamed else ""
            print(f"{target} {spec}: {'; '.join(said) or f'same cubin, same figures{but}'}", flush=True)
    print(f"{same} the same, {refused} refused alike, {differ} differ")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
