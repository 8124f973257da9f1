"""bench/bench.py without a GPU: small cases on the CPU, and a clock that counts instead of timing."""

import importlib.util
import json
import pathlib
import types

import pytest

torch = pytest.importorskip("torch")
ROOT = pathlib.Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("bench", ROOT / "bench/bench.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
import peers  # noqa: E402  (bench.py put its folder on the path)
import table  # noqa: E402


sustained_ms = bench.sustained_ms


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

    def leave_if_lost(self):
        bench.Machine.leave_if_lost(self)

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
    monkeypatch.setattr(bench, "sustained_ms", sustained)


@pytest.mark.parametrize("launch_ms", [0.3, 1, 13, 90])
def test_a_turn_settles_first_then_times_long_enough_without_a_pause_or_a_long_queue(launch_ms):
    machine, starts = Cpu(), []
    machine.launch_ms = launch_ms
    elapsed = machine.elapsed_ms
    machine.elapsed_ms = lambda first, last: starts.append((first, last)) or elapsed(first, last)
    assert sustained_ms(machine.launched, machine) == pytest.approx(launch_ms)
    [(first, last)] = starts
    assert first >= bench.SETTLE_MS
    assert last - first >= bench.STRETCH_MS
    assert round((last - first) / launch_ms) >= (8 if launch_ms <= 25 else 3)
    assert machine.idle_ms == 0
    assert machine.queued_most <= 2 * max(bench.BATCH_MS, launch_ms) + 1e-6


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
        bench.measure(good, Cpu(), marks.append)
        turns = marks[3 * len(good):]
        return [tuple(turns[n:n + 8]) for n in range(0, len(turns), 8)]
    first = orders()
    assert len(first) == bench.ROUNDS == len(set(first))
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
    speeds = {"fast": 1.0, "crawls": 9.0, bench.CUBLAS: 2.0, "close": 1.3, "slow": 1.4}
    bench.measure([(name, paced(ms)) for name, ms in speeds.items()], machine, marks.append)
    turns = marks[3 * len(speeds):]
    assert len(turns) == bench.ROUNDS * len(speeds)
    for n in range(0, len(turns), len(speeds)):
        order = turns[n:n + len(speeds)]
        assert set(order[:2]) == {"crawls", "slow"} and order[2] == bench.CUBLAS


SMALL = [peers.Case(function, 2, 2, 64, 32) for function in peers.FUNCTIONS]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.function)
def test_unmasked_entries_are_those_that_the_mask_keeps(case):
    j = torch.arange(case.length)
    keep = peers.Inputs(case, "cpu").keep(j, j)
    assert case.unmasked == (case.length ** 2 if keep is None else keep[0].sum())


VARIED = [peers.Case("causal", 2, 2, 64, 48, 32), peers.Case("full", 2, 2, 64, 96, dtype="f16"),
          peers.Case("alibi", 1, 2, 64, 64, dtype="f16")]


def test_each_operation_of_wider_keys_than_values_is_counted():
    case = peers.Case("causal", 1, 128, 8192, 192, 128)
    assert case.flop == 128 * (8192 * 8193 // 2) * (2 * 192 + 2 * 128)
    assert peers.Case("full", 4, 16, 4096).flop == 4 * 4 * 16 * 4096**2 * 128


def test_every_case_has_a_name_of_its_own_and_variants_have_keys_of_their_own():
    cases = peers.CASES + peers.VARIANTS
    assert len({case.name for case in cases}) == len(cases)
    assert [case.key for case in peers.CASES] == [case.function for case in peers.CASES]
    assert [case.key for case in peers.VARIANTS] == [
        "full_d64", "causal_d64", "full_d96", "causal_d96", "full_d256", "causal_d256",
        "causal_d192_128", "full_f16", "causal_f16"]
    assert peers.VARIANTS[-3].name == "causal B1 H128 S8192 D192/128"


def test_variants_are_run_where_a_folder_or_only_names_them():
    assert bench.selected(None, {"full": []}) == peers.CASES
    assert [c.key for c in bench.selected(None, {"full_d64": []})][6:] == ["full_d64"]
    assert [c.key for c in bench.selected(["causal_d192_128"], {})] == ["causal_d192_128"]
    assert {c.key for c in bench.selected(["causal"], {"full_d64": []})} == {"causal"}


def test_a_folder_is_of_the_case_that_it_is_named_after(tmp_path):
    for file in ("kernel.cubin", "launch.json"):
        (tmp_path / "causal_d96").mkdir(exist_ok=True)
        (tmp_path / "causal_d96" / file).write_text("")
    folder = str(tmp_path / "causal_d96")
    assert bench.folders_by_function([folder]) == {"causal_d96": [("", folder)]}
    assert bench.folders_by_function([f"full_d64={folder}"]) == {"full_d64": [("", folder)]}


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


def measure(case, makers, banned=None):
    marks = []
    result = bench.measure_case(case, makers, banned or {}, Cpu(), marks.append)
    return result, marks


@pytest.mark.parametrize("case", SMALL + VARIED, ids=lambda case: case.name)
def test_a_right_implementation_is_timed_in_every_round(case):
    result, _ = measure(case, [("peer", right)])
    row = result["rows"]["peer"]
    assert row["status"] == "ok" and len(row["rounds_ms"]) == bench.ROUNDS
    assert row["tflops"] == pytest.approx(case.flop / 1e9)


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
    assert left.value.code == bench.CONTEXT_LOST


def test_an_output_that_is_wrong_between_the_sampled_rows_is_found_by_the_others():
    case = peers.Case("full", 1, 1, 512, 32)
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
    return types.SimpleNamespace(folders=[], only=None, out=str(tmp_path / "out.json"),
                                 marker=str(tmp_path / "marker.json"),
                                 banned=str(tmp_path / "banned.json"), **more)


def row(tflops):
    return {"status": "ok", "tflops": tflops, "burst_tflops": tflops, "spread": [tflops] * 2}


def result(rows):
    return {"clocks": {"before": "", "after": ""}, "rows": rows, "date": "2025-01-02"}


ALIBI = {"cuBLAS 8192^3": row(700), "ours": row(499), "FlashAttention-4": row(400),
         "FlashAttention-4 known": row(600), "SDPA math": {"status": "failed: no"}}


def test_the_ratio_is_to_the_fastest_peer_that_computes_the_same_function(capsys):
    table.print_case("alibi", result(ALIBI))
    out = capsys.readouterr().out.splitlines()[2:]
    lines = {line.split("  ")[1]: line for line in out}
    assert lines["ours"].endswith("1.248") and lines["FlashAttention-4"].endswith("1.000")
    assert out[-1].strip() == ("ours / fastest peer = 1.248 (FlashAttention-4 of the same function), "
                               "0.832 (FlashAttention-4 known of all)")


def test_a_case_without_ours_or_without_peers_says_so_instead_of_a_ratio():
    assert table.ratio_lines({"ours": {"status": "WRONG: x"}, "SDPA math": row(1)}) == [
        "ours / fastest peer: none, ours is WRONG: x"]
    assert table.ratio_lines({"ours": row(1), "cuBLAS 8192^3": row(9)}) == [
        "ours / fastest peer: none, no peer ran"]


def test_the_readme_table_comes_from_the_stored_run():
    data = {"environment": {"gpu": "H", "driver": "570", "torch": "2.11", "triton": "absent"},
            "cases": {"full": result({"cuBLAS 8192^3": row(700), "ours": row(599),
                                      "SDPA cuDNN": row(600)}), "alibi": result(ALIBI)}}
    lines = table.markdown(data).splitlines()
    assert lines[2] == "| full | 599 | - | - | - | 600 | 700 | 0.99 |"
    assert lines[3] == "| alibi | 499 | 400 | - | - | - | 700 | 1.24 (0.83) |"
    assert "H, driver 570; torch 2.11; 2025-01-02." in lines[-1] and "In brackets" in lines[-1]
    assert len({line.count("|") for line in lines[:4]}) == 1


def test_a_second_run_goes_on_where_the_first_was_cut_off(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "implementations", lambda function, folders: [("peer", right)])
    monkeypatch.setattr(bench, "CASES", SMALL[:1])
    first = Cpu()
    bench.child(arguments(tmp_path), first)
    monkeypatch.setattr(bench, "CASES", SMALL[:2])
    second = Cpu()
    bench.child(arguments(tmp_path), second)
    assert first.timed == second.timed > 0
    assert set(json.loads((tmp_path / "out.json").read_text())["cases"]) == {c.name for c in SMALL[:2]}
    out = capsys.readouterr().out
    assert out.count(SMALL[0].name) == 2 and "cuBLAS" in out


def test_a_child_that_dies_is_started_again_without_the_implementation_at_fault(tmp_path,
                                                                                monkeypatch, capsys):
    runs = []

    def dies_once(args, marker, banned):
        runs.append(json.loads(pathlib.Path(banned).read_text()))
        pathlib.Path(marker).write_text(json.dumps({"case": "c", "implementation": "peer"}))
        return -11 if len(runs) == 1 else 0

    monkeypatch.setattr(bench, "run_child", dies_once)
    assert bench.parent(arguments(tmp_path)) == 0
    assert runs == [{}, {"c": {"peer": "crashed (exit -11)"}}]
    assert "going on without it" in capsys.readouterr().out


def test_a_folder_of_an_unknown_function_is_refused():
    with pytest.raises(SystemExit, match="'gpt' is none of full, causal, prefix_lm, alibi"):
        bench.folders_by_function(["out/gpt"])
