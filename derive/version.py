"""The version of this package, the commit of a checkout, and the versions of the libraries behind the numbers."""

from __future__ import annotations

from pathlib import Path

__version__ = "0.5.0"
LIBRARIES = ("sympy", "numpy", "scipy", "jax", "jaxlib")
"""Libraries that numbers depend on."""
BESIDE = ("mpmath", "python-flint", "z3-solver", "click")


def library_versions(names: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """The installed version of each library, "unknown" for a copy without metadata."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and rarely needed

    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def commit() -> str | None:
    """The first digits of the commit that is checked out; None if this package is not part of a checkout."""
    place = Path(__file__).resolve().parents[1] / ".git"
    try:
        if place.is_file():  # a worktree names the place of its own data
            place = (place.parent / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        head = (place / "HEAD").read_text(encoding="utf-8").strip()
        found = _resolved(place, head.removeprefix("ref:").strip()) if head.startswith("ref:") else head
    except OSError:
        return None
    return found[:10] if found and set(found) <= set("0123456789abcdef") else None


def _resolved(place: Path, reference: str) -> str:
    """The commit that a branch points to."""
    shared = place / "commondir"
    common = (place / shared.read_text(encoding="utf-8").strip()).resolve() if shared.is_file() else place
    if (common / reference).is_file():
        return (common / reference).read_text(encoding="utf-8").strip()
    lines = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {reference}")), "")


def describe() -> str:
    """The output of `derive --version`, with the details that a bug report needs."""
    import platform

    here = commit()
    libraries = {"Python": platform.python_version(), **library_versions((*LIBRARIES, *BESIDE))}
    first = f"derive {__version__}" + (f", commit {here}" if here else "")
    return f"{first}\n{', '.join(f'{name} {number}' for name, number in libraries.items())}"
