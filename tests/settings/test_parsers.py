"""The parsers of settings: what they take, and what they say of the rest."""

from __future__ import annotations

import pytest

from invoker.errors import ConfigError
from invoker.server.table import TABLE
from invoker.settings.parsers import (
    directories,
    endpoint,
    hosts,
    is_loopback,
    levels_of,
    mode,
    names,
    pairs,
    some_of,
    store,
)


def test_names_stand_between_commas():
    """Blanks and empty places do not count."""
    assert names(" a, b ,,c ") == ("a", "b", "c")
    assert names("") == ()


def test_pairs_have_a_name_and_a_value():
    """The value may hold an equals sign, as nothing in a name may."""
    parse = pairs("NAME=module:function")
    assert parse("A=m:f, B=./x.py:g=h") == (("A", "m:f"), ("B", "./x.py:g=h"))
    for text in ("A", "A=", "=m:f", "A=m:f,B"):
        with pytest.raises(ValueError, match="NAME=module:function"):
            parse(text)


def test_some_of_a_few_words_keep_their_own_order():
    """However they were given."""
    parse = some_of("riff", "evergreen", "http")
    assert parse("http,RIFF") == ("riff", "http")
    for text in ("", "grpc", "riff,grpc"):
        with pytest.raises(ValueError, match="riff, evergreen, http"):
            parse(text)


def test_a_store_is_a_word_a_file_or_a_server():
    """The words in any case; a path or an address as it is."""
    for text in ("auto", "memory", "sqlite:/tmp/A.db", "redis://host:6379/0", "rediss://:word@host", "unix:///r.sock"):
        assert store(text) == text
    assert store("Memory") == "memory"
    for text in ("", "sqlite", "sqlite:", "redis:", "redis://", "postgres://host", "/tmp/a.db"):
        with pytest.raises(ValueError, match="sqlite:PATH"):
            store(text)


def test_directories_are_absolute_and_there(tmp_path):
    """A root that is missing would refuse everything without a word."""
    assert directories(f"{tmp_path}, /") == (str(tmp_path), "/")
    for text in ("relative", str(tmp_path / "missing")):
        with pytest.raises(ValueError, match="absolute paths of directories"):
            directories(text)


@pytest.mark.parametrize(
    ("host", "fact"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.9.8.7", True), ("::1", True),
        ("::ffff:127.0.0.1", True), ("::ffff:7f00:1", True),
        ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::ffff:10.0.0.1", False), ("::ffff:0.0.0.0", False),
        ("example.org", False),
    ],
)  # fmt: skip
def test_loopback_is_the_same_on_each_python(host, fact):
    """Python 3.13 sees the IPv4 address in an IPv6 one; on older ones it is looked for."""
    assert is_loopback(host) is fact


@pytest.mark.parametrize(("text", "value"), [("OFF", "off"), ("public", "public"), ("a.org, *.b.org", "a.org,*.b.org")])
def test_hosts_are_off_public_or_named(text, value):
    """One of the two words, or names."""
    assert hosts(text) == value


@pytest.mark.parametrize("text", ["off,a.org", "public, off", "a b", ","])
def test_hosts_are_not_both(text):
    """A word beside names would be read in two ways."""
    with pytest.raises(ValueError, match="off, public, or host names"):
        hosts(text)


def test_web_pages_have_origins_and_the_transport_has_hosts():
    """The flags may be repeated; an origin with a path, or without a scheme, is none."""
    read = TABLE.read({"INVOKER_ALLOWED_ORIGINS": "https://a.example,http://b.example:3000"})
    assert read.allowed_origins == ("https://a.example", "http://b.example:3000")
    flags = {"allowed_origins": ["*"], "allowed_hosts": ["a.example", "b.example:80"]}
    read = TABLE.read({}, flags)
    assert (read.allowed_origins, read.allowed_hosts) == (("*",), ("a.example", "b.example:80"))
    for wrong in ("https://a.example/", "a.example", "null", "https://"):
        with pytest.raises(ConfigError, match="without a path, or"):
            TABLE.read({}, {"allowed_origins": [wrong]})


def test_a_mode_is_octal_and_lets_the_owner_in():
    """As it was written."""
    for text in ("600", "660", "0666", "777"):
        assert mode(text) == text
    for text in ("", "0", "200", "488", "6000", "rw", "0o600", "66"):
        with pytest.raises(ValueError, match="octal"):
            mode(text)


def test_an_endpoint_has_a_host_and_a_port():
    """An IPv6 address stands in brackets."""
    for text in ("localhost:0", "127.0.0.1:9000", "[::1]:65535"):
        assert endpoint(text) == text
    for text in ("localhost", ":1", "localhost:", "localhost:65536", "::1:80", "a b:1", "localhost:x"):
        with pytest.raises(ValueError, match="HOST:PORT"):
            endpoint(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("Info", "info"), ("info, a.b = DEBUG", "info,a.b=debug"), ("info,a=debug,b=info", "info,a=debug,b=info")],
)
def test_levels_are_one_for_all_and_then_some_of_loggers(text, value):
    """As they are written, or with blanks and capitals."""
    assert levels_of("debug", "info")(text) == value


@pytest.mark.parametrize(
    "text", ["", "loud", "a=info", "info,debug", "info,=debug", "info,a=loud", "info,,", "info,a="]
)
def test_levels_are_of_those_that_there_are(text):
    """The first one has no name, and all others have."""
    with pytest.raises(ValueError, match=r"debug or info, then NAME=LEVEL after commas, as in debug,myapp\.db=debug"):
        levels_of("debug", "info")(text)
