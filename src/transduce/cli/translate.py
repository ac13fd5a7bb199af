"""`transduce translate`: text in, text out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.bulk import ClusterOption, ColumnOption, Into, RayAddressOption, WorkersOption
from transduce.cli.engine_argument import BackOption, BesideOption, EngineOption
from transduce.cli.sure_pairs import SureOption, SurePairs
from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.bundle import Bundle
    from transduce.cli.arriving_lines import Lines
    from transduce.translator import Alternative, Translation, Translator

__all__ = ["translate"]

LINES_AT_FIRST, LINES_AT_ONCE = 32, 256
"""Lines that are translated together: a few to begin with, then twice as many each time, up to what is enough to batch
and few enough to see it go."""

MOST_WARNINGS = 10
"""Lines whose warnings are written out."""


def translate(
    text: Annotated[list[str] | None, typer.Argument(help="Texts; standard input if neither these nor a file.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Name of a built-in model, or directory of yours (./en-de). Else en-de."),
    ] = None,
    input_file: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Text file, one text a line; into a folder also .jsonl and .parquet."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write; else to the screen. A folder (out/) can be stopped and gone on with at any time.",
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", help="Language of the texts; with --to, chooses a built-in model.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Language to translate into; `transduce models` lists them.")] = None,
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept while searching; 1 is fastest. Else the model's own.")
    ] = None,
    n_best: Annotated[int, typer.Option(help="Translations per text.")] = 1,
    mbr: Annotated[
        bool | None,
        typer.Option(
            "--mbr/--no-mbr",
            help="Of the hypotheses, take the one that the others agree with most. Else the model's own.",
        ),
    ] = None,
    beside: BesideOption = None,
    back: BackOption = None,
    engine: EngineOption = "auto",
    shortlist: Annotated[
        bool, typer.Option("--shortlist", help="Try likely words only: faster, if the model has a shortlist.")
    ] = False,
    glossary: Annotated[
        Path | None, typer.Option(help="Terms and how to translate them: source term, tab, target term a line.")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="What the model writes, just as it is.")] = False,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Put score and confidence before each translation. A confidence of 0.7: sentences like this came out "
            "70 % like a human's translation (chrF).",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
    sure: SureOption = None,
    column: ColumnOption = None,
    workers: WorkersOption = None,
    engine_cluster: ClusterOption = "none",
    ray_address: RayAddressOption = None,
) -> None:
    """Translate texts. Lines keep their order, and empty lines stay empty.

    Numbers, addresses, tags and what stands between <keep> and </keep> come out as they were.
    """
    from transduce.bundle import Bundle, find_model
    from transduce.cli.line_progress import LineProgress
    from transduce.guards import Glossary
    from transduce.translator import Translator

    bundle = _chosen(model, source, to)
    bundle.require("translation", "text-to-text")
    if raw and glossary is not None:
        raise ConfigError("--raw leaves no room for a glossary.", remedy="Leave out one of them.")
    if sure is not None and (as_json or scores or n_best != 1):
        raise ConfigError("--sure writes pairs.", remedy="Leave out --json, --scores and --n-best.")
    into = Into(output, column, workers, engine_cluster, ray_address)
    if into.is_folder(text, input_file):
        if beside:
            raise ConfigError("--with is not for a folder.", remedy="Write a file, or leave it out.")
        if scores or n_best != 1 or sure is not None:
            raise ConfigError(
                "--scores, --n-best and --sure are not for a folder.",
                remedy="Leave them out; --json tells the confidence.",
            )
        into.translate(
            input_file,
            as_json,
            bundle=bundle,
            back=None if back is None else Bundle.open(find_model(back)),
            engine=engine,
            shortlist=shortlist,
            to=to,
            beam=beam,
            mbr=mbr,
            raw=raw,
            glossary=glossary,
        )
        return
    translator = Translator.together(bundle, beside or [], engine, shortlist, back)
    options: dict[str, Any] = {"beam": beam, "n_best": n_best, "mbr": mbr, "guard": not raw}
    options |= {"glossary": Glossary.read(glossary)} if glossary is not None else {}
    lines, count = _lines(text, input_file)
    warnings, pairs = Warnings(), None if sure is None else SurePairs(sure, translator)
    with _output(Path(output) if output else None) as file, LineProgress(count) as progress:
        for block, translations in _translated(translator, lines, to, **options):
            with progress.aside():
                warnings.say(translations)
                for line, translation in zip(block, translations, strict=True):
                    file.writelines(
                        pairs.of(line, translation) if pairs else _shown(line, translation, scores, as_json)
                    )
                file.flush()
            progress.advance(len(block))
    warnings.count()
    if pairs:
        pairs.count()


class Warnings:
    """What translations warn of, on stderr: the first cases with their line, then only how many more there were."""

    def __init__(self) -> None:
        self._line = self._lines_warned = 0

    def say(self, translations: list[Translation]) -> None:
        """Say what is to be said of the translations of the next lines."""
        for translation in translations:
            self._line += 1
            if translation.warnings:
                self._lines_warned += 1
            if translation.warnings and self._lines_warned <= MOST_WARNINGS:
                said = " ".join(flag.message for flag in translation.warnings)
                typer.echo(f"transduce: line {self._line}: {said}", err=True)

    def count(self) -> None:
        """Say how many lines nothing has been said of."""
        if (more := self._lines_warned - MOST_WARNINGS) > 0:
            typer.echo(f"transduce: and {more:,} more {'line' if more == 1 else 'lines'}; --json tells all.", err=True)


def _chosen(model: str | None, source: str | None, to: str | None) -> Bundle:
    """The model of this name, else the built-in one for these languages, else the usual one."""
    from transduce.bundle import DEFAULT_MODEL, Bundle, builtin_folder, find_model

    if model is None and (source or to):
        from transduce.catalogue import model_between

        return model_between(source, to).bundle
    bundle = Bundle.open(find_model(model) if model is not None else builtin_folder() / DEFAULT_MODEL)
    if source is not None:
        from transduce.text.languages import same_language

        reads = bundle.config.source_language
        if reads is None or same_language(source, [reads]) is None:
            knows = "does not say what it translates from" if reads is None else f"translates from {reads}"
            raise ConfigError(
                f"--from {source} does not fit: the model {knows}.",
                where=str(bundle.path),
                remedy="Leave out --from, or --model: then the languages choose one.",
            )
    return bundle


def _translated(
    translator: Translator, lines: Lines, to: str | None, **options: Any
) -> Iterator[tuple[list[str], list[Translation]]]:
    """Blocks of lines with their translations, in order; the next block is begun before one is waited for."""
    begun: tuple[list[str], Callable[[], list[Translation]]] | None = None
    size = LINES_AT_FIRST
    while (block := lines.take(size, wait=begun is None)) or begun is not None:
        before, begun = begun, (block, translator.begin(block, to, **options)) if block else None
        if before is not None:
            yield before[0], before[1]()
        size = min(2 * size, LINES_AT_ONCE)


def _lines(texts: list[str] | None, path: Path | None) -> tuple[Lines, Callable[[], int] | None]:
    """What to translate, and a way to know how many lines it has."""
    from transduce.cli.arriving_lines import ArrivingLines, PresentLines

    if texts:
        return PresentLines(texts), lambda: len(texts)
    if path is None:
        return ArrivingLines(sys.stdin), None
    from transduce.data.corpus import read_lines

    # What can be read only once, such as a pipe, is not counted.
    return PresentLines(read_lines(path)), (lambda: sum(1 for _ in read_lines(path))) if path.is_file() else None


def _shown(line: str, translation: Translation, scores: bool, as_json: bool) -> Iterable[str]:
    if as_json:
        alternatives = [{"text": each.text, **_judged(each)} for each in translation.alternatives]
        warnings = [{"code": flag.code, "message": flag.message} for flag in translation.warnings]
        entry = {"source": line, "translation": translation.text, **_judged(translation)}
        yield json.dumps(entry | {"alternatives": alternatives, "warnings": warnings}, ensure_ascii=False) + "\n"
        return
    for each in translation.alternatives:
        confidence = "-" if each.confidence is None else f"{each.confidence:.2f}"
        yield f"{each.score:.4f}\t{confidence}\t{each.text}\n" if scores else f"{each.text}\n"


def _judged(each: Translation | Alternative) -> dict[str, float | None]:
    return {"score": each.score, "confidence": each.confidence}


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    aside = path.with_name(f".{path.name}.part")
    with aside.open("w", encoding="utf-8", newline="\n") as file:
        yield file
    aside.replace(path)
