"""Where an operator stands in the user's text.

The trace keeps the frames that were active when an operator was called. The user's is the innermost that is no library's:
`self.c_attn(x)` in model.py rather than `F.linear(...)` in PyTorch's linear.py. A layer that is PyTorch's own altogether, or
transformers', has no such frame; then it is the innermost outside of PyTorch, or else of any.
"""

import os
import re
import traceback
import types

import torch

from ...capture.code import is_others

_PYTORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in')


def place_of(of, file=None):
    """(file, line) of an fx node, or of an exception's traceback, or None where nothing is known. `file`: the user's."""
    if isinstance(of, types.TracebackType):
        frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(of)]
    else:
        frames = [(name, int(line)) for name, line in _FRAME.findall(of.meta.get("stack_trace") or "")]
    frames = [frame for frame in frames if not frame[0].startswith(_OURS) and os.path.isabs(frame[0]) or frame[0].startswith("<")]
    for belongs in (lambda name: name == file or not is_others(name), lambda name: not name.startswith(_PYTORCH), lambda name: True):
        found = [frame for frame in frames if belongs(frame[0])]
        if found:
            return found[-1]
    return None


def short(place):
    """"model.py:31", or "" """
    return f"{os.path.basename(place[0])}:{place[1]}" if place else ""
