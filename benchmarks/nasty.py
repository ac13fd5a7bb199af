"""What a model makes of 500 inputs that nobody would train it on: what crashes, loops, runs away or gets lost.

    python benchmarks/nasty.py [MODEL] [--raw] [--json]

The inputs are the same in every run: nothing, single words, 400 words, capitals, no punctuation, emoji, addresses,
code, other languages, the same word over and over, numbers, tags, placeholders, and all of it mixed. What is counted
does not depend on how the guards work: words that come at once more often than in the source, tokens beyond three times
the source's and twenty, and digits and addresses that are not in the translation. With --raw, the guards are off.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable

from transduce import Translator
from transduce.translator import Translation

COUNT = 500
WORDS = [
    "the", "a", "house", "dog", "river", "my", "your", "old", "green", "quickly", "and", "but", "because", "who",
    "never", "always", "runs", "sees", "station", "book", "letter", "water", "teacher", "garden", "tomorrow", "big",
    "small", "found", "lost", "under", "over", "with", "without", "money", "time", "day", "night", "friend", "city",
]  # fmt: skip
SENTENCES = [
    "I would like a cup of coffee.", "My sister works in a hospital.", "Where is the next station?",
    "He told me that he had never seen such a large dog.", "If it rains tomorrow, we will stay at home and read.",
    "She bought a new car, although the old one was still good.",
]  # fmt: skip
FOREIGN = [
    "我喜欢在晚上读书。", "Где находится ближайшая станция?", "أين المحطة؟", "駅はどこですか。", "Πού είναι ο σταθμός;",
    "¿Dónde está la estación?", "Dove si trova la stazione?", "Ɛhe na gyinabea no wɔ?", "स्टेशन कहाँ है?",
    "Wo ist der Bahnhof?",
]  # fmt: skip
EMOJI = ["😀", "❤️", "👍🏽", "🇬🇭", "👩‍👩‍👧", "🎉🎉🎉", "⚠️", "✅"]
CODE = [
    "for (int i = 0; i < 10; i++) { sum += a[i]; }", "def f(x): return x ** 2", "SELECT * FROM users WHERE id = 42;",
    "git commit -m 'fix: typo'", "if (a && b) || !c: pass", "C:\\Users\\tom\\file.txt",
    "<div class=\"a\"><p>Hi</p></div>",
    "x = {'a': [1, 2, 3]}", "rm -rf ./build && make -j4", "printf(\"%s has %d\\n\", name, n);",
]  # fmt: skip
URLS = [
    "https://example.com", "http://www.example.org/a/b?c=1&d=2#e", "www.example.net/path", "tom@example.com",
    "https://sub.example.co.uk/very-long/path/with_many.parts/index.html", "mary.smith+news@mail.example.org",
]  # fmt: skip
HOLDERS = ["{name}", "%s", "%(count)d", "${user}", "{{title}}", "<b>", "</b>", "&nbsp;", "{0}"]
NOISE = "abcdefghijklmnopqrstuvwxyz     .,;!?<>{}%&$#@"
NUMBER = re.compile(r"\d[\d.,:'’]*\d|\d")
ADDRESS = re.compile(r"https?://[^\s]*[\w/]|www\.[^\s]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def nasty() -> list[tuple[str, str]]:
    """Kinds and texts."""
    draw = random.Random(20)

    def words(count: int) -> str:
        return " ".join(draw.choices(WORDS, k=count))

    def number() -> str:
        kinds: list[Callable[[], str]] = [
            lambda: str(draw.randint(0, 99)), lambda: f"{draw.randint(1000, 10**7):,}",
            lambda: str(draw.randint(1900, 2030)), lambda: f"{draw.randint(1, 999)}.{draw.randint(10, 99)}",
            lambda: f"{draw.randint(1, 12)}:{draw.randint(10, 59)}",
            lambda: f"{draw.randint(1, 28)}/{draw.randint(1, 12)}/{draw.randint(1950, 2030)}",
        ]  # fmt: skip
        return draw.choice(kinds)()

    def inserted(text: str, what: str) -> str:
        pieces = text.split()
        pieces.insert(draw.randint(0, len(pieces)), what)
        return " ".join(pieces)

    def sentence() -> str:
        return draw.choice(SENTENCES)

    def mixed() -> str:
        text = sentence()
        for _ in range(draw.randint(1, 6)):
            text = inserted(text, draw.choice([number(), *draw.sample(URLS + EMOJI + HOLDERS + FOREIGN, 3)]))
        return text

    kinds: dict[str, Callable[[], str]] = {
        "empty": lambda: draw.choice(["", " ", "\n", "\t ", "\u3000", ".", "?!", "…", "-", "\u200b"]),
        "one word": lambda: draw.choice([*WORDS, "Xylophone", "antidisestablishmentarianism", "qwrtz", "I", "ß", "Ω"]),
        "400 words": lambda: words(400),
        "capitals": lambda: sentence().upper(),
        "no punctuation": lambda: re.sub(r"\W+", " ", " ".join(draw.sample(SENTENCES, 4))).lower(),
        "emoji": lambda: inserted(inserted(sentence(), draw.choice(EMOJI)), draw.choice(EMOJI)),
        "only emoji": lambda: "".join(draw.choices(EMOJI, k=draw.randint(1, 5))),
        "addresses": lambda: inserted(sentence(), draw.choice(URLS)),
        "code": lambda: draw.choice(CODE),
        "other languages": lambda: draw.choice(FOREIGN),
        "repeated": lambda: " ".join([draw.choice(WORDS)] * draw.choice([5, 20, 80])),
        "repeated phrase": lambda: " ".join([words(3)] * draw.choice([4, 12, 40])),
        "characters": lambda: draw.choice("aXß.!?0-") * draw.choice([5, 50, 500]),
        "numbers": lambda: inserted(inserted(sentence(), number()), number()),
        "many numbers": lambda: ", ".join(f"{draw.choice(WORDS)} {number()}" for _ in range(12)),
        "placeholders": lambda: inserted(inserted(sentence(), draw.choice(HOLDERS)), draw.choice(HOLDERS)),
        "noise": lambda: "".join(draw.choices(NOISE, k=draw.randint(10, 200))),
        "mixed": mixed,
    }  # fmt: skip
    names = list(kinds)
    return [(name := names[index % len(names)], kinds[name]()) for index in range(COUNT)]


def run_of(text: str) -> int:
    """How much is said at once, again and again: the most often, for phrases of up to ten words, single ones apart."""
    words = re.findall(r"\w+", text.casefold())
    most = 1
    for phrase in range(1, 11):
        same = 0
        for place in range(phrase, len(words)):
            same = same + 1 if words[place] == words[place - phrase] else 0
            often = same // phrase + 1
            most = max(most, often - (phrase == 1) if often > 3 or phrase > 1 else 1)
    return most


def loops(source: str, target: str) -> bool:
    """Whether a translation says something three times at once (a single word four times), and its source does not."""
    return run_of(target) >= 3 and run_of(target) > run_of(source)


def numbers_of(text: str) -> Counter[str]:
    """Digits of the numbers of a text that are not part of an address."""
    return Counter(re.sub(r"\D", "", number) for number in NUMBER.findall(ADDRESS.sub(" ", text)))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en-de")
    parser.add_argument("--raw", action="store_true", help="what the model writes, without guards")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true", help="print every input and what became of it")
    asked = parser.parse_args()
    translator = Translator.load(asked.model)
    source, target = translator.vocabularies.source, translator.vocabularies.target
    figures = Counter[str]()
    kept, wanted = Counter[str](), Counter[str]()
    started, cpu = time.perf_counter(), time.process_time()
    for kind, text in nasty():
        try:
            found: Translation = translator.translate(text, guard=not asked.raw)
        except Exception as error:  # whatever it is, it is what is looked for
            figures["crashes"] += 1
            print(f"{kind}: {text[:60]!r}: {error!r}")
            continue
        written = found.text
        figures["loops"] += loops(text, written)
        figures["too long"] += len(target.encode(written)) > 3 * len(source.encode(text)) + 20
        figures["with warnings"] += bool(found.warnings)
        figures["decoded again"] += found.redone
        digits, there = numbers_of(text), numbers_of(written)
        runs = Counter(re.findall(r"\d+", ADDRESS.sub(" ", written)))
        wanted["numbers"] += digits.total()
        kept["numbers"] += sum(min(count, max(there[each], runs[each])) for each, count in digits.items())
        addresses = Counter(ADDRESS.findall(text))
        wanted["addresses"] += addresses.total()
        kept["addresses"] += sum(min(count, written.count(each)) for each, count in addresses.items())
        if asked.show:
            print(f"{kind}\n  {text[:300]!r}\n  {written[:300]!r}\n  {[flag.code for flag in found.warnings]}")
    figures["seconds"], figures["CPU seconds"] = time.perf_counter() - started, time.process_time() - cpu  # type: ignore[assignment]
    report = {"model": asked.model, "inputs": COUNT, "guards": not asked.raw}
    report |= {name: figures[name] for name in ("crashes", "loops", "too long", "decoded again", "with warnings")}
    report |= {f"{name} kept": round(kept[name] / wanted[name], 4) for name in ("numbers", "addresses")}
    report |= {name: round(figures[name], 1) for name in ("seconds", "CPU seconds")}
    if asked.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        print(f"{name:14} {value:.1%}" if name.endswith("kept") else f"{name:14} {value}")


if __name__ == "__main__":
    main()
