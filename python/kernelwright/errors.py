class Error(Exception): pass
class SpecError(Error):
    def __init__(self, message, hint=""):
        super().__init__(message + (f"\nhint: {hint}" if hint else ""))
class ArgumentError(Error): pass
