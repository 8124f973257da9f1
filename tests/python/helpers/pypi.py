"""One file of a project on PyPI, by its name and hash.

Raises Offline where the index cannot be reached: a test that fetches is marked `network` and skips
then, with a line. An answer that is not what was asked for is a failure.
"""

import hashlib
import json
import urllib.error
import urllib.parse
import urllib.request


class Offline(Exception):
    """PyPI cannot be reached from here."""


def _open(asked, timeout):
    try:
        return urllib.request.urlopen(asked, timeout=timeout)
    except urllib.error.HTTPError:
        raise
    except (urllib.error.URLError, TimeoutError) as error:
        raise Offline(f"PyPI cannot be reached: {error}") from error


def download(project, file, sha256):
    asked = urllib.request.Request(f"https://pypi.org/simple/{project}/",
                                   headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with _open(asked, 60) as page:
        base, files = page.geturl(), json.load(page)["files"]
    url = next(one["url"] for one in files if one["filename"] == file)
    with _open(urllib.parse.urljoin(base, url), 180) as data:
        archive = data.read()
    found = hashlib.sha256(archive).hexdigest()
    assert found == sha256, f"{file} on PyPI has the hash {found}, not {sha256}"
    return archive
