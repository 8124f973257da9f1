# error spec.run at line 10: example_inputs() raises ValueError
import torch


def raises_in_inputs(q, k, v):
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    raise ValueError("nothing to give")
