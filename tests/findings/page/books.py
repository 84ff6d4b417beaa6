"""Notebooks made by hand, with outputs that nobody computed."""

import json

from nbformat import v4

# The smallest PNG there is: one grey point.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJ"
    "RU5ErkJggg=="
)


def book(*cells, **metadata):
    """A notebook of these cells; a string is a text cell."""
    made = [v4.new_markdown_cell(c) if isinstance(c, str) else c for c in cells]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return v4.new_notebook(cells=made, metadata={"kernelspec": kernel, **metadata})


def code(source, *outputs, count=1):
    """A code cell that was run as number ``count``; None for one that was not."""
    return v4.new_code_cell(source, outputs=list(outputs), execution_count=count)


def result(value="", /, metadata=None, **forms):
    """What a cell shows: an object, or forms of one by their short names."""
    short = {"html": "text/html", "text": "text/plain", "svg": "image/svg+xml"}
    short |= {"latex": "text/latex", "md": "text/markdown", "png": "image/png"}
    short |= {"widget": "application/vnd.jupyter.widget-view+json"}
    short |= {"js": "application/javascript"}
    data = {short[name]: form for name, form in forms.items()}
    if value != "":
        data |= bundle(value)
    return v4.new_output("display_data", data, metadata=metadata or {})


def bundle(value):
    """The forms of an object, as a kernel sends them."""
    if hasattr(value, "_repr_mimebundle_"):
        return value._repr_mimebundle_()
    return {"text/html": value._repr_html_(), "text/plain": repr(value)}


def printed(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def error(*lines):
    return v4.new_output(
        "error", ename="ValueError", evalue="it broke", traceback=list(lines)
    )


def widget(name="IntSlider"):
    """A bundle as ipywidgets makes it."""
    model = {"model_id": "abc", "version_major": 2, "version_minor": 0}
    return {"widget": model, "text": f"{name}(value=5, description='x')"}


def write(notebook, path):
    """Save a notebook as JupyterLab would."""
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path
