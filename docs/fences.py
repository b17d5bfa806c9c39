"""For the API reference: doctests and tables of a docstring as code blocks, since Markdown would make quotations of them."""

import re
from typing import Any

import griffe

#: A doctest with its output, up to an empty line; a table between two lines of equals signs.
_DOCTEST = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.M)
_TABLE = re.compile(r"^=+ [= ]+\n(?:.*\n)*?^=+ [= ]+$(?:\n(?:.*\n)*?^=+ [= ]+$)?", re.M)


class Fences(griffe.Extension):
    """Puts them between fences."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            text = _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", obj.docstring.value)
            obj.docstring.value = _TABLE.sub(lambda found: f"```text\n{found[0].rstrip()}\n```", text)
