"""A server that is some milliseconds away: a proxy that delivers everything later than it came, as networks and disks of object stores do."""

import queue
import socket
import threading
import time


class Distant:
    """Passes connections to a port of this machine on, until the process ends."""

    def __init__(self, port: int, one_way_ms: float) -> None:
        self.behind, self.seconds = port, one_way_ms / 1000
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.behind))
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target in ((client, server), (server, client)):
                on_the_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                threading.Thread(target=self._take, args=(source, on_the_way), daemon=True).start()
                threading.Thread(target=self._deliver, args=(on_the_way, target), daemon=True).start()

    def _take(self, source: socket.socket, on_the_way: "queue.SimpleQueue[tuple[float, bytes]]") -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(1 << 18)
            except OSError:
                data = b""
            on_the_way.put((time.monotonic() + self.seconds, data))

    @staticmethod
    def _deliver(on_the_way: "queue.SimpleQueue[tuple[float, bytes]]", target: socket.socket) -> None:
        try:
            while True:
                due, data = on_the_way.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    break
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
