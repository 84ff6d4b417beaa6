"""Findings and notebooks whose every text tries to run or to load something."""

import base64

from nbformat import v4

from perfkit.findings.reading import parse
from perfkit.findings.record import Finding
from tests.findings.page.books import PNG, book, code, error, printed, result, widget
from tests.findings.spoiled import sound
from tests.hostile.texts import attacked

ATTACK = (
    "\"'></title></style></textarea><script>alert(1)</script>"
    "<img src=x onerror=alert(1)><svg onload=alert(1)>{{7*7}}{%raw%}]]>-->"
    "\x1b]8;;http://evil.example\x07\x00\u202e"
)
EVIL = "http://evil.example/x"


def finding():
    """One with the attack in each of its texts."""
    return parse(attacked(sound(), ATTACK), "x.json", Finding)


def _encoded(text):
    return base64.b64encode(text.encode()).decode()


_SVG = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'>{}</svg>"
_SVGS = {
    "svg script": "<script>alert(1)</script><script href='data:,alert(1)'/>",
    "svg handlers": "<g onload='alert(1)' onclick='alert(1)'><path d='M0 0'/></g>",
    "svg foreign": "<foreignObject><iframe srcdoc='<script>alert(1)</script>'>"
    "</iframe><body onload='alert(1)'></body></foreignObject>",
    "svg use": f"<use href='{EVIL}#a'/><use xlink:href='data:image/svg+xml,<a/>'/>",
    "svg image": f"<image href='{EVIL}'/><feImage href='{EVIL}'/>",
    "svg style": f"<style>@import '{EVIL}'; *{{fill:url({EVIL})}}</style><path/>",
    "svg paint": f"<path fill='url({EVIL}#a)' style='fill:url(\"{EVIL}\")' d='M0 0'/>",
    "svg animate": "<a><animate attributeName='href' to='javascript:alert(1)'/>"
    "<set attributeName='onload' to='alert(1)'/><text>x</text></a>",
    "svg entity": "<!DOCTYPE x [<!ENTITY e '<script>alert(1)</script>'>]>&e;<path/>",
}
_HTML = {
    "html script": f"<script>alert(1)</script><script src={EVIL}></script>x",
    "html handlers": "<b onclick=alert(1) ONMOUSEOVER=alert(1) style=x>x</b>"
    "<details open ontoggle=alert(1)>x</details>",
    "html frames": f"<iframe src={EVIL}></iframe><iframe srcdoc='<script>alert(1)"
    f"</script>'></iframe><frameset><frame src={EVIL}></frameset>",
    "html objects": f"<object data={EVIL}></object><embed src={EVIL}><applet>",
    "html links": "<a href='javascript:alert(1)'>a</a><a href='java\nscript:alert(1)'>"
    "b</a><a href='&#106;avascript&colon;alert(1)'>c</a>"
    "<a href='data:text/html,<script>alert(1)</script>'>d</a><a href=vbscript:x>e</a>",
    "html pictures": f"<img src={EVIL}><img srcset='{EVIL} 2x'>"
    f"<img src='//evil.example'><picture>"
    f"<source srcset={EVIL}></picture><video poster={EVIL}></video>",
    "html vector picture": "<img src='data:image/svg+xml;base64,"
    + _encoded(_SVG.format("<script>alert(1)</script>"))
    + "'>",
    "html styles": f"<style>@import url({EVIL}); body{{background:url({EVIL})}}</style>"
    f"<p style='background:url({EVIL});position:fixed;top:0;behavior:url(x)'>x</p>"
    f"<p style='fill:u\\72l({EVIL});font-family:\"a;}}url({EVIL})\"'>y</p>",
    "html entities in style": f"<p style='fill:&#117;rl({EVIL});&quot;'>x</p>",
    "html head": f"<meta http-equiv=refresh content='0;url={EVIL}'><base href={EVIL}>"
    f"<link rel=stylesheet href={EVIL}><title>y</title></head><body onload=alert(1)>x",
    "html forms": f"<form action={EVIL}><input autofocus onfocus=alert(1)>"
    "<button formaction=javascript:alert(1)>x</button><textarea>y</textarea></form>x",
    "html end of box": "</div></main></body></html><script>alert(1)</script>x",
    "html raw text": "<textarea><img title='</textarea><img src=x onerror=alert(1)>'>"
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'><xmp><p title='</xmp>"
    "<img src=x onerror=alert(1)>'></xmp>x",
    "html foreign": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;"
    "&lt;img src=1 onerror=alert(1)&gt;'>x",
    "html foreign p": "<svg></p><style><a id='</style><img src=1 onerror=alert(1)>'>x",
    "html namespaces": "<form><math><mtext></form><form><mglyph><svg><mtext><style>"
    '<path id="</style><img onerror=alert(1) src>"></form>'
    "<svg><title><style><a title='</style><img src onerror=alert(1)>'>x",
    "html annotation": "<math><semantics><mi>x</mi>"
    "<annotation-xml encoding='text/html'><script>alert(1)</script>"
    "</annotation-xml></semantics></math>",
    "html comment": "<!--><script>alert(1)</script>--><![CDATA[<script>alert(1)"
    "</script>]]><?x <script>alert(1)</script>?>x",
    "html unfinished": "x<script>alert(1)",
    "html plaintext": "x<plaintext><script>alert(1)</script>",
}
_MARKDOWN = {
    "markdown html": "".join(_HTML.values()),
    "markdown links": "[a](javascript:alert(1)) [b](<java\tscript:alert(1)>) "
    f"[c](data:text/html;base64,x) ![d]({EVIL}) ![e](//evil.example/x 'alert(1)') "
    "![f](javascript:alert(1)) <javascript:alert(1)>",
    "markdown pictures": '![a" onerror=alert(1) x="](x"onerror=alert(1)) <img src=\'x\''
    " onerror='alert(1)'> ![g](file:///etc/passwd) ![h](../../../../etc/passwd)",
    "markdown mathematics": r"$\href{javascript:alert(1)}{x}$ "
    r"$\text{<script>alert(1)</script><img src=x onerror=alert(1)>}$ "
    r"$\style{background:url(http://evil.example)}{x}$ "
    r"$\class{x' onclick=alert(1)}{y}$ "
    r"$\textcolor{red\" onclick=alert(1)}{z}$ $\unicode{x3c}script>$ "
    '<a title="$x onclick=alert(1) $">q</a>',
    "markdown headings": '# <script>alert(1)</script>\n\n## x" onclick=alert(1) y="\n'
    "\nSetext <img src=x onerror=alert(1)>\n===\n",
    "markdown code": '```html\n<script>alert(1)</script>\n```\n\n```"><script>alert(1)'
    "</script>\nx\n```\n\n```mermaid\n<script>alert(1)</script>\n```\n\n`<img src=x>`",
    "markdown table": "| <script>alert(1)</script> | [a](javascript:alert(1)) |\n"
    "|-|-|\n| <img src=x onerror=alert(1)> | ![x](http://evil.example/x) |",
    "markdown references": "[a][b] ![a][b]\n\n[b]: javascript:alert(1) 'x'",
}


def notebooks():
    """Each attack in one kind of cell or output, by what it is."""
    found = {name: book("# T", code("1", result(html=h))) for name, h in _HTML.items()}
    for name, inside in _SVGS.items():
        svg = _SVG.format(inside)
        found[name] = book("# T", code("1", result(svg=svg), result(html=svg)))
    found |= {name: book("# T", text) for name, text in _MARKDOWN.items()}
    return found | _others()


def _others():
    attached = v4.new_markdown_cell(
        "![x](attachment:a.png) ![y](attachment:b.svg) ![z](attachment:c.png)",
        attachments={
            "a.png": {"image/png": "'><script>alert(1)</script>"},
            "b.svg": {"image/svg+xml": _encoded(_SVG.format("<script>alert(1)"))},
            "c.png": {"text/html": _encoded("<script>alert(1)</script>")},
        },
    )
    liar = {"image/png": _encoded("<script>alert(1)</script>"), "text/plain": ATTACK}
    outputs = {
        "stream": [printed(ATTACK), printed(ATTACK, "stderr")],
        "traceback": [error(ATTACK, f"\x1b[31m{ATTACK}\x1b[0m")],
        "text": [result(text=ATTACK)],
        "latex": [result(latex=f"$${ATTACK}$$")],
        "markdown output": [result(md=_MARKDOWN["markdown html"])],
        "javascript": [result(js="alert(1)", text=ATTACK)],
        "widget": [result(**widget(ATTACK))],
        "widget with a page": [result(**widget() | {"html": _HTML["html script"]})],
        "picture that is none": [v4.new_output("display_data", liar)],
        "words of a picture": [result(png=PNG, text=ATTACK, metadata={"alt": ATTACK})],
    }
    return {
        "code": book("# T", code(ATTACK)),
        "raw": book("# T", v4.new_raw_cell(ATTACK)),
        "title": book(code("1"), title=ATTACK),
        "first heading": book(f"# {ATTACK}"),
        "language": book("# T", code("x"), language_info={"name": ATTACK}),
        "attachment": book("# T", attached),
        **{name: book("# T", code("1", *shown)) for name, shown in outputs.items()},
    }
