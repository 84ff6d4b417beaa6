from perfkit.export.page import compact

HEAD = "<style>p {}\n</style>"


def mark(style, tag="path"):
    return f'<{tag} d="M 0 0" style="{style}"></{tag}>'


def test_a_style_that_is_used_often_is_said_once():
    html = compact(HEAD + 3 * mark("fill:red") + mark("fill:blue"))
    assert html.count("fill:red") == 1
    assert ".d0 { fill:red }\n</style>" in html
    assert html.count('<path d="M 0 0" class="d0">') == 3
    assert mark("fill:blue") in html


def test_the_most_used_style_has_the_first_name():
    html = compact(HEAD + 3 * mark("a:b") + 4 * mark("c:d"))
    assert ".d0 { c:d }" in html
    assert ".d1 { a:b }" in html


def test_only_drawings_are_touched():
    page = HEAD + 3 * mark("fill:red", "p") + 3 * mark("fill:red", "svg")
    assert compact(page) == page


def test_text_that_looks_like_a_style_stays():
    page = HEAD + 3 * '<pre>&lt;path style="fill:red"&gt;</pre>'
    assert compact(page) == page


def test_a_style_that_could_end_the_sheet_stays_where_it_is():
    page = HEAD + 3 * mark("fill:red}") + 3 * mark("a:url(&quot;b)") + 3 * mark("\\3c")
    assert compact(page) == page
