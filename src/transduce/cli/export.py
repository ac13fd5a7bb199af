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

TITLES = {
    "ctranslate2": "CTranslate2",
    "argos": "Argos Translate",
    "huggingface": "transformers",
    "onnx": "ONNX Runtime",
}


def export(
    model: Annotated[str, typer.Argument(help="Directory or name of a trained model.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory to write; of argos a file, such as en-de.argosmodel.")
    ],
    to: Annotated[
        Literal["ctranslate2", "argos", "huggingface", "onnx"],
        typer.Option(help="Whose format. argos: a package for Argos Translate and LibreTranslate."),
    ] = "ctranslate2",
    quantization: Annotated[
        Literal["int8", "float32"] | None,
        typer.Option(help="int8 is smaller and faster; the default unless narrow. ONNX is float32."),
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="The same as --quantization float32.")] = False,
    languages: Annotated[
        str | None,
        typer.Option(help="Such as en-tw, for a package of a model that does not say its own or that knows several."),
    ] = None,
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
            help="What to compare on: text, one sentence a line, a .tsv with references, a built-in corpus, or of "
            "pictures a file of these; else built-in data of the model's languages, or that suits its task."
        ),
    ] = None,
    verify_sentences: Annotated[
        int, typer.Option(min=1, help="How many sentences, texts or pictures to compare at most.")
    ] = 300,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Write a model in another tool's format, and prove that it does there what it does here.

    ctranslate2 translates without PyTorch; argos is a package that Argos Translate and LibreTranslate install;
    huggingface is a directory for transformers, with tokenizer and card, of models of every task; onnx are two graphs
    for ONNX Runtime (`translate --engine onnx`, if they are in the model's own folder onnx/).
    """
    from rich.console import Console

    if output.exists() and not force:
        raise InputError("something is there already.", where=str(output), remedy="Give another -o, or --force.")
    if float32 and quantization == "int8":
        raise ConfigError("--float32 and --quantization int8 cannot both be.", remedy="Leave one of them out.")
    if shortlist and to != "ctranslate2":
        raise ConfigError("only CTranslate2 knows shortlists.", remedy="Leave out --shortlist.")
    console = Console(stderr=True)
    with console.status("Compiling …"):
        from transduce.bundle import Bundle, find_model
        from transduce.cli.corpus_arguments import training_corpora
        from transduce.cli.verified_text import NOTHING, spread, verified_text
        from transduce.interop.export import Export
        from transduce.storage import storage_errors
        from transduce.text.languages import Direction

        bundle = Bundle.open(find_model(model))
        direction = Direction.parse(languages) if languages else Direction()
        door = Export(bundle, to, output, "float32" if float32 else quantization, direction)
        text = verified_text(bundle, verify_text) if verify else None  # before the work, so that a mistake costs none
        corpora = training_corpora(shortlist) if shortlist else []
        with storage_errors(output):
            door.write()
    if corpora:
        with console.status("Learning which words become which …"):
            _add_shortlist(corpora, bundle.vocabularies(), output)
    size = sum(file.stat().st_size for file in (output, *output.rglob("*")) if file.is_file()) / 1e6
    report, shortened = None, None
    if text is not None:
        with console.status("Comparing both …"):
            chosen = spread(*text, verify_sentences)
            report = door.verify(*chosen)
            shortened = _shortlist_report(bundle, output, *chosen) if corpora else None
    if as_json:
        entry: dict[str, Any] = {"output": str(output), "to": to, "megabytes": size}
        entry["parity"] = report and report.as_dict()
        if shortened is not None:
            entry["shortlist"] = shortened.as_dict()
        typer.echo(json.dumps(entry, ensure_ascii=False, indent=2))
        return
    typer.echo(f"Wrote {output} ({size:.1f} MB)." + (_tokenizer_note(bundle) if to == "ctranslate2" else ""))
    if report is not None:
        _show(report, shortened, TITLES[to])
    elif verify:
        typer.echo(f"Not verified: {NOTHING[bundle.config.task]}. Give --verify-text FILE to compare.")


def _tokenizer_note(bundle: Bundle) -> str:
    """Where the tokenizer is that a compiled model needs."""
    names = " and ".join(str(bundle.path / name) for name in bundle.vocabularies().files())
    return f" Its tokenizer is {names}."


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


def _shortlist_report(bundle: Bundle, output: Path, sources: list[str], references: list[str] | None) -> Parity:
    """What a compiled model writes with its shortlist, against without; also in a file."""
    from transduce.engines.ctranslate2_engine import CTranslate2Engine
    from transduce.interop.parity import parity
    from transduce.translator import Translator

    ours = Translator(bundle, "torch")
    plain, short = (
        Translator(bundle, CTranslate2Engine(output, ours.vocabularies, lambda: ours.torch_engine, shortlist))
        for shortlist in (False, True)
    )
    report = parity(plain, short, sources, references)
    report.write(output / "shortlist.json")
    return report


def _show(report: Parity, shortened: Parity | None, tool: str) -> None:
    from transduce.cli.tables import print_scores
    from transduce.interop.parity import parity_table

    print_scores(*parity_table(report), [])
    if shortened is not None:
        typer.echo()
        print_scores(*parity_table(shortened, "With the shortlist, against without", "BLEU, without → with"), [])
    for each in report.differences:
        typer.echo(f"\n{each.source}\n  PyTorch:  {each.ours}\n  exported: {each.exported}")
    typer.echo(f"\n{tool} without transduce means something else by:")
    for name, meaning in report.other_meanings.items():
        typer.echo(f"  {name}: {meaning}")
