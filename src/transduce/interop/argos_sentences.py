"""Where sentences end, for packages of Argos Translate: a graph of a few rules, in the place of a network.

Argos cuts texts into sentences by a model that a package brings along, or else by one that it downloads, of which there
is none for most languages. This one knows marks only, and so all languages alike: a sentence ends with a full stop or
the like, and what closes a quotation behind it, before a space and something else than a small letter. The full stops
of Chinese and Japanese need no space; an initial ends nothing ("J. Smith").

Its form is that of MiniSBD: kinds of characters and whether they are capitals in, and for each of them a score out for
being inside (0) or the last of a sentence (2). Shapes: B paragraphs, N characters.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.interop.onnx import to_graph

__all__ = ["SentenceEnds", "characters", "sentence_model"]

PADDING, OTHER, SPACE, END, END_ALONE, CLOSING, SMALL = range(7)
"""Kinds of characters; the first two are MiniSBD's own."""
MARKS = {
    SPACE: " ",
    END: ".!?…‽؟۔।॥።፧፨။៕",
    END_ALONE: "。！？｡",
    CLOSING: "\"'”’»›)]}」』）",
}
CLASSES = 5
"""What MiniSBD tells apart; all but two have to do with words."""
SENTENCE_END = 2


def characters() -> list[tuple[str, int]]:
    """Every character that has a kind, with its kind; the rest are `OTHER`."""
    marked = [(character, kind) for kind, marks in MARKS.items() for character in marks]
    small = [(chr(code), SMALL) for code in range(0x10000) if chr(code).islower()]
    return marked + small


class SentenceEnds(nn.Module):
    """The rules."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kinds", torch.tensor([PADDING, OTHER, *(kind for _, kind in characters())]))

    def forward(self, units: Tensor, features: Tensor) -> Tensor:
        """Scores [B,N,5] of ids [B,N] of characters, with 1 in `features` [B,N,1] for capitals."""
        kinds: Tensor = self.kinds[units]  # type: ignore[index]
        capital = features[..., 0] > 0.5
        before, after, behind = _shifted(kinds, -1), _shifted(kinds, 1), _shifted(kinds, 2)
        starts_word = (_shifted(kinds, -2) == SPACE) | (_shifted(kinds, -2) == PADDING)
        initial = (_shifted(capital.long(), -1) > 0) & starts_word
        stop = (kinds == END) & ~initial
        closed = (kinds == CLOSING) & (before == END)
        ends = (stop | closed) & (after == SPACE) & (behind != SMALL)
        ends = ends | ((kinds == END_ALONE) & (after != CLOSING) & (after != END_ALONE))
        ends = ends | ((kinds == CLOSING) & (before == END_ALONE))
        inside, last = (~ends).float(), ends.float()
        nothing = torch.zeros_like(inside)
        return torch.stack((inside, nothing, last, nothing, nothing), dim=-1)


def sentence_model() -> bytes:
    """The rules as a graph that MiniSBD reads."""
    import onnx

    sizes = {name: {0: "paragraphs", 1: "characters"} for name in ("units", "features", "scores")}
    example = (torch.ones(2, 5, dtype=torch.long), torch.zeros(2, 5, 1))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "sentences.onnx"
        to_graph(SentenceEnds(), example, path, ["units", "features"], ["scores"], sizes)
        model = onnx.load(path)
    names = ["<PAD>", "<UNK>", *(character for character, _ in characters())]
    described = {
        "lang_code": "xx",
        "config": json.dumps({"feat_funcs": ["capitalized"], "batch_size": 1, "max_seqlen": 1000}),
        "vocab": json.dumps(
            {"lang": "xx", "lower": False, "_id2unit": names, "_unit2id": {name: i for i, name in enumerate(names)}}
        ),
    }
    for name, value in described.items():
        model.metadata_props.add(key=name, value=value)
    written = io.BytesIO()
    onnx.save(model, written)
    return written.getvalue()


def _shifted(values_BN: Tensor, by: int) -> Tensor:
    """What stands so many characters behind each (below 0: before it); padding where nothing does."""
    if by > 0:
        return F.pad(values_BN[:, by:], (0, by))
    return F.pad(values_BN, (-by, 0))[:, : values_BN.size(1)]
