"""The parts of a recipe: every setting with its type, its default and what it means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Budget",
    "DataRecipe",
    "DecodingRecipe",
    "Objective",
    "RecipePart",
    "TokenizerRecipe",
    "TrainingRecipe",
]


class RecipePart(BaseModel):
    """Values that are checked: an unknown key or a value out of bounds is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class TokenizerRecipe(RecipePart):
    """How text becomes tokens."""

    vocab_size: int = Field(default=8000, ge=276)
    """Pieces of the vocabulary; a small corpus gets as many as it can bear."""
    shared: bool = True
    """One vocabulary for source and target, as in the paper; if false, one of this size each, which suits languages of
    different scripts."""
    kind: Literal["bpe", "unigram", "char"] = "bpe"
    """SentencePiece's way of learning pieces; char has a piece for each character, whatever vocab_size says."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """BPE-dropout: the chance of each merge to be left out, anew each time a sentence is seen."""
    protected: list[str] = Field(default_factory=list)
    """Symbols that are never split and come through whole, such as ["<br>", "{name}"]."""
    split_marks: bool = True
    """No piece holds letters and marks at once, so that `house.` is `house` and `.`; false for text that is tokenised
    already, where spaces say what belongs together: `d&apos;` and `t-shirt` can be one piece each."""
    language_tags: bool = False
    """Put a tag for the target language before each source, so that one model learns several; `--to` chooses."""


class DataRecipe(RecipePart):
    """What is learned from besides the pairs as they are."""

    variants: float = Field(default=0.0, ge=0, le=1)
    """Share of the pairs that are learned in another form as well, so that the model can bear what people type:
    joined to longer texts, in small letters, without the final mark, and with slots for what must come through as it is
    (numbers, addresses, terms of a glossary)."""


class TrainingRecipe(RecipePart):
    """How the weights are learned."""

    batch_tokens: int = Field(default=4096, ge=16)
    """Tokens of a batch on each side, padding included."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one step."""
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    """Adam as in the paper; with decoupled weight decay; or Muon, which learns more from each step, and on two cores
    from each minute too."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """β₁ of Adam."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """β₂ of Adam."""
    epsilon: float = Field(default=1e-9, gt=0)
    """ε of Adam."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of AdamW and Muon."""
    unit_embeddings: bool = False
    """Keep the embedding of every piece at length 1 (FixNorm: Nguyen and Salazar, 2019). Otherwise it grows with how
    often a piece is seen, and most pieces of little text are rare."""
    schedule: Literal["noam", "inverse_sqrt", "cosine"] = "noam"
    """The learning rate: the paper's, the same with a peak of your own, or a cosine down to budget.steps."""
    rate: float = Field(default=1.0, gt=0)
    """Factor on the paper's rate (noam), or the peak (the others)."""
    warmup: int = Field(default=4000, ge=1)
    """Steps to the peak."""
    cooldown: float = Field(default=0.0, ge=0, le=1)
    """Share of the budget, at its end, in which the rate falls to zero on top of the schedule; 0 is off."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """ε_ls."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of R-Drop (Liang et al., 2021): two passes with other dropout must agree; doubles the cost of a step."""
    r_drop_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the budget, at its end, in which R-Drop is at work: at first it slows learning down."""
    sampled_softmax: int = Field(default=0, ge=0)
    """Compare the right pieces of a batch with so many others, drawn anew each time, instead of with all: faster where
    the vocabulary is large and the model small; 0 compares with all, as in the paper, and validation always does."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """The chance of each source token to be replaced by the unknown one."""
    clip: float = Field(default=0.0, ge=0)
    """Largest norm of the gradient of a step; 0 is off, as in the paper."""
    skip_spikes: bool = True
    """Leave out steps whose gradient is ten times the usual while the perplexity is twice that of any recent step."""
    average: Literal["moving", "last", "best", "none"] = "moving"
    """The weights that become the model: a moving average; or the mean of the last (as in the paper) or best few that
    were validated, if it is better than the best of them; or simply the best."""
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    """Of the moving average; 0 keeps the weights themselves."""
    average_count: int = Field(default=5, ge=1)
    """How many are averaged with last and best; the paper takes 5 for its base model, 20 for its big one."""
    validate_every: int = Field(default=1000, ge=1)
    """Steps between validations."""
    checkpoint_every: int = Field(default=500, ge=1)
    """Steps between checkpoints: the most that a power cut can cost."""
    metric: Literal["auto", "bleu", "chrf", "loss", "accuracy", "f1"] = "auto"
    """What decides which weights are best, on the dev set; auto is what suits the task."""
    patience: int = Field(default=10, ge=0)
    """Validations without a better score before training ends, or a cooldown begins early; 0 is never."""
    compile: bool = False
    """Compile the model with PyTorch's compiler first: minutes that can pay on a GPU (untested), not on a CPU."""
    seed: int = Field(default=1, ge=0)
    """Of everything random: weights, order, dropout, segmentation."""


class DecodingRecipe(RecipePart):
    """How the model searches for a translation unless told otherwise."""

    beam: int = Field(default=4, ge=1, le=64)
    """Hypotheses kept while searching."""
    alpha: Annotated[float, Field(ge=-10, le=10)] | Literal["auto"] = 0.6
    """α of the paper's length penalty: larger values make longer translations. auto chooses it on the dev set when
    training is done: models of little text tend to leave things out."""
    mbr: bool = False
    """Take, of the hypotheses, the one that the others agree with most; pays for models of little text, with a beam of
    8 or more."""

    def described(self) -> dict[str, Any]:
        """The fields of a model's description that say so."""
        differing = {"beam": self.beam, "alpha": self.alpha}
        usual = DecodingRecipe()
        decoding = {name: value for name, value in differing.items() if value not in ("auto", getattr(usual, name))}
        return {"decoding": decoding, "mbr": self.mbr}


class Objective(RecipePart):
    """What is asked of texts that come without an answer; each setting counts for the tasks that it names."""

    context: int = Field(default=256, ge=2)
    """Tokens that a language model sees at once, and the most that the others read of a text."""
    masked: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that a masked-language-model has to guess."""
    span_corruption: bool = False
    """Let text-to-text learn from plain text: to write the spans that were cut out of it."""
    corrupted: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that span corruption cuts out."""
    span: float = Field(default=3.0, ge=1)
    """Mean length of such a span."""


class Budget(RecipePart):
    """When to stop; whichever comes first."""

    steps: int | None = Field(default=None, ge=1)
    """Updates of the weights."""
    epochs: int | None = Field(default=None, ge=1)
    """Times the corpus is seen."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes of training, over all continuations of the run."""
