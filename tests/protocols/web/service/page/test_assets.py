"""The files of the page."""

from __future__ import annotations

import re

import pytest

from invoker.core.http import RequestHead
from invoker.protocols.web.service.page.assets import Assets

ASSETS = Assets()
TEXTS = {name: file.body.decode() for name, file in ASSETS.files.items()}


def get(name: str, method: str = "GET", **headers: str):
    pairs = [(key.replace("_", "-"), value) for key, value in headers.items()]
    return ASSETS.answer(RequestHead(method, f"/_page/{name}", headers=pairs), name)


def test_H072_all_files_together_are_small() -> None:
    """At most 98 kB, uncompressed."""
    assert sum(len(file.body) for file in ASSETS.files.values()) <= 98_000


@pytest.mark.parametrize("name", sorted(ASSETS.files))
def test_H072_a_client_that_has_a_file_gets_304(name: str) -> None:
    """By its ETag, strong or weak, among others; another one gets the file."""
    response = get(name)
    headers = dict(response.headers)
    assert (response.status, response.body) == (200, ASSETS.files[name].body)
    assert headers["Cache-Control"] == "no-cache"
    for known in (headers["ETag"], f"W/{headers['ETag']}", f'"other", {headers["ETag"]}', "*"):
        again = get(name, if_none_match=known)
        assert (again.status, again.body, dict(again.headers)["ETag"]) == (304, b"", headers["ETag"])
    assert get(name, if_none_match='"other"').status == 200


def test_H073_a_strict_policy_stands_on_every_file() -> None:
    """Only these files run, nothing frames them, and no text becomes HTML, not even for a 304."""
    for response in (*map(get, ASSETS.files), get("main.js", if_none_match="*")):
        headers = dict(response.headers)
        policy = {one.split(" ")[0]: one for one in headers["Content-Security-Policy"].split("; ")}
        assert policy["default-src"] == "default-src 'none'"
        assert policy["script-src"] == "script-src 'self'"
        assert policy["frame-ancestors"] == "frame-ancestors 'none'"
        assert policy["require-trusted-types-for"] == "require-trusted-types-for 'script'"
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"


def test_H073_no_file_parses_html_or_runs_text() -> None:
    """There is no word for it, no inline script and no inline style."""
    for name, text in TEXTS.items():
        code = re.sub(r"//.*", "", text)
        words = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|createContextualFragment"
        assert not re.search(words, code), name
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", TEXTS["index.html"])


def test_H072_nothing_is_loaded_from_elsewhere() -> None:
    """The only address of another host is the name of SVG."""
    found = {
        one for text in TEXTS.values() for one in re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\"' ]*", text)
    }
    assert found <= {"http://www.w3.org/2000/svg"}


def test_every_module_that_is_imported_is_there_and_loaded_early() -> None:
    """index.html names each, so that a browser asks for all of them at once."""
    for name, text in TEXTS.items():
        for module in re.findall(r'from "\./([a-z]+\.js)"', text):
            assert module in TEXTS, f"{name} imports {module}"
            assert f"_page/{module}" in TEXTS["index.html"]


def test_what_is_no_file_is_not_there() -> None:
    """Nor is anything beside the folder, and files are only read."""
    for name in ("", "nothing.js", "../service.py", "assets.py", "..%2fservice.py"):
        assert get(name).status == 404
    refused = get("main.js", method="POST")
    assert (refused.status, dict(refused.headers)["Allow"]) == (405, "GET, HEAD")
