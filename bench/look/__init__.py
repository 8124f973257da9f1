"""Why a kernel is as fast as it is, read off the kernel; no GPU.

    why.py      the table
    visits.py   the blocks of keys that kernel.tl visits; prepass.py what its pre-pass lists, tl_python.py
                its arithmetic as Python
    sass.py     the instructions that a score costs
"""
