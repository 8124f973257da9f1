"""What a client can read: the language, the rules, what a verdict means; kernels and examples; the laws.

A file's text is given as it lies there, by its place under the project's folder:
`kernelwright://docs/tl.md`, `kernelwright://kernels/sm90/attention_fwd.cu`. Laws are listed by the
program that holds programs to them.
"""

import anyio
from mcp.server.mcpserver.resources import FileResource, FunctionResource

from .workspace import SCHEME

DOCUMENTS = {"docs/tl.md": "TL, the language of programs: a guide",
             "docs/tl/statements.md": "every statement of TL, with its laws",
             "docs/rules.md": "what the rules of transfer change, and when they fire",
             "docs/soundness.md": "what a verdict means, and what it does not cover",
             "docs/soundness/obligations.md": "what is proved of a program for every size",
             "docs/commands.md": "every command with its options",
             "AGENTS.md": "how to port a kernel with these tools"}
TYPES = {".md": "text/markdown", ".py": "text/x-python", ".cu": "text/x-cuda"}


def all_resources(workspace, program):
    """Every resource whose file is installed."""
    found = []
    if workspace.home is not None:
        found = [_file(SCHEME + name, workspace.home / name, about) for name, about in DOCUMENTS.items()
                 if (workspace.home / name).is_file()]
    found += [_file(uri, file, "a kernel that an expert wrote" if file.suffix == ".cu" else "an example specification")
              for uri, file in workspace.shipped().items()]

    async def laws() -> str:
        listed = await anyio.run_process([str(program), "explain", "all"])
        return listed.stdout.decode()
    return [*found, FunctionResource.from_function(
        laws, uri=SCHEME + "laws", name="laws", mime_type="text/plain",
        description="every law of TL: its number, and its sentence")]


def _file(uri, path, about):
    return FileResource(uri=uri, path=path, name=uri.removeprefix(SCHEME), description=about,
                        mime_type=TYPES[path.suffix])
