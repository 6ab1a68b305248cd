"""Settings: a flag wins over a variable, a variable over the default; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hugeplan_agent.config import (
    NODE_OPTIONS,
    RUN_OPTIONS,
    SEND_OPTIONS,
    SPOOL_OPTIONS,
    Option,
    parse_duration,
    parse_size,
    read_token,
    resolve,
    with_system_settings,
)
from hugeplan_agent.enrolment import enrol
from hugeplan_agent.errors import ConfigurationError


def test_defaults() -> None:
    config = resolve({}, {})
    assert config.server is None
    assert (config.interval_seconds, config.timeout_seconds) == (60, 10)
    assert config.bounds.max_bytes == 64 * 1024**2
    assert config.bounds.max_age_seconds == 7 * 86400
    assert config.root == Path("/")
    assert config.measure == "none"


def test_a_flag_wins_over_a_variable() -> None:
    environment = {"HUGEPLAN_AGENT_INTERVAL": "5m", "HUGEPLAN_AGENT_SERVER": "https://a.example/"}
    assert resolve({}, environment).interval_seconds == 300
    assert resolve({"interval": "10s"}, environment).interval_seconds == 10
    assert resolve({}, environment).server == "https://a.example"


def test_an_empty_variable_is_not_given() -> None:
    assert resolve({}, {"HUGEPLAN_AGENT_INTERVAL": ""}).interval_seconds == 60


def test_the_measurement_limit_follows_the_profile() -> None:
    assert (
        resolve({"measure": "full"}, {}).measure_limit_seconds > resolve({"measure": "quick"}, {}).measure_limit_seconds
    )
    assert resolve({"measure": "full", "measure_limit": "7s"}, {}).measure_limit_seconds == 7


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        ({"interval": "0s"}, {}, "--interval: '0s' is not valid; expected 1s to 1d"),
        ({}, {"HUGEPLAN_AGENT_INTERVAL": "soon"}, "HUGEPLAN_AGENT_INTERVAL: 'soon' is not valid; expected a duration"),
        ({"spool_max_size": "1MB"}, {}, "--spool-max-size: '1MB' is not valid; expected a size such as 64MiB or 1GiB"),
        ({"spool_max_size": "1KiB"}, {}, "--spool-max-size: '1KiB' is not valid; expected 64KiB to 1024GiB"),
        (
            {},
            {"HUGEPLAN_AGENT_MEASURE": "slow"},
            "HUGEPLAN_AGENT_MEASURE: 'slow' is not valid; expected one of none, quick",
        ),
        ({"server": "example.org"}, {}, "--server: 'example.org' is not valid"),
        ({"server": "http://"}, {}, "--server: 'http://' is not valid"),
        ({"server": "http://hugeplan:8000"}, {}, "would send the token and the reports unencrypted"),
        ({}, {"HUGEPLAN_AGENT_ALLOW_PLAIN_HTTP": "maybe"}, "HUGEPLAN_AGENT_ALLOW_PLAIN_HTTP: 'maybe' is not valid"),
        ({"measure_window": "25:00-26:00"}, {}, "expected a time of day such as 02:00-05:00"),
        ({"server": "http://a:99999"}, {}, "--server: 'http://a:99999' is not valid"),
        ({"server": "file:///etc/passwd"}, {}, "expected http://HOST:PORT or https://HOST"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], environment: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(given, environment)
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("1.5m", 90), ("2h", 7200), ("1d", 86400), (" 3 s", 3)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(("text", "size"), [("7", 7), ("7B", 7), ("2KiB", 2048), ("3 MiB", 3 * 1024**2)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


class TestTokenFile:
    def test_a_private_file_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "token"
        path.write_text("hp_secret\n")
        for mode in (0o600, 0o400, 0o440):
            path.chmod(mode)
            assert read_token(path) == "hp_secret"

    @pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o666])
    def test_a_file_that_others_may_use_is_refused(self, tmp_path: Path, mode: int) -> None:
        path = tmp_path / "token"
        path.write_text("hp_secret\n")
        path.chmod(mode)
        with pytest.raises(ConfigurationError, match=rf"has mode {mode:04o}") as caught:
            read_token(path)
        assert "hp_secret" not in str(caught.value)

    @pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"\xff\xfe"])
    def test_a_file_without_one_word_is_refused(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "token"
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(ConfigurationError, match="--token-file"):
            read_token(path)

    def test_an_absent_file(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="cannot be read: No such file or directory"):
            read_token(tmp_path / "absent")


GARBAGE = (
    "", " ", "\n", "garbage", "é", "\udcff", "[", "-1", "0", "1e999", "nan", "9" * 5000, "9" * 5000 + "s",
    "x" * 100_000, "٣s", "https://[", "http://é", "https://a:٣", "25:00-26:00",
)  # fmt: skip


@pytest.mark.parametrize(
    "option", [*SEND_OPTIONS, *SPOOL_OPTIONS, *NODE_OPTIONS, *RUN_OPTIONS], ids=lambda option: option.name
)
def test_a_variable_may_hold_anything(option: Option) -> None:
    """One short sentence that names the setting, in ASCII, or it is valid."""
    for value in GARBAGE:
        try:
            resolve({}, {option.variable: value})
        except ConfigurationError as error:
            said = str(error)
            assert option.variable in said or option.flag in said, said
            assert "\n" not in said
            assert said.isascii()
            assert len(said) < 300, said[:300]


def test_settings_that_are_no_text_are_named_and_not_left_out(tmp_path: Path) -> None:
    file = tmp_path / "agent.env"
    file.write_bytes(b"HUGEPLAN_AGENT_SERVER=https://a.example\n\xff")
    with pytest.raises(ConfigurationError, match=rf"^{file} is not UTF-8 text \(byte 40\); expected lines such as "):
        with_system_settings({}, file)


@pytest.mark.parametrize("token", ["é", "two words", "x" * 513, "\udcff"])
def test_an_enrolment_token_that_no_header_can_carry_is_refused_before(token: str, tmp_path: Path) -> None:
    environment = {
        "HUGEPLAN_AGENT_ENROLMENT_TOKEN": token,
        "HUGEPLAN_AGENT_SERVER": "http://127.0.0.1:1",
        "HUGEPLAN_AGENT_SPOOL_DIR": str(tmp_path),
    }
    with pytest.raises(ConfigurationError, match="HUGEPLAN_AGENT_ENROLMENT_TOKEN: expected one word") as refused:
        enrol(resolve({}, environment))
    assert token not in str(refused.value)
