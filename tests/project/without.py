"""The tests where libraries are not installed, with ``pytest -p tests.project.without --without torch --without ray``.

A test, or a module of tests, that fails and says that it lacks one of them is skipped. Any other failure is one.
"""

import re

import pytest


def pytest_addoption(parser):
    parser.addoption("--without", action="append", default=[], metavar="LIBRARY", help="it is not installed here")


def pytest_configure(config):
    if libraries := config.getoption("without"):
        config.pluginmanager.register(Lacking(libraries))


class Lacking:
    """Looks through what a failure says."""

    def __init__(self, libraries):
        names = "|".join(name.replace("_", "[-_]") for name in libraries)
        self._says_so = re.compile(rf"needs (?:{names}), which is not installed|No module named '(?:{names})\b.*?'")

    def _judged(self, report):
        text = "\n".join([report.longreprtext, *(part for _, part in report.sections)])
        if report.failed and (found := self._says_so.search(text)):
            report.outcome, report.longrepr = "skipped", (report.nodeid.partition("::")[0], 0, f"Skipped: {found[0]}")
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        return self._judged((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        return self._judged((yield))
