"""Sound documents whose every text tries to run, to load or to disturb something."""

import itertools
import json

from perfkit.findings.account import READ_EVERY
from perfkit.findings.training import PARTS

# Of the values of a document, those that its reader holds against a list of words.
_KEPT = {
    "sure",
    *("schema", "kind", "outcome", "status", "place", "platform", "build", "weight"),
    "grade",
}
_WORDS = {*PARTS, "faster", "slower", "no difference shown", "too noisy to say"}
_WORDS |= {"host", "device", "models", "traces", *READ_EVERY}
ATTACKS = {
    "script": "<script>alert(1)</script>",
    "end of everything": "\"'></title></style></textarea></svg>"
    "<script>alert(1)</script>",
    "picture that fails": "<img src=x onerror=alert(1)>",
    "drawing that loads": "<svg onload=alert(1)><animate onbegin=alert(1)>",
    "handler": '" onmouseover="alert(1)" x="',
    "handler in ticks": "` onfocus=alert(1) autofocus `<b onclick=alert(1)>`",
    "link that runs": "<a href='javascript:alert(1)'>x</a> javascript:alert(1)",
    "link elsewhere": "http://evil.example/x //evil.example/y",
    "style": "</style><style>*{background:url(http://evil.example)}",
    "style of a mark": "x;fill:url(http://evil.example/#a)",
    "import of a style": "@import 'http://evil.example/a.css';",
    "frame": "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "page that moves": "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "base": "<base href=http://evil.example/>",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;script&#x3e;",
    "end of a comment": "--> ]]> <!-- <![CDATA[ ?> <?xml",
    "template": "{{ 7*7 }}{% for x in () %}{{ config }}{% raw %}",
    "formula": "$\\frac{1}{0}$ $\\href{javascript:alert(1)}{x}$",
    "half a formula": "$\\notacommand{ ^_ $",
    "Markdown": "[x](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "rich text": "[bold red]x[/] [link=http://evil.example]x[/link] :boom: [/]",
    "clears the terminal": "\x1b[2J\x1b[H\x1b]0;mine\x07",
    "link of a terminal": "\x1b]8;;http://evil.example\x07x\x1b]8;;\x07",
    "clipboard of a terminal": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "one byte escapes": "\x9b2J\x9d0;x\x9c\x90q\x9c",
    "writes over the line": "fast\r\x1b[Aslow\x08\x08\x7f",
    "many lines": "a\nb\r\nc\u2028d\x0be\x85f",
    "other direction": "\u202egpj.exe \u2066x\u2069 \u200f\u061c",
    "nothing to be seen": "\u200b\u2060\ufeff\u00ad\u180e\U000e0041",
    "stacked marks": "Z" + "\u0301\u0348" * 60,
    "wide": "漢字 مرحبا 👩‍👩‍👧‍👦 ﷽",
    "beyond the planes": "\U0010ffff\ufffe\uffff",
    "zeros": "a\x00b\x00",
    "path": "../../../etc/passwd",
    "path of Windows": "C:\\con\\nul\\..\\x",
    "names of the page": "finding-1",
    "names of a drawing": "figure_1) url(#clip",
    "a formula of a table": '=cmd|"/c calc"!A1',
    "a format": "%s%n {0.__class__} %(x)s {",
    "number": "1e999",
    "empty": "",
    "blank": " \t ",
    "long": "x" * 99_000,
    "long words": "word " * 19_000,
    "code": "`x` ``` `<b>` " * 50,
}


def attacked(sound, *attacks):
    """A document in which an attack stands in every place that has a text.

    One place after the other gets the next of them. Names of things differ, so that
    they stay as many as they were: variants, for one.
    """
    names, following = dict[str, str](), itertools.cycle(attacks)

    def name(text):
        if text not in names:
            names[text] = f"{next(following)}{len(names) or ''}"
        return names[text]

    def over(value, key):
        if isinstance(value, dict):
            free = key in _FREE
            return {name(k) if free else k: over(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [over(item, key if isinstance(item, str) else "") for item in value]
        if not isinstance(value, str) or key in _KEPT or value in _WORDS:
            return value
        return name(value) if key in _REFER else next(following)

    return json.dumps(over(json.loads(sound), "")).encode()


# What names a variant, wherever it stands.
_REFER = {"variant", "baseline", "winner", "name"}
# Dictionaries whose names are free.
_FREE = {"parameters", "unavailable", "environment", "versions", "stages", "parts"}
_FREE |= {"notes", "noise_floors", "job", "microbenchmarks", "pauses", "untested"}
_FREE |= {"facts", "left_out"}
