"""Text to lexical tokens, the same at index and at query time. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from memory_tools.stems import stem

VERSION = 1  # raise it when the same text would give other tokens
MAX_CHARS = 100_000  # of one text; a block has a hundredth of that
_MAX_QUERY_CHARS = 4_000
_MAX_FOLDED = 200_000  # U+FDFA alone becomes 18 characters under NFKC
_MAX_WORD = 64  # a longer run is a key or a hash: its beginning stands for it

_HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3041-\u3096\u3099-\u309f\u30a1-\u30ff\u31f0-\u31ff\u3105-\u312f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_UNSPACED = (  # Thai, Lao, Burmese, Khmer, New Tai Lue
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0eff\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u1980-\u19df\ua9e0-\ua9ff\uaa60-\uaa7f"
)
# Vowel signs are marks, which \w leaves out: without them a Hindi or Arabic word falls to pieces.
_MARKED = (  # Hebrew, Arabic, Syriac, Thaana; the scripts of India whole, without their full stops
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
    "\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0966-\u0df3"
)
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_LETTER = f"(?:[^\\W{_HAN}{_KANA}{_HANGUL}{_UNSPACED}]|[{_MARKED}])"
_JOIN = r"(?:[-.'\u2019@]|(?<=\d):(?=\d))"


@lru_cache(maxsize=1)
def _runs() -> re.Pattern[str]:
    """Compiled when first needed: its classes take five milliseconds, and plain ASCII does without."""
    return re.compile(
        rf"(?P<word>(?:{_LETTER}+{_JOIN}?)+(?:(?<![-.'\u2019@:])(?:\+\+|\#)(?![A-Za-z0-9_]))?)"
        rf"|(?P<cjk>[{_HAN}{_KANA}]+)|(?P<hangul>[{_HANGUL}]+)|(?P<unspaced>[{_UNSPACED}]+)|(?P<emoji>[{_EMOJI}])"
    )


_ASCII_RUN = re.compile(r"[A-Za-z0-9_]+(?:(?:[-.'@]|(?<=\d):(?=\d))[A-Za-z0-9_]+)*(?:(?:\+\+|#)(?!\w))?")
_THOUSANDS = re.compile(r"(?<![\d,.])(\d{1,3}(?:,\d{3})+)(?![\d,])")
# Accents, vowel points, and what cannot be seen: soft hyphens, joiners, marks of direction.
_ACCENTS = re.compile(
    "[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff\u0300-\u036f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670]+"
)
_SPELLINGS = str.maketrans({"\u2010": "-", "\u2212": "-", "ي": "ی", "ى": "ی", "ك": "ک"})  # other hyphens; Arabic and Persian letters
_LATIN = str.maketrans(
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ŧ": "t", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+|[^\W\dA-Za-z_]+")
_SEPARATOR = re.compile(r"[-._'@:]+")
_PLAIN = re.compile(r"[a-z]+")
_HUMP = re.compile(r"[a-z][A-Z]")
_NUMBER = re.compile(r"\d+(?:[-.:]\d+)+")
_EDGES = "_-.'\u2019@:"
_CONTRACTED = frozenset({"t", "re", "ve", "ll", "d", "m"})
_TYPED = re.compile(r"[A-Za-z]{2,}\d{1,4}|[A-Za-z]\d{3,}|\d+[A-Za-z]{2,}")  # gpt4, E4711, 14days

_STOP_WORDS = """
a an and are as at be been but by can could did do does doing for from had has have he her him his how i if in into is it its
just me my no not of on or our she should so some than that the their them then there these they this those to too up us was we
were what when where which while who whom whose why will with would you your am any about did dont im ive id ill didnt doesnt
isnt wasnt arent cant wont couldnt wouldnt shouldnt havent hasnt hadnt weve youve theyve youre theyre thats whats
"""
STOP = frozenset(_STOP_WORDS.split())
_CJK_STOP = frozenset("的了是在和与及或吗呢吧啊呀么我你他她它们这那有不也就都很个为以被把让着过得地之其请问什怎哪のはがをにでともへや")


@dataclass(frozen=True, slots=True)
class Term:
    """One token of a query. `weight` in (0, 1]: how much its match says; the same tokens that `tokenize` gives."""

    text: str
    weight: float
    kind: str  # word | cjk | bigram | identifier | stop


def tokenize(text: str) -> list[str]:
    """Tokens of a text in reading order, repeats included. Never fails; beyond MAX_CHARS nothing is read."""
    return [token for token, _, _ in _tokens(text[:MAX_CHARS])]


def query_terms(text: str) -> tuple[Term, ...]:
    """The distinct tokens of a query in order of their first appearance, each with its greatest weight."""
    best: dict[str, Term] = {}
    for token, kind, weight in _tokens(text[:_MAX_QUERY_CHARS]):
        known = best.get(token)
        if known is None or weight > known.weight:
            best[token] = Term(token, weight, kind)
    return tuple(best.values())


_Token = tuple[str, str, float]  # text, kind, weight


def _tokens(text: str) -> list[_Token]:
    out: list[_Token] = []
    if text.isascii():
        if "," in text:
            text = _THOUSANDS.sub(_joined, text)
        for word in _ASCII_RUN.findall(text):
            out.extend(_word(word))
        return out
    for match in _runs().finditer(_THOUSANDS.sub(_joined, folded(text))):
        kind = match.lastgroup
        run = match[0]
        if kind == "word":
            out.extend(_word(run))
        elif kind == "cjk":
            _han(run, out)
        elif kind == "hangul":
            if len(run) > 2:
                out.append((run[:_MAX_WORD], "word", 1.0))
            _han(run, out)
        elif kind == "unspaced":
            _grams(run, out)
        else:
            out.append((run, "word", 1.0))
    return out


def folded(text: str) -> str:
    """NFKC without accents; case is kept, for camelCase. Kana and Hangul keep their marks: those make other letters."""
    decomposed = unicodedata.normalize("NFKD", text)[:_MAX_FOLDED]
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed)).translate(_SPELLINGS)


def _joined(match: re.Match[str]) -> str:
    return match[1].replace(",", "")


def _han(run: str, out: list[_Token]) -> None:
    """Characters and bigrams; the character alone says little where a bigram holds it."""
    alone = len(run) == 1
    for i, char in enumerate(run):
        if char in _CJK_STOP:
            out.append((char, "stop", 0.1))
        else:
            out.append((char, "cjk", 1.0 if alone else 0.3))
        if i + 1 < len(run):
            stops = (char in _CJK_STOP) + (run[i + 1] in _CJK_STOP)
            out.append((run[i : i + 2], "bigram", (1.0, 0.4, 0.15)[stops]))


def _grams(run: str, out: list[_Token]) -> None:
    """Thai and its like have no spaces: bigrams of code points, and a short run whole."""
    if len(run) <= 2:
        out.append((run, "word", 1.0))
        return
    out.extend((run[i : i + 2], "bigram", 0.5) for i in range(len(run) - 1))


def _fold_word(word: str) -> str:
    lowered = word.casefold()
    return lowered if lowered.isascii() else lowered.translate(_LATIN)


def _single(word: str) -> _Token:
    if word in STOP:
        return (word, "stop", 0.1)
    return (stem(word), "word", 1.0)


def _word(raw: str) -> tuple[_Token, ...]:
    """Tokens of one run of letters, digits and joiners: the whole where it is an identifier, and its parts."""
    return _known_word(raw) if len(raw) <= _MAX_WORD else _split(raw)


@lru_cache(maxsize=65_536)
def _known_word(raw: str) -> tuple[_Token, ...]:
    return (_single(raw),) if _PLAIN.fullmatch(raw) else _split(raw)


def _split(raw: str) -> tuple[_Token, ...]:
    word, named = _unquoted(raw.strip(_EDGES))
    lowered = _fold_word(word)
    whole = lowered[:_MAX_WORD]
    plain = lowered.rstrip("+#")
    if not plain:
        return ()
    if plain != lowered:  # C++, C#
        return ((lowered[-_MAX_WORD:], "identifier", 1.0), (stem(plain[-_MAX_WORD:]), "word", 0.5))
    parts = [p[:_MAX_WORD] for piece in _SEPARATOR.split(word) if piece for p in _camel(piece)]
    if not parts:
        return ()
    if len(parts) == 1:
        text, kind, weight = _single(_fold_word(parts[0]))
        return ((text, kind if text.isalpha() else "identifier", weight),)
    out: list[_Token] = []
    if named:
        out.append((stem(whole) if whole.isalpha() else whole, "identifier", 1.0))
        # The date in 2026-03-05-standup.md, the version in v1.0.21 or app-1.0.21.
        out.extend((number[:_MAX_WORD], "identifier", 0.8) for number in _NUMBER.findall(lowered) if number != lowered)
    numeric = all(p.isdigit() for p in parts)
    digits = any(c.isdigit() for c in lowered)
    for part in parts:
        if part.isdigit():
            if len(part) > 1:  # the 1 and the 0 of 1.0.21 are noise
                out.append((part, "identifier", 0.3 if numeric else 0.5))
        elif len(part) > 1 or not digits:
            token, kind, weight = _single(_fold_word(part))
            out.append((token, kind, weight * 0.7 if named else weight))
    return tuple(out)


def _unquoted(word: str) -> tuple[str, bool]:
    """The word without apostrophes, and whether it is one: `Melanie's` is Melanie, `don't` is dont, `l'école` is two words."""
    head, _, tail = word.replace("\u2019", "'").rpartition("'")
    if not head:
        return word, True
    if tail.lower() == "s":
        return head.replace("'", ""), True
    if tail.lower() in _CONTRACTED:
        return f"{head}{tail}".replace("'", "").lower(), True
    return f"{head}-{tail}".replace("'", "-"), False


def _camel(piece: str) -> list[str]:
    """camelCase and APIKey to their words; a hash such as 9f8e7d6 stays whole."""
    if piece.isdigit() or (piece.isalpha() and (piece.islower() or piece.isupper())):
        return [piece]
    if any(c.isdigit() for c in piece) and not _TYPED.fullmatch(piece) and not _HUMP.search(piece):
        return [piece]
    return _CAMEL.findall(piece) if piece.isascii() else [piece]
