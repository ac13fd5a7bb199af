"""Pictures for papers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from transduce.attention_lens import AttentionMaps, Guess, Labels, PictureMaps, Word, picture
from transduce.attention_lens.picture import draw_patches, draw_picture
from transduce.errors import ConfigError, StorageError


def test_a_picture_shows_the_chosen_head_and_no_other(maps: AttentionMaps, tmp_path: Path) -> None:
    draw_picture(maps, tmp_path / "one.png", "cross", [2], [3])
    draw_picture(maps, tmp_path / "same.png", "cross", [2], [3])
    draw_picture(maps, tmp_path / "other.png", "cross", [2], [1])
    draw_picture(maps, tmp_path / "all.png", "cross")
    one, same, other, all_heads = (imread(tmp_path / f"{name}.png") for name in ("one", "same", "other", "all"))
    assert (one == same).all()
    assert one.shape != other.shape or (one != other).any()
    assert all_heads.shape[0] > one.shape[0]
    assert all_heads.shape[1] > one.shape[1]


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("a.pdf", b"%PDF")])
@pytest.mark.parametrize("level", ["words", "subwords"])
def test_kinds_of_picture(maps: AttentionMaps, tmp_path: Path, name: str, begins: bytes, level: str) -> None:
    draw_picture(maps, tmp_path / name, "decoder", [1], [1, 2], level)  # type: ignore[arg-type]
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_words_are_in_the_picture(maps: AttentionMaps, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        import matplotlib

        patch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
        draw_picture(maps, tmp_path / "a.svg", "encoder", [1], [2])
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("repaired", "station,", "end", "layer 1, head 2", "share of attention"):
        assert f">{word}<" in text


def test_without_matplotlib_it_says_what_to_install(
    maps: AttentionMaps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert importlib.util.find_spec("matplotlib") is not None
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "transduce\[plot\]"'):
        draw_picture(maps, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_drawn_is_said_in_words(maps: AttentionMaps, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Did you mean '\.png'"):
        draw_picture(maps, tmp_path / "a.pngg")
    with pytest.raises(ConfigError, match="no head 9"):
        draw_picture(maps, tmp_path / "a.png", heads=[9])
    with pytest.raises(StorageError):
        draw_picture(maps, tmp_path / "missing" / "a.png")


def test_one_text_is_drawn_as_what_it_is(tmp_path: Path) -> None:
    weights = np.full((2, 3, 2, 2), 0.5, dtype=np.float32)
    side = Labels("$a$ ↵", ["▁$a$", "\n"], [Word("$a$", 0, 0), Word("↵", 1, 1)])
    nothing = Labels("", [], [])
    absent = np.zeros((0, 3, 0, 0), dtype=np.float32)
    maps = AttentionMaps("reader", None, None, side, nothing, weights, absent, absent, [])
    with pytest.MonkeyPatch.context() as patch:
        import matplotlib

        patch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
        draw_picture(maps, tmp_path / "a.svg", level="subwords")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in ("text", "▁$a$", "↵", "layer 2, head 3"):
        assert f">{word}<" in text
    with pytest.raises(ConfigError, match=r"no decoder attention\. It has: encoder\."):
        draw_picture(maps, tmp_path / "b.svg", "decoder")


@pytest.fixture
def seen() -> PictureMaps:
    """A dark picture of six patches, of which the class token looks at the last, but in the last head at the first."""
    weights = np.zeros((1, 2, 7, 7), dtype=np.float32)
    weights[:, 0, :, 6] = weights[:, 1, :, 1] = 1
    return PictureMaps("seer", "night", np.zeros((20, 30), dtype=np.uint8), (2, 3), weights, [Guess("label", None, [])])


def test_a_patch_that_is_looked_at_shines_in_its_place(seen: PictureMaps, tmp_path: Path) -> None:
    for head in (1, 2):
        draw_patches(seen, tmp_path / f"{head}.png", heads=[head])
    last, first = (imread(tmp_path / f"{head}.png")[:, :, :3].sum(-1) for head in (1, 2))
    rows, columns = np.nonzero(np.abs(last - first) > 0.3)
    middle = (rows.min() + rows.max()) / 2, (columns.min() + columns.max()) / 2
    for shown, (row, column) in ((last, (0.25, 0.25)), (first, (-0.25, -0.25))):
        height, width = np.ptp(rows), np.ptp(columns)
        place = int(middle[0] + row * height), int(middle[1] + column * width)
        opposite = int(middle[0] - row * height), int(middle[1] - column * width)
        assert shown[place] > shown[opposite] + 0.3


def test_all_heads_over_a_picture_take_more_room_than_one(seen: PictureMaps, tmp_path: Path) -> None:
    draw_patches(seen, tmp_path / "all.svg")
    assert (tmp_path / "all.svg").read_bytes().startswith(b"<?xml")
    with pytest.raises(ConfigError, match="no head 3"):
        draw_patches(seen, tmp_path / "a.png", heads=[3])
    assert [path.name for path in tmp_path.iterdir()] == ["all.svg"]
