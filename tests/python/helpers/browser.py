"""A real browser, headless, for what a page looks like and what it becomes.

Debian's chromium-headless-shell (scripts/packages_test.txt); any Chromium will do. A machine without one
fails the tests that need it, as a page that nobody has opened is not tested.
"""

import shutil
import subprocess

import pytest
from PIL import Image

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DARK, LIGHT = 0, 1  # as Blink counts preferredColorScheme


def _run(page, *options):
    command = next(filter(None, map(shutil.which, NAMES)), None)
    if command is None:
        pytest.fail(f"no browser: none of {', '.join(NAMES)} is here; scripts/setup installs one")
    return subprocess.run([command, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                           *options, f"file://{page}"], capture_output=True, text=True, timeout=120)


def screenshot(page, picture, width, height, scheme=LIGHT):
    """The first `height` pixels of the page in a window of `width`, as an RGB image."""
    run = _run(page, f"--window-size={width},{height}", f"--screenshot={picture}",
               f"--blink-settings=preferredColorScheme={scheme}")
    assert picture.exists(), run.stderr
    return Image.open(picture).convert("RGB")


def document(page):
    """The page as the browser understood it, after whatever would have run."""
    run = _run(page, "--dump-dom", "--virtual-time-budget=2000")
    assert run.returncode == 0, run.stderr
    return run.stdout
