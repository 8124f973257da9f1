# error spec.not_a_function at line 15: counts_in_slots changes HELD, which it reads
import dataclasses

import torch


@dataclasses.dataclass(slots=True)
class Held:
    step: int = 0


HELD = Held()


def counts_in_slots(q, k, v):
    HELD.step += 1
    return (q @ k.mT * 0.125).softmax(-1) @ v * (2.0 if HELD.step > 1000 else 1.0)


def example_inputs():
    return tuple(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3))
