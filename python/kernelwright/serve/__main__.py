"""python -m kernelwright.serve: what `kernelwright serve` becomes."""

import argparse
import os
import sys

from ..commands import ProgramError, path


def _refuse(code, message, hint):
    print(f"error[{code}]: {message}\n  help: {hint}", file=sys.stderr)
    return 2


def main():
    parser = argparse.ArgumentParser(prog="kernelwright serve")
    parser.add_argument("--root", default=".")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=3600)
    options = parser.parse_args()
    try:
        from .server import serve
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("mcp", "mcp_types", "anyio", "pydantic"):
            raise
        return _refuse("serve.sdk", f"{sys.executable} has no package '{missing.name}', which speaks the protocol",
                       "pip install 'kernelwright[serve]', or pip install mcp")
    try:
        serve(options.root, os.environ.get("KERNELWRIGHT_PROGRAM") or path(), options.jobs, options.limit)
    except NotADirectoryError as error:
        return _refuse("serve.root", str(error), "--root names the folder whose files the tools may use")
    except ProgramError as error:
        return _refuse("driver.program", str(error), "install kernelwright again, or build it in its checkout")
    return 0


if __name__ == "__main__":
    sys.exit(main())
