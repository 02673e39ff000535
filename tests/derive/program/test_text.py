"""Numbers as array code."""

from __future__ import annotations

import pytest
import sympy as sp

from derive.errors import DeclarationError
from derive.program.text import ModuleNames, Text


def test_a_symbol_without_a_name_in_the_code_is_refused():
    k, other = sp.symbols("k other")
    with pytest.raises(DeclarationError, match="^other is not allowed where numbers are expected"):
        Text(ModuleNames(), {k: "k"}).formula(k + other)
