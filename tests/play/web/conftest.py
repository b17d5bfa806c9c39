"""One browser and one server for all browser tests."""

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
    games = (["f5", "d6", "c4"], 32), (["c4", "e3", "f6", "e6", "f5"], 40)  # the second transposes into f5d6c3d3c4
    (folder / "a.wtb").write_bytes(wthor_file(*(wthor_record(*game) for game in games)))
    with running(replace(OPTIONS, watch_pace=0.05, wthor=str(folder))) as api:
        yield api


def is_unexpected_error(message, may_fail):
    """Return whether a console message is an error other than a failed request that matches *may_fail*."""
    return message.type == "error" and not (may_fail and re.search(may_fail, message.location["url"]))


@pytest.fixture
def open_page(browser, server):
    """Open the page in a viewport. Errors in the browser fail the test, except failed requests that match *may_fail*."""
    from .steps import DESKTOP, WAIT, expect  # skips the test without playwright

    contexts, errors = [], []

    def open_page(viewport=DESKTOP, address="", reduced_motion="reduce", may_fail=None, **options):
        context = browser.new_context(viewport=viewport, reduced_motion=reduced_motion, **options)
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        allowed = (server.url, "blob:", "data:")
        page.on("request", lambda request: request.url.startswith(allowed) or errors.append(request.url))
        page.on("console", lambda entry: errors.append(entry.text) if is_unexpected_error(entry, may_fail) else None)
        page.goto(server.url + "/" + address)
        if not may_fail:
            expect(page.locator("#agent option").first).to_be_attached()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors
