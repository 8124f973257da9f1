"""bench/look/why.py without a kernel that was made: a listing by hand, programs by hand, and the corpus."""

import json
import sys

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]
import kept  # noqa: E402
from look import prepass, sass, visits, why  # noqa: E402

# ---- instructions

LISTING = """
.text.attention_fwd:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   HGMMA.64x16x16.F32.BF16 R88, R212, gdesc[UR16], RZ, !UPT ;
        /*0020*/              @!P0 BRA `(.L_x_9) ;
.L_x_8:
        /*0030*/                   HGMMA.64x128x16.F32.BF16 R24, R180, gdesc[UR16].tnspB, R24 ;
        /*0040*/                   FFMA R1, R2, R3, R4 ;
        /*0050*/                   MUFU.EX2 R1, R1 ;
        /*0060*/                   LDG.E.U16 R5, desc[UR4][R6.64] ;
        /*0070*/               @P1 BRA `(.L_x_2) ;
        /*0080*/                   FMUL R1, R2, R3 ;
        /*0090*/                   FMUL R1, R2, R3 ;
        /*00a0*/                   LDG.E R5, desc[UR4][R6.64] ;
.L_x_2:
        /*00b0*/                   IMAD R1, R2, R3, R4 ;
        /*00c0*/                   FMNMX R1, R2, R3, !PT ;
        /*00d0*/               @P0 BRA `(.L_x_1) ;
        /*00e0*/                   EXIT ;
.L_x_9:
        /*00f0*/                   NOP ;
        /*0100*/                   BRA `(.L_x_8) ;
"""


def test_the_shortest_way_through_a_main_loop_is_counted_by_unit(monkeypatch):
    monkeypatch.setattr(sass, "text_of", lambda cubin: LISTING)
    [loop] = sass.loops_of("x", keys=16, dim=16)
    scores = 8  # a thread's
    assert loop.units == {"FMA": 3 / scores, "ALU": 1 / scores, "MUFU": 1 / scores,
                          "LSU": 1 / scores, "issue": 10 / scores}
    assert loop.loaded_bytes == (2 + 4) / scores  # whichever way is gone
    assert sass.loops_of("x", keys=32, dim=16) == []  # other products


def test_an_unconditional_jump_is_followed():
    text = LISTING.replace("@P1 BRA `(.L_x_2)", "    BRA `(.L_x_2)").replace("FMNMX", "FSEL")
    instructions, labels = sass.read(text)
    [loop] = sass.main_loops(instructions, labels, 2)
    way = [instructions[i].word for i in sass.shortest_way(instructions, labels, loop)]
    assert "FMUL" not in way and way[-1] == "BRA" and "FSEL" in way


def test_a_machine_without_a_disassembler_is_told_so(monkeypatch):
    monkeypatch.setattr(sass, "disassembler", lambda: None)
    with pytest.raises(FileNotFoundError, match="no nvdisasm"):
        sass.text_of("x")


def test_rates_give_what_the_tensor_cores_take():
    assert sass.tensor_cycles(128, 128) == 0.125
    assert sass.Loop({u: 1 for u in sass.RATES}, 0).cycles()["MUFU"] == 1 / 16


# ---- visits

PROGRAM = """param BM = 128, BN = 32, WARPGROUPS = 2, CTAS = 1
record Keys: count, full, first
def block_of(w: index) -> Block:
    return w % 3, 0, 0
{functions}kernel attention_fwd, threads 384:
    warpgroups me from MATH, registers 240:
        for u, w in static_tiles(blocks, CTAS):
            let c = block_of(w)
            let i0 = c.m * BM + (cta * WARPGROUPS + me) * 64
            let mine = key_blocks(c, i0, 64)
            let slope = slopes[c.h]
            step weigh(n: i32, partial: bool):
                if partial:
                    map_at s[i, j] = 0
            step advance(n: i32, partial: bool):
                weigh(n, partial)
            weigh(mine.count - 1, true)
            for t, n in range_down_counted(mine.count - 2, mine.full):
                advance(n, true)
            for t, n in range_down_counted(min(mine.count - 1, mine.full) - 1, mine.first):
                advance(n, false)
"""
CAUSAL = """def key_blocks(c: Block, i0: index, rows: index) -> Keys:
    let end = min(N, i0 + rows), first = 0
    return ceil_div(end, BN), {full} // BN, first
"""
SIZES = (1, 1, 250, 250)


def counts(functions, keep, **arguments):
    program = visits.Program(PROGRAM.format(functions=functions),
                             {"M": 250, "N": 250, "B": 1, "H": 1, "G": 1}, arguments)
    return visits.counts(program, keep, SIZES, (False, False))


def causal(b, h, i, j):
    return j <= i


def test_visits_and_what_is_needed_of_causal_attention():
    found = counts(CAUSAL.format(full="min(N, i0 + 1)"), causal)
    assert found["visited"] == found["needed"] == 2 + 4 + 6 + 8
    assert found["masked"] == found["partly"] == 8 and found["blocks"] == 4 * 8
    assert found["kept"] == 250 * 251 // 2


@pytest.mark.parametrize("functions,fault", [
    (CAUSAL.format(full="min(N, i0 + 64)"), "rows 0 and on: block 0 has no mask"),
    (CAUSAL.format(full="0").replace("i0 + rows", "i0 + rows - 32"),
     "rows 0 and on: block 1 has a kept entry, and is not visited")])
def test_a_program_that_visits_too_little_or_masks_too_little_is_found(functions, fault):
    with pytest.raises(AssertionError, match=fault):
        counts(functions, causal)


def test_numbers_of_visits_are_turned_into_blocks():
    jumps = """def key_block(c: Block, n: index) -> index:
    return n + where(n < 1, 0, hole_of(c))
def hole_of(c: Block) -> index:
    return 3
def key_blocks(c: Block, i0: index, rows: index) -> Keys:
    return 3, 0, 0
"""
    found = counts(jumps, lambda b, h, i, j: (j < 32) | ((j >= 128) & (j < 192)) & (i >= 0))
    assert found["visited"] == found["needed"] == 4 * 3


def test_bounds_may_read_whole_numbers():
    read = """def key_blocks(c: Block, i0: index, rows: index) -> Keys:
    let kept = lengths[c.b]
    return ceil_div(kept, BN), 0, 0
"""
    keep = (lambda b, h, i, j: (j < 40) & (i >= 0))
    assert counts(read, keep, lengths=prepass.Table(torch.tensor([40])))["visited"] == 4 * 2
    with pytest.raises(visits.Unreadable, match="lengths"):
        counts(read, keep)


LISTS = """def first_word(c: Block) -> index:
    return c.m * list_words
def key_blocks(c: Block, i0: index, rows: index) -> Keys:
    let list = first_word(c)
    return visits[list + where(rows == BM, 0, 2 + (i0 - c.m * BM) // rows)], visits[list + 1], 0
def key_block(c: Block, n: index) -> index:
    return visits[first_word(c) + 2 + BM // 64 + n]
lists attention_lists, threads 512, w of lists:
    let m = w
    list_blocks visits[w * list_words] for n in range(0, ceil_div(N, BN)), groups r to s of BM // 64:
        let i0 = min(M - 1, m * BM + r * 64), i1 = min(M, m * BM + s * 64) - 1
        let j0 = n * BN, j1 = min(N, j0 + BN) - 1
        let a = least(part, i0, i1), b = greatest(part, i0, i1)
        let c = least(part, j0, j1), d = greatest(part, j0, j1)
        return a <= d and c <= b, {all}
"""
ARGS = """args:
    part: in i32[M]
    lists: size = ceil_div(M, BM)
    list_words: size = 2 + BM // 64 + ceil_div(N, BN)
    section: size = heads_in_l2(N)
shared:
"""
ALL = "a == d and b == c and j0 + BN <= N"


def listed(every=ALL):
    part = torch.arange(250) // 96
    keep = (lambda b, h, i, j: part[i] == part[j])
    text = ARGS + PROGRAM.format(functions=LISTS.replace("{all}", every))
    program = visits.Program(text, {"M": 250, "N": 250, "B": 1, "H": 1, "G": 1},
                             {"part": prepass.Table(part)})
    return program, visits.counts(program, keep, SIZES, (False, False))


def test_what_a_prepass_lists_is_visited():
    program, found = listed()
    assert found["listed"] and found["needed"] == 3 + 6 + 3 + 2
    # Rows 0..127: blocks 0 to 2 for both warpgroups' rows, 3 to 5 for the second alone.
    assert [program.names["visits"][k] for k in range(4 + 6)] == [6, 0, 3, 6, 0, 1, 2, 3, 4, 5]
    assert found["visited"] == 3 + 6 + 3 + 5 and found["masked"] == found["visited"]


def test_a_prepass_that_calls_too_much_whole_is_found():
    with pytest.raises(AssertionError, match="no mask"):
        listed(every="j0 <= i1")


def test_the_experts_own_program_visits_every_block_and_masks_the_last():
    text = (ROOT / "tests/corpus/sm90_attention_fwd.tl").read_text()
    sizes = (2, 4, 300, 300)
    program = visits.Program(text, {**dict(zip("BHMN", sizes)), "G": 4}, {})
    found = visits.counts(program, None, sizes, (False, False))
    assert found["visited"] == found["needed"] == found["blocks"] == 15
    assert found["masked"] == 5 and found["partly"] == 0  # the last block ends past the keys


# ---- the table

def test_a_row_says_what_binds_and_what_is_possible():
    def row(key, units, computed, masked):
        cycles = {u: n / r for (u, r), n in zip(sass.RATES.items(), units)} | {"tensor": 0.125}
        return {"key": key, "units": dict(zip(sass.RATES, units)), "cycles": cycles, "bytes": 0,
                "keys": 128, "binds": "MUFU", "next": "tensor", "cost": computed,
                "beside_tensor": {u: c / 0.125 for u, c in cycles.items()},
                "tiles": {"visited": 100, "needed": 50, "masked": masked, "listed": False,
                          "computed": computed}}
    rows = {"full": row("full", (2, 1, 1, 0, 5), 1, 2), "x": row("comb", (2, 1, 3, 0, 5), 4, 100)}
    bench = {"cases": {name: {"rows": {"ours": {"status": "ok", "tflops": t}}}
                       for name, t in (("full", 700), ("x", 140))}}
    rows = why.with_speeds(rows, bench)
    assert why.cells("x", rows["x"]) == ["x", "2.00", "100 %", "4.00", "2.0", "1.0", "3.0", "5.0",
                                         "0.0", "128", "MUFU 1.50", "tensor 1.00", "0.25", "0.20"]
    assert "| x | 2.00 | 100 % |" in why.printed(rows, True)


def test_without_sass_the_tiles_are_told_alone(tmp_path, monkeypatch):
    folder = tmp_path / "full"
    folder.mkdir()
    corpus = (ROOT / "tests/corpus/sm90_attention_fwd.tl").read_text()
    (folder / "kernel.tl").write_text(corpus)
    (folder / "launch.json").write_text(json.dumps({"constants": {"BN": 128, "D": 128, "V": 128}}))
    monkeypatch.setattr(sass, "disassembler", lambda: None)
    from variants.rows import Row
    found = why.explained(Row("full", batch=1, heads=1, length=512), folder)
    assert found["tiles"]["visited"] == found["tiles"]["needed"] and "no nvdisasm" in found["unknown"]
    assert why.cells("full", found)[-1].startswith("no nvdisasm")
    assert kept.axes_of(None, (2, 2, 4, 4)) == (None, None)
