"""Numbers as array code."""

from __future__ import annotations

import pytest
import sympy as sp

from derive.errors import DeclarationError
from derive.program.tables import WIDTH, coefficient_table
from derive.program.text import ModuleNames, Text


def test_a_symbol_without_a_name_in_the_code_is_refused():
    k, other = sp.symbols("k other")
    with pytest.raises(DeclarationError, match="^other is not allowed where numbers are expected"):
        Text(ModuleNames(), {k: "k"}).formula(k + other)


def test_lines_of_a_coefficient_table_are_filled_with_whole_terms():
    k = sp.Symbol("k")
    _, ((lines,),) = coefficient_table([[sp.Add(*(k**power for power in range(10, 26))) + 9 * k**12 + k]])
    assert lines == (", ".join(f"{10 if power == 12 else 1} {power}" for power in range(25, 9, -1)) + ",", "1 1")
    assert len(lines[0]) == WIDTH == 96
