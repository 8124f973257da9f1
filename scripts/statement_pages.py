"""docs/tl/statements.md: every statement of TL, from the tables of the language and the text beside them.

src/tl/ops.def says which statements there are, how they are spelled and from which level on; src/tl/laws/laws.def
says what a program must obey. What a statement means, its operands, faults, an example and its device code are
written by hand in docs/tl/text, a file a group: a title, then a section `### word` for each statement.
check_docs.py holds the three against each other; generated_docs.py writes the page.
"""
import pathlib
import re

NOTE = ("<!-- Written by scripts/generated_docs.py from src/tl/ops.def, src/tl/laws/laws.def and docs/tl/text: "
        "change those, and run it. -->\n")
HEADINGS = ["Meaning", "Operands", "Faults", "Example", "Device"]
INTRODUCTION = """# The statements of TL

[tl.md](../tl.md) is the guide; this is the reference. Each section has the statement's spelling in TL, the first
level that has it, who runs it and on which GPUs where that is limited, and the spelling in CUDA that `lift` reads and `lower` writes; what it means; its operands, by the names in the spelling; its laws; the faults that running it can
report; lines from programs of the tests; and what it becomes on the device. `kernelwright explain LAW` prints a law.
"""
# Families of laws that belong to no statement: laws.def's word, and the title of their section.
GENERAL = {"names": "Names", "types": "Types", "uses": "Uses of rings and barriers", "target": "What a target has"}
# What the table's columns `by` and `needs` say, where they say something.
BY = {"thread": "one thread", "warp": "a warp together", "warpgroup": "a warpgroup together", "block": "all threads of a CTA",
      "cluster": "all CTAs of a cluster"}
NEEDS = {"ampere": "from sm_80", "fp8": "from sm_89", "hopper": "sm_90a"}
STRING = r'"((?:[^"\\]|\\.)*)"'


def spelled(text):
    """A spelling without the kinds of its holes."""
    return re.sub(r"\$(\w+)(:\w+)?", r"$\1", text.replace("\\n", " ").replace('\\"', '"'))


def statements(root):
    """word -> (level, TL spelling, CUDA spelling or ""), from ops.def, in its order.

    if_ and return_ are spelled without the underscore.
    """
    text = (root / "src/tl/ops.def").read_text()
    found = {}
    for row in re.findall(rf'^OP\(((?:{STRING}|[^")])*)\)', text, re.M):
        word, level = re.match(r"(\w+?)_?,\s*(\w+),", row[0]).groups()
        cuda, tl, after = re.findall(STRING, row[0])[-3:]
        both = f"{cuda} ... {after}" if after else cuda
        found[word] = (level, spelled(tl.replace("$names:value", " [= $value]")), spelled(both))
    return found


def laws(root):
    """code -> sentence, from laws.def."""
    text = (root / "src/tl/laws/laws.def").read_text()
    return {f"{w}.{c}": t for w, c, t in re.findall(r'^LAW\((\w+), (C\d+), "(.*)"\)$', text, re.M)}


def texts(root):
    """[(title, {word: text})], one for each file of docs/tl/text."""
    found = []
    for path in sorted((root / "docs/tl/text").glob("*.md")):
        head, *parts = re.split(r"^### (\w+)$", path.read_text(), flags=re.M)
        found.append((head.strip().removeprefix("# "), {w: t.strip() for w, t in zip(parts[::2], parts[1::2])}))
    return found


def groups(root):
    """word -> the name of the file of docs/tl/text that has its section."""
    return {word: path.stem for path in sorted((root / "docs/tl/text").glob("*.md"))
            for word in re.findall(r"^### (\w+)$", path.read_text(), re.M)}


def test_file(word, group_of):
    """Where the laws of a statement, or of a family of laws that belongs to none, are tested; group_of: groups()."""
    return f"tests/laws/{word}.tl" if word in GENERAL else f"tests/ops/{group_of.get(word, 'GROUP')}/{word}.tl"


def traits(root):
    """word -> "run by a warpgroup together, sm_90a" and the like, "" for what declares and runs anywhere."""
    found = {}
    text = (root / "src/tl/ops.def").read_text()
    for word, by, needs in re.findall(r'^OP\((\w+?)_?,\s*\w+,\s*\w+,\s*\w+,\s*\w+,\s*(\w+),\s*"[^"]*",\s*\w+,\s*(\w+),', text, re.M):
        found[word] = ", ".join(part for part in (BY.get(by, ""), NEEDS.get(needs, "")) if part)
    return found


def section(word, level, spelling, cuda, runs, text, of_word):
    listed = "\n" + "\n".join(f"- {code.split('.')[1]}: {law}" for code, law in of_word.items()) if of_word else \
        " none of its own."
    before, faults, after = text.partition("**Faults.**")
    in_cuda = f"In CUDA `{cuda}`.\n\n" if cuda else ""
    return f"### {word}\n\n`{spelling}` · {level}{' · ' + runs if runs else ''}\n\n{in_cuda}{before.strip()}\n\n**Laws.**{listed}\n\n{faults}{after}\n"


def page(root):
    """The whole document. A statement without a text has no section: check_docs.py says so."""
    ops, known, runs = statements(root), laws(root), traits(root)
    order = list(ops)
    groups = [(title, sorted((w for w in words if w in ops), key=order.index), words) for title, words in texts(root)]
    groups.sort(key=lambda g: order.index(g[1][0]) if g[1] else len(order))
    parts = [NOTE, INTRODUCTION]
    parts.append("Groups: " + " · ".join(f"[{t}](#{re.sub(r'[^a-z -]', '', t.lower()).replace(' ', '-')})"
                                         for t in ["For every statement", *(g[0] for g in groups)]) + "\n")
    parts.append("## For every statement\n")
    for family, title in GENERAL.items():
        listed = [f"- {code}: {law}" for code, law in known.items() if code.startswith(family + ".")]
        parts.append(f"**{title}.**\n" + "\n".join(listed) + "\n")
    for title, words, text in groups:
        parts.append(f"## {title}\n")
        for word in words:
            of_word = {code: law for code, law in known.items() if code.startswith(word + ".")}
            parts.append(section(word, *ops[word], runs[word], text[word], of_word))
    return "\n".join(parts)
