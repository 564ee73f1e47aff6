"""An encoder's name in, the numbers out that turn stage 1's scores into a relevance in [0, 1] which means the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """`cosine_floor`: cosine of unrelated texts; `cosine_weight`: the cosine's share in the score; relevance = logistic(slope * (score - middle))."""

    cosine_floor: float
    cosine_weight: float
    slope: float
    middle: float


_LEXICAL = Calibration(0.0, 0.0, 8.0, 0.45)
_BY_NAME = {"default": Calibration(0.0, 0.5, 8.0, 0.55)}


def for_encoder(name: str | None) -> Calibration:
    """`name` as in Encoder.name, None or "none": lexical only."""
    if name is None or name == "none":
        return _LEXICAL
    return _BY_NAME.get(name, _BY_NAME["default"])
