"""The house rules that a tool can check; the import direction itself is in pyproject.toml (import-linter)."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "transduce"
MODULES = sorted(PACKAGE.rglob("*.py"))
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))"


def imports(module: Path) -> set[str]:
    """Everything a module imports, dotted, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or ".")
    return found


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(root / "src"), "PATH": "", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "src" / "transduce", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_go_downwards_only(clone: Path) -> None:
    result = lint_imports(clone)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model/masks.py", "import transduce.decoding"),
        ("decoding/search.py", "from transduce.model import Transformer"),
        ("training/schedule.py", "import rich"),
        ("errors.py", "import transduce.model"),
    ],
)
def test_the_contracts_notice_a_forbidden_import(clone: Path, module: str, line: str) -> None:
    path = clone / "src" / "transduce" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    result = lint_imports(clone)
    assert result.returncode == 1
    assert "BROKEN" in result.stdout


@pytest.mark.parametrize("module", sorted((PACKAGE / "model").glob("*.py")), ids=lambda path: path.name)
def test_the_model_imports_torch_and_errors_only(module: Path) -> None:
    allowed = {"torch", *sys.stdlib_module_names}
    for name in imports(module):
        inside = name.startswith(("transduce.model", "transduce.errors"))
        assert inside or name.split(".")[0] in allowed, f"{module.name} imports {name}"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_can_be_read_in_one_sitting_and_is_named_by_its_subject(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 400
    assert module.stem not in {"utils", "util", "helpers", "common", "misc"}


@pytest.mark.parametrize(
    "module", ["transduce", "transduce.errors", "transduce.training.schedule", "transduce.cli.main"]
)
def test_light_modules_do_not_import_torch(module: str) -> None:
    code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
