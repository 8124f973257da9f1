"""The table of supported GPUs in README.md, from the project's own tables.

src/support/targets.cpp says which targets there are, and what their hardware has; kernels/*/*tiles.json for which
head dimensions a hand-written kernel has tiles; gpus/*.json on which GPU something of ours was measured.
"""
import json
import re

BEGIN, END = "<!-- support matrix: written by scripts/generated_docs.py -->\n", "<!-- end of the support matrix -->\n"
HEAD = """| GPUs | target | types | attention: head dims | MLA decode | GEMM | FP8 inputs | measured on |
|---|---|---|---|---|---|---|---|
"""
# TargetLimits: name, folder of its kernels, three sizes, then what the hardware has, and a text.
ROW = re.compile(r'\{"(\w+)", "(\w*)", [^"]*?(true|false), (true|false), (true|false),\s*"([^"]+)"\}')


def targets(root):
    """[(name, folder, ampere, hopper, fp8, text)], in the order of targets.cpp."""
    text = (root / "src/support/targets.cpp").read_text()
    found = [(n, f, *(b == "true" for b in flags), about) for n, f, *flags, about in ROW.findall(text)]
    assert found, "src/support/targets.cpp has no row that looks like a target"
    return found


def tiles(root, file, target):
    """The rows of every kernels/*/FILE that are for a target."""
    return [row for path in sorted(root.glob(f"kernels/*/{file}")) for row in json.loads(path.read_text())["rows"]
            if target in row["targets"]]


def head_dimensions(root, target):
    pairs = sorted({(row["D"], row["V"]) for row in tiles(root, "tiles.json", target)})
    return ", ".join(str(d) if d == v else f"{d}/{v}" for d, v in pairs) or "sketch"


def measured_on(root, target):
    names = [path.stem.upper() for path in sorted(root.glob("gpus/*.json"))
             for gpu in [json.loads(path.read_text())]
             if target in gpu["targets"]["value"] and "Nothing of ours was measured" not in gpu["about"]]
    return ", ".join(names) or "–"


def table(root):
    lines = []
    for name, folder, ampere, _, fp8, text in targets(root):
        latent = "yes" if tiles(root, "latent_fwd.tiles.json", name) else "sketch"
        gemm = any((root / "kernels" / f / "gemm.cu").exists() for f in (folder or "-", name.replace("_", "")))
        lines.append(f"| {text} | `{name}` | {'bf16, f16' if ampere else 'f16'} | {head_dimensions(root, name)} | "
                     f"{latent} | {'yes' if gemm else 'sketch'} | {'e4m3' if fp8 else '–'} | {measured_on(root, name)} |")
    return HEAD + "\n".join(lines) + "\n"


def page(root):
    """README.md with the table between its marks."""
    text = (root / "README.md").read_text()
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(root) + END + rest.split(END)[1]
