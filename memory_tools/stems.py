"""An English word in lower case to its stem: plurals, irregular and regular verb forms, a few common endings. Pure."""

from __future__ import annotations

import re

_WORD = re.compile(r"[a-z]{3,}")
_VOWEL = re.compile(r"[aeiouy]")
_DOUBLE = re.compile(r"..([bdfgmnprt])\1$")
_SHORT_E = re.compile(r"[aeiou][^aeiouwxy]$")
_FORMS = """
agree agreed / be being / begin began begun / become became / break broke broken / bring brought / build built / buy bought
catch caught / choose chose chosen / come came / deal dealt / die died dying / dig dug / draw drew drawn / drink drank drunk
drive drove driven / eat ate eaten / fall fell fallen / feel felt / fight fought / find found / fly flew flown
forget forgot forgotten / freeze froze frozen / get got gotten / give gave given / go goes going gone went / grow grew grown
guarantee guaranteed / hang hung / hear heard / hide hid hidden / hold held / keep kept / know knew known / lead led
leave left / lend lent / lie lied lying / lose lost / make made / mean meant / meet met / pay paid / ride rode ridden
ring rang rung / run ran / say said / see saw seen / seek sought / sell sold / send sent / shake shook shaken / shoot shot
show shown / sing sang sung / sink sank sunk / sit sat / sleep slept / speak spoke spoken / spend spent / stand stood
steal stole stolen / stick stuck / strike struck / swear swore sworn / sweep swept / swim swam swum / take took taken
teach taught / tear tore torn / tell told / think thought / throw threw thrown / tie tied tying / understand understood
wake woke woken / wear wore worn / win won / write wrote written / child children / foot feet / knife knives / man men
mouse mice / tooth teeth / wife wives / woman women
"""
_KEPT = frozenset({"business", "evening", "lens", "news", "series", "species"})  # a rule would make another word of them
_IRREGULAR = {form: line.split()[0] for line in re.split(r"[/\n]", _FORMS) if line.strip() for form in line.split()}


def stem(word: str) -> str:
    """`servers` to `server`, `running` and `ran` to `run`, `cities` and `city` to `citi`. What is not plain a-z stays as it is."""
    if word in _KEPT or _WORD.fullmatch(word) is None:
        return word
    word, verb = _inflected(_IRREGULAR.get(word, word))
    return _derived(word, verb) if len(word) >= 6 else word


def _inflected(word: str) -> tuple[str, bool]:
    """Without plural, -ed, -ing and a final e, `y` as `i`; and whether the base may be a verb in -ate."""
    word = _singular(word)
    verb = False
    if word.endswith("ied") and len(word) > 4:
        return word[:-2], False
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word:
            if len(base) >= 2 and _VOWEL.search(base) and not word.endswith("eed"):
                if _DOUBLE.search(base):  # planned -> plan
                    word = base[:-1]
                elif len(base) == 2 and _SHORT_E.match(base):  # using -> use
                    word = base + "e"
                else:
                    word, verb = base, True
            break
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word[:-1] + "i", False
    if word.endswith("e") and len(word) > 3:
        return word[:-1], True
    return word, verb


def _singular(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies") and len(word) > 4:
        return word[:-2]
    if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _derived(word: str, verb: bool) -> str:
    """The word that -ly, -ness, -ment, -ful and -ion were added to: `educate` and `education` meet in `educ`."""
    if word.endswith("li") and len(word) > 6:
        word = word[:-2]
    for suffix in ("ness", "ment", "ful"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
    if word.endswith(("sion", "tion")) and len(word) >= 8:
        word, verb = word[:-3], True
    if verb and word.endswith("at") and len(word) >= 6 and word[-3] not in "eo":  # repeat is no repe-ate
        word = word[:-2]
    return word
