"""From a function in PyTorch to what the program `kernelwright` reads: its graph, and golden values.

    load.py, definition.py   a function in a file: Python, or a FlashInfer-Bench definition
    live_function.py         a function of this process; dependencies.py what it reaches and depends on
    trace.py, graph.py       PyTorch's graph of it, and that as JSON
    goldens.py               inputs and what the graph gives for them in fp64; random.py draws them,
                             table_sizes.py says how long tables must be, rounded_rows.py is the truth
                             of a kernel that rounds rows first
    gradients.py             the same of gradients, and cut_gradients.py which of them the function stops
    capture.py               all of it, into a folder
    diagnostic.py            what is wrong with the user's text

`python -m kernelwright.capture` is what the program runs.
"""
