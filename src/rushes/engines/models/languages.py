"""Language codes: BCP-47 for people and players, Whisper's own for the models."""

import re

# ISO 639-2 and 639-3 codes of the languages the models know, with the two-letter code where one exists
_ISO_639_3 = dict(
    re.findall(
        r"(\w+):(\w+)",
        """
    afr:af amh:am ara:ar asm:as aze:az bak:ba bel:be bul:bg ben:bn bod:bo tib:bo bre:br bos:bs cat:ca ces:cs
    cze:cs cym:cy wel:cy dan:da deu:de ger:de ell:el gre:el eng:en spa:es est:et eus:eu baq:eu fas:fa per:fa
    fin:fi fao:fo fra:fr fre:fr glg:gl guj:gu hau:ha heb:he hin:hi hrv:hr hat:ht hun:hu hye:hy arm:hy ind:id
    isl:is ice:is ita:it jpn:ja jav:jv kat:ka geo:ka kaz:kk khm:km kan:kn kor:ko lat:la ltz:lb lin:ln lao:lo
    lit:lt lav:lv mlg:mg mri:mi mao:mi mkd:mk mac:mk mal:ml mon:mn mar:mr msa:ms may:ms mlt:mt mya:my bur:my
    nep:ne nld:nl dut:nl nno:nn nor:no nob:no oci:oc pan:pa pol:pl pus:ps por:pt ron:ro rum:ro rus:ru san:sa
    snd:sd sin:si slk:sk slo:sk slv:sl sna:sn som:so sqi:sq alb:sq srp:sr sun:su swe:sv swa:sw tam:ta tel:te
    tgk:tg tha:th tuk:tk tgl:tl fil:tl tur:tr tat:tt ukr:uk urd:ur uzb:uz vie:vi yid:yi yor:yo zho:zh chi:zh
    """,
    )
)
_ALIASES = {"jw": "jv", "iw": "he", "in": "id", "ji": "yi", "nb": "no", "fil": "tl"}
KNOWN = frozenset(_ISO_639_3.values()) | {"haw", "yue"}  # every language of the speech models
_UNKNOWN = {"", "und", "mul", "mis", "zxx"}


def bcp47(code: str) -> str:
    """The BCP-47 tag of a language code of a model or container; empty if it names none."""
    language = code.strip().lower().replace("_", "-").split("-")[0]
    if language in _UNKNOWN:
        return ""
    return _ALIASES.get(language) or _ISO_639_3.get(language, language)


def iso_639_3(tag: str) -> str:
    """The three-letter code of a tag, or the tag itself."""
    return next((code for code, tag2 in _ISO_639_3.items() if tag2 == tag), tag)


def is_supported(tag: str) -> bool:
    """Whether the speech models support the language of a tag."""
    return bcp47(tag) in KNOWN


def whisper_code(tag: str) -> str:
    """Whisper's code for a language tag."""
    code = bcp47(tag)
    return "jw" if code == "jv" else code
