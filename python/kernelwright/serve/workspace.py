"""Which files a call may name: those under one folder, and the kernels and examples that are shipped.

A path is resolved, links and `..` included, and must then lie under the root. A shipped file is named by
its resource URI (`kernelwright://kernels/sm90/attention_fwd.cu`), which is read only. What a call writes
must have the ending that its kind of file has, so that a slip does not replace a specification by a
program.

This confines the tools' own arguments, and what lies in the folders that they name. It is no sandbox: a
specification is a Python file, and capturing it runs it (docs/deployment/isolation.md).
"""

import itertools
import os
from pathlib import Path

from ..commands import home

SCHEME = "kernelwright://"
MOST_ENTRIES = 10_000  # of a folder that are looked at; one that make or capture wrote has a hundred
MOST_BYTES = 4 << 20  # of a file to read; the largest kernel of the corpus has 40 KB


class Refused(Exception):
    """A call that is refused before anything ran. `code`, one line, and what to do about it."""

    def __init__(self, code, message, hint=""):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Workspace:
    def __init__(self, root, program):
        """Raises NotADirectoryError."""
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise NotADirectoryError(f"{root} is not a folder")
        self.home = home(program)

    def shipped(self):
        """URI -> file, of all that may be read although it lies elsewhere."""
        if self.home is None:
            return {}
        kernels = sorted(self.home.glob("kernels/*/*.cu"))
        examples = sorted(self.home.glob("examples/*.py"))
        return {SCHEME + file.relative_to(self.home).as_posix(): file for file in [*kernels, *examples]}

    def _inside(self, name):
        if "\0" in name or name.startswith(SCHEME):
            raise Refused("serve.path", f"'{name}' is neither a path nor a kernel or an example that is shipped",
                          "the tool `corpus` lists the latter")
        path = Path(os.path.realpath(self.root / name))
        if not path.is_relative_to(self.root):
            raise Refused("serve.outside", f"'{name}' is outside of the workspace {self.root}",
                          "name a path under it, or start `kernelwright serve --root` higher up")
        return path

    def file(self, name, *endings):
        """A file to read, of a moderate size, with one of these endings. Raises Refused."""
        path = self.shipped().get(name) or self._inside(name)
        _require_ending(name, endings)
        if not path.is_file():
            raise Refused("serve.missing", f"there is no file '{name}'" + (" but a folder" if path.is_dir() else ""))
        if path.stat().st_size > MOST_BYTES:
            raise Refused("serve.size", f"'{name}' has {path.stat().st_size} bytes; at most {MOST_BYTES} are read")
        return self.word(path)

    def spec(self, name):
        """A specification: a Python file, or a folder that capture wrote. Raises Refused."""
        if name not in self.shipped() and self._inside(name).is_dir():
            return self.folder(name)
        return self.file(name, ".py", ".json")

    def folder(self, name):
        """A folder to read. Raises Refused."""
        path = self._inside(name)
        if not path.is_dir():
            raise Refused("serve.missing", f"there is no folder '{name}'")
        for entry in itertools.islice(path.rglob("*"), MOST_ENTRIES):
            if not Path(os.path.realpath(entry)).is_relative_to(self.root):
                raise Refused("serve.outside", f"'{name}' holds the link '{entry.relative_to(path)}', which leads "
                              f"outside of the workspace {self.root}", "put the file itself there")
            if not entry.is_file() and not entry.is_dir():
                raise Refused("serve.path", f"'{entry.relative_to(path)}' in '{name}' is neither a file nor a folder")
        return self.word(path)

    def output(self, name, *endings):
        """A file, or where there are no endings a folder, to write. Raises Refused."""
        path = self._inside(name)
        _require_ending(name, endings)
        if endings and path.is_dir() or path == self.root:
            raise Refused("serve.path", f"'{name}' is a folder that is there; it cannot be written")
        if not path.parent.is_dir():
            raise Refused("serve.missing", f"there is no folder '{path.parent}' to write '{path.name}' into")
        return self.word(path)

    def word(self, path):
        """A path as a word of a command line that runs in the root; never an option, never `-`."""
        if not path.is_relative_to(self.root):
            return str(path)
        return os.path.join(".", path.relative_to(self.root))


def _require_ending(name, endings):
    if endings and not name.endswith(endings):
        raise Refused("serve.ending", f"'{name}' does not end with {' or '.join(endings)}")
