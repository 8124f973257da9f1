"""Decoding: one query for each head. Heads that share a key head become rows of one tile, in the ordinary
kernel, in the one whose keys are split over blocks, and in the one whose values are columns of its keys; and what slips in
any are refuted.

What is captured is captured in this process, so that PyTorch is loaded once.
"""

import json

import pytest
import torch
from kernelwright.capture import capture
from kernelwright.runtime.bindings import kernel_view, query_dimension, to_kernel, to_user
from kernelwright_cli import ROOT, call

SPEC = """import torch


def decode(q, k{more}):
    {body}


def example_inputs():
    return torch.randn(2, 6, {queries}, 64).bfloat16(), torch.randn(2, 2, 96, 64).bfloat16(){values}
"""
GROUPED = ("s = q @ k.repeat_interleave(3, 1).mT", "return s.softmax(-1) @ v.repeat_interleave(3, 1)")
V = dict(more=", v", values=", torch.randn(2, 2, 96, 64).bfloat16()")


def captured(folder, *body, queries=1, more="", values=""):
    path = folder / "decode.py"
    path.write_text(SPEC.format(body="\n    ".join(body), queries=queries, more=more, values=values))
    capture.capture_file(str(path), None, None, folder / "captured")
    return folder / "captured"


def form(source):
    run = call("capture", source, "--form")
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def transferred(folder, source, name, arch="sm80", target="sm_80"):
    """kernel.tl of the rules, and whether they say so."""
    lifted = call("lift", ROOT / f"kernels/{arch}/{name}.cu", "--out", folder / "lifted.tl")
    assert lifted.returncode == 0, lifted.stderr
    run = call("transfer", folder / "lifted.tl", "--spec", source, "--target", target,
               "--out", folder / "kernel.tl")
    return run, folder / "kernel.tl"


def check(program, source, effort="quick"):
    return call("check", program, "--spec", source, "--check", effort, "--json")


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grouped")
    source = captured(folder, *GROUPED, **V)
    run, program = transferred(folder, source, "attention_fwd")
    assert run.returncode == 0, run.stderr
    return source, program


@pytest.fixture(scope="module")
def latent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latent")
    capture.capture_file(str(ROOT / "examples/decode/mla_decode.py"), None, None, folder / "captured")
    run, program = transferred(folder, folder / "captured", "latent_fwd")
    assert run.returncode == 0, run.stderr
    return folder / "captured", program


@pytest.fixture(scope="module")
def latent_by_roles(latent, tmp_path_factory):
    run, program = transferred(tmp_path_factory.mktemp("roles"), latent[0], "latent_fwd", "sm90", "sm_90a")
    assert run.returncode == 0, run.stderr
    return latent[0], program


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """The example of grouped heads, and what make writes of it."""
    folder = tmp_path_factory.mktemp("split")
    capture.capture_file(str(ROOT / "examples/decode/gqa_decode.py"), None, None, folder / "captured")
    run = call("make", folder / "captured", "--target", "sm_90a", "--out", folder / "made", "--check", "quick")
    assert run.returncode == 0, run.stderr
    return folder / "captured", folder / "made/kernel.tl"


@pytest.fixture(scope="module")
def selected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selected")
    capture.capture_file(str(ROOT / "examples/decode/nsa_selected.py"), None, None, folder / "captured")
    run, program = transferred(folder, folder / "captured", "attention_fwd")
    assert run.returncode == 0, run.stderr
    return folder / "captured", program


def test_one_query_is_a_size_of_the_form(grouped):
    assert "6 query / 2 key heads, D 64, M 1; any B, N" in form(grouped[0])[0]


def test_values_may_be_columns_of_the_keys(latent):
    assert form(latent[0])[0] == "mla_decode: bf16, 16 query / 1 key heads, D 576, Dv 512, M 1; any B, N"


def test_heads_of_a_group_become_rows(grouped):
    program = grouped[1].read_text()
    for line in ("q: in element[B, G, R, D]", "o: out element[B, G, R, D]", "lse: out f32[B, G, R]",
                 "B, G, R, N: size", "blocks: size = ceil_div(R, BM) * G * B", "let g = c.h"):
        assert line + "\n" in program
    run = check(grouped[1], grouped[0])
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_score_that_reads_the_head_stays_one_head_a_tile(tmp_path):
    source = captured(tmp_path, "s = q @ k.repeat_interleave(3, 1).mT * slopes[:, None, None]", GROUPED[1],
                      more=", v, slopes", values=V["values"] + ", torch.rand(6).bfloat16()")
    run, program = transferred(tmp_path, source, "attention_fwd")
    assert run.returncode == 0 and "q: in element[B, H, M, D]" in program.read_text()


@pytest.mark.parametrize("was, slip", [
    ("c.b, c.h, i0] -> q_s", "c.b, 0, i0] -> q_s"),  # the first group's queries for all
    ("let g = c.h", "let g = 0"),
    ("ceil_div(R, BM) * G * B", "ceil_div(R, BM) * B"),  # one group a batch entry
    ("min(keys.count, keys.full)", "min(keys.count, keys.full - 1)"),
])
def test_a_slip_among_packed_rows_is_refuted(grouped, tmp_path, was, slip):
    refuted(grouped, tmp_path, was, slip)


@pytest.mark.parametrize("was, slip", [
    ("n * BN, r * W] -> v_s", "n * BN, 0] -> v_s"),  # both warpgroups have the first columns
    ("q_s from me * W", "q_s from (1 - me) * W"),
    ("mma_add acc += p @ v_s[me]", "mma_add acc += p @ v_s[0]"),
    ("if me == 0:", "if me == 1 and c.h > 0:"),  # nobody writes the sums
])
def test_a_slip_among_columns_of_the_keys_is_refuted(latent, tmp_path, was, slip):
    refuted(latent, tmp_path, was, slip)


@pytest.mark.parametrize("was, slip", [
    ("@ k_s[t] from (me - 1) * W", "@ k_s[t] from 0"),  # all add the first columns
    ("q_s[u] from (me - 1) * W", "q_s[u] from (2 - me) * W"),
    ("put_rows factor -> factor_s[t]", "put_rows m -> factor_s[t]"),
    ("raised = any_differs factor, 1.0", "raised = any_differs inverse, 1.0"),  # of the block before
    ("                    wait p_full[t]\n", ""),
    ("                    wait_free p_free[t]\n", ""),  # the weights of the next keys come too early
    ("                    fence_async\n", ""),
    ("                wait_free inverse_free[u]\n", ""),
    ("                    arrive k_free[t]\n                wait inverse", "                wait inverse"),
])
def test_a_slip_among_warpgroups_with_roles_is_refuted(latent_by_roles, tmp_path, was, slip):
    refuted(latent_by_roles, tmp_path, was, slip, codes=(1, 2))


def test_warpgroups_with_roles_hold(latent_by_roles):
    run = check(latent_by_roles[1], latent_by_roles[0])
    assert run.returncode == 0, run.stdout + run.stderr


def test_half_the_keys_at_a_time_fit_where_all_do_not(latent, tmp_path):
    """sm_80 has 163 KB of shared memory; sm_89 has 99, where no number of keys fits beside the queries and a sketch does."""
    run = call("make", latent[0], "--target", "sm_80", "--out", tmp_path / "made", "--check", "quick")
    assert run.returncode == 0, run.stderr
    plan = json.loads((tmp_path / "made/launch.json").read_text())
    assert plan["shared_bytes"] == 143360 and "BN = 32" in (tmp_path / "made/kernel.tl").read_text()
    sizes = json.loads((tmp_path / "made/prove.json").read_text())["cases"][0]["sizes"]
    assert sizes["R"] == 16
    small = call("make", latent[0], "--target", "sm_89", "--out", tmp_path / "small", "--check", "quick")
    assert small.returncode == 0 and "212992 bytes of shared memory, sm_89 has 101376); a sketch next" in small.stderr


def test_keys_are_split_over_blocks_by_sizes_alone(split):
    program = split[1].read_text()
    for line in ("splits: size = max(1, min(ceil_div(N, BN), FILL // tiles))", "part_o: scratch f32[B, E, R, V]",
                 "store_rows lse_r -> part_lse[c.b, c.h * splits + c.s, i0]",
                 "combine_parts part_o, part_lse of splits by w -> o, lse"):
        assert line + "\n" in program
    plan = json.loads((split[1].parent / "launch.json").read_text())
    assert [p["entry"] for p in plan["after"]] == ["attention_decode_combine"]
    scratch = {a["name"]: a["bytes"] for a in plan["arguments"] if a["kind"] == "scratch"}
    assert scratch == {"part_o": ["*", ["*", ["*", ["*", 4, "B"], "E"], "R"], 128], "part_lse": ["*", ["*", ["*", 4, "B"], "E"], "R"]}


def test_keys_that_are_split_hold_in_every_order(split):
    """Every order of its agents is closed over; that heads are rows narrows what is claimed."""
    run = check(split[1], split[0], "default")
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert report["holds_for"] == "the sizes and data that ran", run.stdout
    assert report["schedules"]["all_sequences_of_blocks"] and report["schedules"]["any_number_of_key_blocks"], run.stdout


@pytest.mark.parametrize("was, slip", [
    ("ceil_div(all.count - c.s, splits)", "max(0, all.count - c.s) // splits"),  # the last block of some is left out
    ("ceil_div(all.full - c.s, splits)", "ceil_div(all.full + splits - c.s, splits)"),  # and one is taken without its mask
    ("(x * splits + c.s) * BN] -> v_s", "(x * splits) * BN] -> v_s"),
    ("m[i] * scale + log2(lse_r[i]))", "m[i] * scale)"),  # parts count by their references alone
    ("m[i] * scale + log2(lse_r[i]))", "log2(lse_r[i]))"),
    ("where(lse_r[i] == 0.0, -inf,", "where(lse_r[i] == 0.0, 0.0,"),  # a part without keys counts
    ("part_lse[c.b, c.h * splits + c.s, i0]", "part_lse[c.b, c.h * splits + (c.s + 1) % splits, i0]"),
    ("map acc[i, j] = acc[i, j] * inverse[i]", "map acc[i, j] = acc[i, j] * 1.0"),
    ("blocks: size = tiles * splits", "blocks: size = tiles * max(1, splits - 1)"),  # the last blocks are nobody's
])
def test_a_slip_among_parts_is_refuted(split, tmp_path, was, slip):
    refuted(split, tmp_path, was, slip)


def test_what_parts_do_not_add_up_to_starts_from_the_other_text(tmp_path):
    source = captured(tmp_path, GROUPED[0], "return s.softmax(-1) @ v.repeat_interleave(3, 1) * gate",
                      more=", v, gate", values=V["values"] + ", torch.rand(2, 1, 1, 1)")
    run = call("make", source, "--target", "sm_90a", "--out", tmp_path / "made", "--check", "quick")
    assert run.returncode == 0 and "the function has a function of its output); kernels/sm90/attention_fwd.cu next" in run.stderr, run.stderr
    assert "o: tiled out element[B, G, R, V]" in (tmp_path / "made/kernel.tl").read_text()


def test_blocks_chosen_for_a_key_head_are_listed_for_its_rows(selected):
    program = selected[1].read_text()
    assert "chosen: in i32[B, G, " in program and "list_blocks visits" in program
    run = check(selected[1], selected[0])
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_chosen_block_that_is_forgotten_is_refuted(selected, tmp_path):
    pair = "chosen[b, h, 0, 3] <= j1 // 64 and j0 // 64 <= chosen[b, h, 0, 3] or "
    refuted(selected, tmp_path, pair, "", effort="default")  # few blocks are chosen in few cases


def refuted(made, folder, was, slip, effort="quick", codes=(1,)):
    text = made[1].read_text()
    assert was in text
    (folder / "slip.tl").write_text(text.replace(was, slip, 1))
    run = check(folder / "slip.tl", made[0], effort)
    assert run.returncode in codes, run.stdout + run.stderr


def test_values_of_the_keys_hold(latent):
    run = check(latent[1], latent[0])
    assert run.returncode == 0, run.stdout + run.stderr


def test_more_queries_than_one_are_refused_by_the_packed_kernel(tmp_path):
    source = captured(tmp_path, "s = q @ k.repeat_interleave(3, 1).mT",
                      "return s.softmax(-1) @ k[..., :32].repeat_interleave(3, 1)", queries=5)
    run, _ = transferred(tmp_path, source, "latent_fwd")
    assert run.returncode == 2 and "transfer.packed" in run.stderr, run.stderr


@pytest.mark.parametrize("dims, shape", [([0, 1, 1, 3], (2, 6, 1, 8)), ([0, 2, 2, 3], (2, 1, 6, 8)),
                                         ([-1, 0, 0, 2], (6, 1, 8))])
def test_the_users_tensor_is_viewed_as_rows_and_back(dims, shape):
    """Row r of key head g is query head 3 g + r, wherever the heads lie in memory."""
    user = torch.randn(*shape[:-1], 16)[..., :8]  # rows that are further apart
    view = to_kernel(user, dims, 3)
    assert view.data_ptr() == user.data_ptr() and view.shape[-3:] == (2, 3, 8)
    heads = next(d for d in dims if d == dims[1])
    picked = user.select(heads, 4).reshape(-1, 8)
    assert torch.equal(view[..., 1, 1, :].reshape(-1, 8), picked)
    assert torch.equal(to_user(view, dims, 3), user)
    assert kernel_view(user.shape, user.stride(), dims, 3)[0] == list(view.shape)
    queries = query_dimension({"kernel_dims": dims, "group": 3})
    assert user.shape[queries] == 1


def test_a_certificate_says_how_many_heads_are_rows(grouped, tmp_path):
    run = call("make", grouped[0], "--target", "sm_80", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0, run.stdout + run.stderr
    certificate = json.loads((tmp_path / "out/certificate.json").read_text())
    bindings = {b["argument"]: b for b in certificate["transfer"]["bindings"]}
    assert bindings["q"]["group"] == 3 and bindings["q"]["dims"] == [0, 1, 1, 3]
    assert "group" not in bindings["k"] and bindings["o"]["group"] == 3
    sizes = json.loads((tmp_path / "out/prove.json").read_text())["cases"][0]["sizes"]
    assert (sizes["G"], sizes["R"]) == (2, 3)
