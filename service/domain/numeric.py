"""Operations that mean the same for one float and for an array of candidates.

Formulas of memory and step time are written once with plain operators and these few functions. A float stays a Python
float (fast, encodable), an array stays an array, and both give the same bits: only IEEE-exact operations are used here.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Number: TypeAlias = float | FloatArray
"""One deployment's value, or the values of many candidates (shape ``(n,)``)."""
Flag: TypeAlias = bool | NDArray[np.bool_]


def lesser(a: Number, b: Number) -> Number:
    """Element-wise minimum."""
    if type(a) is float and type(b) is float:  # by far the most frequent
        return b if b < a else a  # noqa: FURB136 - a call costs as much again
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b)
    return min(a, b)


def greater(a: Number, b: Number) -> Number:
    """Element-wise maximum."""
    if type(a) is float and type(b) is float:
        return b if b > a else a  # noqa: FURB136
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return max(a, b)


def clamp(value: Number, low: Number, high: Number) -> Number:
    """``value`` held between ``low`` and ``high`` (``high`` wins where they cross)."""
    return lesser(greater(value, low), high)


def choose(condition: Flag, then: Number, otherwise: Number) -> Number:
    """``then`` where ``condition`` holds, else ``otherwise``; both are evaluated."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


def floor(value: Number) -> Number:
    """Largest whole number not above ``value``, as a float."""
    return np.floor(value) if isinstance(value, np.ndarray) else float(math.floor(value))


def ceil(value: Number) -> Number:
    """Smallest whole number not below ``value``, as a float."""
    return np.ceil(value) if isinstance(value, np.ndarray) else float(math.ceil(value))


def sqrt(value: Number) -> Number:
    """Square root (correctly rounded by IEEE 754, so floats and arrays agree)."""
    return np.sqrt(value) if isinstance(value, np.ndarray) else math.sqrt(value)


def exp(value: Number) -> Number:
    """Exponential; a float goes through the same NumPy loop as an array, so both agree to the bit."""
    return np.exp(value) if isinstance(value, np.ndarray) else float(np.exp(np.array([value]))[0])


def log(value: Number) -> Number:
    """Natural logarithm of a positive number; through the NumPy loop either way, as ``exp``."""
    return np.log(value) if isinstance(value, np.ndarray) else float(np.log(np.array([value]))[0])


def as_float(value: Number) -> float:
    """The float of a value known to stand for one deployment."""
    return float(value)
