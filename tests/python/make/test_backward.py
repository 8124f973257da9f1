"""`make --backward`: one folder with the kernel of a function and that of its gradients. `verify` takes it as one thing: it
finds any file that changed, halves that do not belong together, and whatever is said of both and is not so. Where a half
is refused, nothing is left. A forger (`seal`) makes every hash and root right again; what he changed is found all the same."""

import hashlib
import json
import re
import shutil
import subprocess

import pytest

from kernelwright_cli import ROOT, assert_refused, call, write_spec

HALVES = ("forward", "backward")
CUDA = next((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/include"))


def load(folder):
    return json.loads((folder / "certificate.json").read_text())


def seal(folder, change=lambda certificate: None):
    """Changes a certificate, and makes it name what lies beside it now."""
    certificate = load(folder)
    certificate["files"] = {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
                            for p in sorted(folder.rglob("*")) if p.is_file() and p != folder / "certificate.json"}
    files = certificate["files"]
    certificate["root"] = hashlib.sha256("".join(f"{files[n]}  {n}\n" for n in sorted(files)).encode()).hexdigest()
    change(certificate)
    (folder / "certificate.json").write_text(json.dumps(certificate))


def verify(folder, *options):
    """The exit code, and each item by its name."""
    run = call("verify", folder, "--json", *options)
    return run.returncode, {i["what"]: i for i in json.loads(run.stdout)["items"]}


def changed(items):
    return {what: i["detail"] for what, i in items.items() if i["standing"] == "changed" and not i["remark"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of one function: both halves, the function alone; and both halves of another function."""
    folder = tmp_path_factory.mktemp("backward")
    spec = write_spec(folder)
    for name, more in (("both", ("--backward",)), ("alone", ())):
        run = call("make", spec, *more, "--check", "quick", "--out", folder / name)
        assert run.returncode == 0, run.stderr
        (folder / f"{name}.said").write_text(run.stderr)
    other = write_spec(folder, body="return (q @ k.mT * 64**-0.5).softmax(-1) @ v")
    run = call("make", other, "--backward", "--check", "quick", "--out", folder / "other")
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture
def both(made, tmp_path):
    """To be spoilt."""
    return shutil.copytree(made / "both", tmp_path / "both")


# ---- what is written

def test_one_folder_holds_both_kernels_one_header_one_certificate_and_one_page(made):
    assert {p.name for p in (made / "both").iterdir()} == {*HALVES, "launch.h", "certificate.json", "report.html"}
    for half in HALVES:
        assert load(made / "both" / half)["spec"]["training"] == half
        for file in ("kernel.cu", "kernel.tl", "kernel.patch", "kernel.cubin", "launch.json", "prove.json", "from/graph.json"):
            assert (made / "both" / half / file).exists()


def test_what_is_said_ends_with_a_verdict_for_each_half_and_with_memory(made):
    said = (made / "both.said").read_text()
    assert re.search(r"^forward   holds for one order of the agents: the output and what is saved, o_f32, lse$", said, re.M), said
    assert re.search(r"^backward  holds for one order of the agents: dq of q, dk of k, dv of v$", said, re.M), said
    # 4 heads of 4096 rows of 128: 4 MB in bf16, 8 MB in fp32.
    assert re.search(r"^memory    at B 1, M 4096, N 4096: arguments 12 MB, outputs 4 MB, saved 8.1 MB .*gradients 12 MB, scratch of "
                     r"backward 8.1 MB \(sum_dq in fp32\)$", said, re.M), said


def test_the_certificate_has_the_form_of_its_schema_and_says_what_each_gradient_was_held_against(made):
    certificate = load(made / "both")
    assert certificate["schema"] == "kernelwright.certificate.training/1"
    assert [(h["half"], h["verdict"]) for h in certificate["halves"]] == [("forward", "holds"), ("backward", "holds")]
    assert [(g["of"], g["output"], g["checked"]) for g in certificate["gradients"]] == [
        (of, "d" + of, ["values", "exact"]) for of in "qkv"]
    assert [(p["from"], p["to"], p["dtype"]) for p in certificate["passed"]] == [("o_f32", "o", "f32"), ("lse", "lse", "f32")]
    said = certificate["not_checked"]
    assert said[0].startswith("both: one kernel after the other") and {s.split(": ")[0] for s in said} == {"both", *HALVES}


def test_the_page_is_of_both_kernels_and_leads_to_those_of_each(made):
    page = (made / "both/report.html").read_text()
    for half in HALVES:
        assert f'<a href="{half}/report.html">' in page and f"The {half} kernel: Holds" in page
    assert "8,388,608" in page and "<code>o_f32</code>" in page and "<script" not in page


def test_one_header_launches_both_and_passes_what_was_saved(made, tmp_path):
    program = tmp_path / "both.cpp"
    program.write_text("""#include "launch.h"
int main() {
  attention::forward::Inputs in = {};
  in.q.data = 1, in.o_f32.data = 2, in.lse.data = 3, in.o.data = 4;
  attention::backward::Inputs back = {};
  attention::pass(in, back);
  attention::forward::Plan one;
  attention::backward::Plan other;
  const bool refused = attention::forward::make_plan(in, 132, one) && attention::backward::make_plan(back, 132, other);
  return back.q.data == 1 && back.o.data == 2 && back.lse.data == 3 && refused ? 0 : 1;
}
""")
    driver = ROOT / "build/tests/fake_cuda/libcuda.so.1"
    link = ["-fsyntax-only"] if not driver.exists() else [str(driver), "-o", str(tmp_path / "both")]
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-isystem{CUDA}", f"-I{made / 'both'}", str(program),
                    *link], check=True)
    if driver.exists():
        run = subprocess.run([str(tmp_path / "both")], env={"LD_LIBRARY_PATH": str(driver.parent)})
        assert run.returncode == 0


def test_a_gpu_is_asked_of_what_is_saved_as_of_the_output_and_of_each_gradient(made):
    forward, backward = (json.loads((made / "both" / half / "prove.json").read_text())["cases"] for half in HALVES)
    windows = [c for c in forward if any(g.get("rule") == "window" for g in c["goldens"])]
    assert windows and all({g["output"] for g in c["goldens"] if g.get("rule") == "window"} == {"o", "o_f32"} for c in windows)
    assert [c["signs"]["outputs"] for c in forward if "signs" in c] == [["o", "o_f32"]]
    assert backward and all([g["output"] for g in c["goldens"]] == ["dq", "dk", "dv"] for c in backward)
    assert all(c["inputs"][name]["kind"] == "given" for c in backward for name in ("o", "lse"))


# ---- what verify finds

def test_all_of_it_can_be_done_again(made):
    code, items = verify(made / "both")
    assert code == 0 and not changed(items), items
    assert {"both", "passed", "gradients", "memory", "launch", "report", *(f"{half} cubin" for half in HALVES),
            *(f"{half} transfer" for half in HALVES), *(f"{half} values" for half in HALVES)} <= set(items)


def test_a_byte_of_any_file_of_either_half_is_found(both):
    files = [p for p in sorted(both.rglob("*")) if p.is_file() and p != both / "certificate.json"]
    assert len(files) > 200
    own = [p for p in files if "/kw/" not in str(p) and "/prove/" not in str(p)]  # and one of each of these
    for path in own + [next(p for p in files if f"{half}/kw/" in str(p)) for half in HALVES]:
        text = path.read_bytes()
        path.write_bytes(bytes([text[0] ^ 1]) + text[1:] if text else b" ")
        code, items = verify(both, "--quick")
        assert code == 1 and list(changed(items)) == [f"file {path.relative_to(both).as_posix()}"], path
        path.write_bytes(text)
    assert verify(both, "--quick")[0] == 3


def test_a_half_of_another_function_is_found(both, made):
    for half in HALVES:
        spoilt = shutil.copytree(both, both.with_name(f"other_{half}"))
        shutil.rmtree(spoilt / half)
        shutil.copytree(made / "other" / half, spoilt / half)
        assert verify(spoilt)[0] == 1
        seal(spoilt)
        code, items = verify(spoilt)
        assert code == 1 and "the specification's SHA-256 is" in changed(items)["both"], items


def test_halves_that_are_exchanged_are_found(both):
    (both / "forward").rename(both / "f")
    (both / "backward").rename(both / "forward")
    (both / "f").rename(both / "backward")
    seal(both)
    code, items = verify(both)
    assert code == 1 and "the folder forward holds a kernel for `backward`" in changed(items)["both"], items


def test_a_forward_half_that_saves_nothing_is_found(both, made):
    shutil.rmtree(both / "forward")
    shutil.copytree(made / "alone", both / "forward")
    seal(both)
    code, items = verify(both)
    assert code == 1 and "the folder forward holds a kernel for `no training`" in changed(items)["both"], items


def test_a_forward_half_that_saves_other_log_sums_is_found(both):
    program = both / "forward/kernel.tl"
    assert "lse: out f32[" in program.read_text()
    program.write_text(program.read_text().replace("lse: out f32[", "lse: out bf16[", 1))
    seal(both / "forward")
    seal(both)
    code, items = verify(both)
    assert code == 1 and "saves lse bf16[B, H, M], and the backward one reads lse f32[B, H, M]" in changed(items)["both"], items


@pytest.mark.parametrize("spoil, item", [
    (lambda c: c["passed"].pop(), "passed"),
    (lambda c: c["gradients"].pop(), "gradients"),
    (lambda c: c["not_checked"].pop(0), "not_checked"),
    (lambda c: c.update(holds_for="every launch"), "holds_for"),
    (lambda c: c["halves"][1].update(holds_for="every launch"), "halves"),
    (lambda c: c["spec"].update(function_sha256="0" * 64), "spec"),
    (lambda c: c["memory"]["tensors"][0].update(bytes=1), "memory"),
    (lambda c: c.update(same_bits_in_every_run=True), "same_bits_in_every_run"),
])
def test_a_word_of_both_that_is_not_so_is_found(both, spoil, item):
    seal(both, spoil)
    code, items = verify(both)
    assert code == 1 and item in changed(items), items


@pytest.mark.parametrize("file, old, new, item", [("launch.h", "back.lse = in.lse", "back.lse = in.o_f32", "launch"),
                                                 ("report.html", "dq", "dx", "report")])
def test_another_header_or_page_is_found_whatever_its_hash(both, file, old, new, item):
    path = both / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    seal(both)
    code, items = verify(both)
    assert code == 1 and item in changed(items), items


def test_a_half_with_another_cubin_is_found_whatever_the_hashes(both):
    cubin = both / "backward/kernel.cubin"
    code = bytearray(cubin.read_bytes())
    code[len(code) // 2] ^= 1
    cubin.write_bytes(code)
    for folder in (both / "backward", both):
        seal(folder)
        assert call("report", folder).returncode == 0
    code, items = verify(both)
    assert code == 1 and any(what.startswith("backward") for what in changed(items)), changed(items)


def test_a_certificate_without_a_field_is_refused(both):
    seal(both, lambda c: c.pop("gradients"))
    assert_refused(call("verify", both), "certificate.form", "gradients")


def test_a_forward_certificate_says_nothing_of_gradients(made):
    assert "training" not in load(made / "alone")["spec"]


def test_a_certificate_of_gradients_does_not_pass_for_the_function(made, tmp_path):
    half = shutil.copytree(made / "both/backward", tmp_path / "out")
    seal(half, lambda c: c["spec"].pop("training"))
    assert call("verify", half).returncode == 1


def test_commands_that_take_one_kernel_name_the_halves(both):
    assert_refused(call("rebase", both, "--onto", ROOT / "kernels/sm90/attention_fwd.cu", "--out", both / "x"), "certificate.schema",
                   "name the folder `forward` or `backward` in it")


def test_the_page_is_drawn_again_and_not_of_changed_files(both):
    before = (both / "certificate.json").read_text()
    assert call("report", both).returncode == 0 and (both / "certificate.json").read_text() == before
    (both / "backward/kernel.cu").write_text("")
    assert_refused(call("report", both), "report.files", "backward/kernel.cu")


def proof_of(folder, **verdicts):
    """What kernelwright-prove --json would say on a GPU."""
    return {"verdict": "holds", "machine": {"gpu": "H", "driver": "0"}, "halves": {half: {
        "cubin_sha256": hashlib.sha256((folder / half / "kernel.cubin").read_bytes()).hexdigest(), "machine": {"gpu": "H", "driver": "0"},
        "verdict": verdicts.get(half, "holds"), "cases": []} for half in HALVES}}


def test_what_a_gpu_said_of_both_becomes_part_of_both(both, tmp_path):
    proof = tmp_path / "proof.json"
    proof.write_text(json.dumps(proof_of(both)))
    run = call("certify", both, "--proof", proof)
    assert run.returncode == 0, run.stderr
    assert [h["gpu"] for h in load(both)["halves"]] == ["holds", "holds"]
    assert not changed(verify(both, "--quick")[1]) and (both / "backward/gpu.json").exists()
    proof.write_text(json.dumps(proof_of(both, backward="refuted")))
    assert call("certify", both, "--proof", proof).returncode == 0
    assert load(both)["verdict"] == "refuted" and "Wrong" in (both / "report.html").read_text()
    assert verify(both, "--quick")[0] == 1


@pytest.mark.parametrize("spoil, said", [
    (lambda p: p["halves"].pop("backward"), "has none of its backward one"),
    (lambda p: p["halves"]["backward"].update(cubin_sha256="0" * 64), "the report is about the cubin"),
])
def test_a_report_that_is_not_of_both_cubins_changes_nothing(both, tmp_path, spoil, said):
    proof, before = proof_of(both), (both / "certificate.json").read_bytes()
    spoil(proof)
    (tmp_path / "proof.json").write_text(json.dumps(proof))
    assert_refused(call("certify", both, "--proof", tmp_path / "proof.json"), "certificate.proof", said)
    assert (both / "certificate.json").read_bytes() == before and not changed(verify(both, "--quick")[1])


# ---- what is refused

def test_where_a_gradient_is_refused_it_says_which_half_and_leaves_nothing(tmp_path):
    spec = write_spec(tmp_path, body="return (q @ k.detach().mT * 128**-0.5).softmax(-1) @ v")
    run = call("make", spec, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert_refused(run, "spec.gradient", "the backward kernel: attention detaches what it computes")
    assert not (tmp_path / "out").exists() and {p.name for p in tmp_path.iterdir()} == {"attention.py"}


def test_where_the_function_is_refused_an_earlier_folder_stays_as_it_was(both):
    spec = write_spec(both.parent, body="return (q @ k.mT).cumsum(-1) @ v")
    run = call("make", spec, "--backward", "--check", "quick", "--out", both)
    assert run.returncode == 2 and re.search(r"error\[.*the (forward|backward) kernel: ", run.stderr), run.stderr
    assert verify(both, "--quick")[0] == 3


def test_what_capture_wrote_is_of_one_kernel(made, tmp_path):
    run = call("capture", next(made.glob("*.py")), "--backward", "--out", tmp_path / "captured")
    assert run.returncode == 0, run.stderr
    run = call("make", tmp_path / "captured", "--backward", "--out", tmp_path / "out")
    assert_refused(run, "driver.training", "of one kernel", "name the Python file")
    assert not (tmp_path / "out").exists()


def test_what_the_rules_write_where_registers_are_few_is_made_again(tmp_path):
    spec = write_spec(tmp_path, body="return (q @ k.mT * 128**-0.5).clamp(min=0.0).softmax(-1) @ v")
    run = call("make", spec, "--backward", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "rules: scale, score, late" in run.stderr, run.stderr
    verified = call("verify", tmp_path / "out")
    assert verified.returncode == 0, verified.stdout


def test_one_order_is_of_gradients_alone(made, tmp_path):
    run = call("make", next(made.glob("*.py")), "--deterministic", "--out", tmp_path / "out")
    assert run.returncode == 2 and "driver.deterministic" in run.stderr and "--backward" in run.stderr, run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_gradients_before_hopper_are_made_from_a_text_of_their_own(target, tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--target", target, "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode == 0 and "kernels/sm80/attention_bwd.cu" in run.stderr, run.stderr
    kernel = (tmp_path / "out/backward/kernel.cu").read_text()
    assert "cp_async_rows" in kernel and "wgmma" not in kernel


def test_what_needs_a_thread_that_copies_is_refused_before_hopper(tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--deterministic", "--target", "sm_80", "--out", tmp_path / "out")
    assert run.returncode != 0 and "no thread that adds tiles of dQ" in run.stderr, run.stderr


def test_a_head_dimension_without_shared_memory_is_refused_with_the_sum(tmp_path):
    run = call("make", write_spec(tmp_path), "--backward", "--target", "sm_86", "--check", "quick", "--out", tmp_path / "out")
    assert run.returncode != 0 and "launch.shared" in run.stderr, run.stderr
