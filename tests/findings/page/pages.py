"""A page as a reader's browser would take it apart, and what no page may hold."""

import re
from html.parser import HTMLParser

VOID = {"br", "col", "hr", "img", "link", "meta", "wbr"}
# What runs something, frames something or sends something.
FORBIDDEN = {
    *("script", "iframe", "frame", "object", "embed", "applet", "base", "form"),
    *("input", "button", "textarea", "select", "foreignobject", "animate", "set"),
    *("image", "feimage", "video", "audio", "source", "template", "noscript"),
}
# All that a page's policy may allow: no script and no request.
ALLOWED = {
    *("default-src 'none'", "img-src data:", "style-src 'unsafe-inline'"),
    *("base-uri 'none'", "form-action 'none'"),
}
# For a piece of HTML that is to be looked at as a page.
POLICY = f'<meta http-equiv=x content="{"; ".join(ALLOWED)}">'
# What may stand in front of it.
OUTSIDE = {"html", "head", "meta"}
# Attributes that only hold words.
WORDS = {"alt", "aria-label", "title", "content", "class", "id"}
HARM = re.compile(r"url\(|javascript:|vbscript:|expression\(")
REFERENCE = re.compile(r"url\(\s*['\"]?#[\w.:-]+['\"]?\s*\)", re.IGNORECASE)


class Page(HTMLParser):
    """The elements of a page, its texts, and its headings in order.

    Attributes:
        open: What is not closed at the end.
        astray: What was closed while something in it was open.
    """

    def __init__(self, html):
        super().__init__()
        self.html, self.elements, self.texts = html, [], []
        self.open, self.astray = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        # A browser takes such a tag for closed in SVG, and not in HTML.
        if "svg" in self.open and tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if self.open[-1:] != [tag]:
            self.astray.append(tag)
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    @property
    def text(self):
        """All that is read, without style sheets."""
        parts = (data for open_, data in self.texts if "style" not in open_)
        return " ".join(" ".join(parts).split())

    def all(self, tag):
        """The attributes of every element of a name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def words(self, tag):
        """The text within each element of a name, joined."""
        return [data for open_, data in self.texts if tag in open_ and data.strip()]

    @property
    def levels(self):
        """The headings' levels in order."""
        return [int(t[1]) for t, _ in self.elements if re.fullmatch("h[1-6]", t)]


def assert_stamped(html, stamp, *, charts):
    """A page says in a notice, and of each chart in words and picture, what it is."""
    pictures = html.count("<svg")
    assert pictures == charts
    assert html.count(f'aria-label="{stamp}') == pictures
    assert html.count(f">{stamp.split(',')[0]}") == 1 + pictures


def problems(html):
    """Everything in a page that could run, load or send anything."""
    page = Page(html)
    found = [f"<{tag}>" for tag, _ in page.elements if tag in FORBIDDEN]
    for tag, attributes in page.elements:
        found += [f"<{tag} {bad}>" for bad in _bad(tag, attributes)]
    sheets = " ".join(data for open_, data in page.texts if "style" in open_)
    found += re.findall(r"url\([^)]*\)|@import|expression\(", sheets)
    policies = [a["content"] for a in page.all("meta") if a.get("http-equiv", "") != ""]
    if len(policies) != 1 or set(policies[0].split("; ")) != ALLOWED:
        found.append(f"policies {policies}")
    # What stands before it a browser would load without it.
    before = Page(html.partition("<meta http-equiv")[0])
    return found + [tag for tag, _ in before.elements if tag not in OUTSIDE]


def _bad(tag, attributes):
    for name, value in attributes.items():
        compact = re.sub(r"[\x00-\x20]", "", value).lower()
        if name.startswith("on") or name in ("srcdoc", "srcset", "formaction"):
            yield name
        elif name == "src" and not compact.startswith("data:image/"):
            yield f"src={value}"
        elif name.endswith("href"):
            yield from () if _is_link(tag, compact) else (f"{name}={value}",)
        elif name not in WORDS and HARM.search(REFERENCE.sub("", compact)):
            yield f"{name}={value}"


def _is_link(tag, address):
    """A link is followed by a person; everything else a browser fetches itself."""
    if tag == "a":
        return re.match(r"(https?://|mailto:|#)", address)
    return address.startswith("#") or address == "data:,"
