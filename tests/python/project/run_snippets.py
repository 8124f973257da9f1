"""The ```python blocks of a document, in order, in one process: run_snippets.py DOCUMENT

On a machine with a GPU each block runs as it stands. Without one it runs as far as such a machine goes:

    "cuda" is read as "cpu", transformers' TrainingArguments are told use_cpu, and compile() is told the target that it would otherwise ask the GPU for;
    so a function is captured, its kernel made and checked. torch.compile traces and lowers as ever, but
    writes no C++ for a CPU on which nothing would run (aot_eager). A call of a kernel ends in the error that docs/python.md states of tensors on the CPU, and in no other;
    a statement that needs what such a call would have given is left out;
    a block ```python gpu (CUDA graphs, events) is only compiled.

Names and values are the document's own: nothing is put in the place of a kernel. Prints one JSON object
for each statement of the top level: {"line": ..., "outcome": "ran", "stopped", "left out", "gpu"}.
Any other exception ends the process, with the document's line in its traceback.
"""

import ast
import functools
import json
import linecache
import pathlib
import re
import sys

import torch

import kernelwright

BLOCK = re.compile(r"^```python( gpu)?\n(.*?)^```$", re.M | re.S)
ON_CPU = "is on the CPU; it should be on a GPU"
TARGET = "sm_90a"


def blocks(text):
    """[(needs a GPU, source with the document's line numbers)]"""
    return [(bool(m[1]), "\n" * text.count("\n", 0, m.start(2)) + m[2]) for m in BLOCK.finditer(text)]


class _OnCpu(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant("cpu"), node) if node.value == "cuda" else node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda" and not node.args:
            node.func.attr = "cpu"  # x.cuda()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "TrainingArguments":
            node.keywords.append(ast.keyword("use_cpu", ast.Constant(True)))
            ast.fix_missing_locations(node)
        return node


def read(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def bound(node):
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | {n.name for n in [node] if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


class Runner:
    def __init__(self, document, gpu):
        self.document, self.gpu = str(document), gpu
        self.space = {"__name__": "__snippets__"}
        self.unknown = set()  # names that a launch would have given a value

    def statement(self, node):
        if not self.gpu:
            node = _OnCpu().visit(node)
            if read(node) & self.unknown:
                self.unknown |= bound(node)
                return "left out"
        code = compile(ast.Module([node], []), self.document, "exec")
        try:
            exec(code, self.space)
        except kernelwright.ArgumentError as error:
            if self.gpu or ON_CPU not in str(error):
                raise
            self.unknown |= bound(node)
            return "stopped"
        self.unknown -= bound(node)
        return "ran"

    def run(self, text):
        for needs_gpu, source in blocks(text):
            for node in ast.parse(source, self.document).body:
                if needs_gpu and not self.gpu:
                    compile(ast.Module([node], []), self.document, "exec")
                    yield node.lineno, "gpu"
                else:
                    yield node.lineno, self.statement(node)


def main(path):
    text = pathlib.Path(path).read_text()
    gpu = torch.cuda.is_available()
    if not gpu:
        kernelwright.compile = functools.partial(kernelwright.compile, target=TARGET)
        torch.compile = functools.partial(torch.compile, backend="aot_eager")
    # So that inspect.getsource finds a block's functions, each on its line of the document.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    for line, outcome in Runner(path, gpu).run(text):
        print(json.dumps({"line": line, "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
