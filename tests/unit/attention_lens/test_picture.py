"""Pictures for papers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from matplotlib.image import imread

from transduce.attention_lens import AttentionMaps, picture
from transduce.attention_lens.picture import draw_picture
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
