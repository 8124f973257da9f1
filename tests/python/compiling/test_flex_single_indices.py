"""Mods mean what they mean to FlexAttention, which calls them for single indices, or are refused."""
import pytest
import torch

import kernelwright
from kernelwright.errors import ArgumentError

LENGTHS = torch.tensor([[3], [7]])
TABLE = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))


def run(**mods):
    q, k, v = (torch.randn(2, 4, 9, 16, generator=torch.Generator().manual_seed(n)) for n in range(3))
    return kernelwright.flex(**mods)(q, k, v), (q, k, v)


def first_of_a_row(b, h, q, k):
    return k < LENGTHS[b][0]


def last_of_a_row(s, b, h, q, k):
    return s * LENGTHS[b][-1] / 256


def greatest_of_a_row(s, b, h, q, k):
    return s + TABLE[h].max()


def greatest_of_all(s, b, h, q, k):
    return s * s.abs().max()


def any_of_all(b, h, q, k):
    return (q >= k).any()


@pytest.mark.parametrize("mods", [{"mask_mod": first_of_a_row}, {"score_mod": last_of_a_row},
                                  {"score_mod": greatest_of_a_row}, {"score_mod": greatest_of_all},
                                  {"mask_mod": any_of_all}], ids=lambda m: next(iter(m.values())).__name__)
def test_a_mod_that_means_something_else_of_many_indices_is_refused(mods):
    with pytest.raises(ArgumentError, match="called with all indices at once|for a single score"):
        run(**mods)


def test_what_it_says_of_both_is_in_the_message():
    with pytest.raises(ArgumentError) as caught:
        run(mask_mod=first_of_a_row)
    assert caught.value.argument == "mask_mod"
    assert "L[b, 0], not L[b][0]" in str(caught.value)


@pytest.mark.parametrize("mods", [
    {"mask_mod": lambda b, h, q, k: k < LENGTHS[b, 0]},
    {"score_mod": lambda s, b, h, q, k: s + TABLE[h, (q - k).clamp(0, 7)]},
    {"score_mod": lambda s, b, h, q, k: 5 * torch.tanh(s / 5), "mask_mod": lambda b, h, q, k: q >= k}])
def test_mods_of_single_indices_run(mods):
    out, (q, k, v) = run(**mods)
    want = torch.nn.attention.flex_attention.flex_attention(
        q, k, v, score_mod=mods.get("score_mod"),
        block_mask=torch.nn.attention.flex_attention.create_block_mask(mods["mask_mod"], 2, 4, 9, 9, device="cpu")
        if "mask_mod" in mods else None)
    torch.testing.assert_close(out, want, rtol=1e-4, atol=1e-5)
