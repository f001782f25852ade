"""A local HTTP server with scripted failures."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Script:
    """The files and the behaviour of the server, and the requests it received."""

    def __init__(self):
        self.files = {}
        self.with_length = True  # announce the length of the answer
        self.cuts = []  # break the n-th answer off after so many bytes
        self.statuses = []  # answer the n-th request with this status
        self.asked = []  # the path of each request
        self.base = ""


@contextmanager
def serving():
    """Give a `Script` whose server listens on `script.base`."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            answer(self, script)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(handler, script):
    script.asked.append(handler.path)
    content = script.files.get(handler.path.lstrip("/"))
    status = script.statuses.pop(0) if script.statuses else None
    if status is None and content is None:
        status = 404
    if status is not None:
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return
    handler.send_response(200)
    if script.with_length:
        handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    cut = script.cuts.pop(0) if script.cuts else None
    handler.wfile.write(content if cut is None else content[:cut])
    handler.close_connection = True
