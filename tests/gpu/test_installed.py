"""The wheel, the C++ examples and an exported kernel on a machine with a Hopper GPU:

    KW_WHEEL=kernelwright-….whl KW_FULL=out/full KW_HUB=hub/full python -m pytest -sv tests/gpu/test_installed.py

The wheel is `pip wheel .`'s. out/full is `kernelwright make examples/full.py`'s, hub/full what `kernelwright
export hf out/full --to hub/full` writes. The machine needs PyTorch, CMake, a C++ compiler, cuda.h and the
driver, and no network; the `kernels` package is used where it is installed. What is printed goes into
docs/results/ with the GPU and the date."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def given(name):
    if name not in os.environ:
        pytest.skip(f"{name} does not say where it is")
    return Path(os.environ[name]).resolve()


def run(*words):
    done = subprocess.run(list(map(str, words)), text=True, capture_output=True)
    print(f"\n$ {Path(words[0]).name} {' '.join(map(str, words[1:]))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment that sees this Python's PyTorch, with the wheel."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "parent.pth").write_text("\n".join(p for p in sys.path if p.endswith("-packages")))
    done = run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-index", "--no-deps",
               "--ignore-installed", given("KW_WHEEL"))
    assert done.returncode == 0
    return folder


def test_the_installed_prover_accepts_the_kernel(environment):
    print(torch.cuda.get_device_name(), torch.__version__)
    assert run(environment / "bin/kernelwright-prove", given("KW_FULL")).returncode == 0


@pytest.fixture(scope="module")
def programs(environment, tmp_path_factory):
    build = tmp_path_factory.mktemp("cpp")
    package = next(environment.glob("lib/python3*/site-packages/kernelwright"))
    assert run("cmake", "-S", ROOT / "examples/cpp", "-B", build, f"-DCMAKE_PREFIX_PATH={package}",
               f"-DKERNEL={given('KW_FULL')}").returncode == 0
    assert run("cmake", "--build", build).returncode == 0
    return build


@pytest.mark.parametrize("name", ["with_launch_h", "with_c_abi"])
def test_the_cpp_examples_agree_with_the_cpu(programs, name):
    assert run(programs / name, given("KW_FULL")).returncode == 0


@pytest.fixture(scope="module")
def full():
    repository = given("KW_HUB")
    try:  # of a checkout's own folder kernels/ Python makes a package, too
        from kernels import get_local_kernel
        print("\nloaded by the kernels package")
        return get_local_kernel(repository).full
    except ImportError as missing:
        print(f"\nloaded from its file: {missing}")
    file = next(repository.glob("build/*/__init__.py"))
    spec = importlib.util.spec_from_file_location("exported_full", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.full


def inputs(rows, keys):
    """[B, S, H, D] in memory, as the function's [B, H, S, D]."""
    return [torch.randn(2, n, heads, 128, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
            for n, heads in [(rows, 32), (keys, 8), (keys, 8)]]


def error(out, q, k, v):
    truth = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), enable_gqa=True)
    return ((out.double() - truth).norm(dim=-1) / truth.norm(dim=-1)).max().item()


@pytest.mark.parametrize("rows, keys", [(1, 1), (333, 1111), (1024, 777)])
def test_the_exported_function_is_right_on_every_row(full, rows, keys):
    q, k, v = inputs(rows, keys)
    out = full(q, k, v)
    worst = error(out, q, k, v)
    print(f"\nexported full, {rows} queries, {keys} keys: worst row {worst:.2g}")
    assert worst < 2**-7 and out.stride() == q.stride()


def test_the_exported_function_can_be_captured(full):
    q, k, v = inputs(256, 512)
    full(q, k, v)  # the first launch in a stream may allocate
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = full(q, k, v)
    q.copy_(torch.randn_like(q))
    graph.replay()
    torch.cuda.synchronize()
    assert error(out, q, k, v) < 2**-7


def test_what_does_not_fit_is_refused(full):
    q, k, v = inputs(64, 64)
    for wrong in [(q.half(), k, v), (q[:, :3], k, v), (q.cpu(), k, v)]:
        refused = None
        try:
            full(*wrong)
        except RuntimeError as problem:
            refused = problem
        assert type(refused).__name__ == "LaunchError", wrong[0].shape
        print(f"\n{refused}")
    assert error(full(q, k, v), q, k, v) < 2**-7  # and the process goes on
