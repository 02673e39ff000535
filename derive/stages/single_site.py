"""SaddlePoint -> SingleSite: sites decouple, and each random matrix becomes a noise plus a memory."""

from __future__ import annotations

from derive.records.saddle import SaddlePoint, SingleSite


def read_single_site(saddle: SaddlePoint) -> SingleSite:
    return SingleSite(saddle, (*saddle.assumptions, "sites of one sector are exchangeable"))
