"""The card of an exported model: its own, what the Hub asks for before it, and how to use it there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from transduce.bundle import BundleConfig
from transduce.text.languages import Direction

__all__ = ["LOST", "OTHER_MEANINGS", "card", "other_meanings"]

OTHER_MEANINGS = {
    "length_penalty": "It divides by |Y|^α, ours, the paper's, by ((5+|Y|)/6)^α; generation_config.json has our α.",
    "early_stopping": 'generation_config.json says "never", which is our search; with other values it ends sooner.',
    "max_length": "It lets every sentence have 256 tokens, ours the source's length and 50 more; what reaches "
    "the limit ends there for nothing, here at the price of an end.",
    "guards": "Nothing is looked at: loops, lost numbers and tags, glossaries and confidence stay here.",
    "sentences": "It does not cut texts into sentences; give them one by one.",
    "normalisation": "It reads text as it is, or with sacremoses installed as that changes it; transduce makes it NFC "
    "with plain spaces first.",
}
"""What is otherwise there, and cannot be put into the directory, of translators."""
SPECIAL = {
    "special tokens": "A text that holds </s> or another one of them is read as having it; here it is only text."
}
LOST: dict[str, Mapping[str, str]] = {
    "language-model": {
        "sampling": "It takes the most probable token unless it is asked to draw (do_sample=True); ours draws.",
        **SPECIAL,
    },
    "masked-language-model": {"mask": "Write the tokenizer's own mask_token for [MASK].", **SPECIAL},
    "classification": SPECIAL,
    "tagging": {
        "words": "Give words (is_split_into_words=True); the tag of each is that of its first piece.",
        **SPECIAL,
    },
    "image-classification": {"size": "It scales pictures to the size that it has learned; here they must have it."},
}
TAGS = {
    "translation": "translation", "text-to-text": "text2text-generation", "parsing": "text2text-generation",
    "language-model": "text-generation", "masked-language-model": "fill-mask", "classification": "text-classification",
    "tagging": "token-classification", "image-classification": "image-classification",
}  # fmt: skip
"""What the Hub calls our tasks."""
CLASSES = {
    "language-model": "AutoModelForCausalLM",
    "masked-language-model": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
    "tagging": "AutoModelForTokenClassification",
}
LINES = {
    "language-model": [
        'batch = tokenizer("…", return_tensors="pt")',
        "print(tokenizer.decode(model.generate(**batch, max_new_tokens=40)[0], skip_special_tokens=True))",
    ],
    "masked-language-model": [
        'batch = tokenizer("… {mask} …", return_tensors="pt")',
        "place = batch.input_ids[0].tolist().index(tokenizer.mask_token_id)",
        "print(tokenizer.decode([model(**batch).logits[0, place].argmax()]))",
    ],
    "classification": [
        'logits = model(**tokenizer("…", return_tensors="pt")).logits',
        "print(model.config.id2label[int(logits[0].argmax())])",
    ],
    "tagging": [
        'batch = tokenizer("…".split(), is_split_into_words=True, return_tensors="pt")',
        "tags = [model.config.id2label[index] for index in model(**batch).logits[0].argmax(-1).tolist()]",
        "words = batch.word_ids()",
        "print([tag for tag, word, last in zip(tags, words, [None, *words]) if word not in (None, last)])",
    ],
}


def other_meanings(task: str, marian: bool = True) -> Mapping[str, str]:
    """What is otherwise there."""
    if task in LOST:
        return LOST[task]
    if marian:
        return OTHER_MEANINGS
    known = {name: meaning for name, meaning in OTHER_MEANINGS.items() if name != "normalisation"}
    return (
        known
        | {"length": "A language code that a translation starts with counts there as one of its tokens."}
        | SPECIAL
    )


def card(config: BundleConfig, languages: Direction, own: str, *, marian: bool, mask: str = "") -> str:
    """The card; `own` is the model's."""
    targets = config.target_languages or [languages.target or ""]
    spoken = [each for each in (languages.source, *targets) if each]
    front = [
        "---",
        "library_name: transformers",
        f"pipeline_tag: {TAGS[config.task]}",
        "tags:",
        f"- {TAGS[config.task]}",
    ]
    front += ["language:", *(f"- {json.dumps(each)}" for each in dict.fromkeys(spoken))] if spoken else []
    front += [f"license: {config.licence.lower().replace(' ', '-')}"] if config.licence else []
    tag = f">>{config.target_languages[0]}<<" if config.target_languages and marian else ""  # no space: it is a token
    lost = "\n".join(f"- **{name}**: {meaning}" for name, meaning in other_meanings(config.task, marian).items())
    return "\n".join(front) + (
        f"\n---\n\n```python\n{_example(config.task, tag, mask)}\n```\n\n"
        f"Trained with transduce and exported from it. What is otherwise here:\n\n{lost}\n\n{own}"
    )


def _example(task: str, tag: str, mask: str) -> str:
    """How to use it, as code that runs in its directory."""
    if task == "image-classification":
        lines = [
            "from PIL import Image",
            "from transformers import AutoImageProcessor, AutoModelForImageClassification",
            "",
            'processor = AutoImageProcessor.from_pretrained(".")',
            'model = AutoModelForImageClassification.from_pretrained(".")',
            'logits = model(**processor(Image.open("…"), return_tensors="pt")).logits',
            "print(model.config.id2label[int(logits[0].argmax())])",
        ]
        return "\n".join(lines)
    name = CLASSES.get(task, "AutoModelForSeq2SeqLM")
    written = [
        f'batch = tokenizer(["{tag}…"], return_tensors="pt", padding=True)',
        "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))",
    ]
    lines = [
        f"from transformers import {name}, AutoTokenizer",
        "",
        f'tokenizer, model = AutoTokenizer.from_pretrained("."), {name}.from_pretrained(".")',
        *(line.replace("{mask}", mask) for line in LINES.get(task, written)),
    ]
    return "\n".join(lines)
