"""What is asked of the service and what it answers, field by field; the OpenAPI document is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = [
    "LOOKED_AT", "DetectRequest", "DetectedLanguage", "ErrorMessage", "LanguageMessage", "LibreTranslateRequest",
    "LibreTranslateResponse", "LookRequest", "LookResponse", "ModelList", "Settings", "Status",
    "TranslateRequest", "TranslateResponse",
]  # fmt: skip


def _whole(value: Any) -> Any:
    """JSON knows one kind of number: 4.0 is 4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Texts = Annotated[str | Annotated[list[str], Field(min_length=1)], Field(description="A text, or a list of texts.")]
CONFIDENCE = "From 0 to 1. 0.7: sentences like this came out 70 % like a human's translation (chrF)."
UpTo16 = Annotated[int, Field(ge=1, le=16), BeforeValidator(_whole)]
UpTo15 = Annotated[int, Field(ge=0, le=15), BeforeValidator(_whole)]
LOOKED_AT = 1000
"""Characters of a sentence whose attention is shown: its maps grow with the square."""
Key = Annotated[str | None, Field(description="Where the service asks for one; or the header Authorization: Bearer.")]


MOST_TERMS = 1000
Term = Annotated[str, Field(max_length=100, pattern=r"\w")]
Terms = Annotated[
    dict[Term, Term] | None,
    Field(max_length=MOST_TERMS, description="What terms are to become: {source term: target term}."),
]


class Asked(BaseModel):
    """A request: types are as written, and a name that is not known is refused."""

    model_config = ConfigDict(strict=True, extra="forbid")


class ErrorMessage(BaseModel):
    """Why a request is not served."""

    error: str = Field(description="A sentence for people.")


class TranslateRequest(Asked):
    """Texts to translate."""

    q: Texts
    model: str | None = Field(None, description="A model's name; else the first that fits the languages.")
    source: str | None = Field(None, description="The language of the texts.")
    target: str | None = Field(None, description="The language to translate into.")
    n_best: UpTo16 = Field(1, description="Translations of each text.")
    beam: UpTo16 | None = Field(None, description="Hypotheses kept while searching; else the model's own.")
    prefix: str | None = Field(None, description="What every translation is to begin with.")
    mbr: bool | None = Field(
        None, description="Of the beam, take what the others agree with most; else as the model has it."
    )
    glossary: Terms = None
    guard: bool = Field(True, description="Look after what must survive; false gives what the model writes.")
    alignment: bool = Field(False, description="Tell which words of the translation come from which of the text.")
    api_key: Key = None


class AlternativeMessage(BaseModel):
    """One way to translate a text."""

    text: str
    score: float = Field(description="Log-probability over length penalty; nearer to 0 is likelier.")
    confidence: float | None = Field(None, description=f"{CONFIDENCE} Null if the model was not calibrated.")


class Link(BaseModel):
    """A word and the one it comes from: first character and the one after the last, in each text."""

    source: tuple[int, int]
    target: tuple[int, int]


class FlagMessage(BaseModel):
    """Something that the reader of a translation should know."""

    code: str = Field(description="For programs: repetition, length, untranslated, pieces, lost or glossary.")
    message: str = Field(description="A sentence for people.")


class TranslationMessage(AlternativeMessage):
    """A text's translation."""

    alternatives: list[AlternativeMessage] = Field(description="The n best, the translation itself first.")
    warnings: list[FlagMessage] = Field(description="What could not be made good; mostly none.")
    alignment: list[Link] | None = None


class TranslateResponse(BaseModel):
    """Translations, one for each text."""

    model: str
    target: str | None
    translations: list[TranslationMessage]


class LookRequest(Asked):
    """A sentence to look into."""

    q: str = Field(pattern=r"\w", description=f"A sentence of at most {LOOKED_AT} characters.")
    model: str | None = Field(None, description="A model's name; else the first that fits the language.")
    target: str | None = Field(None, description="The language to translate into.")
    translation: str | None = Field(None, description="A translation of yours; else the model's own.")
    encoding: Literal["numbers", "bytes"] = Field(
        "numbers", description="Attention as nested lists, or as base64 of bytes, 255 for 1."
    )
    api_key: Key = None


class LookedAtWord(BaseModel):
    """A word, and its first and last token."""

    text: str
    first: int
    last: int


class LookedAt(BaseModel):
    """A sentence as the model reads it."""

    text: str
    tokens: list[str]
    words: list[LookedAtWord]


class MapMessage(BaseModel):
    """Attention weights: layers, heads, rows that look, columns that are looked at."""

    shape: list[int]
    numbers: list[Any] | None = None
    bytes: str | None = None


class TokenMessage(BaseModel):
    """A token that could be written."""

    token: str
    probability: float


class StepMessage(TokenMessage):
    """The writing of one token."""

    alternatives: list[TokenMessage]


class LookResponse(BaseModel):
    """Where a model looked."""

    model: str
    source_language: str | None
    target_language: str | None
    source: LookedAt
    target: LookedAt
    maps: dict[Literal["encoder", "decoder", "cross"], MapMessage]
    steps: list[StepMessage]


class ModelMessage(BaseModel):
    """A model, and what is known of it."""

    name: str
    source: str | None
    targets: list[str]
    card: str = Field(description="Its model card, in Markdown.")
    parameters: int
    scores: dict[str, Any] | None


class ModelList(BaseModel):
    """The models of this service."""

    models: list[ModelMessage]


class LibreTranslateRequest(BaseModel):
    """As LibreTranslate is asked."""

    model_config = ConfigDict(title="LibreTranslate request")

    q: Texts
    source: str = Field(description="The language of the texts, or auto.")
    target: str = Field(description="The language to translate into.")
    format: Literal["text", "html"] = Field("text", description="With html, tags stay as they are.")
    glossary: Terms = None
    alternatives: UpTo15 = Field(0, description="Further translations of each text.")
    api_key: Key = None


class DetectRequest(BaseModel):
    """A text whose language is to be found."""

    q: str
    api_key: Key = None


class DetectedLanguage(BaseModel):
    """A language, and how likely it is, in per cent."""

    language: str
    confidence: float


class LibreTranslateResponse(BaseModel):
    """As LibreTranslate answers: lists where a list was asked."""

    translatedText: str | list[str]
    alternatives: list[str] | list[list[str]] | None = None
    warnings: list[FlagMessage] | list[list[FlagMessage]] | None = Field(
        None, description="What could not be made good, where there is anything."
    )
    confidence: float | list[float | None] | None = Field(
        None, description=f"{CONFIDENCE} Not in LibreTranslate; missing if the model was not calibrated."
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None


class LanguageMessage(BaseModel):
    """A language to translate from, and those to translate it into."""

    code: str
    name: str
    targets: list[str]


class LanguageChoice(BaseModel):
    """A language."""

    code: str
    name: str


class Settings(BaseModel):
    """What a page needs to know before it asks."""

    charLimit: int
    batchLimit: int
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: list[str]
    frontendTimeout: int
    language: dict[str, LanguageChoice]


class Status(BaseModel):
    """How the service is."""

    status: Literal["ok"]
