"""`transduce export`: a model in other tools' formats, and what it translates otherwise there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.errors import ConfigError, InputError

if TYPE_CHECKING:
    from transduce.bundle import Bundle
    from transduce.data.corpus import Corpus
    from transduce.interop.parity import Parity
    from transduce.text import Vocabularies

__all__ = ["export"]


def export(
    model: Annotated[str, typer.Argument(help="Directory or name of a trained model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write.")],
    to: Annotated[Literal["ctranslate2"], typer.Option(help="Whose format.")] = "ctranslate2",
    quantization: Annotated[
        Literal["int8", "float32"] | None, typer.Option(help="int8 is smaller and faster; the default unless narrow.")
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="The same as --quantization float32.")] = False,
    shortlist: Annotated[
        list[str] | None,
        typer.Option(
            help="Learn from this corpus which words can become which, for `translate --shortlist`: the name of a "
            "built-in one, a .tsv, or (given twice) two text files."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Translate with both and compare; written to parity.json.")
    ] = True,
    verify_text: Annotated[
        Path | None,
        typer.Option(
            help="What to compare on: text, one sentence a line, a .tsv with references, or a built-in corpus; else "
            "the dev set of a built-in corpus of the model's languages."
        ),
    ] = None,
    verify_sentences: Annotated[int, typer.Option(min=1, help="How many sentences to compare at most.")] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Write a model in another tool's format. CTranslate2 translates it without PyTorch."""
    from rich.console import Console

    if output.exists() and not force:
        raise InputError("something is there already.", where=str(output), remedy="Give another -o, or --force.")
    if float32 and quantization == "int8":
        raise ConfigError("--float32 and --quantization int8 cannot both be.", remedy="Leave one of them out.")
    console = Console(stderr=True)
    with console.status("Compiling …"):
        from transduce.bundle import Bundle, find_model
        from transduce.cli.corpus_arguments import training_corpora
        from transduce.interop.ctranslate2 import compile_model

        bundle = Bundle.open(find_model(model))
        bundle.require("translation", "text-to-text", "parsing")
        text = _verified_text(bundle, verify_text) if verify else None  # before the work, so that a mistake costs none
        corpora = training_corpora(shortlist) if shortlist else []
        vocabularies = bundle.vocabularies()
        compile_model(bundle.model(), vocabularies, output, "float32" if float32 else quantization)
    if corpora:
        with console.status("Learning which words become which …"):
            _add_shortlist(corpora, vocabularies, output)
    size = sum(file.stat().st_size for file in output.rglob("*")) / 1e6
    report, shortened = None, None
    if text is not None:
        with console.status("Translating with both …"):
            report, shortened = _compared(bundle, output, _spread(*text, verify_sentences))
    if as_json:
        entry: dict[str, Any] = {"output": str(output), "megabytes": size, "parity": report and report.as_dict()}
        if shortened is not None:
            entry["shortlist"] = shortened.as_dict()
        typer.echo(json.dumps(entry, ensure_ascii=False, indent=2))
        return
    names = " and ".join(str(bundle.path / name) for name in vocabularies.files())
    typer.echo(f"Wrote {output} ({size:.1f} MB). Its tokenizer is {names}.")
    if report is not None:
        _show(report, shortened)
    elif verify:
        typer.echo("Not verified: no built-in corpus has its languages. Give --verify-text FILE to compare.")


def _verified_text(bundle: Bundle, given: Path | None) -> tuple[list[str], list[str] | None] | None:
    """Sentences to compare on, and their references where they are known; None where there is nothing."""
    from transduce.cli.corpus_arguments import measured_corpus
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.corpus import is_tsv, read_lines

    if given is not None:
        if given.is_file() and not is_tsv(given):
            lines = [line for line in read_lines(given) if line.strip()]
            if not lines:
                raise InputError("there is no text to compare on.", where=str(given), remedy="Give another file.")
            return lines, None
        corpus = measured_corpus(given, None)
    else:
        languages = (bundle.config.source_language, bundle.config.target_language)
        corpora = [one for one in BUILTIN.values() if one.contents == "pairs"]
        names = [one.name for one in corpora if (one.source_language, one.target_language) == languages]
        if not names:
            return None
        corpus = builtin_corpus(names[0], "dev")
    pairs = list(corpus.pairs(allow_identical=True))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]


def _spread(sources: list[str], references: list[str] | None, most: int) -> tuple[list[str], list[str] | None]:
    """At most so many of the sentences, from all over the text."""
    count = min(most, len(sources))
    chosen = [place * len(sources) // count for place in range(count)]
    return [sources[index] for index in chosen], references and [references[index] for index in chosen]


def _add_shortlist(corpora: list[Corpus], vocabularies: Vocabularies, output: Path) -> None:
    """Learn a shortlist from text and put it into a compiled model."""
    from transduce.interop.shortlist import learn_shortlist, write_shortlist
    from transduce.storage import storage_errors

    def ids() -> Iterator[tuple[list[int], list[int]]]:
        for corpus in corpora:
            for pair in corpus.pairs(allow_identical=True):
                yield vocabularies.source.encode(pair.source), vocabularies.target.encode(pair.target)

    with storage_errors(output):
        write_shortlist(learn_shortlist(ids(), vocabularies), vocabularies, output)


def _compared(bundle: Bundle, output: Path, text: tuple[list[str], list[str] | None]) -> tuple[Parity, Parity | None]:
    """The exported model against PyTorch, and where it has a shortlist, with it against without; both also in files."""
    from transduce.engines.ctranslate2_engine import SHORTLIST, CTranslate2Engine
    from transduce.interop.ctranslate2 import OTHER_MEANINGS
    from transduce.interop.parity import parity
    from transduce.translator import Translator

    ours = Translator(bundle, "torch")
    exported, short = (
        Translator(bundle, CTranslate2Engine(output, ours.vocabularies, lambda: ours.torch_engine, shortlist))
        for shortlist in (False, (output / SHORTLIST).is_file())
    )
    report = parity(ours, exported, *text, other_meanings=OTHER_MEANINGS)
    report.write(output / "parity.json")
    if not (output / SHORTLIST).is_file():
        return report, None
    shortened = parity(exported, short, *text)
    shortened.write(output / "shortlist.json")
    return report, shortened


def _show(report: Parity, shortened: Parity | None) -> None:
    from transduce.cli.tables import print_scores
    from transduce.interop.parity import parity_table

    print_scores(*parity_table(report), [])
    if shortened is not None:
        typer.echo()
        print_scores(*parity_table(shortened, "With the shortlist, against without", "BLEU, without → with"), [])
    for each in report.differences:
        typer.echo(f"\n{each.source}\n  PyTorch:  {each.ours}\n  exported: {each.exported}")
    typer.echo("\nCalled without transduce, these settings mean something else there:")
    for name, meaning in report.other_meanings.items():
        typer.echo(f"  {name}: {meaning}")
