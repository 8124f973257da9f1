"""The rows of the benchmark: which attention, at which sizes, with which kernel of ours.

A case's `key` names the folder of the kernel that computes it: a kernel takes any batch, head counts
and lengths, so the rows of one function, head dimension and type share a folder (kernels.py makes
them all). A case's `group` is the table that it stands in, `floor` the ratio to the fastest peer that
it must reach there.
"""

import dataclasses

FUNCTIONS = ("full", "causal", "prefix_lm", "alibi")
HOPPER, VARIANTS, AMPERE = "Hopper", "Hopper, variants", "Ampere-class"


@dataclasses.dataclass(frozen=True)
class Case:
    function: str
    batch: int
    heads: int
    length: int
    dim: int = 128         # columns of Q and K
    value_dim: int = 0     # of V and the output; 0: dim
    dtype: str = "bf16"
    key_heads: int = 0     # of K and V; 0: heads
    graph: bool = False    # short launches, replayed from a CUDA graph so that no gap is timed
    ampere: bool = False   # the kernel of kernels/sm80, beside what FlashAttention-2 does

    @property
    def columns(self):
        """Of V and the output."""
        return self.value_dim or self.dim

    @property
    def groups(self):
        """Heads of K and V."""
        return self.key_heads or self.heads

    @property
    def _variant(self):
        values = f"/{self.columns}" if self.columns != self.dim else ""
        return f"D{self.dim}{values}" + (f" {self.dtype}" if self.dtype != "bf16" else "")

    @property
    def name(self):
        heads = f"{self.heads}/{self.groups}" if self.groups != self.heads else self.heads
        return (f"{self.function} B{self.batch} H{heads} S{self.length} {self._variant}"
                + " graph" * self.graph + " Ampere" * self.ampere)

    @property
    def key(self):
        """full, causal_d192_128, full_f16, full_ampere."""
        variant = self._variant.removeprefix("D128").lower().replace("/", "_").split()
        return "_".join([self.function, *variant, *["ampere"] * self.ampere])

    @property
    def group(self):
        return (AMPERE if self.ampere else HOPPER if self.function in ("full", "causal")
                else VARIANTS)

    @property
    def floor(self):
        return 1.0 if self.ampere else 0.98 if self.dim == 256 else 1.03

    @property
    def prefix(self):
        return self.length // 8

    @property
    def unmasked(self):
        """Entries of one head's score matrix that count."""
        s, p = self.length, self.prefix
        causal = s * (s + 1) // 2
        # The first p rows see p keys instead of i + 1.
        return {"full": s * s, "prefix_lm": causal + p * (p - 1) // 2}.get(self.function, causal)

    def draw(self, device):
        """The case's tensors. Here, since torch takes seconds to import."""
        from peers import Inputs
        return Inputs(self, device)

    def makers(self, folders, which="all", absent=()):
        """(name, maker) of everything that computes the case, in the order of the table."""
        from peers import implementations
        return implementations(self, folders, which, absent)

    @property
    def flop(self):
        return 2 * self.batch * self.heads * (self.dim + self.columns) * self.unmasked


def _both(*sizes, **more):
    return [Case(function, *sizes, **more) for function in ("full", "causal")]


CASES = [*_both(4, 16, 4096), *_both(1, 16, 16384), *_both(16, 16, 1024, graph=True),
         *_both(1, 64, 8192, key_heads=8),
         *_both(1, 32, 16384, 64), *_both(1, 16, 16384, 96), *_both(1, 8, 16384, 256),
         Case("causal", 1, 128, 8192, 192, 128), *_both(1, 16, 16384, dtype="f16"),
         Case("prefix_lm", 2, 16, 8192), Case("alibi", 2, 16, 8192),
         *_both(4, 16, 4096, ampere=True), *_both(1, 16, 16384, ampere=True)]
KEYS = tuple(dict.fromkeys(case.key for case in CASES))
