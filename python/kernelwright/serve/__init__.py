"""`kernelwright serve`: the stages as tools of the Model Context Protocol, over standard input and output.

A coding agent that speaks the protocol is itself the model that proposes: it edits a `.tl` file, calls
`check`, reads the counterexample, and edits again. The server adds no trust. Each tool runs the program
`kernelwright` as a person would, in a process of its own, and hands back what it said as typed JSON; the
verdict is the checker's.

The protocol's wire (framing, its versions, cancellation, schemas) is the official SDK's, `mcp` on PyPI.
Ours are four small parts:

    workspace.py  which paths a call may name
    text.py       what of a file's text may reach a client
    stage.py      one process of one call: its limits, its progress, its end
    tools.py      the tools; results.py their types; resources.py what can be read

docs/llm/agents.md is for the user.
"""
