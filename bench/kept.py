"""Which entries a mask keeps: counted, and by tiles. A mask is a mask_mod, or None for all."""

import torch

ROWS_AT_ONCE = 512


def _grid(sizes, rows, device):
    batch, heads, _, keys = sizes
    return (torch.arange(batch, device=device)[:, None, None, None],
            torch.arange(heads, device=device)[:, None, None],
            rows[:, None], torch.arange(keys, device=device))


def kept(keep, sizes, rows, device="cpu"):
    """[B or 1, H or 1, rows, N]: whether an entry counts; sizes are (B, H, M, N)."""
    if keep is None:
        return torch.ones(1, 1, len(rows), sizes[3], dtype=torch.bool, device=device)
    found = keep(*_grid(sizes, rows, device))
    shape = (1,) * (4 - found.dim()) + tuple(found.shape)
    return found.reshape(shape).expand(shape[0], shape[1], len(rows), sizes[3])


def axes_of(keep, sizes, device="cpu"):
    """(B or None, H or None): whether the mask differs between batch entries, or heads."""
    shape = kept(keep, sizes, torch.arange(1, device=device), device).shape
    return tuple(size if found == size and size > 1 else None
                 for found, size in zip(shape[:2], sizes[:2]))


def count(keep, sizes, device="cpu"):
    """Kept entries of all batch entries and heads."""
    batch, heads, queries, keys = sizes
    if keep is None:
        return batch * heads * queries * keys
    total = 0
    for rows in torch.arange(queries, device=device).split(ROWS_AT_ONCE):
        found = kept(keep, sizes, rows, device)
        total += int(found.sum()) * (batch // found.shape[0]) * (heads // found.shape[1])
    return total
