"""Where a model looks: attention as labelled arrays, as a page to explore, as a picture for a paper."""

from transduce.attention_lens.maps import Alternative, AttentionMaps, Guess, Kind, LabelledMap, Level, Step
from transduce.attention_lens.page import lens_page, static_files
from transduce.attention_lens.patches import PictureMaps
from transduce.attention_lens.words import Labels, Word

__all__ = [
    "Alternative",
    "AttentionMaps",
    "Guess",
    "Kind",
    "LabelledMap",
    "Labels",
    "Level",
    "PictureMaps",
    "Step",
    "Word",
    "lens_page",
    "static_files",
]
