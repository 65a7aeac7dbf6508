"""An object store that ignores conditions: a proxy that takes them out of each request."""

import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONDITIONS = {"if-match", "if-none-match"}
# These belong to one connection, or the server behind computes them anew.
OWN = {"connection", "transfer-encoding", "content-length", "date", "server"}


class CarelessProxy:
    """Passes requests on to a server of Amazon's protocol that checks no signatures, until it is closed."""

    def __init__(self, port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            """One connection of a client."""

            protocol_version = "HTTP/1.1"

            def pass_on(self) -> None:
                """Answers what the server behind answers to the request without its conditions."""
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name: value for name, value in self.headers.items() if name.lower() not in CONDITIONS}
                behind = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
                behind.request(self.command, self.path, body, headers)
                answer = behind.getresponse()
                said = answer.read()
                behind.close()
                self.send_response_only(answer.status, answer.reason)
                for name, value in answer.getheaders():
                    if name.lower() not in OWN:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = pass_on

            def log_message(self, *_: object) -> None:
                """The log of the test has no use for each request."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> "CarelessProxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
