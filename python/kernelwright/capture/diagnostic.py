"""What is wrong with a user's file, as one JSON diagnostic: never a traceback of ours."""

import errno
import os
import socket
import sys
import traceback


class Problem(Exception):
    """Refuses a spec. `line` and `column` count from 1 and are in the user's file."""

    def __init__(self, code, message, line=None, column=1, hint="", notes=()):
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint
        self.line, self.column = line, column
        self.notes = list(notes)
        self.file = self.text = None  # where they are not those of the file that was asked for

    def of_text(self, file, text):
        """The same, of a text that is in no file of its own.

        file: what the text is called in messages.
        text: it, or "" where nothing of it can be shown.
        """
        self.file, self.text = file, text or None
        return self

    def to_json(self, file):
        place = {"file": self.file or file, "line": self.line, "column": self.column} if self.line else None
        if place and self.text is not None:
            place["text"] = self.text
        return {
            "severity": "error",
            "code": self.code,
            "place": place,
            "message": self.message,
            "notes": [{"message": text, "place": None} for text in self.notes],
            "hint": self.hint,
        }


def last_line_in(file, error):
    """The deepest line of the user's file that an exception went through, or None."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else None


def first_line_of(error, limit=300):
    """An exception's message without the pages that PyTorch appends."""
    text = str(error).strip()
    head = text.splitlines()[0] if text else type(error).__name__
    return head if len(head) <= limit else head[: limit - 3] + "..."


def _behind(error):
    """An exception and those that it was raised for, or instead of, or that it holds."""
    seen, waiting = [], [error]
    while waiting:
        error = waiting.pop()
        if isinstance(error, BaseException) and error not in seen:
            seen.append(error)
            waiting += [error.__cause__, error.__context__, getattr(error, "reason", None)]
    return seen


OUT_OF_REACH = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}
ISOLATED = "a specification is captured %s; docs/deployment/isolation.md says what it may do and how to do without"


def of_isolation(error):
    """A hint where what a specification raises comes of how it is run: isolated, and within limits. Else ""."""
    isolated = bool(os.environ.get("KERNELWRIGHT_ISOLATED"))
    for cause in _behind(error):
        number = getattr(cause, "errno", None) if isinstance(cause, OSError) else None
        if isinstance(cause, MemoryError) or number == errno.ENOMEM or "can't allocate memory" in str(cause):
            return ISOLATED % "within a limit of memory"
        if isolated and (isinstance(cause, socket.gaierror) or number in OUT_OF_REACH):
            return ISOLATED % "without a network"
        if isolated and number == errno.EROFS:
            return ISOLATED % "where only /tmp can be written"
        if isolated and number == errno.ENOENT and str(getattr(cause, "filename", "")).startswith(("/tmp/", "/run/")):
            return ISOLATED % "with a /tmp and a /run of its own"
    return ""


# numpy says no number where it could not write all.
LACKS = {None, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG,
         errno.EMFILE, errno.ENFILE, errno.EIO}


def of_machine(error):
    """The Problem where an exception of our own code is the machine's lack: a module, room, rights. Else None."""
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return Problem("spec.no_pytorch", f"{sys.executable} has no PyTorch",
                       hint="run capture with a Python that has PyTorch 2.6 or later")
    if isinstance(error, ModuleNotFoundError) and (error.name or "kernelwright").split(".")[0] != "kernelwright":
        return Problem("driver.python", f"{sys.executable} has no {error.name}, which a capture needs",
                       hint=f"install {error.name} for that Python, or run scripts/setup")
    if isinstance(error, MemoryError):
        return Problem("spec.limit", f"the capture has no memory left: {first_line_of(error)}", hint=of_isolation(error))
    if isinstance(error, OSError) and error.errno in LACKS:
        place = f" ({error.filename})" if error.filename else ""
        return Problem("driver.scratch", f"the capture cannot be written: {error.strerror or first_line_of(error)}{place}",
                       hint="set TMPDIR to a folder that can be written and has room")
    return None


def fault(error):
    """Our own fault, in one line: what was raised, and where in our code."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (f"kernelwright.capture: internal fault: {type(error).__name__}: {first_line_of(error)} "
            f"({frame.filename}:{frame.lineno})")
