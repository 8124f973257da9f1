"""Test inputs from a seed: the generator of src/num/random.h, bit for bit, in numpy.

Element n of a stream depends on (seed, stream, n) alone. Everything up to the final rounding is
integer arithmetic, so that C++ and Python cannot differ.
"""

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
LOW_HALVES = np.uint64(0x0000FFFF0000FFFF)


CHUNK = 3 << 14  # words at a time, so that they stay in the cache; a multiple of 3
STEPS = np.arange(CHUNK, dtype=np.uint64) * GOLDEN


def _mix(z, scratch):
    """SplitMix64's finaliser, in place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(z, np.uint64(shift), out=scratch)
        np.bitwise_xor(z, scratch, out=z)
        np.multiply(z, np.uint64(factor), out=z)
    np.right_shift(z, np.uint64(31), out=scratch)
    np.bitwise_xor(z, scratch, out=z)
    return z


def _chunks(seed, stream, count):
    """SplitMix64's words 0 .. count-1 of a stream, CHUNK at a time."""
    one = np.empty(1, np.uint64)
    base = _mix(np.array([seed], np.uint64) + GOLDEN, one)
    base = _mix(base + np.array([stream + 1], np.uint64) * GOLDEN, one)
    for first in range(0, count, CHUNK):
        z = STEPS[: min(CHUNK, count - first)] + (base + np.array([first], np.uint64) * GOLDEN)
        yield first, _mix(z, np.empty_like(z))


def words(seed, stream, count):
    """Words 0 .. count-1 of a stream, as uint64."""
    out = np.empty(count, np.uint64)
    for first, chunk in _chunks(seed, stream, count):
        out[first : first + len(chunk)] = chunk
    return out


def normal(seed, stream, count):
    """About standard normal, as float32: the centred sum of twelve 16-bit uniforms over 2^16."""
    out = np.empty(count, np.float32)
    for first, w in _chunks(seed, stream, 3 * count):
        pairs = (w & LOW_HALVES) + ((w >> np.uint64(16)) & LOW_HALVES)
        pairs = pairs[0::3] + pairs[1::3] + pairs[2::3]
        total = (pairs & np.uint64(0xFFFFFFFF)) + (pairs >> np.uint64(32))
        start = first // 3
        out[start : start + len(total)] = total.astype(np.int64) - 6 * 65535
    out *= np.float32(2.0**-16)
    return out


def uniform(seed, stream, count):
    """In [0, 1), multiples of 2^-24, as float32."""
    return (words(seed, stream, count) >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def integers(seed, stream, count, low, high):
    """In [low, high], both included, as int64."""
    span = np.uint64(high - low + 1)
    scaled = ((words(seed, stream, count) >> np.uint64(32)) * span) >> np.uint64(32)
    return scaled.astype(np.int64) + low
