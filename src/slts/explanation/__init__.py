"""Why a model decides as it does: exact sums, nothing sampled.

prediction.py  one decision split into landmarks, time steps and channels
model.py       what a model looks at: channels, pairs of channels, landmarks, spectra
"""

from slts.explanation.model import ModelSummary, summarize
from slts.explanation.prediction import Explanation, explain

__all__ = ["Explanation", "ModelSummary", "explain", "summarize"]
