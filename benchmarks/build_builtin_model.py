"""Make a built-in model of a finished training run: half-precision weights, compiled int8, measured, with its history.

Run it with: python benchmarks/build_builtin_model.py RUN_DIRECTORY NAME CORPUS COMMIT
for example: python benchmarks/build_builtin_model.py /tmp/en-de en-de tatoeba-en-de a527757
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import transduce
from transduce.bundle import Bundle
from transduce.data.builtin import BUILTIN, builtin_corpus
from transduce.evaluation import by_length, evaluate
from transduce.interop.ctranslate2 import compile_model
from transduce.translator import Translator

MODELS = Path(transduce.__file__).parent / "assets" / "models"
KEPT_STEPS = 100
"""Of the log's steps, every so many are kept beside the model."""


def main(run: Path, name: str, corpus: str, commit: str) -> None:
    """Write assets/models/NAME from a run, and print what it scores."""
    trained, described = Bundle.open(run), BUILTIN[corpus]
    output = MODELS / name
    shutil.rmtree(output, ignore_errors=True)
    model, vocabularies = trained.model(), trained.vocabularies()
    weights = {key: value.detach().half() for key, value in model.named_parameters()}
    languages = {"source_language": described.source_language, "target_language": described.target_language}
    config = replace(trained.config, **languages)
    bundle = Bundle.write(output, config, weights, vocabularies, {}, "")
    compile_model(bundle.model(), vocabularies, output / "ctranslate2")
    events = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    kept = [each for each in events if each["event"] != "Stepped" or each["step"] % KEPT_STEPS == 0]
    lines = [json.dumps(each, ensure_ascii=False) for each in kept if each["event"] != "Saved"]
    (output / "log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(run / "run" / "recipe.yaml", output / "recipe.yaml")

    translator, scores = Translator.load(output), {}
    for split in ("dev", "test"):
        pairs = list(builtin_corpus(corpus, split).pairs())
        sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
        translations = [each.text for each in translator.translate(sources)]
        measured = evaluate(translations, references).as_dict()
        lengths = [(each.label, each.sentences, each.bleu) for each in by_length(sources, translations, references)]
        scores[split] = measured | {"bleu_by_source_words": lengths}
        print(split, {key: measured[key] for key in ("bleu", "chrf", "ter")}, lengths)
    minutes = max(each["seconds"] for each in events if each["event"] == "Stepped") / 60
    scores["training"] = {"minutes": round(minutes, 1), "commit": commit, "steps": events[-1]["step"]}
    (output / "scores.json").write_text(json.dumps(scores, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    (output / "README.md").write_text(card(name, described, scores, bundle), encoding="utf-8")


def card(name: str, corpus: object, scores: dict[str, dict[str, object]], bundle: Bundle) -> str:
    """The model card, in plain words."""
    test, training = scores["test"], scores["training"]
    size = sum(each.numel() for each in bundle.model().parameters())
    rows = "\n".join(
        f"| {label} words | {count:,} | {'–' if bleu is None else f'{bleu:.1f}'} |"
        for label, count, bleu in test["bleu_by_source_words"]  # type: ignore[attr-defined]
    )
    return f"""# {name}

Translates everyday sentences from {corpus.source_language} to {corpus.target_language}. It comes with transduce, was
trained by it, and is meant for trying things out.

- **Data**: {corpus.name}, {corpus.pairs["train"]:,} pairs. {corpus.licence}; credit: {corpus.credit}.
- **Model**: {size:,} parameters, recipe in `recipe.yaml`, history in `log.jsonl`; {training["minutes"]} minutes on two
  cores without a GPU, commit {training["commit"]}, {training["steps"]:,} steps.
- **Scores** on {test["sentences"]:,} test sentences, beam 4, int8 (details and signatures in `scores.json`): BLEU
  {test["bleu"]:.1f}, chrF {test["chrf"]:.1f}, TER {test["ter"]:.1f}.

| source length | sentences | BLEU |
|---|---|---|
{rows}

**What it is bad at**: anything unlike its corpus, whose sentences are short and simple. Long sentences lose parts,
set phrases are taken word by word ("How are you?" becomes "Wie bist du?"), rare words and names are guessed or
misspelt, numbers may change, and formal and informal address are mixed. It is not fit for anything that matters.

The weights are under the licence of their data, CC BY 2.0: name the sources given above.
"""


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5])
