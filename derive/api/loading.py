"""Load a model by name, path or declaration."""

from __future__ import annotations

import os

from derive.api.theory import Theory
from derive.errors import ParameterError
from derive.inputs.loading import load_declaration, nearest
from derive.language.family import Family
from derive.language.model import Model
from derive.support.places import path_of


def load(target: str | os.PathLike[str] | Model | Family, /, **choices: int | str) -> Theory:
    """A model with its verbs: a shipped setting by name, your own file by its path, or a `Model` declared in Python.

    choices: select a member of a family; every verb accepts them too.

    >>> import derive
    >>> from derive.api.example import SPIKE
    >>> derive.load(SPIKE).solve(strength=2).outliers
    array([2.5])
    """
    name = ""
    if isinstance(target, (Model, Family)):
        declared = target
    elif isinstance(target, (str, os.PathLike)):
        name = str(path_of(target)) if isinstance(target, os.PathLike) else target
        declared = load_declaration(name)
    else:
        raise ParameterError(
            f"load({target!r}): give the name of a setting, the path of a .py file, or a Model or family"
        )
    names = [choice for choice, _ in declared.open_choices]
    for choice in (choice for choice in choices if choice not in names):
        if not names:
            raise ParameterError(
                f"{declared.name} is one model: there is no {choice!r} to choose; parameters belong to solve, "
                "simulate and the other verbs"
            )
        raise ParameterError(
            f"{declared.name} has no choice {choice!r}{nearest(choice, names)}; its choices are "
            f"{', '.join(names)}, and parameters belong to solve, simulate and the other verbs"
        )
    return Theory(declared, name, tuple(choices.items()))
