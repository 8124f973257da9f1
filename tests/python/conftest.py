import datetime
import json
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

from kernelwright_cli import ROOT, call, write_spec  # noqa: E402

OTHERS = ["full", "causal", "alibi"]
TODAY = OTHERS[datetime.date.today().timetuple().tm_yday % len(OTHERS)]
EXAMPLES = ["prefix_lm", *(OTHERS if os.environ.get("KW_TEST_ALL") == "1" else [TODAY])]
NUMBERS = """i = torch.arange(96)[:, None]
    j = torch.arange(k.shape[2])[None]
    s = ((q @ k.mT) * heat).masked_fill((j > i) | (j <= i - window), -torch.inf)
    return s.softmax(-1) @ v"""


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
    Two examples are made: prefix-LM, and another that changes from day to day; all when
    KW_TEST_ALL=1. A third specification has numbers as arguments and sizes that its code fixes.
    Which of the examples is part of a failure's output."""
    print(f"examples of this run: {', '.join(EXAMPLES)}")
    done = {}

    def make(name):
        if name not in done:
            top = tmp_path_factory.mktemp(name)
            spec = ROOT / f"examples/{name}.py"
            if name == "numbers":
                spec = write_spec(top, NUMBERS, ", window, heat", ", 32, 0.125")
            done[name] = Made(top / "made", call("make", spec, "--out", top / "made"))
        return done[name]

    return make


@pytest.fixture(scope="session", params=[*EXAMPLES, "numbers"])
def made(request, makes):
    result = makes(request.param)
    assert result.run.returncode == 0, result.run.stderr
    return result
