"""What is wrong with a user's file, as one JSON diagnostic: never a traceback of ours."""

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


def fault(error):
    """Our own fault, in one line: what was raised, and where in our code."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (f"kernelwright.capture: internal fault: {type(error).__name__}: {first_line_of(error)} "
            f"({frame.filename}:{frame.lineno})")
