"""The sources of FlashAttention 2.8.3, from PyPI's source distribution, by name and hash."""

import hashlib
import io
import json
import tarfile
import urllib.parse
import urllib.request

NAME = "flash_attn-2.8.3.tar.gz"
SHA256 = "1e71dd64a9e0280e0447b8a0c2541bad4bf6ac65bdeaa2f90e51a9e57de0370d"
INDEX = "https://pypi.org/simple/flash-attn/"
NEEDED = ("csrc/flash_attn/src/", "csrc/cutlass/include/")


def fetch(folder):
    """Unpacks what the forward kernel needs into `folder`, and returns the folder of the sources."""
    asked = urllib.request.Request(INDEX, headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(asked, timeout=60) as page:
        base, files = page.geturl(), json.load(page)["files"]
    url = next(one["url"] for one in files if one["filename"] == NAME)
    with urllib.request.urlopen(urllib.parse.urljoin(base, url), timeout=180) as data:
        archive = data.read()
    found = hashlib.sha256(archive).hexdigest()
    assert found == SHA256, f"{NAME} on PyPI has the hash {found}, not {SHA256}"
    top = NAME.removesuffix(".tar.gz")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        needed = [one for one in tar.getmembers() if one.name.removeprefix(top + "/").startswith(NEEDED)]
        tar.extractall(folder, needed)  # as pinned by the hash
    return folder / top
