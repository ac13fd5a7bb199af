"""How good are translations, and is one system better than another: sacreBLEU's scores, text in, numbers out."""

from transduce.evaluation.calibration import Calibration, calibration_of, cross_fitted, fit_confidence, sentence_chrf
from transduce.evaluation.compare import Comparison, SystemScore, compare
from transduce.evaluation.metrics import Evaluation, Score, evaluate, exact_match, quick_bleu, quick_chrf
from transduce.evaluation.report import (
    LengthBucket,
    Table,
    by_length,
    comparison_table,
    evaluation_table,
    length_table,
    signatures,
)

__all__ = [
    "Calibration",
    "Comparison",
    "Evaluation",
    "LengthBucket",
    "Score",
    "SystemScore",
    "Table",
    "by_length",
    "calibration_of",
    "compare",
    "comparison_table",
    "cross_fitted",
    "evaluate",
    "evaluation_table",
    "exact_match",
    "fit_confidence",
    "length_table",
    "quick_bleu",
    "quick_chrf",
    "sentence_chrf",
    "signatures",
]
