"""What a function asks while it runs: `q.device == torch.device("cpu")`, `str(q.device)`, `len({q, k, v})`.

elsewhere.py reads the text of the code and knows questions by their names. A device has no such name where it is compared,
hashed or made a text: `q.device` by itself is no question, for `torch.arange(n, device=q.device)` only hands it on. So what
the user's code gets for `q.device` is a stand-in (_Device), which operators take as the device that it stands for, and
which raises Problem at the user's line for anything else that is done with it, with whatever it is compared.

The same run sees what is asked of a tensor through its methods and getters, however they are reached
(`operator.attrgetter("is_cuda")(q)`); texts made of tensors; tensors in sets and as keys of a dictionary, which asks
which of them are one object; and TorchScript, whose code is not Python's, and in which no question is seen.

A question is the user's where the nearest frame of Python that is neither of the standard library nor generated is of the
user's files: PyTorch, and other installed packages, ask as they like.
"""

import contextlib
import functools
import inspect
import os
import pathlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

from . import code, elsewhere
from .diagnostic import Problem, first_line_of, last_line_in

# Of tensors, beside elsewhere.ATTRIBUTES, for which Python's text says too little to refuse them by it.
OF_TENSORS = {"get_device", "storage", "_typed_storage", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__",
              "is_shared", "is_set_to", "__reduce_ex__", "__array__"}
STANDARD = os.path.realpath(os.path.dirname(inspect.__file__)) + os.sep
METHODS, OVERRIDES = torch._tensor.__file__, torch.overrides.__file__
TEXTS = {"__repr__", "__str__", "__format__"}


class _Device(str):
    """Stands for a device in the user's code: a text, "cpu", as operators take a device, too."""

    def __new__(cls, device, watch):
        self = str.__new__(cls, str(device))
        _own(self).update(device=device, watch=watch)
        return self

    def __getattribute__(self, name):
        own = _own(self)
        own["watch"].asked("asks what a device is" if name.startswith("__") else f"asks for device.{name}", sys._getframe(1))
        return getattr(own["device"], name)

    def __enter__(self):  # `with q.device:`
        return _device_of(self).__enter__()

    def __exit__(self, *error):
        return _device_of(self).__exit__(*error)


def _own(stand_in):
    return object.__getattribute__(stand_in, "__dict__")


def _device_of(value):
    return _own(value)["device"] if type(value) is _Device else value


def _asking(name):
    def ask(self, *others):
        _own(self)["watch"].asked("asks which device it runs on", sys._getframe(1))
        return getattr(type(_device_of(self)), name)(_device_of(self), *map(_device_of, others))
    return ask


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__str__", "__repr__", "__format__", "__len__",
              "__iter__", "__contains__", "__getitem__", "__add__", "__mul__", "__rmul__", "__mod__", "__rmod__", "__bool__",
              "__reduce_ex__", "__reduce__", "__getnewargs__", "__sizeof__", "__dir__"):
    setattr(_Device, _name, _asking(_name))


class _Watch(TorchFunctionMode):
    """While it is entered: raises Problem where the user's code asks."""

    def __init__(self, spec):
        super().__init__()
        self.spec, self.problem = spec, None

    def asked(self, what, frame):
        """Raises Problem where the question is the user's."""
        asking = self.users(frame)
        if asking is not None:
            self.refuse(f"{asking.f_code.co_name}%s {what}; it is traced once, on a CPU, and what it does elsewhere nobody sees",
                        "write what the kernel is to compute, without the question", asking)

    def refuse(self, message, hint, frame):
        """message: with a %s for the place, where it is in a file that is not the specification's."""
        file, line = frame.f_code.co_filename, frame.f_lineno
        while frame is not None and frame.f_code.co_filename != self.spec.file:
            frame = frame.f_back
        elsewhere = f" ({file}:{line})" if file != self.spec.file else ""
        self.problem = Problem("spec.elsewhere", message % elsewhere, frame.f_lineno if frame else self.spec.line, hint=hint)
        raise self.problem

    def users(self, frame):
        """The frame, of those from this one outwards, whose code asks, where it is the user's; else None."""
        while frame is not None and frame.f_code.co_filename != self.spec.file and _is_nobodys(frame.f_code):
            frame = frame.f_back
        return frame if frame is not None and code.is_users(frame.f_code, self.spec) else None

    def device(self, value, frame):
        return _Device(value, self) if self.users(frame) is not None else value

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        if name == "__get__":
            name = getattr(getattr(function, "__self__", None), "__name__", "")
        frame = _without_methods(sys._getframe(1), name)
        if name in TEXTS:
            self.asked("makes a text of a tensor", frame)
        elif name in OF_TENSORS or name in elsewhere.ATTRIBUTES or (name == "type" and len(args) + len(kwargs) == 1):
            self.asked(f"asks for {name}", frame)
        out = function(*map(_device_of, args), **{key: _device_of(value) for key, value in kwargs.items()})
        handed_on = name == "device" and (function is not torch.device or any(type(v) is _Device for v in (*args, *kwargs.values())))
        return self.device(out, frame) if handed_on else out


@functools.cache
def _is_nobodys(compiled):
    """Of the standard library, which asks for whom it is called by, as generated code does."""
    file = compiled.co_filename
    return not os.path.isfile(file) or os.path.realpath(file).startswith(STANDARD) and not _is_installed(file)


def _is_installed(file):
    return bool({"site-packages", "dist-packages"} & set(pathlib.Path(file).parts))


def _without_methods(frame, name):
    """Where a method of tensors was called that is itself written in Python, and hands on what it is asked to the mode; and
    behind other modes, as `with torch.device(...)` is one."""
    while frame is not None and (frame.f_code.co_name == "__torch_function__" or frame.f_code.co_filename == OVERRIDES or
                                 frame.f_code.co_filename == METHODS and frame.f_code.co_name == name):
        frame = frame.f_back
    return frame


@contextlib.contextmanager
def _put(owner, **values):
    before = {name: owner.__dict__[name] for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


def _outside(frame, spec):
    """The nearest frame of the user's."""
    while frame.f_back is not None and not code.is_users(frame.f_code, spec):
        frame = frame.f_back
    return frame


@contextlib.contextmanager
def watched(spec):
    """While the user's function is called: raises Problem where it asks. The function's arguments are made before."""
    watch = _Watch(spec)
    of_fake, hash_of = FakeTensor.__dict__["device"], torch.Tensor.__hash__

    def device(tensor):
        return watch.device(of_fake.fget(tensor), sys._getframe(1))

    def hashed(tensor):
        watch.asked("takes a tensor for a key or puts it into a set, which asks which tensors are one object", sys._getframe(1))
        return hash_of(tensor)

    def refusing_script(script, *_, **__):
        watch.refuse(f"{spec.name}%s calls {script.name}, which TorchScript has compiled: what it asks of where it runs nobody sees",
                     "call the function that it was made of, without torch.jit", _outside(sys._getframe(1), spec))

    function, method = torch._C.ScriptFunction, torch._C.ScriptMethod
    with _put(FakeTensor, device=property(device, of_fake.fset)), _put(torch.Tensor, __hash__=hashed), \
            _put(function, __call__=refusing_script), _put(method, __call__=refusing_script), watch:
        try:
            yield
        finally:
            if watch.problem:  # somebody may have caught it
                raise watch.problem


def refuse(spec, values):
    """Runs the function on fake tensors like these values, and raises Problem where it asks."""
    error = _fake_run(spec, values, watched(spec))
    if error is not None and _fake_run(spec, values, contextlib.nullcontext()) is None:
        raise Problem("spec.elsewhere", f"{spec.name} runs, and does not where it is watched for questions about where it runs: "
                      f"{type(error).__name__}: {first_line_of(error)}", last_line_in(spec.file, error) or spec.line,
                      hint="hand q.device on to PyTorch's own operators alone")


def _fake_run(spec, values, watching):
    """What the function raises, but for a Problem; None where it runs. What it raises by itself trace.py explains."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = [mode.from_tensor(value) if isinstance(value, torch.Tensor) else value for value in values]
    try:
        with torch.no_grad(), mode, watching:
            spec.function(*given)
    except Problem:
        raise
    except Exception as error:
        return error
    return None
