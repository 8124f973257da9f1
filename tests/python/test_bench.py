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


class Cpu:
    device, pause = "cpu", 0

    def __init__(self):
        self.timed = 0

    def synchronize(self):
        pass

    def leave_if_lost(self):
        bench.Machine.leave_if_lost(self)

    def run_for(self, run, milliseconds):
        run()

    def median_ms(self, run, warmup_ms, repeat_ms):
        run()
        self.timed += 1
        return 1.0

    def clocks(self):
        return "none"

    def environment(self):
        return {"gpu": "none"}


SMALL = [bench.Case(function, 2, 2, 64, 32) for function in bench.FUNCTIONS]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.function)
def test_unmasked_entries_are_those_that_the_mask_keeps(case):
    j = torch.arange(case.length)
    keep = bench.Inputs(case, "cpu").keep(j, j)
    assert case.unmasked == (case.length ** 2 if keep is None else keep[0].sum())


def right(inputs):
    return bench.sdpa("MATH")(inputs)


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


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.function)
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
    case = bench.Case("full", 1, 1, 512, 32)
    rows, _ = bench.reference_rows(bench.Inputs(case, "cpu"))
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


def test_the_ratio_is_to_the_fastest_peer_that_computes_the_same_function(capsys):
    def row(tflops):
        return {"status": "ok", "tflops": tflops, "burst_tflops": tflops, "spread": [tflops] * 2}

    bench.print_case("alibi", {"clocks": {"before": "", "after": ""}, "rows": {
        "cuBLAS 8192^3": row(700), "ours": row(500), bench.KNOWN: row(600), "FlashAttention-4": row(400),
        "SDPA math": {"status": "failed: no"}}})
    lines = {line.split("  ")[1]: line for line in capsys.readouterr().out.splitlines()[2:]}
    assert lines["ours"].endswith("1.250") and lines["FlashAttention-4"].endswith("1.000")


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
