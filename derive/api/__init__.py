"""The verbs behind `import derive` and behind the command line."""

from derive.api.loading import load
from derive.api.theory import Theory

__all__ = ["Theory", "load"]
