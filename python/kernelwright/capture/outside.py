"""What a function takes from outside while it runs: files that `np.load` or `AutoConfig.from_pretrained` open, folders, sockets.

dependencies.py makes a function's fingerprint of its code and of the values that it reaches, and takes an installed package
for its version. But a package opens files for its callers: the function has the same fingerprint when the file has another
content. Which of a package's functions do so nobody can list; Python says it while it runs, by audit events. So they are
watched in every call of the function, and one that has taken something is kept under no fingerprint: it is captured again in each process.

Not of this: what Python imports, what it reads to show lines of code, and files of installed packages, for which their version
stands. Not seen: files that C opens by itself, without Python's open(), and questions without an event, whether a file is there.
"""

import contextlib
import os
import sys
import threading

from .origin import package_of_file

# Events, by the argument that says what: a path, an address, a program.
EVENTS = {"open": 0, "os.listdir": 0, "os.scandir": 0, "os.readlink": 0, "os.getxattr": 0, "os.listxattr": 0, "glob.glob": 0, "glob.glob/2": 0,
          "sqlite3.connect": 0, "dbm.open": 0, "socket.connect": 1, "socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostname": None,
          "urllib.Request": 0, "subprocess.Popen": 0, "os.system": 0, "os.posix_spawn": 0, "os.exec": 0, "os.fork": None, "pty.spawn": 0,
          "shutil.copyfile": 0, "shutil.copytree": 0, "tempfile.mkstemp": 0, "tempfile.mkdtemp": 0}
# Files of the standard library whose frames say that code is read, and not data.
OF_CODE = ("linecache.py", "tokenize.py", "inspect.py")
_watching, _installed = [], []


class Outside:
    """found: [(what, line of the specification's file or None)], each once, of all calls within noted()."""

    def __init__(self, file):
        self.file, self.found, self.thread = file, [], None

    @contextlib.contextmanager
    def noted(self):
        """While the function is called, in this thread."""
        if not _installed:  # it stays: Python has no way to take it back
            sys.addaudithook(_heard)
            _installed.append(_heard)
        self.thread = threading.get_ident()
        _watching.append(self)
        try:
            yield
        finally:
            _watching.remove(self)

    def note(self, event, given, frame):
        what = _what(event, given)
        if what is None:
            return
        line = None
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib") or os.sep + "importlib" + os.sep in file or file.endswith(OF_CODE):
                return
            if line is None and file == self.file:
                line = frame.f_lineno
            frame = frame.f_back
        if what not in [known for known, _ in self.found]:
            self.found.append((what, line))


def _heard(event, given):
    if _watching and event in EVENTS:
        for watch in list(_watching):
            if watch.thread == threading.get_ident():
                watch.note(event, given, sys._getframe(1))


def _what(event, given):
    """In words; None of what an installed package, or Python, brought along."""
    at = EVENTS[event]
    value = given[at] if at is not None and at < len(given) else None
    if isinstance(value, int):  # a file that is open already
        return None if event == "open" else f"{event} of {value}"
    path = os.fsdecode(value) if isinstance(value, (bytes, os.PathLike, str)) else None
    if path is None:
        return event if value is None else f"{event} of {value!r}"
    if event.startswith(("open", "os.", "glob")) and (path == os.devnull or package_of_file(os.path.abspath(path)) is not None):
        return None
    return path if event == "open" else f"{path} ({event})"
