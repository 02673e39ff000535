"""The verbs of `import derive` and of the command line."""

from derive.api.loading import load
from derive.api.theory import Theory

__all__ = ["Theory", "load"]
