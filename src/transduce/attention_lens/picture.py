"""Maps as a picture for a paper: PNG, SVG or PDF, drawn by matplotlib."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from transduce.attention_lens.maps import AttentionMaps, Kind, LabelledMap, Level, kind_among
from transduce.attention_lens.patches import PictureMaps
from transduce.attention_lens.words import END, LINE_END, START
from transduce.errors import ConfigError, nearest
from transduce.storage import storage_errors, write_whole
from transduce.text.tokenizer import MASK, NEWLINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "check_picture", "draw_patches", "draw_picture"]

FORMATS = (".png", ".svg", ".pdf")
INCH = 72.0
CELL, SMALL_CELL = 16.0, 7.0
"""Points of a cell, where one map is drawn and where several are."""
LARGEST = 14.0
"""Inches that one map takes at most: a long sentence gets smaller cells."""
DOTS_PER_INCH = 200
COLOURS = "Blues"
GLOW, DIMMEST, STRONGEST = (1.0, 0.55, 0.08), 0.85, 0.82
"""The colour of attention over a picture, how bright it is on black, and how much of a pixel it takes over at most."""
PICTURE, SMALL_PICTURE = 3.2, 1.1
"""Inches of a picture with attention over it, where there is one and where there are several."""
NAMES = {"<s>": START, "</s>": END, MASK: "mask", NEWLINE: LINE_END}
SIDES = {"cross": ("translation", "source"), "encoder": ("source", "source"), "decoder": ("writing", "written so far")}


def check_picture(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(
            f"{path.name!r} is no kind of picture that can be drawn.", remedy=nearest(path.suffix.lower(), FORMATS)
        )
    if find_spec("matplotlib") is None:
        raise ConfigError(
            "pictures are drawn by matplotlib, which is not installed.",
            remedy='Run: pip install "transduce[plot]"; or write a page, -o attention.html.',
        )


def draw_picture(
    maps: AttentionMaps,
    path: Path,
    kind: Kind | None = None,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
    level: Level = "words",
) -> None:
    """Draw chosen layers (down) and heads (across), counted from 1; all of them if none is chosen.

    The kind is the first that the model has: cross, encoder, decoder.
    """
    check_picture(path)
    from matplotlib.figure import Figure

    kind = kind_among(maps.kinds, kind)
    shown = maps.at(level, kind)
    rows, columns = shown.numbered("layer", layers), shown.numbered("head", heads)
    alone = len(rows) == len(columns) == 1
    figure = Figure(figsize=_inches(shown, len(rows), len(columns), alone), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    for layer, line in zip(rows, axes, strict=True):
        for head, one in zip(columns, line, strict=True):
            image = one.imshow(shown.values[layer, head], vmin=0, vmax=1, cmap=COLOURS, aspect="auto", rasterized=True)
            one.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9 if alone else 7)
            _label(one, shown, edge_left=head == columns[0], edge_top=layer == rows[0], small=not alone)
    looking, looked_at = SIDES[kind] if maps.target.tokens else ("text", "text")
    figure.supylabel(looking, fontsize=8)
    figure.suptitle(looked_at, fontsize=8)  # where the columns' labels are
    scale = figure.colorbar(image, ax=axes, shrink=0.5, aspect=30, pad=0.02)
    scale.set_label("share of attention", fontsize=8)
    scale.ax.tick_params(labelsize=7)
    scale.outline.set_visible(False)
    _save(figure, path)


def draw_patches(maps: PictureMaps, path: Path, layers: Sequence[int] = (), heads: Sequence[int] = ()) -> None:
    """Draw the class token's attention over the picture, for chosen layers (down) and heads (across), from 1."""
    check_picture(path)
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_hex
    from matplotlib.figure import Figure

    shown = maps.patches()
    rows, columns = shown.numbered("layer", layers), shown.numbered("head", heads)
    alone = len(rows) == len(columns) == 1
    height, width = maps.picture.shape[:2]
    side = PICTURE if alone else SMALL_PICTURE
    size = len(columns) * (side * width / max(height, width) + 0.15) + 1.4, len(rows) * (side + 0.3) + 0.5
    figure = Figure(figsize=(max(size[0], 3.0), size[1]), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False)
    over = maps.over_picture()
    shares = PowerNorm(0.5, 0, float(over[np.ix_(rows, columns)].max()))  # small shares are to be seen, too
    for layer, line in zip(rows, axes, strict=True):
        for head, one in zip(columns, line, strict=True):
            one.imshow(_glowing(maps, np.asarray(shares(over[layer, head]))), rasterized=True)
            one.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=9 if alone else 7)
            one.set_axis_off()
    colours = LinearSegmentedColormap.from_list("glow", ["black", to_hex(GLOW)])
    scale = figure.colorbar(ScalarMappable(shares, colours), ax=axes, shrink=0.8, aspect=30, pad=0.02)
    scale.set_label("share of the class token's attention", fontsize=8)
    scale.ax.tick_params(labelsize=7)
    scale.outline.set_visible(False)
    _save(figure, path)


def _glowing(maps: PictureMaps, strength: NDArray[np.float64]) -> NDArray[np.float64]:
    """The picture [height, width, 3], each patch the more in the colour of attention the greater its strength."""
    height, width = maps.picture.shape[:2]
    down, across = maps.grid
    picture = maps.picture.reshape(height, width, -1) / 255 * np.ones(3)
    glow = np.array(GLOW) * (DIMMEST + (1 - DIMMEST) * picture.mean(-1, keepdims=True))
    share = STRONGEST * np.kron(strength, np.ones((height // down, width // across)))[:, :, None]
    mixed: NDArray[np.float64] = picture * (1 - share) + glow * share
    return mixed


def _save(figure: Figure, path: Path) -> None:
    with storage_errors(path.parent):
        write_whole(path, _contents(figure, path.suffix.lower()[1:]))


def _inches(shown: LabelledMap, down: int, across: int, alone: bool) -> tuple[float, float]:
    cell = CELL if alone else SMALL_CELL
    width, height = (min(LARGEST, len(labels) * cell / INCH) for labels in (shown.columns, shown.rows))
    return across * (max(1.0, width) + 0.2) + 2.2, down * (max(1.0, height) + 0.35) + 1.4


def _label(axes: Axes, shown: LabelledMap, *, edge_left: bool, edge_top: bool, small: bool) -> None:
    """Tokens on both axes; of several maps only at the outer ones."""
    size = 5.5 if small else 9
    names = [[_name(label) for label in labels] for labels in (shown.columns, shown.rows)]
    axes.set_xticks(range(len(names[0])), names[0] if edge_top else [], rotation=90, fontsize=size)
    axes.set_yticks(range(len(names[1])), names[1] if edge_left else [], fontsize=size)
    axes.tick_params(length=0, labeltop=edge_top, labelbottom=False)
    axes.spines[:].set_visible(False)


def _name(label: str) -> str:
    # matplotlib takes a pair of dollars for mathematics.
    return NAMES.get(label, label).replace("$", r"\$")


def _contents(figure: Figure, kind: str) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # it draws a box there, and that is to be seen
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata={"Date": None} if kind == "svg" else None)
    return file.getvalue()
