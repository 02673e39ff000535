"""Training fields and traits on the diagonals of a probed matrix: as Gaussian variables of a site, or as sampled
values.

A training field on a diagonal is a random variable of the site, correlated with noises and other fields there. Let it
be a function of standard normals x, and let a and b be Gaussian. Then <F(x) a b> = <F> <a b> + <F (x^2 - 1)> <a x> <x
b> for any F. Noises of the probe, training fields and derivatives with respect to training noises all serve as a and b.
A field without such a representation is sampled, together with <F a b> given the diagonal entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sp

from derive.algebra.sites import SiteEntry, SiteNormal, SiteValue, site_values
from derive.algebra.words import Letter
from derive.equations.dependence import of_normals
from derive.errors import DeclarationError
from derive.language.symbols import Parameter, Sector, free_name
from derive.language.traits import is_trait, traits_in
from derive.language.vectors import Field, FieldAt, shown
from derive.records.probe import DiagonalSpread, SampledSiteValues
from derive.records.saddle import TimeOrder
from derive.records.system import System

Along = tuple[list[tuple[sp.Expr, Letter]], ...]
"""For each normal of a site, a covariance or a derivative as a sum of letters."""
MOST_ENTRIES = 2
"""Largest number of distinct sampled diagonal entries of a sector: their joint law is tabulated."""


def field_values(expressions: Iterable[sp.Expr]) -> list[SiteValue]:
    """Return the training fields in functions of a site, in a fixed order."""
    fields = {site for e in expressions for site in site_values(traits_in(e))}
    return sorted(fields, key=sp.default_sort_key)


def transposed(along: Along) -> Along:
    return tuple([(scale, letter.T) for scale, letter in terms] for terms in along)


# -- normal numbers


@dataclass(frozen=True)
class NormalDiagonal:
    """Training fields on the diagonals of a sector, as functions of Gaussian variables.

    `given` maps each field to that function.
    """

    order: TimeOrder
    spread: DiagonalSpread
    given: dict[sp.Expr, sp.Expr]

    @property
    def fields(self) -> frozenset[FieldAt]:
        return frozenset(self.spread.values)

    def covariances(self, field: Field) -> Along:
        """Return the covariances of a field with each of the normals: columns."""
        return tuple(
            [(scale, Letter.with_value(field, value)) for scale, value in zip(row, self.spread.values, strict=False)]
            for row in self.spread.inverse
        )

    def derivatives(self, noise: Field) -> Along:
        """Return the derivatives of the normals with respect to a noise: rows."""
        return tuple(
            [
                (scale, Letter.of_value(value, noise))
                for scale, value in zip(row, self.spread.values, strict=False)
                if self.order.delay(value.field, noise) is not None
            ]
            for row in self.spread.inverse
        )


def normal_forms(system: System, order: TimeOrder, fields: Iterable[SiteValue]) -> dict[SiteValue, sp.Expr] | None:
    """Return fields on diagonals as functions of Gaussian fields; None if one of them has no such form."""
    forms = {field: of_normals(system, order, field.value) for field in fields}
    if any(form is None for form in forms.values()):
        return None
    values = [field.value for field in field_values(forms.values())]
    for value in values:
        _check_noises(system, order, value)
        other = next(v for v in values if v.time is not None or value.time is None)
        if value.time is not None and not sp.expand(value.time - other.time).is_Integer:
            raise DeclarationError(
                f"spectrum(...) has diag(...) of {shown(other)} and {shown(value)}, whose times are not a fixed "
                "number of steps apart; take both at the last times"
            )
    return forms


def normal_diagonal(
    order: TimeOrder, sector: Sector, forms: dict[SiteValue, sp.Expr], taken: set[str]
) -> NormalDiagonal:
    """Return the standard normals that represent the fields on diagonals, with names that are not in `taken`."""
    values = field_values(forms.values())
    names = [value.name for value in values]
    normals = tuple(SiteNormal(free_name(f"x_{name}", taken), sector) for name in names)
    lower, inverse = (
        tuple(
            tuple(
                Parameter(free_name(f"{word}_{a}" if a == b else f"{word}_{a}_{b}", taken), 1.0) for b in names[: k + 1]
            )
            for k, a in enumerate(names)
        )
        for word in ("spread", "inverse")
    )
    numbers = {
        value(): sp.Add(*(c * x() for c, x in zip(row, normals, strict=False)))
        for value, row in zip(values, lower, strict=True)
    }
    substitution = {**numbers, **{field(): form.xreplace(numbers) for field, form in forms.items()}}
    return NormalDiagonal(
        order, DiagonalSpread(tuple(value.value for value in values), normals, lower, inverse), substitution
    )


def _check_noises(system: System, order: TimeOrder, value: FieldAt) -> None:
    """Refuse a field at the last time that depends on noises of that time, because spikes end before it."""
    clock = value.field.clock
    if value.time is None or clock is None or value.time != clock.steps:
        return
    for f in system.training:
        if f.product is not None and f.field.timed and order.delay(value.field, f.field) == 0:
            raise DeclarationError(
                f"spectrum(...) has diag(...) of {shown(value)}, which is a random matrix times fields at that "
                f"time, after the last update; use {value.field}({shown(value.time - 1)})"
            )


# -- sampled numbers


@dataclass(frozen=True)
class SampledDiagonal:
    """Diagonal entries of a sector as functions of the site whose joint law is sampled."""

    order: TimeOrder
    sites: SampledSiteValues
    given: dict[sp.Expr, sp.Expr]

    def written(self, coefficient: sp.Expr) -> sp.Expr:
        """Return a coefficient with its sampled factor as one symbol of the site."""
        if not traits_in(coefficient):
            return coefficient
        inside = _of_site(coefficient)
        base, power = _power(inside)
        return coefficient / inside * self.given[base] ** power

    def responds(self, noise: Field) -> bool:
        """Return whether the diagonal entries respond to a training noise."""
        fields = (value.field for value in self.sites.values if not is_trait(value))
        return any(self.order.delay(field, noise) is not None for field in fields)


def sampled_diagonal(
    system: System, order: TimeOrder, sector: Sector, coefficients: Iterable[sp.Expr], taken: set[str]
) -> SampledDiagonal:
    """Return the functions of a site in the coefficients, with names that are not in `taken`."""
    functions = {_power(_of_site(coefficient))[0] for coefficient in coefficients if traits_in(coefficient)}
    ordered = sorted(functions, key=sp.default_sort_key)
    plain = {f: f.xreplace({field(): field.value for field in field_values([f])}) for f in ordered}
    if len(ordered) > MOST_ENTRIES:
        listing = ", ".join(f"diag({shown(function)})" for function in plain.values())
        raise DeclarationError(
            f"spectrum(...) has {listing}, whose joint law has to be sampled; use at most {MOST_ENTRIES} different "
            f"functions on the diagonals of {sector}"
        )
    names = [
        free_name(f"d_{sector}" if len(ordered) == 1 else f"d_{sector}_{k + 1}", taken) for k in range(len(ordered))
    ]
    entries = {f: SiteEntry(name, sector, plain[f]) for f, name in zip(ordered, names, strict=True)}
    reach, law = (Parameter(free_name(f"{word}_{sector}", taken), 1.0) for word in ("reach", "sites"))
    sites = SampledSiteValues(sector, tuple(entries.values()), reach, law)
    for value in sites.values:
        if not is_trait(value):
            _check_noises(system, order, value)
    return SampledDiagonal(order, sites, {function: entry() for function, entry in entries.items()})


def _of_site(coefficient: sp.Expr) -> sp.Expr:
    """Return the factor of a coefficient that varies from site to site."""
    return coefficient.as_independent(*traits_in(coefficient), as_Add=False)[1]


def _power(function: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    if function.is_Pow and function.exp.is_Integer and function.exp > 0:
        return function.base, function.exp
    return function, sp.S.One
