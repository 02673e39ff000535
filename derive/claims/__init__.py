"""Hand-written formulas against what is derived. The derivation never imports this package.

for verdict in check_claims(load_claims("paper.toml")):
    print(verdict.name, verdict.status, verdict.detail)
"""

from derive.claims.checking import ClaimVerdict, check_claims
from derive.claims.reading import Claim, ClaimsFile, load_claims, project_claims

__all__ = ["Claim", "ClaimsFile", "ClaimVerdict", "check_claims", "load_claims", "project_claims"]
