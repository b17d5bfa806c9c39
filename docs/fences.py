"""Show doctests and tables of docstrings as code blocks in the API reference; Markdown would make quotations of them."""

import re
from typing import Any

import griffe

#: A doctest with its output, up to an empty line; a table between two lines of equals signs.
_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.M)
_TABLE = re.compile(r"^=+ [= ]+\n(?:.*\n)*?^=+ [= ]+$(?:\n(?:.*\n)*?^=+ [= ]+$)?", re.M)


class Fences(griffe.Extension):
    """An extension of griffe that puts fences around doctests and tables."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object."""
        if obj.docstring is not None:
            text = _DOCTEST.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", obj.docstring.value)
            obj.docstring.value = _TABLE.sub(lambda match: f"```text\n{match[0].rstrip()}\n```", text)
