"""The browser that this machine has, without a window, driven by Playwright, which is kept from bringing one of its
own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from lowtide.lab.airflow import LocalAirflow

#: A browser of one of these names is used, the first that is on the path.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: Milliseconds: a page may come from an Airflow that is busy with other things.
_PATIENCE = 180_000


def program() -> str | None:
    """The browser's program; None where there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, both gone at the end. Meanwhile this thread can run no event loop of its
    own.
    """
    found = program()
    if found is None:
        raise RuntimeError("no browser is installed; on Debian: apt-get install chromium")
    expect.set_options(timeout=_PATIENCE)
    with sync_playwright() as playwright:
        # Pages come from this machine, so none is fetched through a proxy.
        running = playwright.chromium.launch(executable_path=found, args=["--no-proxy-server"], timeout=_PATIENCE)
        try:
            yield running
        finally:
            running.close()


def tab(
    running: Browser, width: int = 1280, height: int = 900, scheme: Literal["light", "dark"] = "light", **more: Any
) -> Page:
    """A tab of that size, a telephone's if narrow, that prefers ``light`` or ``dark``; it shares nothing with
    others.
    """
    size = ViewportSize(width=width, height=height)
    page = running.new_page(viewport=size, is_mobile=width < 600, color_scheme=scheme, **more)
    page.set_default_timeout(_PATIENCE)
    return page


def log_in(page: Page, airflow: LocalAirflow) -> None:
    """Log in to a local Airflow as its one user, and see its page with the plugin's tab."""
    page.goto(f"{airflow.config.url}/auth/login/")
    page.locator("input:not([type=password])").fill(airflow.user)
    page.locator("input[type=password]").fill(airflow.password)
    page.locator("button[type=submit]").click()
    page.locator("a[href$='/plugin/lowtide']").first.wait_for(state="attached")
