"""Arrays of a model in memory: a torch module, a JAX pytree, or a dict of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from derive.errors import CheckpointError
from derive.inputs.checkpoints import Entry, flat, refuse_same_names, torch_entry
from derive.support.plain_words import printable


def live_entries(model: Any, what: str) -> tuple[Entry, ...]:
    """Return all arrays of a model in memory, named by their path; what: the argument, for the error."""
    entries = tuple(_entry(printable(name), array) for name, array in _named_arrays(model))
    if not entries:
        raise CheckpointError(
            f"{what} of type {type(model).__name__} contains no arrays; give a file, a torch module, a JAX pytree or a "
            "dict of arrays"
        )
    refuse_same_names(type(model).__name__, entries)
    return entries


def _named_arrays(model: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a torch module, of nested dictionaries in their order, and of JAX pytrees among them."""
    for method in ("state_dict", "named_parameters"):
        if not isinstance(model, type) and callable(getattr(model, method, None)):
            model = dict(getattr(model, method)())
    arrays = []
    for name, part in ((name, _detached(part)) for name, part in flat(model)):
        if _is_array(part):
            arrays.append((name, part))
            continue
        from jax.tree_util import keystr, tree_flatten_with_path

        root = "" if part is model else f"{name}."
        leaves = tree_flatten_with_path(part)[0]
        arrays += [(root + keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves if _is_array(leaf)]
    return arrays


def _detached(value: Any) -> Any:
    """Return the NumPy array of a tensor that has no `dtype`; anything else is unchanged."""
    if _is_array(value) or isinstance(value, type) or not callable(getattr(value, "detach", None)):
        return value
    values = value.detach()
    return np.asarray(values.numpy()) if callable(getattr(values, "numpy", None)) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _entry(name: str, leaf: Any) -> Entry:
    if hasattr(leaf, "detach"):
        return torch_entry(name, leaf)
    kind = str(leaf.dtype)
    real = kind.startswith(("float", "bfloat", "int", "uint"))

    def read() -> np.ndarray:
        wide = np.float32 if kind.startswith(("float", "bfloat")) and kind != "float64" else np.float64
        return np.asarray(leaf).astype(wide, copy=False)

    return Entry(name, tuple(leaf.shape), kind, read, unusable=None if real else f"type {kind} is not a weight type")
