"""The real Argos Translate, from PyPI and in an environment of its own, installs our package and says the same.

So does LibreTranslate's edition of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from transduce.bundle import Bundle, find_model
from transduce.data.builtin import builtin_corpus
from transduce.interop.argos import ARGOS_OPTIONS
from transduce.interop.export import Export
from transduce.translator import Translator

EDITIONS = {
    "argos": ["argostranslate==1.11.0", "stanza==1.10.1", "minisbd==0.9.5"],
    "libretranslate": ["argos-translate-lt==1.12.1", "minisbd==0.9.5"],
}
"""What each imports when it starts; spaCy, which they do without, is left out."""
SMALL = ["emoji", "requests", "tqdm"]
SCRIPT = """
import sys
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
english, german = (translate.get_language_from_code(code) for code in ("en", "de"))
print(english, german, sep="\\n")
translation = english.get_translation(german)
for line in sys.stdin:
    print(translation.translate(line.rstrip("\\n")))
"""


@pytest.fixture(scope="module", params=EDITIONS.values(), ids=EDITIONS.keys())
def python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has Argos; PyTorch and CTranslate2, the large ones, it takes from ours."""
    home = tmp_path_factory.mktemp("argos")
    venv.create(home, with_pip=False)
    schemes = sysconfig.get_paths(vars={"base": str(home), "platbase": str(home)})
    Path(schemes["purelib"], "ours.pth").write_text(sysconfig.get_paths()["purelib"], encoding="utf-8")
    found = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", str(found), "install", "--quiet", "--disable-pip-version-check"]
    for wanted in (["--no-deps", *request.param], SMALL):
        result = subprocess.run([*pip, *wanted], capture_output=True, text=True, check=False)
        if result.returncode:
            pytest.skip(f"Argos cannot be installed here: {result.stderr.strip().splitlines()[-1]}")
    return found


def test_argos_installs_the_package_and_says_the_same(python: Path, tmp_path: Path) -> None:
    package = tmp_path / "en-de.argosmodel"
    Export(Bundle.open(find_model("en-de")), "argos", package, "float32").write()
    pairs = builtin_corpus("tatoeba-en-de", "dev").pairs()
    sources = [pair.source for pair in pairs if pair.source.count(" ") > 2][::20][:60]
    sources.append("I am tired. Where is the hospital? My sister works there.")
    places = {name: str(tmp_path / name) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    places |= {"USERPROFILE": places["HOME"], "PYTHONUTF8": "1", "PYTHONPATH": ""}
    result = subprocess.run(
        [str(python), "-c", SCRIPT, str(package)],
        input="".join(f"{source}\n" for source in sources),
        env=os.environ | places | {"ARGOS_COMPUTE_TYPE": "float32"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    *names, theirs = result.stdout.split("\n", 2)
    assert names == ["English", "German"]
    ours = [each.text for each in Translator.load("en-de", "torch").translate(sources, **ARGOS_OPTIONS)]
    same = list(map(str.__eq__, ours, theirs.splitlines()))
    assert len(same) == len(sources) == 61
    assert sum(same) >= 60
    assert same[-1]  # sentence by sentence
