"""The lens as one self-contained page: open it, send it, keep it; it asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from transduce.attention_lens.maps import AttentionMaps
from transduce.attention_lens.patches import PictureMaps

__all__ = ["lens_page", "static_files"]

IMPORT = re.compile(r'^import [^;]*? from "\./([\w.-]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def static_files() -> dict[str, Path]:
    """The lens's own files by name, for whoever serves them: `lens.js` is to be imported and imports the others."""
    folder = Path(str(files("transduce.attention_lens"))) / "static"
    return {path.name: path for path in sorted(folder.iterdir()) if path.suffix in (".js", ".css")}


def lens_page(maps: AttentionMaps | PictureMaps, **view: Any) -> str:
    """HTML that shows the maps; needs nothing but the browser that opens it.

    `view` is what it opens with: kind, layer and heads (numbers from 1), level.
    """
    found = static_files()
    style = found["lens.css"].read_text(encoding="utf-8") + PAGE_STYLE
    script = _bundled("lens.js", found, set()) + PAGE_SCRIPT
    policy = (
        f"default-src 'none'; script-src '{_fingerprint(script)}'; style-src '{_fingerprint(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    title = f"Attention: {maps.title}"
    return PAGE.format(
        policy=html.escape(policy, quote=False),
        title=html.escape(title),
        model=html.escape(maps.model),
        style=style,
        data=_embedded({"data": maps.as_json("bytes"), "view": view}),
        script=script,
    )


def _bundled(name: str, found: dict[str, Path], done: set[str]) -> str:
    """A module and those that it imports, each once, those that are needed first; as one module without imports."""
    done.add(name)
    source = found[name].read_text(encoding="utf-8")
    needed = "".join(_bundled(other, found, done) for other in IMPORT.findall(source) if other not in done)
    return needed + EXPORT.sub("", IMPORT.sub("", source))


def _fingerprint(text: str) -> str:
    """What the page's own policy knows a script or style by: any other is not run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _embedded(values: Any) -> str:
    """JSON that cannot end the element that it stands in."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


PAGE_STYLE = """
html { color-scheme: light dark; background: light-dark(#f7f7f5, #0f1216); }
html[data-theme="light"] { color-scheme: light; }
html[data-theme="dark"] { color-scheme: dark; }
body { margin: 0 auto; max-width: 1400px; padding: 18px clamp(12px, 3vw, 32px) 40px; }
.lens-page-head { display: flex; justify-content: space-between; align-items: center; gap: 12px; padding-bottom: 10px; }
.lens-page-head h1 { font-size: 14px; font-weight: 600; margin: 0; }
.lens-page-head h1 span { font-weight: 400; color: var(--lens-quiet); }
.lens-page-head .lens-button { flex: none; }
"""

PAGE_SCRIPT = """
const { data, view } = JSON.parse(document.getElementById("lens-data").textContent);
const dark = document.getElementById("lens-dark");
const root = document.documentElement;
const showTheme = () => dark.setAttribute("aria-pressed", String(palette(dark).dark));
dark.addEventListener("click", () => {
  root.dataset.theme = dark.getAttribute("aria-pressed") === "true" ? "light" : "dark";
});
onThemeChange(showTheme);
showTheme();
mountLens(document.getElementById("lens"), data, { view });
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="lens lens-page-head">
<h1>Attention lens <span>{model}</span></h1>
<button type="button" class="lens-button" id="lens-dark" aria-pressed="false">Dark</button>
</header>
<main id="lens"></main>
<script type="application/json" id="lens-data">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""
