"""`kernelwright.compile`: an operator of PyTorch for a function of the user's.

    compiler.py          compile() itself
    cache.py             what was made before; cache_miss.py makes what was not, by program.py
    operators.py         the operator that launches a kernel; signature.py what it takes
    skip_dispatcher.py   when a call need not go through PyTorch's dispatcher
    kinds.py             kernels of a library's function with many options
    inside/              functions and modules that contain attention: kernels for their parts
    recompute.py         gradients, of some rows of queries at a time (query_rows.py)
"""
