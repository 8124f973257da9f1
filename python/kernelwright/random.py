"""Test inputs from a seed: the generator of src/num/random.h, bit for bit, in numpy.

Element n of a stream depends on (seed, stream, n) alone. Everything up to the final rounding is
integer arithmetic, so that C++ and Python cannot differ.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_HALVES = np.uint64(0x0000FFFF0000FFFF)


def _mix(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def words(seed, stream, first, count):
    """SplitMix64's words first .. first+count-1 of a stream, as uint64."""
    with np.errstate(over="ignore"):
        start = _mix(np.array([seed], np.uint64) + GOLDEN)
        base = _mix(start + np.uint64(stream + 1) * GOLDEN)
        return _mix(base + np.arange(first, first + count, dtype=np.uint64) * GOLDEN)


def normal(seed, stream, count):
    """About standard normal, as float32: the centred sum of twelve 16-bit uniforms over 2^16."""
    w = words(seed, stream, 0, 3 * count)
    pairs = ((w & LOW_HALVES) + ((w >> np.uint64(16)) & LOW_HALVES)).reshape(count, 3).sum(1)
    total = (pairs & np.uint64(0xFFFFFFFF)) + (pairs >> np.uint64(32))
    return (total.astype(np.int64) - 6 * 65535).astype(np.float32) * np.float32(2.0**-16)


def uniform(seed, stream, count):
    """In [0, 1), multiples of 2^-24, as float32."""
    return (words(seed, stream, 0, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def integers(seed, stream, count, low, high):
    """In [low, high], both included, as int64."""
    span = np.uint64(high - low + 1)
    scaled = ((words(seed, stream, 0, count) >> np.uint64(32)) * span) >> np.uint64(32)
    return scaled.astype(np.int64) + low
