"""The tools: one method a stage. Each names its files, runs the stage, and reads what it said.

The hints are meant as they stand. A tool that only reads says so; a tool with an `out` may replace that
file; `open_world` marks those that run a specification, which is the user's Python and may do anything
that the user may.
"""

import contextlib
import json
import os
from typing import Annotated, Literal

import anyio
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from . import results, stage
from .text import clean, cleaned
from .workspace import Refused

Name = Annotated[str, Field(max_length=1024)]
Spec = Annotated[str, Field(max_length=1024, description="the user's Python file, a folder that capture wrote, or "
                                                         "the URI of an example")]
Program = Annotated[str, Field(max_length=1024, description="a .tl file")]
Kernel = Annotated[str, Field(max_length=1024, description="a .cu file, or the URI of a kernel of the corpus")]
Out = Annotated[str | None, Field(max_length=1024, description="a file to write, replaced if it is there; without "
                                                              "it the text is in the result")]
Function = Annotated[str | None, Field(pattern=r"^[A-Za-z_]\w{0,200}$", description="which function of the file")]
Dtype = Annotated[Literal["bf16", "f16"] | None, Field(description="for fp32 specifications")]
Target = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,20}$", description="GPU architecture")]
Effort = Annotated[Literal["quick", "default", "full"], Field(
    description="quick: few cases, one order of the agents, in seconds, for an edit's first answer; default: and "
                "every schedule; full: and the exhaustive checker of schedules")]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
RUNS_SPEC = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)


class Tools:
    def __init__(self, workspace, program, jobs, limit_s):
        self.workspace, self.program, self.limit_s = workspace, str(program), limit_s
        self.places = anyio.CapacityLimiter(jobs)  # for stages that compute; the others never wait

    def all(self):
        """The tools in a fixed order, as the protocol asks."""
        hints = {self.corpus: READS, self.explain: READS, self.diff: READS, self.lift: WRITES, self.lower: WRITES,
                 self.build: WRITES, self.capture: RUNS_SPEC, self.transfer: RUNS_SPEC, self.check: RUNS_SPEC,
                 self.make: RUNS_SPEC, self.verify: RUNS_SPEC}
        return [_strict(Tool.from_function(method, annotations=hint, structured_output=True))
                for method, hint in sorted(hints.items(), key=lambda item: item[0].__name__)]

    async def corpus(self) -> Annotated[CallToolResult, results.Corpus]:
        """The kernels to start from and the example specifications, by their URIs; and the workspace's folder."""
        shipped = [results.Shipped(uri=uri, about=_first_words(file)) for uri, file in self.workspace.shipped().items()]
        return _give(results.Corpus(
            verdict="holds", root=str(self.workspace.root),
            kernels=[s for s in shipped if "/kernels/" in s.uri],
            examples=[s for s in shipped if "/examples/" in s.uri]), False)

    async def explain(self, ctx: Context, law: Annotated[str, Field(
            pattern=r"^[A-Za-z0-9_.]{1,80}$", description="a law's number, e.g. wgmma.C1, or a statement's word "
                                                          "for all of its laws")]
                      ) -> Annotated[CallToolResult, results.Laws]:
        """What a law of TL says. Findings name the law that is broken."""
        return await self._call(ctx, results.Laws, lambda w: ["explain", law], lambda said, _: json.loads(said.out),
                                waits=False)

    async def diff(self, ctx: Context, a: Program, b: Program) -> Annotated[CallToolResult, results.Differences]:
        """What differs between two TL programs, by structure; `refuted` where anything does."""
        return await self._call(ctx, results.Differences,
                                lambda w: ["diff", w.file(a, ".tl"), w.file(b, ".tl")],
                                lambda said, _: json.loads(said.out), waits=False)

    async def capture(self, ctx: Context, spec: Spec, function: Function = None, dtype: Dtype = None,
                      out: Annotated[str | None, Field(max_length=1024, description="a folder for the captured "
                                                       "specification; later tools then need not run the file")] = None
                      ) -> Annotated[CallToolResult, results.Captured]:
        """Trace a PyTorch function and say what it was understood to mean. Runs the specification's Python."""
        def words(w):
            return ["capture", w.spec(spec), *_which(function, dtype), "--form",
                    *(["--out", w.output(out)] if out else [])]
        return await self._call(ctx, results.Captured, words, lambda said, _: {
            "form": json.loads(said.out)["form"], "folder": out or ""})

    async def lift(self, ctx: Context, kernel: Kernel, out: Out = None) -> Annotated[CallToolResult, results.Written]:
        """An expert's CUDA kernel as a TL program, the text that one edits."""
        return await self._call(ctx, results.Written,
                                lambda w: ["lift", w.file(kernel, ".cu"), *_out(w, out, ".tl")],
                                lambda said, _: _written(said, out), waits=False)

    async def transfer(self, ctx: Context, program: Program, spec: Spec, function: Function = None,
                       dtype: Dtype = None, target: Target = "sm_90a", out: Out = None
                       ) -> Annotated[CallToolResult, results.Transferred]:
        """Change a lifted program by rules so that it computes the specification. Where no rule fits, the findings
        say what the rules lack; then edit the program yourself. Either way `check` decides."""
        def words(w):
            return ["transfer", w.file(program, ".tl"), "--spec", w.spec(spec), *_which(function, dtype),
                    "--target", target, *_out(w, out, ".tl")]
        return await self._call(ctx, results.Transferred, words, lambda said, objects: {
            **_written(said, out), "rules": [o for o in objects if "rule" in o]})

    async def check(self, ctx: Context, program: Program, spec: Spec, function: Function = None, dtype: Dtype = None,
                    effort: Effort = "default") -> Annotated[CallToolResult, results.Checked]:
        """Run a TL program on the CPU against the specification: values, exact algebra, every schedule. `refuted`
        comes with the smallest counterexample and the first statement that is wrong."""
        def words(w):
            return ["check", w.file(program, ".tl"), "--spec", w.spec(spec), *_which(function, dtype),
                    "--check", effort]

        def read(said, _):
            report = json.loads(said.out)
            return {"report": report, "holds_for": report.get("holds_for", ""), "effort": report.get("effort", ""),
                    "counterexample": report.get("counterexample"), "findings": report.get("diagnostics", [])}
        return await self._call(ctx, results.Checked, words, read)

    async def lower(self, ctx: Context, program: Program, reference: Kernel, out: Out = None,
                    patch: Annotated[str | None, Field(max_length=1024, description="also write the change as a "
                                                       ".patch file")] = None
                    ) -> Annotated[CallToolResult, results.Lowered]:
        """Write a program's change into the text of the kernel that it was lifted from."""
        def words(w):
            if out and w.output(out, ".cu") == w.file(reference, ".cu"):
                raise Refused("serve.path", f"out and reference are both '{out}'", "the expert's text is kept: name "
                                                                                   "another file")
            return ["lower", w.file(program, ".tl"), "--reference", w.file(reference, ".cu"), *_out(w, out, ".cu"),
                    *(["--patch", w.output(patch, ".patch")] if patch else [])]
        return await self._call(ctx, results.Lowered, words, lambda said, objects: {
            **_written(said, out), "patch": patch or "",
            **next((o for o in objects if "removed" in o), {})}, waits=False)

    async def build(self, ctx: Context, kernel: Kernel, out: Annotated[str, Field(
            max_length=1024, description="the .cubin file to write")], target: Target = "sm_90a"
                    ) -> Annotated[CallToolResult, results.Built]:
        """Compile a kernel with NVRTC and audit the cubin; spills and serialised products are refused."""
        return await self._call(ctx, results.Built,
                                lambda w: ["build", w.file(kernel, ".cu"), "--target", target, *_out(w, out, ".cubin")],
                                lambda said, _: {"file": out, **json.loads(said.out)})

    async def make(self, ctx: Context, spec: Spec, function: Function = None, dtype: Dtype = None,
                   target: Target = "sm_90a", effort: Effort = "default",
                   out: Annotated[str | None, Field(max_length=1024, description="the folder to write; default "
                                                    "out/NAME. A folder that make did not write is kept")] = None
                   ) -> Annotated[CallToolResult, results.Made]:
        """A kernel from a specification: every stage in order, by rules, with a certificate."""
        def words(w):
            name = w.spec(spec)
            place = out or os.path.join("out", function or os.path.basename(name).removesuffix(".py"))
            if not out:
                (w.root / "out").mkdir(exist_ok=True)
            return ["make", name, *_which(function, dtype), "--target", target, "--check", effort,
                    "--out", w.output(place)]

        def read(said, _):
            stages = [json.loads(line) for line in said.out.splitlines()]
            wrote = any(s["stage"] == "wrote" for s in stages)
            return {"stages": stages, "folder": said.words[-1].removeprefix("./") if wrote else ""}
        return await self._call(ctx, results.Made, words, read, stages=7)

    async def verify(self, ctx: Context, folder: Annotated[str, Field(
            max_length=1024, description="a folder that make wrote")],
                     quick: Annotated[bool, Field(description="compare the hashes of the files only; at best "
                                                              "inconclusive")] = False
                     ) -> Annotated[CallToolResult, results.Verified]:
        """Do all that a certificate says again. Runs the specification that lies in the folder."""
        return await self._call(ctx, results.Verified,
                                lambda w: ["verify", w.folder(folder), *(["--quick"] if quick else [])],
                                lambda said, _: {"items": json.loads(said.out)["items"]})

    async def _call(self, ctx, kind, words, read, waits=True, stages=1):
        """Runs a stage and gives a result of `kind`: `words(workspace)` is its command line, `read(said,
        objects)` what it made. What `words` refuses never runs."""
        async def progress(done, of, message):
            await ctx.report_progress(done, of, clean(message))

        try:
            command, *rest = words(self.workspace)
            line = [command, "--json", *rest]
        except Refused as refusal:
            return _give(kind(verdict="bad_input", findings=[results.Finding(
                code=refusal.code, message=clean(refusal.message), hint=refusal.hint)]), True)
        if waits and not self.places.available_tokens:
            await progress(0, stages, f"{line[0]} waits: {self.places.total_tokens} stages run already")
        async with self.places if waits else contextlib.nullcontext():
            said = await stage.run(self.program, line, self.workspace.root, progress, stages, self.limit_s)
        return _outcome(kind, said, read)


def _outcome(kind, said, read):
    verdict = "inconclusive" if said.stopped else results.VERDICTS.get(said.exit_code, "own_fault")
    findings = [f for o in said.objects for f in o.get("diagnostics", [])]
    if said.stopped:
        findings.append({"code": "serve.stopped", "message": f"the stage was ended: {said.stopped}"})
    facts = {"verdict": verdict, "findings": findings, "remarks": said.remarks}
    try:
        made = read(said, said.objects) if (said.out or verdict == "holds") and not said.stopped else {}
        made["findings"] = _once([*findings, *made.get("findings", [])])
        result = kind.model_validate(cleaned({**facts, **made}))
    except (ValueError, KeyError, TypeError) as error:  # a stage that was killed, or a type that lags behind
        findings.append({"code": "internal.serve", "message": f"cannot read what the stage wrote: {error!r}"})
        result = kind.model_validate(cleaned({**facts, "verdict": "own_fault", "findings": findings}))
    return _give(result, result.verdict in ("bad_input", "own_fault"))


def _once(findings):
    """Without what a stage said twice: in its report, and as its finding."""
    return [f for n, f in enumerate(findings) if f not in findings[:n]]


def _give(result, failed):
    """The result as structured content, and the same as text for clients that know no structure."""
    return CallToolResult(content=[TextContent(type="text", text=result.model_dump_json(exclude_defaults=True))],
                          structured_content=result.model_dump(mode="json"), is_error=failed)


def _written(said, out):
    return {"file": out or "", "text": "" if out else said.out}


def _which(function, dtype):
    return [*(["--function", function] if function else []), *(["--dtype", dtype] if dtype else [])]


def _out(workspace, name, ending):
    return ["--out", workspace.output(name, ending)] if name else []


def _first_words(file):
    """What a shipped file says of itself in its first comment or docstring."""
    for line in file.read_text().splitlines():
        if words := line.strip("/#\"' "):
            return words
    return ""


def _strict(tool):
    """An argument that a tool does not have is refused, not passed over: it is a misspelt one."""
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema(by_alias=True)
    return tool
