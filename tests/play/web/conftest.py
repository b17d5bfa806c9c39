"""One browser and one server for all walks through the page."""

import os
import re
import shutil
from dataclasses import replace

import pytest

from tests.oracles.strategies import wthor_file, wthor_record
from tests.play.server.conftest import OPTIONS, running

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="package")
def browser():
    path = os.environ.get("REVERSI_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no browser: install chromium, or name one by REVERSI_BROWSER")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wthor")
    games = (["f5", "d6", "c4"], 32), (["c4", "e3", "f6", "e6", "f5"], 40)  # of which the second begins like f5d6c3d3c4
    (folder / "a.wtb").write_bytes(wthor_file(*(wthor_record(*game) for game in games)))
    with running(replace(OPTIONS, watch_pace=0.05, wthor=str(folder))) as api:
        yield api


def is_internal_error(message, mishaps):
    """Whether a message on the console is of an error, and not of a request to *mishaps*, a regular expression."""
    return message.type == "error" and not (mishaps and re.search(mishaps, message.location["url"]))


@pytest.fixture
def open_page(browser, server):
    """Open the page at a size; whatever it complains about fails the test. Requests to *mishaps* may fail."""
    from .steps import DESKTOP, WAIT, expect  # which skips where there is no playwright, as this file could not

    contexts, complaints = [], []

    def open_page(viewport=DESKTOP, address="", reduced_motion="reduce", mishaps=None, **options):
        context = browser.new_context(viewport=viewport, reduced_motion=reduced_motion, **options)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        ours = (server.url, "blob:", "data:")
        page.on("request", lambda request: request.url.startswith(ours) or complaints.append(request.url))
        page.on("console", lambda said: complaints.append(said.text) if is_internal_error(said, mishaps) else None)
        page.goto(server.url + "/" + address)
        if not mishaps:
            expect(page.locator("#agent option").first).to_be_attached()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints
