"""Whether what stands beside a label, or looks like a number or key, can be a secret. Each check reads one match."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Found:
    """A possible secret: `text[start:end]`, with its label, if it has one, at `text[at:start]`."""

    text: str
    at: int
    start: int
    end: int

    @property
    def value(self) -> str:
        return self.text[self.start : self.end]

    @property
    def label(self) -> str:
        return self.text[self.at : self.start]

    @property
    def quoted(self) -> bool:
        return self.label[-1:] in ("'", '"', "`")

    @property
    def assigned(self) -> bool:
        """`NAME=value` without spaces, as in shells, .env files and connection strings."""
        return self.label.rstrip("\"'`")[-1:] == "="

    @property
    def ends_line(self) -> bool:
        return not self.text[self.end : self.end + 1].strip(" \r\n")

    @property
    def begins_line(self) -> bool:
        start = self.text.rfind("\n", max(0, self.at - 80), self.at) + 1
        return self.at - start < 80 and bool(_KEY.fullmatch(self.text, start, self.at))


_KEY = re.compile(r"[\s\w.*\-\"'`]*")
_ALL_MASK = re.compile(r"(?:[\W_]|[xX0]|[•●])+")
_VARIABLE = re.compile(
    r"\\?\$\{?[A-Za-z_][\w.:-]*\}?.*|\\?\$[({].*|<.*|\{.*|\[.*|%[\w()]*%?[sd]?|%\(.*|@\w+@|#\{.*|![A-Za-z]+.*|&\w*|\*.*|__\w+__"
)
_STAND_IN = re.compile(
    r"(?:^|[^a-z])(?:your|example|placeholder|redacted|masked|hidden|change[-_]?(?:me|this|it)|dummy|sample|insert|replace|todo|tbd|"
    r"fixme|goes|here)(?:[^a-z]|$)|\.\.\.|…|x{4}|X{4}|\*{3}|•{3}|여기|입력|변경|예시"
)
_CALL = re.compile(r"(?:await\s|new\s)?[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.)[\w$]+)*[(\[{]|\(")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.|!\.)[A-Za-z_$][\w$]*)+[!?]?")
_PATH = re.compile(r"(?:~|\.{0,2})/[\w.@~-]+(?:/[\w.@~-]*)*|[A-Za-z]:\\.*|[\w-]+(?:/[\w.-]+)+\.\w{1,5}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}:\d\d.*|v?\d+(?:\.\d+)+\w*")
_NUMBER = re.compile(r"[-+~<>=≤≥]*\d[\d,._]*(?:%|[a-zA-Z]{1,3})?[+\-~]?\d*")
_WORDY = re.compile(r"[A-Za-z]+(?:[_\-. /:]+[A-Za-z]+)*[_\-.]?v?\d{0,4}")
_SNAKE = re.compile(r"_*[A-Za-z]+\d{0,3}[a-z]?(?:_+(?:[A-Za-z]+\d{0,3}[a-z]?|\d{1,3}))+")
_STOP_WORDS = """
    str string text varchar char bytes byte bool boolean int integer number float any object optional required none
    null nil undefined true false yes no on off unknown void never unset empty missing invalid valid wrong
    incorrect correct hash hashed hashedpassword encrypted plaintext plain secret token password passwd pwd pass
    key apikey passphrase value values data field input output type types name names env environment config default
    prompt disabled enabled ask auto stdin random generated test user username admin root basic bearer auth oauth
    jwt sha256 sha512 sha1 md5 bcrypt argon2 scrypt base64 base64url utf-8 utf8 hs256 rs256 aes256 aes-256 this
    self that new old current other same both error failed success ok todo tbd expired login logout reset update
    change changed confirm forgot secretstr securestring chararray uuid uuid4 uuidv4 function const let var return
    async await import export private public static final readonly identifier literal keyword comment punctuation
    operator number_literal eof
"""
_STOP = frozenset(_STOP_WORDS.split())


def real(found: Found) -> bool:
    """Not a stand-in such as `<your-token>`, `${TOKEN}` or `xxxx`."""
    value = found.value.strip()
    low = value.casefold()
    return not (
        _ALL_MASK.fullmatch(value)
        or _VARIABLE.fullmatch(value)
        or _STAND_IN.search(low)
        or low.rstrip(".,:;!?") in _STOP
    )


def password(found: Found) -> bool:
    """Beside a word such as `password`, where people put words as well as random characters."""
    value = found.value
    if len(value) < 4 or not value.isascii() or any(c.isspace() for c in value) or not _literal(found):
        return False
    if _DATE.fullmatch(value):
        return False
    if "," in found.label:  # `("password", "x")` may be a call or a list of names
        return strict(found)
    if not _WORDY.fullmatch(value) or (_digits(value) and not value.isdigit()):
        return not _NUMBER.fullmatch(value) or value.isdigit()
    if re.search(r"(?i)passw|secret|token|pwd|prompt|input", value) or _compound(value):
        return False
    if found.quoted:
        return True
    if len(value) < 6:
        return False
    if found.assigned:
        return found.text[found.end : found.end + 1] not in (",", ")")
    return found.begins_line and found.ends_line and value.islower() and ":" in found.label


def secret(found: Found) -> bool:
    """Beside `secret`, `api key`, `access token`: must not be a word or a name."""
    if token(found):
        return True
    value = found.value
    if len(value) < 6 or not value.isascii() or any(c.isspace() for c in value) or not _literal(found):
        return False
    if _NUMBER.fullmatch(value) or _compound(value):
        return False
    if found.assigned and _shouted(found):
        return True
    return len(value) >= 12 and value.isalpha() and (found.quoted or found.assigned) and value.islower()


def token(found: Found) -> bool:
    """Beside a word as common as `token`: must look made by a machine."""
    value = found.value
    if len(value) < 8 or not value.isascii() or any(c.isspace() for c in value) or not _literal(found):
        return False
    if _DATE.fullmatch(value) or _NUMBER.fullmatch(value):
        return False
    if _WORDY.fullmatch(value):
        return _shuffled(value)
    if _SNAKE.fullmatch(value) or (_DOTTED.fullmatch(value) and not _long_part(value)):
        return False
    return _digits(value) > 0 and any(c.isalpha() for c in value)


def strict(found: Found) -> bool:
    """After a label with no colon or equals sign, in running text: a letter, and a digit or sign a word does not have."""
    value = found.value
    if (
        len(value) < 6
        or not value.isascii()
        or not _literal(found)
        or _DATE.fullmatch(value)
        or _NUMBER.fullmatch(value)
    ):
        return False
    if not any(c.isalpha() for c in value):
        return False
    return _digits(value) > 0 or any(c in "!@#$%^&*?+~" for c in value[1:])


def flag(found: Found) -> bool:
    """After `--password` and its kin: words after a space are prose unless quoted, words after `=` are not."""
    if found.value.isdigit() or _NUMBER.fullmatch(found.value) or len(found.value) < 4 or not _literal(found):
        return False
    if re.match(r"\w+=", found.value):
        return False
    if found.quoted or found.assigned:
        return not _compound(found.value) and not any(c.isspace() for c in found.value)
    return strict(found)


def url(found: Found) -> bool:
    """The password of `user:password@host`. Even the word `password` may be one there."""
    value = found.value
    return not (_ALL_MASK.fullmatch(value) or _VARIABLE.fullmatch(value) or re.match(r"(?i)your|<|\.\.\.|…", value))


def body(found: Found) -> bool:
    """Between the marks of a key: a run of Base64, and not the code that looks for the marks."""
    return bool(re.search(r"[A-Za-z0-9+/=]{16}", found.value))


def random(found: Found) -> bool:
    """Letters and digits in one run, as keys are made and words are not."""
    value = re.sub(r"^[a-z]{2,8}[-_]", "", found.value)
    return real(found) and _digits(value) > 0 and any(c.isalpha() for c in value) and not _WORDY.fullmatch(value)


def card(found: Found) -> bool:
    """A payment card: a known issuer's range and length, grouped as on a card or not at all, and the Luhn sum (ISO/IEC 7812)."""
    digits = re.sub(r"\D", "", found.value)
    groups = [len(group) for group in re.split(r"[ -]", found.value)]
    if len(groups) > 1 and groups not in ([4, 4, 4, 4], [4, 6, 5], [4, 6, 4], [4, 4, 4, 4, 3]):
        return False
    if len(set(digits)) < 2 or not _ISSUER.fullmatch(digits):
        return False
    doubled = [int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10 == 0


_ISSUER = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}|9[0-9]\d{14}"
)


def resident(found: Found) -> bool:
    """A Korean resident or foreigner registration number: a real date of birth and the century digit that goes with it.

    The check digit is not asked for: numbers given since October 2020 have none.
    """
    digits = re.sub(r"\D", "", found.value)
    century = {"9": 1800, "0": 1800, "1": 1900, "2": 1900, "5": 1900, "6": 1900}.get(digits[6], 2000)
    try:
        born = date(century + int(digits[:2]), int(digits[2:4]), int(digits[4:6]))
    except ValueError:
        return False
    return 1870 <= born.year < 2040


CHECKS: dict[str, Callable[[Found], bool]] = {
    "": lambda found: True,
    "real": real,
    "password": password,
    "secret": secret,
    "token": token,
    "strict": strict,
    "flag": flag,
    "url": url,
    "body": body,
    "random": random,
    "card": card,
    "resident": resident,
}


def _literal(found: Found) -> bool:
    """A value, and not code that gets one, a path, a link or a stand-in."""
    value = found.value
    if not real(found) or "://" in value or _PATH.fullmatch(value):
        return False
    return found.quoted or not (_CALL.match(value) or (_DOTTED.fullmatch(value) and not _long_part(value)))


def _long_part(value: str) -> bool:
    return any(len(part) >= 16 and _digits(part) for part in value.split("."))


def _digits(value: str) -> int:
    return sum(c.isdigit() for c in value)


def _compound(value: str) -> bool:
    """camelCase, PascalCase, snake_case, kebab-case: a name."""
    return (
        bool(re.search(r"[a-z][A-Z]|[A-Za-z][_\-.:/][A-Za-z]", value))
        and bool(_WORDY.fullmatch(value))
        and not _shuffled(value)
    )


def _shuffled(value: str) -> bool:
    """Letters whose case changes as it never does in names."""
    changes = len(re.findall(r"[a-z][A-Z]|[A-Z][a-z]|[A-Za-z]\d|\d[A-Za-z]", value))
    return len(value) >= 16 and changes * 3 > len(value)


def _shouted(found: Found) -> bool:
    label = re.sub(r"\W", "", found.label)
    return label.isupper()
