"""Text on its way to a client, which may show it to a model and to a person at a terminal.

It comes from users' files: names in a specification, lines of a program, a compiler's words. Characters
that a reader does not see as they are would let such a file say one thing to a person and another to a
model, or drive a terminal. So all of Unicode's controls (Cc, but newline and tab), formats (Cf: zero
width, direction, tags), surrogates and private characters become U+FFFD. Files on disk stay as they are.
"""

import unicodedata

MOST = 200_000  # characters of one string in a result
_SEEN_AS_THEY_ARE = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs", "Co"}


def clean(text):
    """`text` without hidden characters; \\r\\n counts as a newline."""
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c in _SEEN_AS_THEY_ARE or unicodedata.category(c) not in _HIDDEN else "\ufffd"
                   for c in text)


def shorten(text, most=MOST):
    """The beginning of a long text, and a line that says how much is missing."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n... {len(text) - most} characters more; give `out` and read the file\n"


def cleaned(value):
    """A JSON value with every string in it cleaned and shortened, keys too."""
    if isinstance(value, str):
        return shorten(clean(value))
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    return value
