"""The rows of two more tables: every example beside its peers, and CuBridge's 96 cells.

A row is an example (examples/NAME.py), sizes, and what the statement's arguments need (statements.py):
how long a prefix or a document is, how far a table reaches. Where a row asks for other constants than
the example's (a window of 64), or for fp16, the kernel is made from the example's text with these
replaced, and its folder says so: streaming_sinks128_window1025, relu_f16.

The first rows of VARIANTS, COMPARED, are those that several libraries are compared on; then comes a row
for each other example. CUBRIDGE are the eight functions of CuBridge (arXiv 2605.05023) at its head
counts and lengths, 16k tokens in all; the paper's own parameters are not public, ours are below.
"""

import ast
import dataclasses
import re
from pathlib import Path

from cases import CASES

ROOT = Path(__file__).resolve().parents[2]
BESIDE_PEERS, EXAMPLES, EIGHT = "Variants", "Variants, other examples", "CuBridge's eight"


@dataclasses.dataclass(frozen=True)
class Row:
    example: str
    label: str = ""
    batch: int = 2
    heads: int = 16
    length: int = 8192       # of queries
    keys: int = 0            # 0: length
    key_heads: int = 0       # 0: heads
    dim: int = 128           # columns of Q and K
    value_dim: int = 0       # of V and the output; 0: dim
    dtype: str = "bf16"
    graph: bool = False
    constants: tuple = ()    # ((name, value), ...) in the place of the example's
    prefix_length: int = 1024
    document_length: int = 1024
    reach: int = 0           # of a relative table; 0: every distance has its entry
    counted: str = ""        # "causal": FLOP are counted over the causal entries
    group: str = EXAMPLES
    floor: float = 1.0

    ampere = False

    @property
    def statement(self):
        from variants.statements import STATEMENTS  # here, since torch takes seconds to import
        return STATEMENTS[self.example]

    @property
    def compared_with_eager(self):
        return self.group == EIGHT

    @property
    def brief(self):
        """There are too many of them for five rounds each."""
        return self.group != BESIDE_PEERS

    @property
    def columns(self):
        """Of V and the output."""
        return self.value_dim or self.dim

    @property
    def groups(self):
        """Heads of K and V."""
        return self.key_heads or self.heads

    @property
    def all_keys(self):
        return self.keys or self.length

    @property
    def key(self):
        """The folder of its kernel."""
        constants = [f"{name.lower()}{value}" for name, value in self.constants]
        return "_".join([self.example, *constants, *[self.dtype] * (self.dtype != "bf16")])

    @property
    def name(self):
        heads = f"{self.heads}/{self.groups}" if self.groups != self.heads else self.heads
        length = f"S{self.length}" + (f"/{self.keys}" if self.keys else "")
        values = f"/{self.columns}" if self.columns != self.dim else ""
        return (f"{self.label or self.example} B{self.batch} H{heads} {length} D{self.dim}{values}"
                + f" {self.dtype}" * (self.dtype != "bf16") + " graph" * self.graph)

    @property
    def text(self):
        """Of the specification: the example's own, where nothing is replaced in it."""
        return specification((ROOT / f"examples/{self.example}.py").read_text(),
                             dict(self.constants), self.dtype)

    @property
    def spec(self):
        """The example, where its text is as it stands, or None."""
        path = ROOT / f"examples/{self.example}.py"
        return path if self.text == path.read_text() else None

    def draw(self, device):
        from variants.inputs import VariantInputs
        return VariantInputs(self, device)

    def makers(self, folders, which="all", absent=()):
        from variants import peers as variant_peers
        return variant_peers.implementations(self, folders, which, absent)


def specification(text, constants, dtype="bf16"):
    """An example's text with other values of its constants, and with another type of its inputs."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign):
            continue
        names = [name.id for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
        if set(names) & set(constants):
            values = ast.literal_eval(node.value)
            old = dict(zip(names, values if isinstance(values, tuple) else (values,)))
            new = ", ".join(str(constants.get(name, value)) for name, value in old.items())
            text = text.replace(ast.get_source_segment(text, node), f"{', '.join(names)} = {new}")
            constants = {k: v for k, v in constants.items() if k not in names}
    if constants:
        raise ValueError(f"the example has no constant {', '.join(constants)}")
    return re.sub(r"torch\.bfloat16", "torch.float16", text) if dtype == "f16" else text


def _beside_peers(example, label="", **more):
    return Row(example, label, group=BESIDE_PEERS, **more)


COMPARED = [
    _beside_peers("full"), _beside_peers("causal"),
    _beside_peers("sliding_window", "causal window 1024"),
    _beside_peers("softcap", "softcap 50, causal"),
    _beside_peers("alibi", "ALiBi, slope table"),
    _beside_peers("alibi_heads", "ALiBi, closed form"),
    _beside_peers("relative_bias", "relative table"),
    _beside_peers("prefix_lm", "prefix-LM 1024"),
    _beside_peers("documents", "documents of 1024"),
    _beside_peers("streaming", "window 1024 + 128 columns",
                  constants=(("SINKS", 128), ("WINDOW", 1025))),
    _beside_peers("block_causal", "i//256 >= j//256"),
    _beside_peers("dilated", "dilated by 4, causal", counted="causal"),
    _beside_peers("comb", "Comb")]

SIZES = {  # of other examples, where not B 2, H 16, S 8192
    "bottom_right": {"length": 4096, "keys": 8192},
    "dense_bias": {"length": 4096},
    "mla_prefill": {"dim": 192, "value_dim": 128},
    "sink": {"heads": 64, "key_heads": 8, "dim": 64, "batch": 1},
    "t5_buckets": {"dim": 64},
    "tree_bits": {"length": 1024, "keys": 9216},
    "tree_mask": {"length": 1024, "keys": 9216},
    "share_question": {"document_length": 2048}}
_shown = {row.key for row in COMPARED}
VARIANTS = COMPARED + [Row(name, **SIZES.get(name, {})) for name in
                     sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
                     if name not in _shown]
VARIANTS += [Row("relative_bias", "relative table, reach 128", reach=128)]

TOKENS, LENGTHS, HEADS = 16384, (1024, 2048, 4096, 8192), ((32, 32), (64, 8), (128, 8))
SEVEN = {  # CuBridge's eight but for the window, whose constants grow with the length
    "PrefixLM": ("prefix_lm", lambda s: {"prefix_length": s // 8}),
    "Share Question": ("share_question", lambda s: {"document_length": min(s, 2048)}),
    "Causal Blockwise": ("causal_blockwise", lambda s: {}),
    "Relative Position": ("relative_bias", lambda s: {}),
    "ReLU": ("relu", lambda s: {}), "Sigmoid": ("sigmoid", lambda s: {}),
    "Comb": ("comb", lambda s: {"prefix_length": s // 8})}
EIGHT_ROWS = SEVEN | {
    "Global Sliding Window": ("global_window", lambda s: {
        "constants": (("WINDOW", s // 16), ("GLOBAL", 16))})}


def _cell(label, heads, length):
    example, more = EIGHT_ROWS[label]
    return Row(example, label, batch=TOKENS // length, heads=heads[0], key_heads=heads[1],
               length=length, dtype="f16", group=EIGHT, **more(length))


CUBRIDGE = [_cell(label, heads, length)
            for label in EIGHT_ROWS for heads in HEADS for length in LENGTHS]

ROWS = {"attention": CASES, "variants": VARIANTS, "cubridge": CUBRIDGE}  # the tables of bench.py
