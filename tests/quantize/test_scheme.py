"""What a scheme can be, how it is written, and which weights it can hold."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from assay.quantize.scheme import Scheme

schemes = st.builds(
    Scheme,
    bits=st.integers(2, 8),
    group_size=st.none() | st.integers(2, 512),
    symmetric=st.booleans(),
    activations=st.sampled_from(["", "int8"]),
)


@given(schemes)
def test_what_is_written_is_read_again(scheme):
    assert Scheme.parse(str(scheme)) == scheme
    assert str(Scheme.parse(str(scheme))) == str(scheme)


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("int4", Scheme(4, 128, symmetric=False)),
        ("int8", Scheme(8, None, symmetric=True)),
        ("int4:g64", Scheme(4, 64, symmetric=False)),
        ("int4:g32:asym", Scheme(4, 32, symmetric=False)),
        ("int3:g64", Scheme(3, 64, symmetric=False)),
        (" INT8:Dynamic ", Scheme(8, None, symmetric=True, activations="int8")),
        ("int4:dynamic", Scheme(4, 128, symmetric=True, activations="int8")),
        ("int8:g32:asym", Scheme(8, 32, symmetric=False)),
        ("int2:channel:sym", Scheme(2, None, symmetric=True)),
    ],
)
def test_texts(text, scheme):
    assert Scheme.parse(text) == scheme


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int9", "scheme: got 'int9', expected int2 to int8"),
        ("int1", "scheme: got 'int1', expected int2 to int8"),
        ("fp8", "scheme: got 'fp8'"),
        ("", "scheme: got ''"),
        (4, "scheme: got 4"),
        ("int4:64", "scheme: got '64' in 'int4:64', expected int2 to int8, then :g64"),
        ("int4:g32:g64", "scheme: got group said twice in 'int4:g32:g64', expected it once. Remove 'g64'."),
        ("int4:sym:asym", "scheme: got kind said twice"),
        ("int4:g0", "group_size: got 0, expected 2 or more, or None for whole rows. Pass 32, 64, 128 or 256."),
        ("int\u0664", "scheme: got 'int\u0664'"),
    ],
)
def test_what_is_no_scheme(text, message):
    with pytest.raises(ConfigError) as raised:
        Scheme.parse(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bits": 1}, "bits: got 1, expected a number from 2 to 8"),
        ({"bits": 4.0}, "bits: got 4.0"),
        ({"bits": True}, "bits: got True"),
        ({"group_size": -1}, "group_size: got -1"),
        ({"group_size": 1}, "group_size: got 1"),
        ({"group_size": 32.0}, "group_size: got 32.0"),
        ({"symmetric": None}, "symmetric: got None, expected True or False"),
        ({"activations": "int4"}, "activations: got 'int4'"),
    ],
)
def test_what_no_scheme_can_have(arguments, message):
    with pytest.raises(ConfigError) as raised:
        Scheme(**{"bits": 4, "group_size": 32, "symmetric": True, **arguments})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shape", "why"),
    [
        ("int4", (7, 256), ""),
        ("int4", (7, 255), "its rows of 255 weights cannot be cut into groups of 128"),
        ("int8", (1, 1), ""),
        ("int8", (0, 8), "its weight is empty"),
        ("int4", (4, 4, 128), "its weight has 3 dimensions and not 2"),
    ],
)
def test_which_weights_it_can_hold(text, shape, why):
    assert Scheme.parse(text).why_not(shape) == why


@given(schemes, st.integers(1, 40), st.integers(1, 40))
def test_bytes_and_limits(scheme, rows, groups):
    width = groups * (scheme.group_size or 7)
    assert scheme.high - scheme.low == 2**scheme.bits - 1
    held = -(-width * scheme.bits // 8) * rows
    scales = rows * (groups if scheme.group_size else 1) * 2 * (1 if scheme.symmetric else 2)
    assert scheme.nbytes((rows, width)) == held + scales


def test_it_needs_no_torch():
    code = "import sys, assay.quantize.scheme; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
