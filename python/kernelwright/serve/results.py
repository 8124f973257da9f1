"""What each tool gives back: the types of its structured content, which are its published schema.

Every result begins with the verdict, which is the stage's exit code in a word, and the findings. What a
stage made is there only where it made it.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

VERDICTS = {0: "holds", 1: "refuted", 2: "bad_input", 3: "inconclusive", 70: "own_fault"}


class Place(BaseModel):
    model_config = ConfigDict(extra="allow")
    file: str = ""
    line: int = 0
    column: int = 0


class Note(BaseModel):
    message: str
    place: Place | None = None


class Finding(BaseModel):
    """One thing that is wrong: the two facts that disagree, where, and what to do."""
    severity: str = "error"
    code: str = Field(description="the number of a law, for the tool `explain`, or the name of a refusal")
    message: str
    place: Place | None = None
    notes: list[Note] = []
    hint: str = ""


class Result(BaseModel):
    verdict: Literal["holds", "refuted", "bad_input", "inconclusive", "own_fault"] = Field(
        description="holds: what ran holds; refuted: there is a counterexample or a difference; bad_input: the "
        "findings say what is wrong with the input; inconclusive: it could not be decided, which is not success; "
        "own_fault: a fault of kernelwright")
    findings: list[Finding] = []
    remarks: str = Field("", description="what else the stage said")


class Captured(Result):
    form: str = Field("", description="what was understood of the function, as a formula")
    folder: str = Field("", description="where `out` was given: the captured specification, to be given as `spec`")


class Written(Result):
    file: str = Field("", description="where `out` was given: what was written")
    text: str = Field("", description="where it was not: the text itself")


class Rule(BaseModel):
    rule: str
    before: str
    after: str


class Transferred(Written):
    rules: list[Rule] = Field([], description="what the rules changed")


class Counterexample(BaseModel):
    """The smallest case found, and the first statement whose value is already wrong."""
    model_config = ConfigDict(extra="allow")
    message: str
    reading: str = Field(description="values: with the GPU's rounding; exact: in an algebra without rounding")
    sizes: dict[str, int] = {}
    output: str = ""
    b: int = -1
    h: int = -1
    i: int = -1
    columns: list[int] = []
    got: list[float | str | None] = []
    want: list[float | str | None] = []
    statement: str = ""
    line: int = Field(0, description="of the statement, in the program's canonical text")
    place: str = ""
    difference: str = ""


class Checked(Result):
    holds_for: str = Field("", description="every launch, the sizes and data that ran, the launches explored, or one order of the agents")
    effort: str = ""
    counterexample: Counterexample | None = None
    report: dict = Field({}, description="the whole report")


class Lowered(Written):
    removed: int = 0
    added: int = 0
    lines: int = Field(0, description="of the expert's text")
    patch: str = Field("", description="where `patch` was given: the file")


class Built(Result):
    file: str = ""
    registers: int = 0
    spills: int = 0
    compiler: str = ""
    seconds: float = 0


class Stage(BaseModel):
    stage: str
    text: str
    seconds: float


class Made(Result):
    stages: list[Stage] = []
    folder: str = Field("", description="what make wrote: kernel.cu, kernel.tl, certificate.json, ...")


class Differences(Result):
    text: str = Field("", description="the two programs' difference; empty where there is none")


class Law(BaseModel):
    law: str
    text: str


class Laws(Result):
    laws: list[Law] = []


class Item(BaseModel):
    what: str
    standing: str
    detail: str = ""
    remark: bool = Field(False, description="said, but nothing that the claim rests on")


class Verified(Result):
    items: list[Item] = Field([], description="each claim of the certificate, and how it stands")


class Shipped(BaseModel):
    uri: str = Field(description="to be given to a tool where it takes such a file, or read as a resource")
    about: str = ""


class Corpus(Result):
    root: str = Field("", description="the workspace: paths are under it")
    kernels: list[Shipped] = []
    examples: list[Shipped] = []
