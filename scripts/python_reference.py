"""docs/python_reference.md from the docstrings of python/kernelwright, for generated_docs.py.

Nothing is imported: modules are read with ast, so a page costs no PyTorch. A docstring is paragraphs; a
paragraph of lines `name: text` (several names with commas) lists arguments. Attributes of a class are
the annotated names in its body, each with its comment, and what its docstring says.
"""
import ast
import inspect
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/kernelwright"
# Heading, what stands under it, and (module, names) whose docstrings follow; modules by their public names.
SECTIONS = [
    ("Compiling", "From a function to its kernel.",
     [("compiler", ["compile", "Compiled"]), ("plan", ["Plan", "Operator", "Crossing"]), ("flexattention", ["flex"]), ("operators", ["load"])]),
    ("Errors", "All are `kernelwright.Error`.",
     [("errors", ["Error", "SpecError", "ArgumentError", "GradientError", "MachineError", "Refuted",
                  "Inconclusive", "InternalError"])]),
    ("FlashAttention's names", "`kernelwright.flash`.", [("flash.dense", ["flash_attn_func"]), ("flash.packed", ["flash_attn_varlen_func"]),
      ("flash.cached", ["flash_attn_with_kvcache"]),
      ("flash.specifications", ["attention_of", "packed_attention_of", "cached_attention_of"])]),
    ("Hugging Face", "`kernelwright.huggingface`; needs transformers.",
     [("huggingface", ["register", "attention_of", "attention_mask", "attention_forward", "Mask"])]),
    ("Kernels without their function", "What `kernelwright make` and `kernelwright export hf` wrote, called from "
     "PyTorch without a capture, a cache or a checker.",
     [("launch", ["Kernel"]), ("exported", ["Function"]), ("library", ["LaunchError"])]),
    ("Specifications in files", "How the command line reads what it is given.",
     [("load", ["load", "UserSpec"]), ("definition", ["read"]), ("problem", ["Problem"])]),
]
ITEM = re.compile(r"^((?:\w+, )*\w+): ", re.M)


def filled(text):
    return textwrap.fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def bullets(paragraph):
    """A list of arguments: from each `name: ` to the next."""
    starts = [m.start() for m in ITEM.finditer(paragraph)] + [len(paragraph)]
    for begin, end in zip(starts, starts[1:]):
        item = paragraph[begin:end]
        names, text = item.split(": ", 1)
        shown = ", ".join(f"`{name}`" for name in names.split(", "))
        yield textwrap.indent(filled(f"{shown}: {text}"), "  ").replace("  ", "- ", 1)


def prose(docstring):
    """A docstring as Markdown."""
    parts = []
    for paragraph in inspect.cleandoc(docstring or "").split("\n\n"):
        if ITEM.match(paragraph):
            parts.append("\n".join(bullets(paragraph)))
        elif paragraph.startswith("    "):
            parts.append("```\n" + textwrap.dedent(paragraph) + "\n```")
        else:
            parts.append(filled(paragraph))
    return "\n\n".join(parts) + "\n"


def signature(function, name, own=True):
    arguments = ast.unparse(function.args)
    return f"{name}({arguments if own else re.sub(r'^self(, )?', '', arguments)})"


def attributes(node, lines):
    """`name`: type, comment, of the annotated names of a class."""
    for field in node.body:
        if isinstance(field, ast.AnnAssign):
            comment = lines[field.lineno - 1].partition("  # ")[2].strip()
            said = f": {comment}" if comment else ""
            yield f"- `{ast.unparse(field.target)}` (`{ast.unparse(field.annotation)}`){said}"


def entry(node, qualified, lines):
    """The Markdown of a function or a class."""
    if isinstance(node, ast.FunctionDef):
        return [f"### {qualified}\n\n```\n{signature(node, node.name)}\n```\n", prose(ast.get_docstring(node))]
    methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
    parts = [f"### {qualified}\n"]
    if "__init__" in methods:
        parts.append(f"```\n{signature(methods['__init__'], node.name, own=False)}\n```\n")
    parts.append(prose(ast.get_docstring(node)))
    if found := "\n".join(attributes(node, lines)):
        parts.append(found + "\n")
    for name, method in methods.items():
        if name == "__call__" or (not name.startswith("_") and ast.get_docstring(method)):
            called = "call" if name == "__call__" else name
            parts.append(f"#### {qualified}: {called}\n\n```\n{signature(method, called, own=False)}\n```\n")
            parts.append(prose(ast.get_docstring(method)))
    return parts


def definitions(module):
    """(name -> node, lines) of a module's text."""
    text = (PACKAGE / f"{assigned('_MODULES').get(module, module).replace('.', '/')}.py").read_text()
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {n.name: n for n in ast.parse(text).body if isinstance(n, kinds)}, text.splitlines()


def assigned(name):
    """What the package's __init__.py assigns to a name."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    found = next(n for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == name)
    return ast.literal_eval(found.value)


def public():
    """Names that `import kernelwright` gives, and the modules that they come from."""
    return assigned("_HOME")


def page(note):
    homes, modules_of = public(), assigned("_MODULES")
    parts = [note, "# The Python interface\n",
             filled("Every public name with its arguments, shapes and errors. [python.md](python.md) says how it "
                    "behaves, [model_authors.md](model_authors.md) uses it step by step. Shapes: B batch, H query heads, "
                    "G key heads, M queries, N keys (S where both are one length), D the head dimension, V that of "
                    "the values; lengths are in tokens, strides in elements, times in seconds.") + "\n"]
    for heading, words, modules in SECTIONS:
        parts.append(f"## {heading}\n\n{words}\n")
        for module, wanted in modules:
            found, lines = definitions(module)
            for name in wanted:
                top = homes.get(name) == modules_of.get(module, module)
                of = module.partition(".")[0]  # a folder gives the names of its files
                qualified = f"kernelwright.{name}" if top else f"kernelwright.{of}.{name}"
                parts += entry(found[name], qualified, lines)
    return "\n".join(parts)
