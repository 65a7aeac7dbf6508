"""An S3 server that others wrote (versitygw, on a directory), and a client of it that costs as little as one can."""

import datetime
import hashlib
import hmac
import os
import random
import socket
import statistics
import subprocess
import threading
import time
from pathlib import Path

MIB = 1 << 20
KEY, SECRET, REGION = "key", "secret-of-the-key", "us-east-1"
BUCKET = "bucket"
START_SECONDS = 30


class Bucket:
    """A server of its own, and a bucket in it."""

    def __init__(self, program: Path, directory: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        data = directory / "bucket-data"
        data.mkdir(parents=True)
        command = [program, "--port", f"127.0.0.1:{self.port}", "--access", KEY, "--secret", SECRET, "--region", REGION, "--quiet", "--keep-alive", "posix", data]
        self.log = open(directory / "server.log", "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                Connection(self).ask("PUT", f"/{BUCKET}")
                break
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit(f"the server did not start: {(directory / 'server.log').read_text()}") from None
                time.sleep(0.05)

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What its clients need to know."""
        return {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION}

    def stop(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()
        self.log.close()

    def put_rate(self, count: int, at_once: int, size: int = 8 * MIB) -> float:
        """MiB/s of so many objects, of this size, several at a time."""
        body = random.randbytes(size)
        connections = [Connection(self) for _ in range(at_once)]

        def put(which: int) -> None:
            for number in range(which, count, at_once):
                connections[which].ask("PUT", f"/{BUCKET}/rate-{number}", body)

        threads = [threading.Thread(target=put, args=(which,)) for which in range(at_once)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return count * size / MIB / (time.monotonic() - began)

    def get_us(self, size: int, count: int, port: int) -> float:
        """The median of ranged GETs, one at a time, of objects that `put_rate` put, in microseconds; through this port."""
        connection, took = Connection(self, port), []
        for _ in range(count):
            start = random.randrange((8 * MIB - size) // 512) * 512
            request = connection.request("GET", f"/{BUCKET}/rate-{random.randrange(16)}", b"", {"range": f"bytes={start}-{start + size - 1}"})
            began = time.perf_counter()
            connection.send(request)
            took.append(time.perf_counter() - began)
        return statistics.median(took) * 1e6


class Connection:
    """One connection, which signs as AWS describes it (version 4) and reads answers that say how long they are."""

    def __init__(self, bucket: Bucket, port: int | None = None) -> None:
        port = port or bucket.port
        self.host = f"127.0.0.1:{port}"
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, method: str, path: str, body: bytes = b"", more: dict[str, str] | None = None) -> bytes:
        """A request, signed; the body follows it."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        # The content as well, where the service's client does.
        content = "UNSIGNED-PAYLOAD" if os.environ.get("AWS_UNSIGNED_PAYLOAD") == "true" else hashlib.sha256(body).hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": content, "x-amz-date": now, **(more or {})}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        canonical = f"{method}\n{path}\n\n{lines}\n{names}\n{content}"
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for word in scope.split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
        authorization = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}authorization: {authorization}\r\ncontent-length: {len(body)}\r\n\r\n".encode()

    def send(self, request: bytes, body: bytes = b"") -> bytes:
        """Sends it and gives the answer's body."""
        self.socket.sendall(request)
        if body:
            self.socket.sendall(body)
        answer = bytearray()
        while (end := answer.find(b"\r\n\r\n")) < 0:
            answer += self._some()
        head = answer[:end].decode("latin-1").lower().split("\r\n")
        length = next((int(line.partition(":")[2]) for line in head if line.startswith("content-length:")), 0)
        while len(answer) < end + 4 + length:
            answer += self._some()
        if not head[0].split()[1].startswith("2"):
            raise OSError(f"{head[0]}: {bytes(answer[end:]).decode(errors='replace')}")
        return bytes(answer[end + 4 :])

    def _some(self) -> bytes:
        some = self.socket.recv(1 << 20)
        if not some:
            raise OSError("the server hung up")
        return some

    def ask(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Asks for something."""
        return self.send(self.request(method, path, body), body)
