"""Launching a kernel that was made, without a capture, a cache or a checker.

    library.py    libkernelwright_launch.so, the C++ of src/runtime
    launch.py     a kernel on PyTorch tensors, in its own order of dimensions
    bindings.py   the user's dimensions and the kernel's
    exported.py   an exported kernel as the user's function

These modules import nothing but each other and PyTorch: `kernelwright export hf` copies them.
"""
