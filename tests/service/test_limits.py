"""Past its limits the service refuses at once, with a reason; below them nobody waits for anybody."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

TEXT = "Where is the station?"
LONG = "My sister works in a hospital, and my brother would like to have a cup of coffee with her tomorrow."


def send(service: Any, values: Any) -> Any:
    """A request on a connection of its own, which is given back without waiting for an answer."""
    body = json.dumps(values).encode()
    connection = service.connection()
    head = f"POST /v1/translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    connection.sendall(f"{head}\r\n\r\n".encode() + body)
    return connection


@pytest.fixture(scope="module")
def small(serve: Any) -> Any:
    """One sentence at a time, and low limits."""
    options = {"max-characters": 6000, "max-texts": 60, "max-waiting": 60, "workers": 1, "batch-tokens": 1}
    with serve("en-de", *(word for name, value in options.items() for word in (f"--{name}", str(value)))) as service:
        yield service


def test_too_many_characters_texts_and_bytes(small: Any) -> None:
    for body, words in (
        ({"q": "a" * 6001}, "6001 characters are too many; at most 6000"),
        ({"q": ["a"] * 61}, "61 texts are too many at once; at most 60"),
        ({"q": "x", "prefix": "a" * 100_000}, "bytes"),
    ):
        status, answer, _ = small.post("/v1/translate", body)
        assert (status, list(answer)) == (413, ["error"])
        assert words in answer["error"]
    assert small.get("/frontend/settings")[1]["charLimit"] == 6000


def test_requests_a_minute(serve: Any) -> None:
    with serve("en-de", "--requests-per-minute", "5") as service:
        statuses = [service.post("/v1/translate", {"q": TEXT})[0] for _ in range(5)]
        assert statuses == [200] * 5
        status, answer, headers = service.post("/v1/translate", {"q": TEXT})
        assert status == 429
        assert answer == {"error": "Too many requests: at most 5 a minute."}
        assert 1 <= int(headers["retry-after"]) <= 12
        assert service.get("/health")[0] == 200  # only work is counted


def test_a_full_queue_refuses_at_once_and_serves_again(small: Any) -> None:
    waiting = [send(small, {"q": [LONG] * 50}) for _ in range(2)]
    small.until_waiting()
    started = time.perf_counter()
    status, answer, headers = small.post("/v1/translate", {"q": [LONG] * 50})
    assert (status, list(answer)) == (503, ["error"])
    assert "busy" in answer["error"]
    assert int(headers["retry-after"]) >= 1
    assert small.figure("waiting_sentences") > 0, "it was answered before the others, not after them"
    assert time.perf_counter() - started < 10
    for connection in waiting:
        connection.recv(1 << 20)
        connection.close()
    assert small.post("/v1/translate", {"q": TEXT})[0] == 200


def test_a_request_that_takes_too_long_is_given_up(serve: Any) -> None:
    with serve("en-de", "--max-seconds", "0.2", "--workers", "1", "--batch-tokens", "1") as service:
        service.post("/v1/translate", {"q": TEXT})
        status, answer, headers = service.post("/v1/translate", {"q": [LONG] * 40 + [TEXT] * 40})
        assert status == 503
        assert answer == {"error": "This takes longer than 0.2 seconds."}
        assert int(headers["retry-after"]) >= 1
        assert service.figure("waiting_sentences") == 0, "what nobody waits for is not decoded"


def test_a_long_document_does_not_hold_up_a_short_sentence(small: Any) -> None:
    document = send(small, {"q": [LONG] * 55})
    small.until_waiting()
    assert small.post("/v1/translate", {"q": TEXT})[0] == 200
    assert small.figure("waiting_sentences") > 20, "the short one came before most of the long one"
    assert document.recv(100).startswith(b"HTTP/1.1 200")
    document.close()


def test_who_hangs_up_leaves_the_queue(small: Any) -> None:
    done = small.figure('sentences_total{model="en-de"}')
    gone = send(small, {"q": [LONG] * 55})
    small.until_waiting()
    gone.close()
    deadline = time.monotonic() + 10
    while small.figure("waiting_sentences"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert small.figure('sentences_total{model="en-de"}') == done
    assert 'status="499"' in small.get("/metrics")[1]


def test_requests_that_come_together_are_decoded_together(service: Any) -> None:
    before = service.figure("batch_sentences_count"), service.figure("batch_sentences_sum")
    texts = [f"I have {number} apples." for number in ("two", "three", "four", "five", "six", "seven") * 10]
    with ThreadPoolExecutor(20) as pool:
        together = list(pool.map(lambda text: service.post("/v1/translate", {"q": text, "guard": False})[1], texts))
    batches = service.figure("batch_sentences_count") - before[0]
    assert service.figure("batch_sentences_sum") - before[1] == 60
    assert batches < 60
    alone = [service.post("/v1/translate", {"q": text, "guard": False})[1] for text in texts]
    texts_of = [[answer["translations"][0]["text"] for answer in answers] for answers in (together, alone)]
    assert texts_of[0] == texts_of[1]
