"""Whatever is sent, the answer is a proper one, the next request is served, and memory stays where it is."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

TEXT = "Where is the station?"


def answered(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:  # it closed while we were still sending
        pass
    return b"".join(parts)


def is_well(service: Any) -> bool:
    status, answer, _ = service.post("/v1/translate", {"q": TEXT})
    return status == 200 and answer["translations"][0]["text"].startswith("Wo ")


@pytest.mark.parametrize("path", ["/translate", "/v1/translate", "/v1/attention", "/detect"])
@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"5", b'"q"', b"[]", b"{}", b'{"q": NaN}', b'{"q": 1e999}', b'{"q": {"q": "a"}}',
        b"\xff\xfe\x00", b'{"q": "\xc3\x28", "source": "en", "target": "de"}',
        b'{"q": ["a", 5], "source": "en", "target": "de"}',
        b"[" * 15_000, b'{"q":' * 3000, b'{"q": "a"' + b" " * 10_000,
    ],
    ids=lambda body: repr(body[:16]),
)  # fmt: skip
def test_malformed_bodies(service: Any, path: str, body: bytes) -> None:
    status, answer, _ = service.post(path, body)
    assert (status, list(answer)) == (400, ["error"])
    assert len(answer["error"]) < 300
    assert service.get("/health")[0] == 200


@pytest.mark.parametrize(
    "media", ["text/plain", "application/xml", "multipart/form-data", "application/json; charset=x"]
)
def test_other_media_types(service: Any, media: str) -> None:
    status, answer, _ = service.post("/translate", b"q=a", content_type=media)
    assert status in (400, 415)
    assert list(answer) == ["error"]


def test_a_body_that_is_too_large_is_not_read(service: Any) -> None:
    refused = service.figure('refusals_total{reason="body"}')
    with service.connection() as connection:
        connection.sendall(b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        assert answered(connection).startswith(b"HTTP/1.1 413")
    with service.connection() as connection:  # without saying how long it will be
        connection.sendall(b"POST /translate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        try:
            for _ in range(200):
                connection.sendall(chunk)
        except OSError:  # closed before we were done
            pass
        answered(connection)
    assert service.figure('refusals_total{reason="body"}') == refused + 2
    assert is_well(service)


def test_ten_thousand_sentences_at_once(service: Any) -> None:
    status, answer, _ = service.post("/v1/translate", {"q": [TEXT] * 10_000})
    assert (status, list(answer)) == (413, ["error"])
    assert is_well(service)


def test_a_thousand_random_byte_strings(service: Any) -> None:
    generator = random.Random(3)
    assert is_well(service)
    memory = []
    for number in range(1000):
        data = generator.randbytes(generator.randrange(1, 2000))
        if number % 2:
            status, answer, _ = service.post(generator.choice(["/translate", "/v1/translate", "/detect"]), data)
            assert 400 <= status < 500, (status, answer)
        else:
            with service.connection() as connection:
                connection.sendall(data + b"\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)
                reply = answered(connection)
                assert not reply or reply.startswith(b"HTTP/1.1 4"), reply[:80]
        if number in (300, 999) and sys.platform == "linux":
            memory.append(service.memory)
    assert is_well(service)
    if memory:
        assert memory[1] - memory[0] < 10 << 20


def test_random_text_is_translated_to_something(service: Any) -> None:
    generator = random.Random(4)
    for _ in range(4):
        text = "".join(map(chr, generator.choices([*range(0x20, 0xD800), *range(0xE000, 0x11000)], k=100)))
        status, answer, _ = service.post("/v1/translate", {"q": text})
        assert status == 200, answer
    assert is_well(service)


def test_slow_clients_are_let_go_and_hold_up_nobody(serve: Any) -> None:
    with serve("en-de", "--max-seconds", "2") as service:
        slow = [service.connection() for _ in range(60)]
        for connection in slow:
            connection.sendall(b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n{")
        assert is_well(service)
        for connection in slow:
            reply = answered(connection)
            assert reply.startswith(b"HTTP/1.1 408")
            assert list(json.loads(reply.partition(b"\r\n\r\n")[2])) == ["error"]
            connection.close()


def test_nothing_of_users_or_of_us_gets_out(serve: Any) -> None:
    secret = "Rumpelstiltskin"
    with serve("en-de") as service:
        service.post("/v1/translate", {"q": f"My name is {secret}."})
        service.post("/v1/translate", {"q": 5, "model": secret})
        service.get(f"/{secret}?q={secret}")
        service.post("/translate", f"q={secret}&source={secret}".encode(), content_type="text/plain")
        _, answer, headers = service.post("/v1/translate", {"q": secret, "beam": secret})
        assert secret not in service.log
        assert "Traceback" not in service.log
        assert "server" not in headers
        assert not any(word in json.dumps(answer) for word in ("/src/", ".py", "Traceback"))


def test_headers_for_safety(service: Any) -> None:
    for _, _, headers in (
        service.get("/health"),
        service.get("/"),
        service.post("/translate", b"{"),
        service.get("/no"),
    ):
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_no_file_but_the_pages_own_is_served(service: Any) -> None:
    for path in ("/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static/", "/static/app.py"):
        with service.connection() as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            assert answered(connection).startswith(b"HTTP/1.1 404")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_told_to_stop_it_answers_what_it_accepted_and_takes_no_more(serve: Any) -> None:
    with serve("en-de", "--grace", "60", "--max-seconds", "60", "--workers", "1", "--batch-tokens", "1") as service:
        is_well(service)
        texts = [f"I have {number} sisters and {number + 1} brothers." for number in range(30)]
        outcomes: list[int] = []

        def ask() -> None:
            outcomes.append(service.post("/v1/translate", {"q": texts})[0])

        clients = [threading.Thread(target=ask) for _ in range(6)]
        for client in clients:
            client.start()
        service.until_waiting(5 * 30)  # all six have been accepted
        service.process.send_signal(signal.SIGTERM)
        refused_while_at_work = False
        for _ in range(3000):
            if all(not client.is_alive() for client in clients):
                break
            try:
                socket.create_connection(("127.0.0.1", service.port), timeout=5).close()
            except ConnectionRefusedError:
                refused_while_at_work = True
            except ConnectionResetError:  # the door closed in the moment of knocking
                continue
            time.sleep(0.01)
        for client in clients:
            client.join(30)
        assert outcomes == [200] * 6
        assert refused_while_at_work
        assert service.process.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to catch")
def test_work_beyond_the_grace_period_does_not_hold_it_up(serve: Any) -> None:
    with serve(
        "en-de", "--grace", "1", "--workers", "1", "--batch-tokens", "1", "--max-characters", "500000"
    ) as service:
        is_well(service)
        body = json.dumps({"q": [TEXT * 3] * 100}).encode()
        connections = [service.connection() for _ in range(30)]
        for connection in connections:
            head = f"POST /v1/translate HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            connection.sendall(head + body)
        time.sleep(0.5)
        started = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        service.process.wait(30)
        assert time.monotonic() - started < 10
        for connection in connections:
            connection.close()


def test_a_port_that_is_taken_and_other_mistakes_of_the_command() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--port", port], "cannot listen on 127.0.0.1 port"),
            (["--port", "70000"], "65535"),
            (["--host", "no.such.host.invalid"], "cannot listen"),
            (["en-dd"], "Did you mean 'en-de'"),
            (["en-de", "en-de"], "two models are called 'en-de'"),
            (["--api-key-file", "/no/such/file"], "cannot read the keys"),
            (["--max-characters", "0"], "lets nothing through"),
            (["--languages", "english"], "is not a direction"),
        ):
            command = [sys.executable, "-m", "transduce", "serve", *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert (done.returncode, words in done.stderr) == (2, True), done.stderr
            assert "Traceback" not in done.stderr
