"""Chromium without a window, for tests of pages as readers meet them."""

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = (1400, 390)
"""Of a desk and of a phone, in pixels."""

SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


def missing() -> str:
    """What these tests need and this machine has not; empty if it has all."""
    found = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    found += [name for name in ("selenium",) if importlib.util.find_spec(name) is None]
    return ", ".join(found)


def marks() -> list[pytest.MarkDecorator]:
    """Return the marks of a module of such tests."""
    skip = [pytest.mark.skip(reason=f"not installed: {missing()}")] if missing() else []
    return [pytest.mark.browser, *skip]


@contextmanager
def chromium(width: int, profile: Path) -> Iterator["Chrome"]:
    """A browser as wide as a desk or a phone.

    Args:
        width: in pixels, one of `WIDTHS`.
        profile: an empty folder.
    """
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in (*SWITCHES, f"--user-data-dir={profile}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    try:
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        yield chrome
    finally:
        chrome.quit()


def complaints(chrome: "Chrome") -> list[str]:
    """Return what the console has said since it was asked last."""
    return [one["message"] for one in chrome.get_log("browser")]  # type: ignore[no-untyped-call]
