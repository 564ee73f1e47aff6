"""An encoder's measured cosines in, the numbers out that turn stage 1's scores into a relevance in [0, 1] which means the same for all.

Relevance is a logistic function of how strong the question's best evidence is anywhere (is there an answer at all?) and, less steeply,
of how far a block is behind the best one (is this the answer?). The first is what a threshold such as min_score decides on.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_tools.encoders import Cosines


@dataclass(frozen=True, slots=True)
class Calibration:
    """logit of the best block = slope * evidence - unknown * u + middle, where u says that the question names something that no note holds.

    A block whose score is `reach` behind the best one is at .5 where there is an answer at all. Cosines are brought to the default
    encoder's scale by shift + scale * cosine; scale None: by what the corpus shows of them. Negative logits count `doubt` times: what is
    unlikely is to be below half of min_score too, where a search without results looks next.
    """

    slope: float
    unknown: float
    middle: float
    reach: float
    doubt: float = 2.0
    shift: float = 0.0
    scale: float | None = 1.0


# The default encoder's cosine between a question and what has nothing to do with it: middle and spread over the blocks of the open notes.
OTHER, OTHER_SPREAD = 0.05, 0.075
DEFAULT = "universal-multilingual-v3"
_DEFAULT_COSINES = Cosines(answer_mean=0.278, answer_sd=0.158, other_mean=0.027, other_sd=0.064)


def for_encoder(name: str | None, cosines: Cosines | None = None) -> Calibration:
    """`name` as in Encoder.name, None or "none": lexical only. `cosines`: as measured by encoders.probe, None where they were not."""
    if name is None or name == "none":
        return Calibration(slope=4.4, unknown=3.4, middle=-1.8, reach=1.5)
    shift, scale = 0.0, None
    if name.startswith(DEFAULT):
        scale = 1.0
    elif cosines is not None:
        own = _DEFAULT_COSINES
        scale = (own.answer_mean - own.other_mean) / max(cosines.answer_mean - cosines.other_mean, 0.02)
        shift = own.other_mean - scale * cosines.other_mean
    return Calibration(slope=3.6, unknown=2.8, middle=-4.3, reach=2.0, shift=shift, scale=scale)
