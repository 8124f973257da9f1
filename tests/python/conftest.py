import json
import os
import pathlib
import pickle
import sys
import tempfile

import filelock
import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent / "helpers"), str(pathlib.Path(__file__).parents[2] / "python")]

import pypi  # noqa: E402
import sample  # noqa: E402
from kernelwright_cli import ROOT, WARM, call, write_spec  # noqa: E402

EXAMPLES = ["prefix_lm", *sample.sample("makes", ["full", "causal", "alibi"])]
NUMBERS = """i = torch.arange(96)[:, None]
    j = torch.arange(k.shape[2])[None]
    s = ((q @ k.mT) * heat).masked_fill((j > i) | (j <= i - window), -torch.inf)
    return s.softmax(-1) @ v"""
# Products of places fit 32 bits up to a length, so a launch has limits beside its conditions.
LIMITED = NUMBERS.replace("j <= i - window", "i * j % 3 == 1").replace("arange(96)", "arange(q.shape[2])")


def pytest_configure(config):
    """Where captures find the process that has imported PyTorch: one for all workers of a run."""
    if not hasattr(config, "workerinput"):
        config.warm = tempfile.TemporaryDirectory(prefix="kw")
        os.environ.update(WARM_SOCKET=f"{config.warm.name}/socket", WARM_OWNER=str(os.getpid()))
        link = f"{WARM['KERNELWRIGHT_PYTHON']}.{os.getpid()}"
        os.symlink(pathlib.Path(__file__).parent / "helpers/warm_capture.py", link)
        os.replace(link, WARM["KERNELWRIGHT_PYTHON"])


# Files of minutes: a run for a commit (scripts/test) takes half of them, and of each one test in four, by the commit.
# Which those are, `pytest --durations=0` says.
LONG = """test_ampere test_backward test_cache test_cli test_compile test_cute test_decode test_definition test_docs test_eval
test_eval_writing test_examples test_flash_attention test_foreign test_fp8 test_fuzz test_gradients test_huggingface_training test_inside test_inside_made test_isolation
test_kernel_bench test_launch_header test_make test_port test_products test_propose test_propose_products
test_propose_terms test_prove_all test_reads test_rebase test_report test_report_failed test_rms_norm_made test_self_test
test_serve test_sketch test_sketch_latent test_snippets test_table_sizes test_tiles test_training test_tune
test_variants_page test_verify test_verify_forged test_wheel""".split()


def pytest_collection_modifyitems(config, items):
    """Slow is what starts PyTorch or the built command: seconds each. Files of minutes begin, so that none is the last."""
    items.sort(key=lambda item: item.path.stem not in LONG)
    for item in items:
        names = vars(item.module)
        if "torch" in names or "call" in names or {"made", "makes"} & set(item.fixturenames):
            item.add_marker(pytest.mark.slow)
    if os.environ.get("KW_TEST_ALL") == "0" and not config.option.markexpr:  # what is fast of them is no matter of minutes
        files = {name: tests for name in LONG if (tests := [i.name for i in items if i.path.stem == name])}
        half = sample.sample("files of minutes", files, -(-len(files) // 2))
        taken = {name: sample.sample(name, files[name], -(-len(files[name]) // 4)) for name in half}
        left_out = [i for i in items if i.path.stem in files and i.name not in taken.get(i.path.stem, [])]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A test marked `network` that finds no network is skipped, and says so; any other fails."""
    if call.excinfo and call.excinfo.errisinstance(pypi.Offline) and item.get_closest_marker("network"):
        call.excinfo = pytest.ExceptionInfo.from_exc_info(
            (pytest.skip.Exception, pytest.skip.Exception(str(call.excinfo.value)), call.excinfo.tb))
    return (yield)


def pytest_sessionfinish(session):
    """A worker of pytest-xdist tells what it chose."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["samples"] = sample.CHOSEN


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    sample.CHOSEN.update(getattr(node, "workeroutput", {}).get("samples", {}))


def pytest_terminal_summary(terminalreporter):
    if sample.CHOSEN and not sample.ALL:
        terminalreporter.section(f"samples of commit {sample.commit()} (KW_SAMPLE repeats them)")
        for name, cases in sorted(sample.CHOSEN.items()):
            terminalreporter.line(f"{name}: {', '.join(cases)}")


@pytest.fixture(autouse=True)
def gradients_as_they_were():
    """Benchmarks switch gradients off for their whole process; here another test comes after them."""
    torch = sys.modules.get("torch")
    before = torch.is_grad_enabled() if torch else True
    yield
    if torch := sys.modules.get("torch"):
        torch.set_grad_enabled(before)


class Made:
    def __init__(self, folder, run):
        self.folder, self.run = folder, run

    def json(self, name):
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="session")
def makes(tmp_path_factory):
    """What `kernelwright make` leaves: each specification once a session, because one costs seconds.
    Two examples are made: prefix-LM, and another, chosen by commit (sample.py). A third specification
    has numbers as arguments and sizes that its code fixes; a fourth, which is checked quickly, a limit of lengths.
    All workers of a run share the folders: whoever asks first makes one, and the others wait."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name):
        top = base / f"made_{name}"
        with filelock.FileLock(f"{top}.lock"):
            if not (top / "run").exists():
                top.mkdir()
                (top / "run").write_bytes(pickle.dumps(run(name, top)))
        return Made(top / "made", pickle.loads((top / "run").read_bytes()))

    def run(name, top):
        spec = ROOT / f"examples/{name}.py"
        if name == "numbers":
            spec = write_spec(top, NUMBERS, ", window, heat", ", 32, 0.125")
        quick = ["--check", "quick"] if name == "limited" else []
        if name == "limited":
            spec = write_spec(top, LIMITED, ", window, heat", ", 32, 0.125", "1, 2, 64, 64")
        return call("make", spec, "--out", top / "made", *quick)

    return make


@pytest.fixture(scope="session", params=[*EXAMPLES, "numbers"])
def made(request, makes):
    result = makes(request.param)
    assert result.run.returncode == 0, result.run.stderr
    return result
