"""Optional dependencies and the extras of this package that install them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from derive.errors import DeriveError

EXTRAS = {
    "pandas": "files",
    "xarray": "files",
    "h5py": "files",
    "h5netcdf": "files",
    "zarr": "zarr",
    "ziamath": "report",
    "bokeh": "explore",
    "distributed": "cluster",
    "sphinx": "docs",
    "jax_plugins.xla_cuda12": "gpu",
    "nvidia.cuda_nvcc": "gpu",
}
"""The extra that installs each module."""


def optional(name: str) -> Any:
    """Import and return an optional dependency.

    Raises:
        DeriveError: It is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing(name) from None


def check_installed(name: str) -> None:
    """Raise DeriveError if an optional dependency is not installed, without importing it."""
    try:
        installed = importlib.util.find_spec(name) is not None
    except ImportError:
        installed = False
    if not installed:
        raise missing(name)


def missing(name: str) -> DeriveError:
    """Return the error that says how to install an optional dependency."""
    extra = EXTRAS[name]
    return DeriveError(
        f"{name} is not installed; install it with pip install 'two-level-dmft[{extra}]', or in a checkout with "
        f"pip install -c constraints.txt -e '.[{extra}]'"
    )
