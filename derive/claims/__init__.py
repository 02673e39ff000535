"""Check hand-written formulas against the derivation, which never imports this package."""

from derive.claims.checking import ClaimVerdict, check_claims
from derive.claims.reading import Claim, ClaimsFile, load_claims, project_claims

__all__ = ["Claim", "ClaimsFile", "ClaimVerdict", "check_claims", "load_claims", "project_claims"]
