"""Parse names of arrays: the kind of matrix, and its depth in the network."""

from __future__ import annotations

import re
from collections.abc import Iterable

ANY_DEPTH = "*"


def kind_and_depth(name: str) -> tuple[str, int | None]:
    """Return the name with its first number as a star, and that number: `h.3.mlp.weight` is `h.*.mlp.weight` at 3.

    A part of the name that is itself a number takes precedence, such as the 3 in `h.3.mlp.fc1`, over a number at the
    end of a part, as in `W1` or `layers_2/kernel`. Depth is None if the name has no number.
    """
    pieces = re.split(r"([./])", name)
    for pattern in (r"()(\d+)", r"(\D+)(\d+)"):
        for place, piece in enumerate(pieces):
            match = re.fullmatch(pattern, piece)
            if match:
                pieces[place] = match[1] + ANY_DEPTH
                return "".join(pieces), int(match[2])
    return name, None


def by_kind(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of each kind in order of depth; kinds in order of first appearance.

    A kind with one member keeps its whole name.
    """
    kinds: dict[str, list[tuple[int, int, str]]] = {}
    for place, name in enumerate(names):
        kind, depth = kind_and_depth(name)
        kinds.setdefault(kind, []).append((-1 if depth is None else depth, place, name))
    return {
        kind if len(members) > 1 else members[0][2]: [m[2] for m in sorted(members)] for kind, members in kinds.items()
    }
