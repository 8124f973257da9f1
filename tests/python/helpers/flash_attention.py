"""The sources of FlashAttention 2.8.3, from PyPI's source distribution, by name and hash."""

import io
import tarfile

import pypi

NAME = "flash_attn-2.8.3.tar.gz"
SHA256 = "1e71dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d"
NEEDED = ("csrc/flash_attn/src/", "csrc/cutlass/include/")


def fetch(folder):
    """Unpacks what the forward kernel needs into `folder`, and returns the folder of the sources."""
    archive = pypi.download("flash-attn", NAME, SHA256)
    top = NAME.removesuffix(".tar.gz")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        needed = [one for one in tar.getmembers() if one.name.removeprefix(top + "/").startswith(NEEDED)]
        tar.extractall(folder, needed)  # as pinned by the hash
    return folder / top
