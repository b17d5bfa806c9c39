"""A pytest plug-in for runs without some libraries: ``pytest -p tests.project.without --without torch --without ray``.

Tests and modules that fail because one of these libraries is missing are skipped. Other failures stay failures.
"""

import re

import pytest


def pytest_addoption(parser):
    parser.addoption("--without", action="append", default=[], metavar="LIBRARY", help="library that is not installed")


def pytest_configure(config):
    if libraries := config.getoption("without"):
        config.pluginmanager.register(MissingLibraries(libraries))


class MissingLibraries:
    """Turns failures by missing libraries into skips."""

    def __init__(self, libraries):
        names = "|".join(name.replace("_", "[-_]") for name in libraries)
        self._missing = re.compile(rf"needs (?:{names}), which is not installed|No module named '(?:{names})\b.*?'")

    def _checked(self, report):
        text = "\n".join([report.longreprtext, *(part for _, part in report.sections)])
        if report.failed and (found := self._missing.search(text)):
            report.outcome, report.longrepr = "skipped", (report.nodeid.partition("::")[0], 0, f"Skipped: {found[0]}")
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        return self._checked((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        return self._checked((yield))
