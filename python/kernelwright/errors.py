"""What kernelwright raises. Each type is one answer to "whose turn is it now?".

    SpecError      yours: the function cannot be captured or transferred; the place is in your file
    ArgumentError  yours: this call's argument is not what the kernel takes
    GradientError  yours: a gradient is asked of a kernel that has none
    MachineError   the machine's: no GPU, no driver, no NVRTC, a GPU that is too old, no program
    Refuted        nobody's yet: the check found a case where the kernel would be wrong
    Inconclusive   nobody's yet: the check could not decide
    InternalError  ours: please report it

No call falls back to another implementation: what is not raised ran the kernel.
"""


class Error(Exception):
    """What kernelwright raises, of every kind: `except kernelwright.Error` catches all."""


class SpecError(Error):
    """The user's function cannot be captured or transferred. `file`, `line` and `column` (from 1) are the
    place in the user's text, `code` the refusal's name, `hint` what to do; each may be None."""

    def __init__(self, message, file=None, line=None, column=None, code=None, hint=None):
        place = f"{file}:{line}:{column or 1}: " if file and line else ""
        super().__init__(f"{place}{message}" + (f"\n  help: {hint}" if hint else ""))
        self.message, self.file, self.line, self.column = message, file, line, column
        self.code, self.hint = code, hint


class ArgumentError(Error):
    """An argument of a call, or an option of `compile`, is not what is taken. `function` and `argument` are
    the user's names, `was` and `should` the two facts that disagree, in words."""

    def __init__(self, function, argument, was, should, hint=None):
        super().__init__(f"{function}: {argument} {was}; it should {should}"
                         + (f"\n  help: {hint}" if hint else ""))
        self.function, self.argument, self.was, self.should = function, argument, was, should


class GradientError(Error):
    """A gradient is asked of a kernel that was compiled without one, or that can have none."""


class MachineError(Error):
    """This machine lacks something: the message says what, and what to do."""


class Refuted(Error):
    """The check found a case in which the kernel would be wrong; the message is the counterexample.
    `report` is the path of a page that shows it, or None."""

    report = None


class Inconclusive(Error):
    """The check could not decide; the message says why. `report` as of Refuted."""

    report = None


class InternalError(Error):
    """A fault of kernelwright's own."""
