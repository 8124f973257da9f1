"""Compiled operators on a GPU, each question a test of its own. What needs no GPU is
tests/python/compiling/test_compile.py's. Run with -s to see the times."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

import kernelwright
import operator_functions
from kernelwright.compiling import program

ROOT = pathlib.Path(__file__).parents[2]
pytestmark = pytest.mark.gpu
SHAPES = {"causal": lambda b, m, n: [(b, 8, m, 128), (b, 2, n, 128), (b, 2, n, 128)],
          "window": lambda b, m, n: [(b, m, 4, 64), (b, n, 4, 64), (b, n, 4, 64)],
          "with_lse": lambda b, m, n: [(b, 4, m, 64), (b, 4, n, 64), (b, 4, n, 64)],
          "documents": lambda b, m, n: [(b, 4, m, 64), (b, 4, n, 64), (b, 4, n, 64)]}


@pytest.fixture(scope="module", autouse=True)
def documents_on_the_gpu():
    operator_functions.DOCUMENTS = operator_functions.DOCUMENTS.cuda()


@pytest.fixture(scope="module")
def compiled(documents_on_the_gpu):
    done = {}

    def get(name):
        if name not in done:
            function, values = operator_functions.examples("cuda")[name]
            done[name] = kernelwright.compile(function, values), function
        return done[name]

    return get


def draw(name, b, m, n, scale=1.0):
    values = [x * scale for x in operator_functions.draw(SHAPES[name](b, m, n), "cuda")]
    return [*values, 100, 0.2] if name == "window" else values


def error(got, function, values):
    """Relative L2 error of the worst row, against fp32 on the same inputs."""
    values = [v.float() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in values]
    got, want = (x[0] if isinstance(x, tuple) else x for x in (got, function(*values)))
    off = (got.float() - want.float()).norm(dim=-1) / want.float().norm(dim=-1).clamp_min(1e-6)
    return off[want.isfinite().all(-1)].max().item()


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("b, m, n", [(2, 512, 512), (1, 77, 77), (2, 300, 511), (2, 1, 1)])
def test_it_computes_what_the_function_computes(compiled, name, b, m, n):
    fast, function = compiled(name)
    values = draw(name, b, m, n)
    assert error(fast(*values), function, values) < 0.02


def test_the_log_sum_exp_is_the_functions(compiled):
    fast, function = compiled("with_lse")
    values = draw("with_lse", 2, 200, 300)
    got, want = fast(*values)[1], function(*[v.float() for v in values])[1]
    torch.testing.assert_close(got, want, atol=0.02, rtol=0.02)


def test_views_of_one_packed_tensor_are_taken_without_copies(compiled):
    fast, function = compiled("window")
    packed = torch.randn(2, 256, 3, 4, 64, dtype=torch.bfloat16, device="cuda")
    values = [packed[:, :, 0], packed[:, :, 1], packed[:, :, 2], 64, 0.125]
    fast(*values)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    out = fast(*values)
    assert torch.cuda.max_memory_allocated() - before <= out.numel() * out.element_size()
    assert error(out, function, values) < 0.02


def test_a_reached_tensor_is_read_at_each_call(compiled):
    fast, function = compiled("documents")
    values = draw("documents", 2, 512, 512)
    before = operator_functions.DOCUMENTS
    try:
        operator_functions.DOCUMENTS = torch.zeros_like(before)
        assert error(fast(*values), function, values) < 0.02
        operator_functions.DOCUMENTS[:, 256:] = 1
        assert error(fast(*values), function, values) < 0.02
    finally:
        operator_functions.DOCUMENTS = before


@pytest.mark.parametrize("name", SHAPES)
def test_torch_librarys_own_checks_pass(compiled, name):
    fast, _ = compiled(name)
    values = draw(name, 2, 512, 512)
    if name == "documents":
        values.append(operator_functions.DOCUMENTS)
    torch.library.opcheck(fast.operator, tuple(values))


FIRST = """
import sys, torch
sys.path[:0] = {paths!r}
import kernelwright, operator_functions
operator_functions.DOCUMENTS = operator_functions.DOCUMENTS.cuda()
function, values = operator_functions.examples("cuda")[{name!r}]
fast = torch.compile(kernelwright.compile(function, values), fullgraph=True)
got = fast(*values)
want = function(*[v.float() if isinstance(v, torch.Tensor) else v for v in values])
got, want = (x[0] if isinstance(x, tuple) else x for x in (got, want))
print(float((got.float() - want).abs().max()))
"""


@pytest.mark.parametrize("name", SHAPES)
def test_torch_compile_takes_it_whole_as_the_first_call_of_a_process(name):
    paths = [str(ROOT / "python"), str(ROOT / "tests/gpu")]
    run = subprocess.run([sys.executable, "-c", FIRST.format(paths=paths, name=name)], text=True,
                         capture_output=True, timeout=500)
    assert run.returncode == 0, run.stderr[-3000:]
    assert float(run.stdout.splitlines()[-1]) < 0.05


def test_torch_export_keeps_batch_and_lengths_open(compiled):
    fast, function = compiled("causal")

    class Module(torch.nn.Module):
        def forward(self, q, k, v):
            return fast(q, k, v)

    b, m, n = (torch.export.Dim(name) for name in ("b", "m", "n"))
    exported = torch.export.export(Module(), tuple(draw("causal", 2, 64, 96)), dynamic_shapes=(
        {0: b, 2: m}, {0: b, 2: n}, {0: b, 2: n}))
    values = draw("causal", 3, 130, 200)
    assert error(exported.module()(*values), function, values) < 0.02


def captured(fast, values):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = fast(*values)
    return graph, out


@pytest.mark.parametrize("name", SHAPES)
def test_a_first_launch_can_be_captured_and_replayed_on_new_contents(compiled, name):
    fast, function = compiled(name)
    values = draw(name, 2, 437, 437)  # of no other test: its plan is made in the capture
    graph, out = captured(fast, values)
    for _ in range(3):
        for v in values:
            if isinstance(v, torch.Tensor):
                v.normal_()
        graph.replay()
        torch.cuda.synchronize()
        assert error(out, function, values) < 0.02


CAPTURED_FIRST = """
import sys, torch
sys.path[:0] = {paths!r}
import kernelwright, operator_functions
function, values = operator_functions.examples("cuda")["causal"]
fast = kernelwright.compile(function, values)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = fast(*values)
graph.replay()
torch.cuda.synchronize()
print(float((out.float() - function(*[v.float() for v in values])).abs().max()))
"""


def test_the_first_call_of_a_process_can_be_captured():
    paths = [str(ROOT / "python"), str(ROOT / "tests/gpu")]
    run = subprocess.run([sys.executable, "-c", CAPTURED_FIRST.format(paths=paths)], text=True,
                         capture_output=True, timeout=500)
    assert run.returncode == 0, run.stderr[-3000:]
    assert float(run.stdout.splitlines()[-1]) < 0.05


def test_a_replay_may_overlap_eager_launches_and_another_graph(compiled):
    fast, function = compiled("causal")
    sets = [draw("causal", 2, 2048, 2048) for _ in range(3)]
    graphs = [captured(fast, values) for values in sets[:2]]
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    for _ in range(20):
        for (graph, _), stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                graph.replay()
        with torch.cuda.stream(streams[2]):
            eager = fast(*sets[2])
    torch.cuda.synchronize()
    for out, values in zip([graphs[0][1], graphs[1][1], eager], sets):
        assert error(out, function, values) < 0.02


@pytest.mark.parametrize("change, words", [
    (lambda v: [x.cpu() for x in v], "q is on the CPU; it should be on a GPU"),
    (lambda v: [v[0].cpu(), v[1], v[2]], "q is on cpu; it should be on cuda:0"),
    (lambda v: [v[0], v[1].cpu(), v[2]], "k is on cpu; it should be on cuda:0"),
    (lambda v: [v[0], v[1].half(), v[2]], "k is float16; it should be bfloat16"),
    (lambda v: [v[0][:, :4], v[1], v[2]], "q has 4 in dimension 1; it should have 8"),
    (lambda v: [v[0].mT.contiguous().mT, v[1], v[2]], "q has stride"),
    (lambda v: [torch.cat([v[0].flatten(), v[0].flatten()[:1]])[1:].view(v[0].shape), v[1], v[2]],
     "q begins at address"),
])
def test_a_wrong_argument_raises_and_the_gpu_goes_on(compiled, change, words):
    fast, function = compiled("causal")
    values = draw("causal", 2, 128, 128)
    fast(*values)
    with pytest.raises(kernelwright.ArgumentError, match=words):
        fast(*change(values))
    assert error(fast(*values), function, values) < 0.02


def test_a_table_that_is_too_short_for_the_lengths_is_refused(compiled):
    fast, _ = compiled("documents")
    with pytest.raises(kernelwright.ArgumentError, match="DOCUMENTS .* has 512 in dimension 1; it should have 600"):
        fast(*draw("documents", 2, 600, 600))


def test_a_gpu_older_than_the_target_is_named(compiled):
    fast, _ = compiled("causal")
    import shutil

    from kernelwright.compiling.operators import Operator
    folder = pathlib.Path(os.environ["KERNELWRIGHT_CACHE"]) / "making/older"
    shutil.copytree(fast.folder, folder, dirs_exist_ok=True)
    launch = json.loads((folder / "launch.json").read_text())
    (folder / "launch.json").write_text(json.dumps({**launch, "target": "sm_100a"}))
    from kernelwright.compiling import operators
    made = operators._operators[fast.operator.name().split("::")[1]]
    other = Operator("older", "older", made.signature.record, folder)
    with pytest.raises(kernelwright.MachineError, match="built for sm_100a"):
        other.overload(*draw("causal", 2, 64, 64))
    shutil.rmtree(folder)


def test_recomputed_gradients_are_those_of_the_function():
    function, values = operator_functions.examples("cuda")["causal"]
    fast = kernelwright.compile(function, values, backward="recompute")
    values = [v.requires_grad_() for v in draw("causal", 2, 700, 700, 0.3)]
    fast(*values).square().sum().backward()
    got = [v.grad for v in values]
    exact = [v.detach().float().requires_grad_() for v in values]
    function(*exact).square().sum().backward()
    for g, e in zip(got, exact):
        assert ((g.float() - e.grad).norm() / e.grad.norm()).item() < 0.02


def test_a_gradient_without_backward_raises(compiled):
    fast, _ = compiled("causal")
    values = [v.requires_grad_() for v in draw("causal", 1, 64, 64)]
    with pytest.raises(kernelwright.GradientError, match='backward="recompute"'):
        fast(*values)


def bench(script):
    run = subprocess.run([sys.executable, ROOT / "bench" / script], text=True, capture_output=True, timeout=550)
    print("\n" + run.stdout + run.stderr[-2000:])
    assert run.returncode == 0


def test_host_times_are_printed():
    bench("host_time.py")


def test_start_times_are_printed():
    bench("start_time.py")


@pytest.mark.skipif(program.find() is None, reason="no program to make kernels with")
def test_the_readmes_example_can_be_pasted_into_a_python(tmp_path):
    readme = (ROOT / "README.md").read_text().split("## From Python", 1)[1]
    example = readme.split("```python\n", 1)[1].split("```", 1)[0]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "KERNELWRIGHT_CACHE": str(tmp_path / "c")}
    done = subprocess.run([sys.executable, "-i", "-q"], input=example, env=environment, text=True,
                          capture_output=True, timeout=500)
    print(done.stderr)
    assert "torch.Size([2, 16, 4096, 128])" in done.stdout and "Traceback" not in done.stderr


@pytest.mark.skipif(program.find() is None, reason="no program to make kernels with")
def test_a_cold_start_works_here(tmp_path):
    code = FIRST.format(paths=[str(ROOT / "python"), str(ROOT / "tests/gpu")], name="causal")
    run = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=500,
                         env={**os.environ, "KERNELWRIGHT_CACHE": str(tmp_path / "cold")})
    print(run.stderr)
    assert run.returncode == 0, run.stderr[-3000:]
