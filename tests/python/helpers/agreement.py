"""launch.h and the runtime, given the same tensors: tests/launch/agree.cpp, generated for one folder."""

import json
import re
import subprocess

from kernelwright_cli import ROOT

CUDA = next((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/include"))
SIZES = {"B": 2, "H": 8, "G": 4, "M": 96, "N": 160}


def fill_of(launch):
    """C++ that gives both sides the same tensors: contiguous, at made-up addresses."""
    lines, address = [], 0x10000
    sizes = {"H": SIZES["H"]}
    for r in launch["requires"]:  # what the user's code fixes
        if r[0] == "==" and isinstance(r[1], str) and isinstance(r[2], int):
            sizes[r[1]] = r[2]
    for a in launch["arguments"]:
        name = a["name"]
        if a["kind"] in ("tensor", "tensor_map"):
            shape = [d if isinstance(d, int) else {**SIZES, **sizes}[d] for d in a["dims"]]
            strides = [1]
            for extent in reversed(shape[1:]):
                strides.insert(0, strides[0] * extent)
            shape, strides = (", ".join(map(str, x)) for x in (shape, strides))
            lines.append(f"  in.{name} = {{{address}, {{{shape}}}, {{{strides}}}}};")
            lines.append(f'  tensors["{name}"] = {{{address}, kw::Dtype::{a["dtype"]}, {{{shape}}}, '
                         f"{{{strides}}}}};")
            address += 0x100000
        elif a["kind"] == "workspace":
            lines.append(f"  in.{name} = kWorkspace;")
        elif a["kind"] == "scratch":
            lines.append(f"  in.{name} = kWorkspace; in.{name}_bytes = int64_t(1) << 40;")
        elif a["kind"] == "scalar" and "value" not in a:
            value = 0.125 if a["dtype"] == "f32" else 33
            lines.append(f'  in.{name} = {value}; scalars["{name}"] = {value};')
    return "\n".join(lines)


def changes_of(launch):
    """(name, both refuse, C++ for launch.h's tensors, the same for the runtime's)."""
    def both(name, refused, argument, field, index, value):
        at = f"[{index}]" if index is not None else ""
        runtime = {"stride": "strides"}.get(field, field)
        return name, refused, (f"in.{argument}.{field}{at} = {value}; "
                               f'tensors["{argument}"].{runtime}{at} = {value};')

    def odd(dim, letter):
        """Dimension `dim` has extent 1 and stride 7 in every tensor that has the letter there."""
        code = ""
        for a in launch["arguments"]:
            if letter not in a.get("dims", []) or a["kind"] == "scratch":
                continue
            x, copied = a["name"], a["kind"] == "tensor_map" or "row_alignment" in a
            code += f'in.{x}.shape[{dim}] = 1; tensors["{x}"].shape[{dim}] = 1;'
            if copied:
                code += f'in.{x}.stride[{dim}] = 7; tensors["{x}"].strides[{dim}] = 7;'
        return code

    def many(letter, size):
        """So many of it, in every tensor that has the letter."""
        return "".join(f'in.{a["name"]}.shape[{d}] = {size}; tensors["{a["name"]}"].shape[{d}] = {size};'
                       for a in launch["arguments"] if a["kind"] in ("tensor", "tensor_map")
                       for d, dim in enumerate(a["dims"]) if dim == letter)

    changes = [
        ("nothing", False, ""),
        both("q has 32 columns", True, "q", "shape", 3, 32),
        both("k has other keys than v", True, "k", "shape", 2, 161),
        both("o has other heads", True, "o", "shape", 1, 4),
        both("lse has other queries", True, "lse", "shape", 2, 95),
        ("more key heads than query heads", True, many("G", 16)),
        both("no batch", True, "q", "shape", 0, 0),
        both("q lies 8 bytes off", True, "q", "data", None, "0x10008"),
        both("lse lies 2 bytes off", True, "lse", "data", None, "0x410002"),
        both("v has no memory", True, "v", "data", None, 0),
        both("q's columns are apart", True, "q", "stride", 3, 2),
        both("k's rows are 132 apart", True, "k", "stride", 2, 132),
        both("v's heads share memory", True, "v", "stride", 1, 0),
        ("a batch of one, whose stride is odd", False, odd(0, "B")),
        both("k's rows are 1024 apart", False, "k", "stride", 2, 1024),
        both("lse's rows are apart", False, "lse", "stride", 2, 3),
    ]
    if next(a for a in launch["arguments"] if a["name"] == "q")["kind"] == "tensor" and "before" in launch:
        # its rows are read by a pre-pass, at any address and stride
        changes = [c for c in changes if c[0] not in ("q lies 8 bytes off", "q's columns are apart")]
    if not any(r[0] == "==" and r[1] == "N" for r in launch["requires"]):
        changes.append(("one key, whose stride is odd", False, odd(2, "N")))
        limited = any(r[1] == "N" and r[0] in ("<", "<=") for r in launch["requires"])
        if not limited and not any("N" in str(a.get("bytes")) for a in launch["arguments"]):
            changes.append(("as many keys as are proved", False, many("N", 2**24)))
        changes.append(("a key more than are proved", True, many("N", 2**24 + 1)))
    if any(a["name"] == "heat" for a in launch["arguments"]):
        changes += [("the factor is not positive", True, 'in.heat = 0; scalars["heat"] = 0;'),
                    ("other queries than the code's", True, "".join(
                        f'in.{t}.shape[2] = 95; tensors["{t}"].shape[2] = 95;' for t in ("q", "o", "lse")))]
    return changes


def namespace(made):
    return re.search(r"^namespace (\w+) \{", (made / "launch.h").read_text(), re.M)[1]


def agreement_of(made, folder, changes=None):
    """Per change (by default those of a forward kernel): whether both should refuse, and what launch.h and the runtime
    say. `made` has launch.h and launch.json; the test is compiled in `folder`."""
    launch = json.loads((made / "launch.json").read_text())
    name = namespace(made)
    changes = changes or changes_of(launch)
    listed = "\n".join(f'    {{"{change}", [](Inputs& in, kw::runtime::Tensors& tensors, '
                       f"kw::runtime::Scalars& scalars) {{ (void)in; (void)tensors; (void)scalars; "
                       f"{code} }}}}," for change, _, code in changes)
    passes = [(kind, len(launch[kind])) for kind in ("before", "after") if launch.get(kind)]
    declared = "".join(f"CUfunction {kind}[{count}] = {{}}; " for kind, count in passes)
    given = "".join(f", {kind}" for kind, _ in passes)
    (folder / "inputs.h").write_text(f"""namespace {name} {{
inline CUresult load_all(CUfunction* kernel) {{
  {declared}return load(nullptr, kernel{given});
}}
inline CUresult launch_all(const Plan& plan) {{ {declared}return launch(nullptr{given}, plan, nullptr); }}
constexpr CUdeviceptr kWorkspace = 0x900000;
inline void fill(Inputs& in, kw::runtime::Tensors& tensors, kw::runtime::Scalars& scalars) {{
  (void)scalars;
{fill_of(launch)}
}}
using Spoil = std::function<void(Inputs&, kw::runtime::Tensors&, kw::runtime::Scalars&)>;
inline std::vector<std::pair<const char*, Spoil>> changes() {{
  return {{
{listed}
  }};
}}
}}
namespace made = {name};
""")
    libraries = [ROOT / f"build/src/libkw_{name}.a" for name in ("runtime", "compile", "num", "support")]
    subprocess.run(["g++", "-std=c++20", f"-I{made}", f"-I{folder}", f"-I{ROOT / 'src'}",
                    f"-isystem{CUDA}", str(ROOT / "tests/launch/agree.cpp"), *map(str, libraries),
                    "-lfmt", "-lcrypto", "-ldl", "-o", str(folder / "agree")], check=True)
    run = subprocess.run([str(folder / "agree"), str(made / "launch.json")], text=True,
                         capture_output=True, check=True)
    said = {line.split("|")[0]: line.split("|")[1:] for line in run.stdout.splitlines()}
    return {change: (refused, *said[change]) for change, refused, _ in changes}


def assert_agree(agreement):
    """Where nothing is wrong the same bytes and the same launch; where something is, two refusals."""
    for name, (refused, header, runtime, unlike) in agreement.items():
        if refused:
            assert header and runtime, (name, header, runtime)
        else:
            assert (header, runtime, unlike) == ("", "", ""), name
