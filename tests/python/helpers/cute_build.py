"""CUTLASS's headers, from PyPI by name and hash, and NVRTC over them: what compiles a kernel in CuTe.

Run as a program: cute_build.py KERNEL.cu TARGET OUT.cubin prints what ptxas says of it.
"""

import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import pypi

WHEELS = {  # name on PyPI: file, hash, the folder of headers in it
    "nvidia-cutlass": ("nvidia_cutlass-4.2.0.0-py3-none-any.whl", "f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6", "cutlass_library/source/include/"),
    "nvidia-cuda-cccl": ("nvidia_cuda_cccl-13.0.85-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
                         "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649", "nvidia/cu13/include/cccl/"),
}  # fmt: skip
TOOLKIT = pathlib.Path(sys.prefix) / f"lib/python3.{sys.version_info[1]}/site-packages/nvidia/cu13/include"


def fetch(name):
    """The folder with the headers of one wheel; it is unpacked once for every test that asks."""
    filename, expected, inside = WHEELS[name]
    kept = pathlib.Path(tempfile.gettempdir()) / f"kernelwright-headers-{os.getuid()}" / expected
    if kept.is_dir():
        return kept / inside
    archive = pypi.download(name, filename, expected)
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as fresh:
        with zipfile.ZipFile(io.BytesIO(archive)) as wheel:
            wheel.extractall(fresh, [one for one in wheel.namelist() if one.startswith(inside)])
        try:
            os.rename(fresh, kept)
        except OSError:  # somebody else was first
            assert kept.is_dir()
        else:
            os.mkdir(fresh)  # for the context that removes it
    return kept / inside


def compile_cute(source, target):
    """The cubin, and of each kernel its registers and spilled bytes; fails with the compiler's log,
    also where ptxas serialises products that should be under way."""
    from cuda.bindings import nvrtc

    cccl = fetch("nvidia-cuda-cccl")
    folders = [fetch("nvidia-cutlass"), cccl, cccl.parent, TOOLKIT]
    options = [f"-arch={target}", "-std=c++17", "--ptxas-options=-v", "-default-device", "-w",
               *(f"-I{folder}" for folder in folders)]  # fmt: skip
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    (bad,) = nvrtc.nvrtcCompileProgram(program, len(options), [one.encode() for one in options])
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    log = log.decode(errors="replace")
    assert bad == nvrtc.nvrtcResult.NVRTC_SUCCESS, log[:20000]
    cubin = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, cubin)
    nvrtc.nvrtcDestroyProgram(program)
    assert "Potential Performance Loss" not in log, log  # products that wait for each other
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    registers = re.findall(r"Used (\d+) registers", log)
    assert spills and len(spills) == len(registers), log
    return cubin, [{"registers": int(r), "spills": int(a) + int(b)} for r, (a, b) in zip(registers, spills)]


# What stands in the text for an instruction, and what emulates it (tests/cute/emulated.h).
EMULATED = [
    (r'asm volatile\("mov.u32 %0, %%tid.x;" : "=r"\(t\)\);', "t = threadIdx.x;"),
    (r"extern __shared__", "extern"),
    (r"(SM80_16x8x16_F32\w+_TN)", r"EmulatedProduct<cute::\1>"),
    (r"(SM75_16x8x8_F32\w+_TN)", r"EmulatedProduct8<cute::\1>"),
    (r"SM75_U32x4_LDSM_N", "LoadMatrices"),
    (r"SM75_U16x8_LDSM_T", "LoadTransposed"),
    (r"SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<", "CopyAsync<"),
    (r"cutlass::arch::NamedBarrier::sync\(", "sync_warpgroup("),
    (r'asm\("(\w+)\.approx[^;]*;[^;]*;', r"x = approx_\1(x);"),
]

OF_HOPPER = [  # (tests/cute/hopper_emulated.h)
    (r"cutlass::arch::Cluster(Transaction)?Barrier::", "emulated::Barriers::"),
    (r"SM90_TMA_LOAD_5D::copy\(", "emulated::load("),
    (r"SM90_TMA_STORE_5D::copy\(", "emulated::store("),
    (r"cute::gemm\(gmma, ", "emulated::wgmma(gmma, "),
    (r"SM90_U32x4_STSM_N", "StoreMatrices"),
    (r"\bcluster_sync\(\);", "__syncthreads();"),
    (r"\b(warpgroup_arrive|warpgroup_commit_batch|warpgroup_wait<kPending>|tma_store_arrive|tma_store_wait<0>)\(\);", ";"),
    (r'asm volatile\("cp.async.bulk.wait_group 0;"[^;]*;', ";"),
]


def emulated(source, of_prelude=False):
    """The text of a printed kernel, or of its prelude, that runs on the host."""
    hopper = "ClusterBarrier" in source
    for instruction, instead in EMULATED + (OF_HOPPER if hopper else []):
        source, count = re.subn(instruction, instead, source)
        assert count or of_prelude or hopper or "_F32" in instruction, instruction
    assert of_prelude or "EmulatedProduct" in source, "no product is emulated"
    return source


def build_on_host(program, source, *options):
    """Compiles a host program of tests/cute/ over CUTLASS's headers."""
    cccl = fetch("nvidia-cuda-cccl")
    folders = [fetch("nvidia-cutlass"), cccl, cccl.parent, TOOLKIT]
    command = ["g++", "-std=c++17", "-O1", "-w", "-fpermissive", *(f"-I{one}" for one in folders), *options,
               str(source), "-o", str(program)]  # fmt: skip
    subprocess.run(command, check=True, timeout=500)


if __name__ == "__main__":
    cubin, said = compile_cute(pathlib.Path(sys.argv[1]).read_text(), sys.argv[2])
    pathlib.Path(sys.argv[3]).write_bytes(cubin)
    print(said)
