"""Texts of the page: every language has all keys with the same placeholders and its plural forms; all keys are used."""

import json
import re

from models.human import LEVELS
from play.cli.options import agent_of_level
from play.server.catalogue import NAMES, entries, limited_agent
from play.server.http.app import PAGE
from play.server.options import ServerOptions

#: Plural forms of integers below a million in each language (Unicode CLDR).
FORMS = {"en": {"one", "other"}, "fr": {"one", "other"}, "ja": {"other"}, "zh-Hans": {"other"}}
WORDS = {path.stem: json.loads(path.read_text("utf-8")) for path in PAGE.glob("words/*.json")}
HTML = (PAGE / "index.html").read_text("utf-8")
GROUPS = "|".join(sorted({key.split(".")[0] for key in WORDS["en"]}))
#: Matches keys: arguments of `words` and of attributes, and strings that begin like a key.
USED_KEYS = re.compile(rf"""(?:data-words(?:-\w+)?=|words\()["`]([^"`]+)["`]|["`]((?:{GROUPS})\.[^"`]+)["`]""")


def texts(entry):
    return list(entry.values()) if isinstance(entry, dict) else [entry]


def placeholders(text):
    return {name.lower() for name in re.findall(r"{(\w+)}", text)}


def test_every_language_has_all_texts_and_plural_forms():
    assert re.findall(r'<option value="([\w-]+)" lang="\1">', HTML) == sorted(WORDS, key=list(FORMS).index)
    english = WORDS["en"]
    for language, words in WORDS.items():
        assert list(words) == list(english)  # in the same order, so that files are easy to compare
        for key, entry in words.items():
            assert isinstance(entry, dict) == isinstance(english[key], dict), key
            assert not isinstance(entry, dict) or set(entry) == FORMS[language], key
            for text in texts(entry):
                assert text or key.startswith("between."), key
                assert placeholders(text) == placeholders(texts(english[key])[-1]), key
                assert text.count("`") == texts(english[key])[-1].count("`"), key


def test_all_texts_are_used_and_none_is_missing():
    """Keys are literal strings; a key with placeholders stands for every key that matches it."""
    sources = [path.read_text("utf-8") for path in PAGE.rglob("*.js")]
    used = {one or other for text in (HTML, *sources) for one, other in USED_KEYS.findall(text)}
    plain = {key for key in used if "$" not in key}
    patterns = [re.compile(re.sub(r"\\\$\\{[^}]*}", r"[\\w.-]+", re.escape(key))) for key in used - plain]
    assert plain <= set(WORDS["en"])
    assert all(any(pattern.fullmatch(key) for key in WORDS["en"]) for pattern in patterns)
    unused = {key for key in set(WORDS["en"]) - plain if not any(pattern.fullmatch(key) for pattern in patterns)}
    assert not unused


def test_levels_are_equal_in_command_line_server_and_page():
    [human] = [entry for entry in entries() if entry.name == "human"]
    assert len(human.levels) == len(LEVELS)
    # The page adds this to the agent's name.
    assert "`level=${i + 1}`" in (PAGE / "game" / "setup.js").read_text("utf-8")
    for number in range(1, len(LEVELS) + 1):
        assert limited_agent(f"human:level={number}", 8, ServerOptions()).spec.text == agent_of_level(None, number)


def test_agents_levels_and_refusals_match_the_server():
    english = WORDS["en"]

    def of(kind):
        return {key.removeprefix(kind): text for key, text in english.items() if key.startswith(kind)}

    assert set(of("agent.")) == set(of("about.")) == set(NAMES)
    assert list(of("level.human.").values()) == [level.title for level in LEVELS]
    server = "".join(path.read_text("utf-8") for path in (PAGE.parent / "server").rglob("*.py"))
    assert not [code for code in of("refused.") if f'"{code}"' not in server]
