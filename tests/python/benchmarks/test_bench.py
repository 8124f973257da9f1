"""bench/bench.py without a GPU: small cases on the CPU, and a clock that counts instead of timing."""

import importlib.util
import json
import pathlib
import types

import pytest

from kernelwright_cli import ROOT

torch = pytest.importorskip("torch")
spec = importlib.util.spec_from_file_location("bench", ROOT / "bench/bench.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
import cases  # noqa: E402  (bench.py put its folder on the path)
import kernels  # noqa: E402
import measuring  # noqa: E402
import peers  # noqa: E402
import table  # noqa: E402

sustained_ms = measuring.sustained_ms


class Cpu:
    """A simulated device: a launch takes one millisecond of it, queueing it 5 microseconds of the
    host. `idle_ms` is the time for which the device had nothing to do, after a start of 100 ms."""

    device, launch_ms, queueing_ms = "cpu", 1.0, 0.005

    def __init__(self):
        self.timed, self.host, self.done_at, self.idle_ms, self.queued_most = 0, 0.0, 0.0, 0.0, 0.0

    def launched(self):
        self.host += self.queueing_ms
        self.idle_ms += max(0.0, self.host - self.done_at) if self.done_at > 100 else 0
        self.done_at = max(self.done_at, self.host) + self.launch_ms
        self.queued_most = max(self.queued_most, self.done_at - self.host)

    def synchronize(self):
        self.host = max(self.host, self.done_at)

    def forget(self):
        pass

    def leave_if_lost(self):
        bench.Machine.leave_if_lost(self)

    def captured(self, run):
        def replay():
            self.replayed = getattr(self, "replayed", 0) + 1
            return run()
        return replay

    def now_ms(self):
        return self.host

    def event(self):
        self.timed += 1
        return self.done_at

    def wait(self, event):
        self.host = max(self.host, event)

    def elapsed_ms(self, first, last):
        return last - first

    def burst_ms(self, run):
        return 1.0

    def clocks(self):
        return "none"

    def environment(self):
        return {"gpu": "none"}


@pytest.fixture(autouse=True)
def few_real_launches(monkeypatch):
    """Cases on the CPU: each turn is one launch, which the simulated clock finds long enough."""
    def sustained(run, machine):
        run()
        return sustained_ms(machine.launched, machine)
    monkeypatch.setattr(measuring, "sustained_ms", sustained)


@pytest.mark.parametrize("launch_ms", [0.3, 1, 13, 90])
def test_a_turn_settles_first_then_times_long_enough_without_a_pause_or_a_long_queue(launch_ms):
    machine, starts = Cpu(), []
    machine.launch_ms = launch_ms
    elapsed = machine.elapsed_ms
    machine.elapsed_ms = lambda first, last: starts.append((first, last)) or elapsed(first, last)
    assert sustained_ms(machine.launched, machine) == pytest.approx(launch_ms)
    [(first, last)] = starts
    assert first >= measuring.SETTLE_MS
    assert last - first >= measuring.STRETCH_MS
    assert round((last - first) / launch_ms) >= (8 if launch_ms <= 25 else 3)
    assert machine.idle_ms == 0
    assert machine.queued_most <= 2 * max(measuring.BATCH_MS, launch_ms) + 1e-6


def test_the_clock_of_the_settling_does_not_count():
    machine = Cpu()
    launched = machine.launched

    def slows_down():
        machine.launch_ms = 1.0 if machine.done_at < 100 else 2.0
        launched()
    assert sustained_ms(slows_down, machine) == pytest.approx(2.0)


def test_each_round_has_an_order_of_its_own_and_the_next_run_the_same_ones(monkeypatch):
    good = [(name, lambda: None) for name in "abcdefgh"]

    def orders():
        marks = []
        measuring.measure(good, Cpu(), lambda name, why=None: marks.append(name))
        turns = marks[measuring.BURSTS * len(good):]
        return [tuple(turns[n:n + 8]) for n in range(0, len(turns), 8)]
    first = orders()
    assert len(first) == measuring.ROUNDS == len(set(first))
    assert all(sorted(order) == list("abcdefgh") for order in first)
    assert orders() == first


def test_what_cools_the_card_comes_before_the_product_and_the_others_after_it():
    class Paced(Cpu):
        def burst_ms(self, run):
            run()
            return self.launch_ms
    machine, marks = Paced(), []

    def paced(launch_ms):
        def run():
            machine.launch_ms = launch_ms
            machine.launched()
        return run
    speeds = {"fast": 1.0, "crawls": 9.0, table.CUBLAS: 2.0, "close": 1.3, "slow": 1.4}
    times = measuring.measure([(name, paced(ms)) for name, ms in speeds.items()], machine,
                              lambda name, why=None: marks.append(name))
    bursts = len(speeds) + 3 * (measuring.BURSTS - 1)  # a slow one has a single burst
    turns, rounds = marks[bursts:], []
    while turns:
        count = len(speeds) if len(rounds) < measuring.SLOW_ROUNDS else 3
        rounds.append(turns[:count])
        turns = turns[count:]
    assert len(rounds) == measuring.ROUNDS
    for order in rounds:
        assert set(order[:-3]) == ({"crawls", "slow"} if len(order) > 3 else set())
        assert order[-3] == table.CUBLAS
    assert len(times["slow"]["rounds_ms"]) == measuring.SLOW_ROUNDS


def test_with_burst_nothing_but_bursts_is_timed():
    machine, marks = Cpu(), []
    times = measuring.measure([("a", lambda: None), ("b", lambda: None)], machine,
                              lambda name, why=None: marks.append(name), burst=True)
    assert machine.timed == 0 and len(marks) == 2 * (measuring.ROUNDS + 1)
    assert times["a"] == {"status": "ok", "rounds_ms": [1.0] * measuring.ROUNDS, "burst_ms": None}


SMALL = [cases.Case(function, 2, 2, 64, 32) for function in cases.FUNCTIONS]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.function)
def test_unmasked_entries_are_those_that_the_mask_keeps(case):
    j = torch.arange(case.length)
    keep = peers.Inputs(case, "cpu").keep(j, j)
    assert case.unmasked == (case.length ** 2 if keep is None else keep[0].sum())


VARIED = [cases.Case("causal", 2, 2, 64, 48, 32), cases.Case("full", 2, 2, 64, 96, dtype="f16"),
          cases.Case("alibi", 1, 2, 64, 64, dtype="f16"), cases.Case("causal", 2, 4, 64, 32, key_heads=2)]


def test_each_operation_of_wider_keys_than_values_is_counted():
    case = cases.Case("causal", 1, 128, 8192, 192, 128)
    assert case.flop == 128 * (8192 * 8193 // 2) * (2 * 192 + 2 * 128)
    assert cases.Case("full", 4, 16, 4096).flop == 4 * 4 * 16 * 4096**2 * 128
    grouped = cases.Case("full", 1, 64, 8192, key_heads=8)
    assert grouped.flop == 4 * 64 * 8192**2 * 128


def test_every_case_has_a_name_of_its_own_and_a_key_for_its_kernel():
    by_name = {case.name: case for case in cases.CASES}
    assert len(by_name) == len(cases.CASES)
    assert cases.KEYS == (
        "full", "causal", "full_d64", "causal_d64", "full_d96", "causal_d96", "full_d256",
        "causal_d256", "causal_d192_128", "full_f16", "causal_f16", "prefix_lm", "alibi",
        "full_ampere", "causal_ampere")
    assert by_name["causal B1 H128 S8192 D192/128"].key == "causal_d192_128"
    assert by_name["full B1 H64/8 S8192 D128"].key == "full"
    assert by_name["causal B16 H16 S1024 D128 graph"].key == "causal"


def test_the_floor_is_lower_where_the_head_dimension_is_256_and_beside_flashattention_2():
    floors = {case.key: (case.group, case.floor) for case in cases.CASES}
    assert floors["full"] == floors["causal_d192_128"] == (cases.HOPPER, 1.03)
    assert floors["causal_d256"] == (cases.HOPPER, 0.98)
    assert floors["alibi"] == (cases.VARIANTS, 1.03) and floors["full_ampere"] == (cases.AMPERE, 1)


def test_a_case_is_run_where_a_folder_or_only_names_it():
    assert bench.selected(None, {}) == cases.CASES
    assert {c.key for c in bench.selected(None, {"full_d64": []})} == {"full_d64"}
    assert {c.key for c in bench.selected(["causal"], {"full_d64": []})} == {"causal"}
    assert len(bench.selected(["causal"], {})) == 4


def test_peers_of_an_ampere_class_kernel_are_flashattention_2():
    full, ampere = (next(c for c in cases.CASES if c.key == key) for key in ("full", "full_ampere"))
    assert peers.names_of_peers(ampere, "all") == ["SDPA flash"]
    assert peers.names_of_peers(full, "all") == [n for n in peers.PEERS if n != table.KNOWN]
    assert peers.names_of_peers(full, "fast") == ["FlashAttention-4", "FlexAttention FLASH",
                                                  "SDPA cuDNN"]


def test_an_absent_peer_is_left_out_with_one_line(monkeypatch, capsys):
    def nothing(module):
        raise ModuleNotFoundError(f"No module named '{module}'")
    monkeypatch.setattr(peers.importlib, "import_module", nothing)
    absent = peers.absent_peers()
    names = [n for n, _ in peers.implementations(cases.CASES[0], [("", "x")], "all", absent)]
    assert names == ["ours", "SDPA cuDNN", "SDPA flash", "SDPA efficient", "SDPA math"]
    bench.say_what_is_left_out(absent, "all")
    assert capsys.readouterr().out.splitlines() == [
        "left out: FlashAttention-4, FlashAttention-4 known, FlexAttention FLASH "
        "(flash_attn.cute: ModuleNotFoundError: No module named 'flash_attn.cute')",
        "left out: FlexAttention Triton (triton: ModuleNotFoundError: No module named 'triton')"]


def test_a_folder_is_of_the_case_that_it_is_named_after(tmp_path):
    for file in ("kernel.cubin", "launch.json"):
        (tmp_path / "causal_d96").mkdir(exist_ok=True)
        (tmp_path / "causal_d96" / file).write_text("")
    folder = str(tmp_path / "causal_d96")
    assert bench.folders_by_key([folder]) == {"causal_d96": [("", folder)]}
    assert bench.folders_by_key([f"full_d64={folder}"]) == {"full_d64": [("", folder)]}
    (tmp_path / "specs").mkdir()  # no kernel
    assert bench.folders_by_key([str(tmp_path)]) == {"causal_d96": [("", folder)]}


def right(inputs):
    return peers.sdpa("MATH")(inputs)


def broken(inputs):
    def run():
        output = right(inputs)().clone()
        output[:, :, -1] *= 1.1
        return output
    return run


def gone(inputs):
    raise RuntimeError("no such backend\nmore")


def measure(case, makers, banned=None, machine=None, burst=False):
    marks = []
    result = measuring.measure_case(case, makers, banned or {}, machine or Cpu(),
                                    lambda name, why=None: marks.append(name), burst)
    return result, marks


@pytest.mark.parametrize("case", SMALL + VARIED, ids=lambda case: case.name)
def test_a_right_implementation_is_timed_in_every_round(case):
    result, _ = measure(case, [("peer", right)])
    row = result["rows"]["peer"]
    assert row["status"] == "ok" and len(row["rounds_ms"]) == measuring.ROUNDS
    assert row["tflops"] == pytest.approx(case.flop / 1e9)
    assert row["of_cublas"] == pytest.approx(case.flop / (2 * 64**3)) == row["burst_of_cublas"]


def test_a_burst_is_compared_with_bursts_of_the_product():
    result, _ = measure(SMALL[0], [("peer", right)], burst=True)
    row = result["rows"]["peer"]
    assert row["of_cublas"] == pytest.approx(SMALL[0].flop / (2 * 64**3))
    assert "burst_tflops" not in row


GRAPH = cases.Case("full", 2, 2, 64, 32, graph=True)


def test_a_case_of_short_launches_is_replayed_from_a_graph_and_its_figures_are_for_one():
    machine = Cpu()
    result, _ = measure(GRAPH, [("peer", right)], machine=machine)
    assert machine.replayed == 1 + measuring.ROUNDS  # the bursts of this machine launch nothing
    assert result["rows"]["peer"]["tflops"] == pytest.approx(
        GRAPH.flop * measuring.GRAPH_LAUNCHES / 1e9)
    assert result["rows"][table.CUBLAS]["tflops"] == pytest.approx(2 * 64**3 / 1e9)


def test_what_cannot_be_captured_is_listed_so():
    class Refuses(Cpu):
        def captured(self, run):
            raise RuntimeError("operation not permitted when stream is capturing")
    result, _ = measure(GRAPH, [("peer", right)], machine=Refuses())
    assert result["rows"]["peer"]["status"] == (
        "failed: RuntimeError: no CUDA graph: RuntimeError: "
        "operation not permitted when stream is capturing")


def test_a_wrong_one_and_a_failing_one_are_listed_and_not_timed():
    result, marks = measure(SMALL[1], [("peer", right), ("bad", broken), ("gone", gone),
                                       ("hung", right)], {"hung": "crashed (exit -9)"})
    rows = result["rows"]
    assert rows["peer"]["status"] == "ok"
    assert rows["bad"]["status"].startswith("WRONG: row error")
    assert rows["gone"]["status"] == "failed: RuntimeError: no such backend"
    assert rows["hung"]["status"] == "crashed (exit -9)"
    assert "hung" not in marks and marks.count("bad") == 1


def test_a_lost_context_ends_the_process_with_a_status_of_its_own(monkeypatch):
    def synchronize(self):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(Cpu, "synchronize", synchronize)
    with pytest.raises(SystemExit) as left:
        measure(SMALL[0], [("gone", gone)])
    assert left.value.code == measuring.CONTEXT_LOST


def test_an_output_that_is_wrong_between_the_sampled_rows_is_found_by_the_others():
    case = cases.Case("full", 1, 1, 512, 32)
    rows, _ = peers.reference_rows(peers.Inputs(case, "cpu"))
    hidden = next(i for i in range(case.length) if i not in rows)

    def sly(inputs):
        def run():
            output = right(inputs)().clone()
            output[:, :, hidden] += 10
            return output
        return run

    result, _ = measure(case, [("peer", right), ("sly", sly)])
    assert result["rows"]["sly"]["status"].endswith("against the others")


def arguments(tmp_path, **more):
    (tmp_path / "banned.json").write_text("{}")
    given = {"folders": [], "only": None, "skip": None, "without": None, "rows": "attention", "out": str(tmp_path / "out.json"), "burst": False,
             "peers": "all", "deadline": 0, "marker": str(tmp_path / "marker.json"),
             "banned": str(tmp_path / "banned.json")}
    return types.SimpleNamespace(**{**given, **more})


def row(tflops):
    return {"status": "ok", "tflops": tflops, "burst_tflops": tflops, "spread": [tflops - 9, tflops],
            "of_cublas": tflops / 700, "burst_of_cublas": tflops / 800}


def result(rows, group=cases.HOPPER, floor=1.03):
    return {"clocks": {"before": "", "after": ""}, "rows": rows, "date": "2025-01-02", "seconds": 9,
            "group": group, "floor": floor,
            "environment": {"gpu": "H", "driver": "570", "torch": "2.11", "triton": "absent"}}


ALIBI = {"cuBLAS 8192^3": row(700), "ours": row(499), "FlashAttention-4": row(400),
         "FlashAttention-4 known": row(600), "SDPA math": {"status": "failed: no"}}
FULL = {"cuBLAS 8192^3": row(700), "ours": row(599), "SDPA cuDNN": row(600)}


def test_the_ratio_is_to_the_fastest_peer_that_computes_the_same_function(capsys):
    table.print_case("alibi", result(ALIBI))
    out = capsys.readouterr().out.splitlines()[2:]
    lines = {line.split("  ")[1]: line for line in out}
    assert lines["ours"].endswith("1.248") and lines["FlashAttention-4"].endswith("1.000")
    assert lines["ours"].split()[3:6] == ["0.713", "499", "0.624"]
    assert out[-1].strip() == ("ours / fastest peer = 1.248 (FlashAttention-4 of the same function), "
                               "0.832 (FlashAttention-4 known of all)")


def test_a_case_without_ours_or_without_peers_says_so_instead_of_a_ratio():
    assert table.ratio_lines({"ours": {"status": "WRONG: x"}, "SDPA math": row(1)}) == [
        "ours / fastest peer: none, ours is WRONG: x"]
    assert table.ratio_lines({"ours": row(1), "cuBLAS 8192^3": row(9)}) == [
        "ours / fastest peer: none, no peer ran"]


def test_the_summary_has_each_groups_smallest_ratio_its_mean_and_what_is_below_its_floor():
    lines = table.summary({
        "full": result(FULL), "d256": result(FULL, floor=0.98),
        "gone": result(FULL | {"ours": {"status": "WRONG: x"}}),
        "causal": result(FULL | {"ours": row(750)}), "alibi": result(ALIBI, cases.VARIANTS)})
    assert lines[4].split() == ["gone", "none:", "ours", "is", "WRONG:", "x"]
    assert lines[6].split(None, 1) == ["alibi", "1.248  FlashAttention-4; 0.713 of cuBLAS"]
    assert lines[7:] == [
        "Hopper: 3 rows, smallest 0.998 (d256), geometric mean 1.076; below the floor: "
        "full 0.998 < 1.03",
        "Hopper, variants: 1 rows, smallest 1.248 (alibi), geometric mean 1.248; "
        "below the floor: none"]


def run_of(cases, **more):
    return {"mode": "sustained", "peers": "all", "left_out": {}, "cases": cases, **more}


def test_the_readme_tables_come_from_the_stored_runs():
    parts = [run_of({"full": result(ALIBI)}),
             run_of({"full": result(FULL), "alibi": result(ALIBI, cases.VARIANTS)}),
             run_of({"full": result(FULL)}, mode="burst", peers="fast", left_out={"FA": "no"})]
    lines = table.markdown(parts).splitlines()
    assert [line for line in lines if line.startswith("| full")] == [
        "| full | 599 | 590..599 | 0.85 | 600 SDPA cuDNN | 0.99 |"] * 2  # the later part's
    assert lines[0].startswith("| Hopper, sustained | ours |")
    assert "| alibi | 499 | 490..499 | 0.71 | 400 FlashAttention-4 | 1.24 (0.83) |" in lines
    assert {line.count("|") for line in lines if line.startswith("|")} == {7}
    first, second = [line for line in lines if line.startswith("H, driver")]
    assert first.startswith("H, driver 570; torch 2.11; 2025-01-02. TFLOP/s of unmasked entries. "
                            "Sustained, median of five rounds, beside an 8192^3 cuBLAS product of 700")
    assert "In brackets" in first and "installed" not in first
    assert "Bursts" in second and "Not installed: FA." in second and "chance" in second


def few(monkeypatch, count):
    monkeypatch.setattr(cases.Case, "makers", lambda *_: [("peer", right)])
    monkeypatch.setitem(bench.ROWS, "attention", SMALL[:count])
    monkeypatch.setattr(bench, "absent_peers", lambda needs: {})


def stored_cases(tmp_path):
    return list(json.loads((tmp_path / "out.json").read_text())["cases"])


def test_a_second_run_goes_on_where_the_first_was_cut_off(tmp_path, monkeypatch, capsys):
    few(monkeypatch, 1)
    first, second = Cpu(), Cpu()
    bench.child(arguments(tmp_path), first)
    few(monkeypatch, 2)
    second.environment = lambda: {"gpu": "none", "driver": "another"}
    bench.child(arguments(tmp_path), second)
    assert first.timed == second.timed > 0
    assert stored_cases(tmp_path) == [c.name for c in SMALL[:2]]
    out = capsys.readouterr().out
    assert out.count(SMALL[0].name) == 2 and "cuBLAS" in out


def test_figures_of_another_kind_are_not_mixed_into_a_file(tmp_path, monkeypatch):
    few(monkeypatch, 1)
    bench.child(arguments(tmp_path), Cpu())
    with pytest.raises(SystemExit, match="sustained figures and all peers; this one of attention has burst"):
        bench.parent(arguments(tmp_path, burst=True))


def test_a_run_stops_before_the_case_that_may_not_end_within_the_limit(tmp_path, monkeypatch,
                                                                       capsys):
    few(monkeypatch, 3)
    now = [1000.0]
    monkeypatch.setattr(bench.time, "time", lambda: now[0])
    measure_case = measuring.measure_case

    def takes_30_seconds(*more):
        now[0] += 30
        return measure_case(*more)
    monkeypatch.setattr(bench, "measure_case", takes_30_seconds)
    bench.child(arguments(tmp_path, deadline=1000 + 85), Cpu())
    assert stored_cases(tmp_path) == [c.name for c in SMALL[:2]]
    assert f"stopped before {SMALL[2].name}" in capsys.readouterr().out
    bench.child(arguments(tmp_path, deadline=now[0] + 9), Cpu())  # less than a first case may take
    assert stored_cases(tmp_path) == [c.name for c in SMALL[:2]]
    bench.child(arguments(tmp_path), Cpu())
    assert stored_cases(tmp_path) == [c.name for c in SMALL[:3]]


@pytest.mark.parametrize("why", [None, "failed: no CUDA graph"])
def test_a_child_that_dies_is_started_again_without_the_implementation_at_fault(
        why, tmp_path, monkeypatch, capsys):
    runs = []

    def dies_once(args, marker, banned):
        runs.append(json.loads(pathlib.Path(banned).read_text()))
        pathlib.Path(marker).write_text(
            json.dumps({"case": "c", "implementation": "peer", "why": why}))
        return -11 if len(runs) == 1 else 0

    monkeypatch.setattr(bench, "run_child", dies_once)
    assert bench.parent(arguments(tmp_path)) == 0
    assert runs == [{}, {"c": {"peer": why or "crashed (exit -11)"}}]
    assert "going on without it" in capsys.readouterr().out


def test_a_folder_of_an_unknown_function_is_refused():
    with pytest.raises(SystemExit, match="'gpt' is none of full, causal, full_d64"):
        bench.folders_by_key(["out/gpt"])


# ---- kernels.py

def test_a_written_specification_computes_the_attention_that_its_case_is_about():
    by_key = {case.key: case for case in cases.CASES}
    for key in ("causal_d192_128", "full_f16"):
        scope = {}
        exec(kernels.specification(by_key[key]), scope)
        q, k, v = scope["example_inputs"]()
        assert (q.shape[3], v.shape[3], q.dtype) == (
            (192, 128, torch.bfloat16) if key[0] == "c" else (128, 128, torch.float16))
        q, k, v = (t[:, :, :40].float() for t in (q, k, v))
        expected = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=key[0] == "c", enable_gqa=True)
        assert torch.allclose(scope[by_key[key].function](q, k, v), expected, atol=1e-5)


def test_make_is_called_for_the_target_of_the_case(tmp_path):
    calls = {case.key: kernels.command(case, tmp_path)[2:] for case in cases.CASES}
    assert calls["full"] == [str(ROOT / "examples/full.py"), "--out", str(tmp_path / "full"),
                             "--target", "sm_90a", "--check", "default"]
    assert calls["causal_ampere"][0] == str(ROOT / "examples/causal.py")
    assert calls["causal_ampere"][-3] == "sm_90"
    assert calls["full_d64"][0] == str(tmp_path / "specs/full_d64.py")
    assert {path.stem for path in (tmp_path / "specs").iterdir()} == {
        key for key in cases.KEYS if "_d" in key or "f16" in key}


# ---- other tables, what is left out, masks

def test_other_tables_have_folders_and_patterns_of_their_own(tmp_path):
    for file in ("kernel.cubin", "launch.json"):
        (tmp_path / "relu_f16").mkdir(exist_ok=True)
        (tmp_path / "relu_f16" / file).write_text("")
    folders = bench.folders_by_key([str(tmp_path)], "cubridge")
    assert list(folders) == ["relu_f16"]
    assert len(bench.selected(None, folders, "cubridge")) == 12
    assert len(bench.selected(None, folders, "cubridge", ["*S1024*", "*H32 *"])) == 6
    assert [c.name for c in bench.selected(["causal window*"], {}, "variants")] == [
        "causal window 1024 B2 H16 S8192 D128"]
    assert len(bench.selected(["Variants"], {}, "variants")) == 13
    with pytest.raises(SystemExit, match="'gpt' names no case of variants"):
        bench.selected(["gpt"], {}, "variants")


def test_a_peer_is_left_out_on_request(monkeypatch):
    monkeypatch.setattr(bench, "absent_peers", lambda needs: {})
    given = types.SimpleNamespace(rows="cubridge", without=["PyTorch"])
    assert bench.left_out(given) == {"PyTorch": "--without"}


def test_building_a_mask_is_timed_apart_and_included():
    def masked(inputs):
        run = right(inputs)

        def build():
            machine.host += 3
        run.mask = build
        return run

    def broken_mask(inputs):
        run = right(inputs)
        run.mask = lambda: 1 / 0
        return run
    machine = Cpu()
    result, _ = measure(SMALL[0], [("peer", masked), ("other", broken_mask)], machine=machine)
    row = result["rows"]["peer"]
    assert row["mask_ms"] == 3 and row["with_mask_tflops"] == pytest.approx(row["tflops"] / 4)
    assert result["rows"]["other"]["mask"].startswith("failed: ZeroDivisionError")
    assert "with its mask, 3.00 ms" in table._mask(row)


def test_a_case_whose_truth_fails_is_left_out_with_a_line(tmp_path, monkeypatch, capsys):
    few(monkeypatch, 2)
    measure_case = measuring.measure_case

    def fails_once(case, *more):
        if case == SMALL[0]:
            raise MemoryError("too much")
        return measure_case(case, *more)
    monkeypatch.setattr(bench, "measure_case", fails_once)
    bench.child(arguments(tmp_path), Cpu())
    assert stored_cases(tmp_path) == [SMALL[1].name]
    assert f"{SMALL[0].name}: not measured, MemoryError: too much" in capsys.readouterr().out


def test_a_case_whose_inputs_ended_a_child_is_not_tried_again(tmp_path, monkeypatch, capsys):
    few(monkeypatch, 2)
    given = arguments(tmp_path)
    (tmp_path / "banned.json").write_text(json.dumps({SMALL[0].name: {bench.INPUTS: "crashed"}}))
    bench.child(given, Cpu())
    assert stored_cases(tmp_path) == [SMALL[1].name]
    assert "not measured, its inputs and truth crashed" in capsys.readouterr().out
    assert json.loads((tmp_path / "marker.json").read_text())["case"] == SMALL[1].name


def test_cells_of_a_hundred_get_fewer_rounds():
    import dataclasses

    @dataclasses.dataclass(frozen=True)
    class Brief(cases.Case):
        brief = True
    machine = Cpu()
    result, _ = measure(Brief("full", 1, 1, 64, 32), [("peer", right)], machine=machine, burst=True)
    assert len(result["rows"]["peer"]["rounds_ms"]) == measuring.BRIEF_ROUNDS
    assert machine.pause_seconds == measuring.BRIEF_PAUSE_SECONDS
