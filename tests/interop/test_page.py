"""The page in a real, headless Chromium: what a person does with it, and what nobody may do.

``page.js`` drives it. With ``INVOKER_PICTURES=folder`` each scenario leaves screenshots there.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import SLOW
from tests.interop.page_functions import EVIL
from tests.interop.tools import MODULES, answered
from tests.serving import ROOT, Served, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT_S = 40.0
SCRIPT = Path(__file__).parent / "page.js"
WIDTHS = {"desktop": (1280, 900), "tablet": (820, 1000), "phone": (390, 844)}

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: NO BROWSER WAS TRIED; apt-get install chromium"),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Served]:
    """A server whose page is looked at."""
    with serving("tests.interop.page_functions", "--protocols", "riff,evergreen,http") as served:
        yield served


def looked(served: Served, scenario: str, **options: Any) -> Any:
    """What a scenario has seen; nothing was loaded from elsewhere, and the browser complained of nothing."""
    pictures = os.environ.get("INVOKER_PICTURES")
    given = {"chromium": CHROMIUM, "limitMs": 5000 * SLOW, **({"pictures": pictures} if pictures else {}), **options}
    question = {"scenario": scenario, "base": f"http://{served.http}/", "options": given}
    seen = answered(SCRIPT, question, limit_s=LIMIT_S)
    assert seen["foreign"] == [], "a request has left this machine"
    assert seen["errors"] == []
    return seen["result"]


def test_H072_the_page_lists_the_functions_and_asks_nobody_else(page: Served) -> None:
    """Each with a link; the first is shown."""
    seen = looked(page, "load")
    assert {"generate", "repeat", "paint"} <= {*seen["links"]}
    assert seen["links"][0] == seen["heading"]
    assert seen["title"] == f"{seen['heading']} · invoker"


def test_H085_the_first_output_is_there_within_a_second(page: Served) -> None:
    """From the navigation to the output of a function, with all files loaded anew; the best of three."""
    seen = [looked(page, "first") for _ in range(3)]
    assert all(one["values"] == ["hello"] for one in seen)
    assert min(one["ms"] for one in seen) < 1000 * max(1.0, SLOW / 4), seen


def test_H081_a_text_grows_as_it_streams(page: Served) -> None:
    """In one text; a value that its schema forbids is refused at its field and not sent."""
    seen = looked(page, "run")
    assert seen["text"].split() == ["tea", "and", "tarts"] * 2
    assert seen["state"].startswith("Ended normally in")
    assert seen["state"].endswith("with 6 items.")
    assert (seen["wrong"], seen["invalid"]) == ("This is not ≤ 2.", "temperature")
    assert seen["again"].split() == ["tea", "and"]


def test_H079_no_digit_is_lost(page: Served) -> None:
    """Whole numbers beyond 2**53 go to the function and back."""
    assert looked(page, "digits") == [str(9007199254740993 + 1)]


def test_H079_a_form_is_made_from_the_schema(page: Served) -> None:
    """Objects, choices, lists and options; what was not touched is not sent, and JSON can be written instead."""
    seen = looked(page, "form")
    sent = json.loads(seen["form"].partition("--data-raw '")[2].rstrip("'\n"))
    assert sent == {"point": {"x": 1.5}, "colour": "green", "tags": ["b"], "dry": True}
    assert json.loads(seen["json"]) == {"x": 1.5}
    assert seen["wrong"].startswith("This is not JSON")
    assert seen["state"].startswith("Not sent")


def test_H080_several_inputs_stay_open(page: Served) -> None:
    """Items go to each in turns, outputs come meanwhile, each input is ended by itself, and the frames are told."""
    seen = looked(page, "two")
    assert (seen["before"], seen["values"]) == (["ho", "ho"], ["ho", "ho", "ha"])
    assert [one.split()[-1].removeprefix("in") for one in seen["streams"]] == ["words", "counts"]
    assert (seen["isShut"], seen["isOpenAgain"]) == (True, True)
    assert seen["state"].startswith("Ended normally")


def test_H081_each_output_has_a_place_of_its_own(page: Served) -> None:
    """Values of named outputs do not mix."""
    seen = looked(page, "outputs")
    assert seen["lanes"] == {"even": ["2"], "odd": ["1", "3"]}


def test_H079_what_a_function_leaves_open_can_be_named(page: Served, tmp_path: Path) -> None:
    """Further inputs, further parameters, and outputs that the function names itself; the code has the first two."""
    seen = looked(page, "open")
    assert all(one[0].startswith("Ended normally") for one in seen.values())
    assert seen["many"][1] == ["7"]
    assert _ran(seen["many"][2], "curl", tmp_path) == [7]
    assert seen["further"][1][0].split("\n")[1:] == ["a:", "1", "b:", '"x"', "c:", '"it\'s"']
    assert _ran(seen["further"][2], "curl", tmp_path) == [{"a": 1, "b": "x", "c": "it's"}]
    assert seen["tag"][1:] == [["fine"], ["e1"]]


def test_H079_a_file_is_dropped_or_chosen(page: Served) -> None:
    """Its bytes reach the function as they are."""
    seen = looked(page, "file")
    assert (seen["dropped"], seen["chosen"]) == (["1234"], ["77"])
    assert seen["names"].split()[0] == "drop.bin"


def test_H081_values_are_shown_as_what_they_are(page: Served) -> None:
    """Pictures, sound, heat maps that the keyboard reads, tables; documents of functions stay texts."""
    seen = looked(page, "shown")
    assert seen["picture"] == [8, 8]
    assert seen["tone"] == pytest.approx(0.1)
    assert seen["matrix"][:2] == [8, 8]
    assert seen["matrix here"] == "[1, 1] = 1"
    assert seen["tensor"][:2] == [4, 3]
    assert seen["tensor here"] == "[1, 1] = 5"
    assert seen["rows"] == [3, 5, "row 1", EVIL]
    assert EVIL in seen["html"]
    assert (seen["pwned"], seen["planted"]) == (0, 0)
    assert all(text.startswith("Ended normally") for name, text in seen.items() if name.endswith(" state"))


def test_H082_an_error_is_shown_where_it_happened(page: Served) -> None:
    """With its problem object; its text runs nothing."""
    seen = looked(page, "error")
    assert seen["state"].startswith("Failed after")
    assert f"3 is not liked {EVIL}" in seen["alert"]
    assert '"status"' in seen["object"] or "status" in seen["object"]
    assert (seen["pwned"], seen["planted"]) == (0, 0)


def test_H082_a_run_is_cancelled(page: Served) -> None:
    """By the button or the Escape key; the function ends, as the frames tell."""
    seen = looked(page, "cancel")
    assert seen["state"].startswith("Cancelled after")
    assert seen["ending"] == "CANCELLED"
    assert seen["again"].startswith("Cancelled after")


def test_H082_a_flood_of_outputs_can_be_cancelled(page: Served) -> None:
    """The page keeps a bounded part of it, and goes on to react."""
    seen = looked(page, "flood")
    assert seen["state"].startswith("Cancelled after")
    assert seen["entries"] <= 400
    assert "earlier items are not shown" in seen["note"]


def test_H073_hostile_texts_run_nothing(page: Served) -> None:
    """Docs, values, keys, choices and addresses with tags are seen as they are written."""
    seen = looked(page, "hostile")
    assert (seen["pwned"], seen["planted"]) == (0, 0)
    assert json.dumps(EVIL) in seen["tree"]
    assert '<img src=x onerror="window.pwned=1">' in seen["about"]
    assert EVIL in seen["choices"]


def test_H073_hostile_names_of_files_run_nothing(page: Served) -> None:
    """Neither in the page nor in the command to copy, where a quote in them ends no word."""
    seen = looked(page, "file", name=f"'; touch pwned; '{EVIL}.bin")
    assert (seen["pwned"], seen["planted"]) == (0, 0)
    assert EVIL in seen["names"]
    words = subprocess.run(
        ["sh", "-c", f"curl() {{ printf '%s\\n' \"$@\"; }}; {seen['code']}"], capture_output=True, text=True, check=True
    ).stdout
    assert f"@'; touch pwned; '{EVIL}.bin" in words


def test_H083_the_code_to_copy_makes_the_same_call(page: Served, tmp_path: Path) -> None:
    """Copied commands, programs of Python and programs of JavaScript give what the page shows."""
    (tmp_path / "data file.bin").write_bytes(b"x" * 4321)
    found = looked(page, "code", file=str(tmp_path / "data file.bin"))
    assert found.pop("copied") == found["add"]["curl"]
    wanted = {
        "add": [12345678901234567883],
        "generate": ["it's ", '"quoted" ', "$HOME "],
        "repeat": ["a", "it's", "it's"],
        "running_mean": [4.0],
        "length": [4321],
    }
    for name, values in wanted.items():
        for language, code in found[name].items():
            if (name, language) in {("add", "JavaScript"), ("length", "JavaScript")}:
                continue  # JavaScript's numbers have 53 bits; a File is a browser's
            assert _ran(code, language, tmp_path) == values, f"{name} {language}\n{code}"
    _ran(found["picture"]["curl"], "curl", tmp_path)
    assert (tmp_path / "output").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "output").unlink()
    _ran(found["picture"]["Python"], "Python", tmp_path)
    assert (tmp_path / "output").read_bytes().startswith(b"\x89PNG")


def _ran(code: str, language: str, folder: Path, *, is_text: bool = False) -> Any:
    """The values that a copied text gives, line by line."""
    file = folder / "copied.mjs"
    file.write_text(code)
    commands = {"curl": ["sh", "-c", code], "Python": [sys.executable, "-c", code], "JavaScript": ["node", str(file)]}
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        commands[language], cwd=folder, env=env, capture_output=True, text=True, timeout=10 * SLOW, check=False
    )
    assert done.returncode == 0, f"{code}\n{done.stderr}"
    lines = [line for line in done.stdout.splitlines() if line]
    if is_text:  # the function gives one; curl shows it as JSON has it
        return json.loads(lines[0]) if language == "curl" else lines[0]
    if language != "curl":  # they print a text as it is
        return [json.loads(line) if re.fullmatch(r"-?[0-9.]+", line) else line for line in lines]
    return [json.loads(line) for line in lines]


def test_H084_the_page_is_dark_where_the_system_is(page: Served) -> None:
    """Unless its reader chooses; the choice is kept."""
    dark = looked(page, "dark", scheme="dark")
    assert dark["auto"] == dark["dark"] == dark["kept"]
    assert dark["light"] != dark["dark"]
    assert looked(page, "dark", scheme="light")["auto"] == dark["light"]


def test_H084_the_keyboard_is_enough(page: Served) -> None:
    """A function is found, fed, ended and its code read without a pointer; whatever has the focus shows it."""
    seen = looked(page, "keyboard")
    assert seen["rings"] == [True] * 5
    assert seen["skip"] == "Skip to the function"
    assert (seen["values"], seen["next"]) == (["4", "6"], "Python")
    assert seen["state"].startswith("Ended normally")
    assert "urlopen" in seen["code"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_H084_axe_finds_nothing(page: Served, scheme: str) -> None:
    """Names, roles, contrast and structure, with inputs, outputs, errors and running invocations on the page."""
    assert looked(page, "axe", scheme=scheme) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_H084_nothing_is_cut_off(page: Served, width: str) -> None:
    """The page is never wider than the window."""
    size = dict(zip(("width", "height"), WIDTHS[width], strict=True))
    assert looked(page, "pictures", viewport=size, prefix=f"{width}-")["wide"] <= 0


def test_H083_no_digit_is_lost_in_the_code(page: Served, tmp_path: Path) -> None:
    """Numbers that JavaScript cannot hold reach the function from each language as the form has them."""
    texts = [
        "12345678901234567890",
        "9007199254740993",
        "1.0",
        "-0.0",
        '{"a": [9007199254740993, 0.5], "__proto__": 1}',
    ]
    for text, codes in looked(page, "exact", texts=texts).items():
        for language, code in codes.items():
            assert _ran(code, language, tmp_path, is_text=True) == json.dumps(json.loads(text)), f"{language}\n{code}"


def test_H083_the_code_invents_and_drops_nothing(page: Served) -> None:
    """What the form lacks, what is wrong in it, and what was sent long ago is said, and no value stands for it."""
    seen = looked(page, "lacks")
    assert seen["empty"].startswith("# a is needed.\n# b is needed.\ncurl")
    assert "data" not in seen["empty"]
    assert seen["wrong"].startswith("# a is left out: This is not a whole number.\n# b is needed.\n")
    assert seen["many"].startswith("# 3 items that numbers got before are left out.\n")
    assert re.findall(r"^(?:  --data-raw ')?(\d+)'?$", seen["many"], re.MULTILINE) == [str(at) for at in range(4, 54)]


def test_H084_a_file_dropped_beside_its_place_stays_out(page: Served) -> None:
    """The browser does not leave the page for it; a text that is dragged goes where it goes everywhere."""
    assert looked(page, "beside") == [[True, False], [True, False]]


@pytest.mark.parametrize("width", WIDTHS)
def test_H084_targets_are_large_enough(page: Served, width: str) -> None:
    """Whatever can be clicked has 24 pixels each way (WCAG 2.5.8)."""
    assert looked(page, "targets", viewport=dict(zip(("width", "height"), WIDTHS[width], strict=True))) == []


@pytest.mark.parametrize("size", [(1920, 420), (1366, 420), (390, 420)])
def test_H084_run_and_state_stay_in_sight(page: Served, size: tuple[int, int]) -> None:
    """However far a long form is scrolled, as long as it goes on below the window."""
    seen = looked(page, "sticky", viewport={"width": size[0], "height": size[1]})
    assert len(seen["seen"]) >= 3
    assert all(seen["seen"]), seen


def test_H084_a_phone_cuts_nothing(page: Served) -> None:
    """Queues and states of running streams are whole, and buttons keep their row."""
    seen = looked(page, "narrow", viewport={"width": 390, "height": 844})
    assert seen == {"cut": [], "rows": [True] * 4, "queues": 2, "scrolls": False}


def test_H084_a_wide_window_is_used(page: Served) -> None:
    """Form, outputs and code stand side by side."""
    assert looked(page, "wide", viewport={"width": 1920, "height": 1080}) > 0.97


def test_H072_the_list_explains_itself(page: Served) -> None:
    """Its search says what it does, its signs are told, and the protocols of an address stand together."""
    seen = looked(page, "list")
    assert seen["find"] == f"Find one of {len(seen['marks'])} functions"
    assert seen["kinds"] == ["→ one value", "⇶ a stream", "↗ in a process of its own"]
    assert {name: seen["marks"][name] for name in ("add", "repeat", "apart")} == {
        "add": "one value",
        "repeat": "a stream",
        "apart": "one value, in a process of its own",
    }
    assert (seen["addresses"], seen["protocols"]) == ([page.grpc, page.http], ["riff, evergreen", "http"])
    assert seen["tags"] == ["request/reply", "in a process of its own"]


def test_H079_defaults_are_told_in_one_language(page: Served) -> None:
    """In that of JSON, in which values are entered; a field without one shows none."""
    seen = looked(page, "defaults")
    assert "mode: Literal['fast', 'good'] = \"good\"" in seen["paint"]["signature"]
    assert "dry: bool = false" in seen["paint"]["signature"]
    assert seen["paint"]["fields"] == ["default: 0", "default: null", 'default: "good"', "default: false"]
    assert seen["generate"]["fields"] == ["default: 0.7", "default: 6"]


def test_H082_what_failed_is_red(page: Served) -> None:
    """The state, the output and the count; the author's words stand first."""
    seen = looked(page, "failed")
    assert {seen["refused"], *seen["colours"]} == {"rgb(179, 38, 30)"}
    assert seen["words"].startswith("ValueError: 3 is not liked")


def test_H082_a_server_that_is_gone_is_said(page: Served) -> None:
    """In words, without the code of a close frame that nobody sent."""
    seen = looked(page, "gone")
    assert seen.startswith("The server does not answer")
    assert "1006" not in seen


def test_H082_the_duration_is_that_of_the_function(page: Served) -> None:
    """It ends with the function's last frame, however late the connection ends."""
    took = re.match(r"Ended normally in (\d+) ms", looked(page, "duration"))
    assert took
    assert int(took[1]) < 2500


def test_H074_the_page_shows_what_waits_for_a_function(page: Served) -> None:
    """What the invocation holds in its head line, and what is queued beside each input."""
    assert looked(page, "held") == "3 · 6 B"


def test_the_readme_listens_from_a_page(tmp_path: Path) -> None:
    """Its lines of JavaScript, in a page of the port that serves its first module."""
    blocks = re.findall(r"^```(python|js)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    module, script = (next(text for kind, text in blocks if kind == wanted) for wanted in ("python", "js"))
    (tmp_path / "tea.py").write_text(module)
    with serving(str(tmp_path / "tea.py")) as served:
        assert looked(served, "script", code=script) == ["cup 1 ", "cup 2 "]


async def test_H074_the_page_shows_the_frames_of_other_callers(page: Served) -> None:
    """What curl has running is seen, with numbers that grow."""
    async with httpx.AsyncClient(base_url=f"http://{page.http}", trust_env=False) as client:
        head = {"Accept": "application/x-ndjson"}
        async with client.stream("POST", "/ticks", headers=head) as stream:
            reading = asyncio.create_task(_read(stream))
            seen = await asyncio.to_thread(looked, page, "flow")
            reading.cancel()
    assert seen["after"] > seen["before"]
    assert seen["rate"].endswith("/s")
    assert seen["moves"] >= 1


async def _read(stream: httpx.Response) -> None:
    async for _ in stream.aiter_lines():
        pass


def test_the_tools_are_there() -> None:
    """Both are installed by `make interop`."""
    assert (MODULES / "playwright-core").is_dir()
    assert (MODULES / "axe-core").is_dir()
