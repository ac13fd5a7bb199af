"""Recipes are read, written, changed from the command line, and say what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

import transduce
from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError, InputError
from transduce.training.recipe import Budget, DecodingRecipe, Objective, Recipe, TokenizerRecipe, TrainingRecipe
from transduce.training.recipes import find_recipe, recipe_for, recipe_names

SHIPPED = sorted((Path(transduce.__file__).parent / "assets" / "recipes").glob("*.yaml"))

# Every part, and values that YAML could take for something else: 1e-9 for a text, null for none.
FULL: dict[str, Any] = {
    "model": {"d_model": 64, "heads": 2, "norm_position": "pre", "norm_epsilon": 1e-9, "d_k": None, "tying": "none"},
    "tokenizer": {
        "vocab_size": 500,
        "kind": "unigram",
        "dropout": 0.0,
        "shared": False,
        "language_tags": True,
        "protected": ["<br>", "{name}", "yes", "1.5", "ɛ"],
    },
    "training": {"warmup": 7, "rate": 1e-12, "epsilon": 1e-30, "schedule": "cosine", "optimizer": "adamw", "seed": 0},
    "budget": {"steps": 5, "epochs": None, "minutes": 0.5},
}


TASKS = ["language-model", "masked-language-model", "classification", "tagging", "image-classification", "text-to-text"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "my.yaml"


# The shipped ones


def test_there_are_shipped_recipes() -> None:
    assert [path.stem for path in SHIPPED] == recipe_names()
    assert {"small-corpus", "medium-corpus", "paper-base", "adaptation", "span-corruption"} <= set(recipe_names())
    for task in TASKS:
        assert find_recipe(task).task == task


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_recipe_loads_and_says_when_to_stop(path: Path) -> None:
    recipe = find_recipe(path.stem)
    assert recipe == Recipe.load(path)
    recipe.check_budget()
    of_data = {"labels": 7} if recipe.task in ("classification", "tagging", "image-classification") else {}
    config = recipe.config(recipe.tokenizer.vocab_size, **of_data)
    assert config.vocab_size == recipe.tokenizer.vocab_size
    assert config.output_size == of_data.get("labels", recipe.tokenizer.vocab_size)
    assert {name: value for name, value in vars(config).items() if name in recipe.model} == recipe.model
    assert any(limit is not None for limit in recipe.budget.model_dump().values())
    for part, values in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        resolved = recipe.model_dump()[part]
        assert resolved == values if isinstance(values, str) else resolved.items() >= values.items()


def test_the_papers_recipe_is_the_papers() -> None:
    """§5, §6.1, table 3: 100,000 steps, 4,000 of them warming up, Adam with β₂ 0.98 and ε 1e-9, ε_ls 0.1."""
    recipe = find_recipe("paper-base")
    training, config = recipe.training, recipe.config(37_000)
    assert (training.beta1, training.beta2, training.epsilon) == (0.9, 0.98, 1e-9)
    assert (training.schedule, training.rate, training.warmup) == ("noam", 1.0, 4000)
    assert (training.label_smoothing, training.batch_tokens, recipe.budget.steps) == (0.1, 25_000, 100_000)
    assert (training.average, training.average_count) == ("last", 5)  # §6.1; written every ten minutes, at 0.4 s a step
    assert training.validate_every * 0.4 / 60 == pytest.approx(10)
    assert training.patience == 0
    assert (config.d_model, config.d_ff, config.heads, config.encoder_layers, config.dropout) == (512, 2048, 8, 6, 0.1)


def test_the_papers_big_recipe_is_the_papers() -> None:
    """§5.2, §5.4, §6.1, table 3: 300,000 steps of 1.0 s, dropout 0.3, the mean of the last 20."""
    base, recipe = find_recipe("paper-base"), find_recipe("paper-big")
    config = recipe.config(37_000)
    assert (config.d_model, config.d_ff, config.heads, config.encoder_layers, config.dropout) == (
        1024,
        4096,
        16,
        6,
        0.3,
    )
    assert (recipe.budget.steps, recipe.training.average_count) == (300_000, 20)
    assert recipe.training.validate_every / 60 == pytest.approx(10)
    differs = {"average_count", "validate_every"}
    assert recipe.training.model_dump(exclude=differs) == base.training.model_dump(exclude=differs)
    assert recipe.tokenizer == base.tokenizer


@pytest.mark.parametrize(
    ("pairs", "name"),
    [(0, "tiny-corpus"), (9_000, "tiny-corpus"), (19_999, "tiny-corpus"), (20_000, "small-corpus"),
     (99_999, "small-corpus"), (100_000, "medium-corpus"), (999_999, "medium-corpus"), (1_000_000, "large-corpus"),
     (5_000_000, "large-corpus")],
)  # fmt: skip
def test_the_size_of_a_corpus_chooses_its_recipe_and_gives_the_reason(pairs: int, name: str) -> None:
    chosen, reason = recipe_for(pairs)
    assert chosen == name
    assert chosen in recipe_names()
    assert f"{pairs:,} pairs" in reason


def test_a_recipe_is_found_by_name_or_file(file: Path) -> None:
    file.write_text("training: {warmup: 12}\n")
    assert find_recipe(str(file)).training.warmup == 12
    with pytest.raises(
        InputError, match=r"no recipe 'smal-corpus'\. Did you mean 'small-corpus'\? Valid: .*paper-base"
    ):
        find_recipe("smal-corpus")


@pytest.mark.parametrize("name", ["", ".", "/", "nowhere/my.yaml", "x" * 300], ids=lambda name: name[:9])
def test_what_is_no_file_is_no_recipe(name: str) -> None:
    with pytest.raises(InputError, match="there is no recipe"):
        find_recipe(name)


# Reading and writing


@pytest.mark.parametrize("values", [{}, FULL], ids=["defaults", "full"])
def test_what_is_dumped_loads_as_the_same_recipe(file: Path, values: dict[str, Any]) -> None:
    recipe = Recipe.of(values)
    file.write_text(recipe.dump(), encoding="utf-8")
    assert Recipe.load(file) == recipe
    assert Recipe.load(file).config(400) == recipe.config(400)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_recipes_survive_dumping(path: Path, file: Path) -> None:
    file.write_text(Recipe.load(path).dump(), encoding="utf-8")
    assert Recipe.load(file) == Recipe.load(path)


def test_an_empty_file_is_the_default_recipe(file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert Recipe.load(file) == Recipe()


def test_numbers_may_be_written_as_people_do(file: Path) -> None:
    file.write_text("training: {rate: 1e-3}\n")  # which YAML takes for a text
    assert Recipe.load(file).training.rate == 0.001


@pytest.mark.parametrize(
    "contents",
    [b"training: [", b"training: warmup: 3", b"- training", b"3", b"just words", b"\0", b"\xff\xfe\xfa", b"[" * 2000],
    ids=["open", "colons", "list", "number", "words", "zero byte", "not UTF-8", "deep"],
)
def test_a_file_that_is_not_a_recipe_is_named(file: Path, contents: bytes) -> None:
    file.write_bytes(contents)
    with pytest.raises(ConfigError) as caught:
        Recipe.load(file)
    assert caught.value.where == str(file)


# Wrong settings


@pytest.mark.parametrize(
    ("values", "wrong", "right"),
    [
        ({"trainning": {}}, "trainning", "training"),
        ({"training": {"warmpu": 3}}, "training.warmpu", "training.warmup"),
        ({"tokenizer": {"vocabsize": 3}}, "tokenizer.vocabsize", "tokenizer.vocab_size"),
        ({"budget": {"step": 3}}, "budget.step", "budget.steps"),
        ({"taks": "tagging"}, "taks", "task"),
        ({"netwrok": "recurrent"}, "netwrok", "network"),
        ({"objectives": {}}, "objectives", "objective"),
        ({"objective": {"contxt": 3}}, "objective.contxt", "objective.context"),
        ({"task": "image-classification", "model": {"pacth": 7}}, "pacth", "patch"),
        ({"model": {"d_modle": 64}}, "d_modle", "d_model"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest(
    file: Path, values: dict[str, Any], wrong: str, right: str
) -> None:
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match=rf"'{wrong}' is not a setting.* Did you mean '{right}'\?") as caught:
        Recipe.load(file)
    assert caught.value.where == str(file)


WRONG_VALUES: list[tuple[str, str, Any]] = [
    ("training", "warmup", 0),
    ("training", "warmup", "soon"),
    ("training", "warmup", 1.5),
    ("training", "warmup", None),
    ("training", "rate", -1),
    ("training", "rate", float("nan")),
    ("training", "rate", float("inf")),
    ("training", "label_smoothing", 1),
    ("training", "schedule", "linear"),
    ("training", "batch_tokens", 2),
    ("training", "average", "ema"),
    ("training", "average_count", 0),
    ("training", "skip_spikes", "sometimes"),
    ("tokenizer", "vocab_size", 100),
    ("tokenizer", "kind", "words"),
    ("tokenizer", "dropout", 1.0),
    ("tokenizer", "shared", "sometimes"),
    ("tokenizer", "protected", "<br>"),
    ("tokenizer", "protected", [3]),
    ("tokenizer", "language_tags", "de"),
    ("model", "target_vocab_size", 100),
    ("objective", "context", 1),
    ("objective", "masked", 0),
    ("objective", "masked", 1),
    ("objective", "span", 0.5),
    ("objective", "span_corruption", "often"),
    ("model", "labels", 3),
    ("model", "head", "token"),
    ("budget", "steps", 0),
    ("budget", "minutes", -3),
    ("model", "d_model", 0),
    ("model", "d_model", "wide"),
    ("model", "dropout", 1.5),
    ("model", "dropout", "much"),
    ("model", "tying", "some"),
    ("model", "vocab_size", 100),
]


@pytest.mark.parametrize(("part", "name", "value"), WRONG_VALUES)
def test_a_value_that_cannot_work_is_named_with_its_setting_and_file(
    file: Path, part: str, name: str, value: Any
) -> None:
    file.write_text(yaml.safe_dump({part: {name: value}}))
    with pytest.raises(ConfigError) as caught:
        Recipe.load(file)
    assert name in caught.value.what
    assert caught.value.remedy
    assert caught.value.where == str(file)


@pytest.mark.parametrize("part", ["model", "tokenizer", "objective", "training", "budget"])
@pytest.mark.parametrize("value", [3, "words", [1]])
def test_a_part_that_is_no_list_of_settings_is_named(part: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"{part}=.* cannot work"):
        Recipe.of({part: value})


def test_settings_that_clash_are_named_both() -> None:
    with pytest.raises(ConfigError, match="d_model=100 is not divisible by heads=8"):
        Recipe.of({"model": {"d_model": 100}})


@pytest.mark.parametrize("budget", [{}, {"minutes": 5}, {"epochs": 3}])
def test_a_cosine_needs_its_last_step(budget: dict[str, Any]) -> None:
    """A file may leave it to the command line; a run may not."""
    recipe = Recipe.of({"training": {"schedule": "cosine"}, "budget": budget})
    with pytest.raises(ConfigError, match=r"schedule=cosine falls to the last step, and no number .* Give --steps"):
        recipe.check_budget()
    recipe.with_overrides(["budget.steps=100"]).check_budget()
    recipe.with_overrides(["training.schedule=noam"]).check_budget()


def test_a_vocabulary_each_gives_two_tables_of_which_the_targets_is_the_output_too() -> None:
    recipe = Recipe.of({"tokenizer": {"shared": False}})
    config = recipe.config(500, 400)
    assert (config.vocab_size, config.target_vocab_size, config.tying) == (500, 400, "target")
    assert Recipe.of({"tokenizer": {"shared": False}, "model": {"tying": "none"}}).config(500, 400).tying == "none"
    assert Recipe().config(500).tying == "all"
    with pytest.raises(ConfigError, match=r"model\.tying=all .* tokenizer\.shared=false .* Use model\.tying=target"):
        Recipe.of({"tokenizer": {"shared": False}, "model": {"tying": "all"}})


def test_symbols_that_cannot_be_protected_are_named_with_the_file(file: Path) -> None:
    file.write_text('tokenizer: {protected: ["<br>", "two words"]}')
    with pytest.raises(ConfigError, match=r"'two words' cannot be protected: .*white space") as caught:
        Recipe.load(file)
    assert caught.value.where == str(file)


@pytest.mark.parametrize("part", [TokenizerRecipe, TrainingRecipe, Objective, Budget, Recipe])
def test_every_setting_is_documented(part: type[BaseModel]) -> None:
    assert all(field.description for field in part.model_fields.values())


# What is learned


@pytest.mark.parametrize(
    ("task", "network", "metric", "from_examples"),
    [
        ("translation", "transformer", "bleu", False),
        ("text-to-text", "transformer", "bleu", False),
        ("language-model", "decoder-only", "loss", True),
        ("masked-language-model", "encoder-only", "loss", True),
        ("classification", "encoder-only", "accuracy", True),
        ("tagging", "encoder-only", "accuracy", True),
        ("image-classification", "vision", "accuracy", True),
    ],
)
def test_a_task_is_learned_by_its_network_and_measured_by_what_suits_it(
    task: str, network: str, metric: str, from_examples: bool
) -> None:
    recipe = Recipe.of({"task": task})
    assert (recipe.family, recipe.metric, recipe.learns_from_examples) == (network, metric, from_examples)
    assert recipe.with_overrides(["training.metric=loss"]).metric == "loss"


def test_span_corruption_is_text_to_text_on_plain_text_measured_by_its_loss() -> None:
    recipe = Recipe().with_overrides(["task=text-to-text", "objective.span_corruption=true"])
    assert (recipe.family, recipe.metric, recipe.learns_from_examples) == ("transformer", "loss", True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": "tagging", "network": "recurrent"}, r"network=recurrent .* tagging is learned otherwise"),
        ({"objective": {"span_corruption": True}}, r"span_corruption means nothing for translation"),
        ({"task": "tagging", "objective": {"span_corruption": True}}, r"means nothing for tagging.*task=text-to-text"),
        (
            {"task": "tagging", "training": {"metric": "bleu"}},
            r"metric=bleu is not measured for tagging.*Valid: accuracy",
        ),
        (
            {"task": "language-model", "training": {"metric": "accuracy"}},
            r"accuracy is not measured for language-model",
        ),
        ({"training": {"metric": "accuracy"}}, r"accuracy is not measured for translation.*Valid: bleu, chrf, loss"),
        ({"task": "classification", "tokenizer": {"language_tags": True}}, r"tokenizer\.language_tags .*means nothing"),
        ({"task": "language-model", "tokenizer": {"shared": False}}, r"tokenizer\.shared .*means nothing"),
        ({"task": "tagging", "tokenizer": {"split_marks": False}}, r"tokenizer\.split_marks .*means nothing"),
        (
            {"task": "language-model", "model": {"positions": "learned", "max_length": 64}},
            r"model\.max_length=64 has no place for the 256 tokens.*Use model\.max_length=256",
        ),
        (
            {"task": "classification", "model": {"positions": "learned", "max_length": 255}},
            r"model\.max_length=255 has no place",
        ),
        ({"tokenizer": {"kind": "char", "dropout": 0.1}}, r"tokenizer\.dropout=0\.1 needs merges"),
    ],
)
def test_settings_that_mean_nothing_for_a_task_are_refused(file: Path, values: dict[str, Any], message: str) -> None:
    file.write_text(yaml.safe_dump(values))
    with pytest.raises(ConfigError, match=message) as caught:
        Recipe.load(file)
    assert caught.value.where == str(file)
    assert caught.value.remedy


@pytest.mark.parametrize("patch", [1, 5, 8, 32])
def test_patches_need_not_fit_pictures_that_are_not_there_yet(patch: int) -> None:
    learned = {"positions": "learned", "max_length": 5}
    recipe = Recipe.of({"task": "image-classification", "model": {"patch": patch, **learned}})
    side = {"height": 2 * patch, "width": 2 * patch, "channels": 3, "labels": 2}
    assert recipe.config(3, **side).output_size == 2
    with pytest.raises(ConfigError, match="less than the patches"):
        recipe.config(3, **(side | {"width": 3 * patch}))


# Overrides


def test_lists_are_written_as_in_yaml() -> None:
    recipe = Recipe().with_overrides(['tokenizer.protected=["<br>","{name}"]', "tokenizer.shared=false"])
    assert recipe.tokenizer.protected == ["<br>", "{name}"]
    assert recipe.tokenizer.shared is False
    assert recipe.with_overrides(["tokenizer.protected=[a=b]"]).tokenizer.protected == ["a=b"]
    assert recipe.with_overrides(["tokenizer.protected=[]"]).tokenizer.protected == []


def test_overrides_change_what_they_name_and_nothing_else() -> None:
    before = Recipe.of(FULL)
    after = before.with_overrides(
        ["training.warmup=400", "training.rate=2e-3", "model.d_model=128", "model.norm_position=post",
         "budget.steps=null", "tokenizer.kind=bpe", "training.warmup=500", "model.attention_bias=true"]
    )  # fmt: skip
    expected = before.model_dump()
    expected["training"] |= {"warmup": 500, "rate": 0.002}  # the last word counts
    expected["model"] |= {"d_model": 128, "norm_position": "post", "attention_bias": True}
    expected["budget"]["steps"] = None
    expected["tokenizer"]["kind"] = "bpe"
    assert after.model_dump() == expected
    assert before == Recipe.of(FULL)
    assert before.with_overrides([]) == before


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.warmup", r"'training\.warmup' is not a setting\. Write key=value"),
        ("", r"'' is not a setting\. Write key=value"),
        ("trainin.warmup=3", r"'trainin\.warmup' is not a setting\. Did you mean 'training\.warmup'\?"),
        ("warmup=3", r"'warmup' is not a setting\. Did you mean 'training\.warmup'\?"),
        ("training.warmpu=3", r"'training\.warmpu' is not a setting\. Did you mean 'training\.warmup'\?"),
        ("training.warmup.more=3", r"'training\.warmup\.more' is not a setting\. Did you mean 'training\.warmup'\?"),
        ("model.d_modle=3", r"'d_modle' is not a setting of the model\. Did you mean 'd_model'\?"),
        ("training=3", r"'training' is not a setting"),
        ("=3", r"'' is not a setting"),
        ("training.warmup=soon", r"training\.warmup='soon' cannot work"),
        ("training.warmup=", r"training\.warmup=None cannot work"),
        ("training.warmup=[1", r"training\.warmup"),
        ("training.schedule=a: b: c", r"training\.schedule"),
        ("model.d_model=100", "d_model=100 is not divisible by heads=8"),
        ("model.vocab_size=100", "vocab_size"),
        ("model.dropout=much", "dropout"),
        ("taks=tagging", r"'taks' is not a setting\. Did you mean 'task'\?"),
        ("task=taging", r"task='taging' cannot work\. Did you mean 'tagging'\?"),
        ("task=[", r"'task=\[' has no readable value"),
        ("network=recurent", r"network='recurent' cannot work\. Did you mean 'recurrent'\?"),
        ("task.tagging=1", r"'task\.tagging' is not a setting"),
        ("objective.spans=3", r"'objective\.spans' is not a setting\. Did you mean 'objective\.span'\?"),
    ],
)
def test_a_wrong_override_is_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe().with_overrides([override])


def test_how_a_model_searches_is_part_of_its_recipe() -> None:
    assert DecodingRecipe().described() == {"decoding": {}, "mbr": False}
    recipe = Recipe.of({"decoding": {"beam": 16, "mbr": True}})
    assert recipe.decoding.described() == {"decoding": {"beam": 16}, "mbr": True}
    usual, options = DecodingRecipe(), DecodingOptions()
    assert (usual.beam, usual.alpha, options.length_penalty) == (options.beam, options.alpha, "gnmt")
