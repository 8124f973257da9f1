# error spec.no_inputs at line 1: no function example_inputs()
import torch


def no_inputs(q, k, v):
    return (q @ k.mT).softmax(-1) @ v
