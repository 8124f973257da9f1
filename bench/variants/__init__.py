"""Every example of examples/ beside its peers, and CuBridge's 96 cells: the tables `--rows variants` and
`--rows cubridge` of bench.py, and docs/variants.md.

    rows.py         which example, which sizes, which constants
    statements.py   what an example computes, in FlexAttention's words; fa4_words.py in FlashAttention-4's
    inputs.py       a row's tensors and the truth; peers.py what computes it (fast_tanh.py for one of them)
    page.py         writes docs/variants.md, with mask_picture.py and cubridge_table.py
"""
