"""The attention inside a function or a module: kernels for the parts that kernels can hold, PyTorch for the rest.

    inside.py           compile_inside(): what compiler.py asks for a module, and for a function that no kernel holds whole
    whole.py            the target as one graph; effects.py takes writes out of it
    cores.py            where attention is; regions.py how far around it a kernel may reach
    region_function.py  a region as a function; text.py writes operators; choose.py tries regions
    compose.py          the function that comes back; sizes.py what its arguments must be
    agreement.py        that function held against the user's
    plan.py             what runs where, for the user; places.py where that stands in the user's text
"""
