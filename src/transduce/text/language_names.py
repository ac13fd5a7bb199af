"""What languages are called in English, by their codes, for people to choose from."""

from __future__ import annotations

__all__ = ["CODES", "NAMES", "language_name"]

NAMES = dict(
    line.split(" ", 1)
    for line in """
aa Afar|ab Abkhazian|ada Dangme|af Afrikaans|ak Akan|am Amharic|an Aragonese|ar Arabic|as Assamese|ay Aymara
az Azerbaijani|ba Bashkir|bci Baoulé|be Belarusian|bem Bemba|bg Bulgarian|bm Bambara|bn Bengali|bo Tibetan|br Breton
bs Bosnian|ca Catalan|ceb Cebuano|cs Czech|cv Chuvash|cy Welsh|da Danish|dag Dagbani|de German|din Dinka|dv Dhivehi
dyu Dyula|dz Dzongkha|ee Ewe|efi Efik|el Greek|en English|eo Esperanto|es Spanish|et Estonian|eu Basque|fa Persian
fat Fanti|ff Fula|fi Finnish|fj Fijian|fo Faroese|fon Fon|fr French|fy Western Frisian|ga Irish|gaa Ga
gd Scottish Gaelic|gl Galician|gn Guarani|gu Gujarati|ha Hausa|haw Hawaiian|he Hebrew|hi Hindi|hr Croatian
ht Haitian Creole|hu Hungarian|hy Armenian|id Indonesian|ig Igbo|is Icelandic|it Italian|iu Inuktitut|ja Japanese
jv Javanese|ka Georgian|kg Kongo|ki Kikuyu|kk Kazakh|kl Greenlandic|km Khmer|kn Kannada|ko Korean|ku Kurdish
ky Kyrgyz|la Latin|lb Luxembourgish|lg Ganda|ln Lingala|lo Lao|lt Lithuanian|luo Luo|lv Latvian|mai Maithili
mg Malagasy|mi Māori|mk Macedonian|ml Malayalam|mn Mongolian|mos Mossi|mr Marathi|ms Malay|mt Maltese|my Burmese
nb Norwegian Bokmål|nd North Ndebele|ne Nepali|nl Dutch|nn Norwegian Nynorsk|no Norwegian|nr South Ndebele
nso Northern Sotho|nv Navajo|ny Chichewa|nzi Nzima|oc Occitan|om Oromo|or Odia|pa Punjabi|pcm Nigerian Pidgin
pl Polish|ps Pashto|pt Portuguese|qu Quechua|rm Romansh|rn Rundi|ro Romanian|ru Russian|rw Kinyarwanda|sa Sanskrit
sd Sindhi|se Northern Sami|sg Sango|si Sinhala|sk Slovak|sl Slovenian|sm Samoan|sn Shona|so Somali|sq Albanian
sr Serbian|ss Swati|st Southern Sotho|su Sundanese|sv Swedish|sw Swahili|ta Tamil|te Telugu|tg Tajik|th Thai
ti Tigrinya|tk Turkmen|tl Tagalog|tn Tswana|to Tongan|tr Turkish|ts Tsonga|tt Tatar|tw Twi|twi Twi|ug Uyghur
uk Ukrainian|ur Urdu|uz Uzbek|ve Venda|vi Vietnamese|wo Wolof|xh Xhosa|yi Yiddish|yo Yoruba|za Zhuang|zgh Tamazight
zh Chinese|zu Zulu
""".replace("\n", "|").strip("|").split("|")
)  # fmt: skip
CODES = {name.lower(): code for code, name in NAMES.items()}
"""The codes of languages by their names in small letters."""


def language_name(code: str) -> str:
    """The English name of a language, or its code where we know none."""
    base, _, region = code.replace("_", "-").partition("-")
    name = NAMES.get(base.lower())
    if name is None:
        return code
    return f"{name} ({region})" if region else name
