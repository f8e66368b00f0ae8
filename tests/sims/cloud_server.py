"""What stand-ins for clouds share: JSON over TLS, accounts with keys, tokens that end, a log of requests.

Each says of every request `METHOD PATH STATUS` on standard output.
"""
import http.server
import json
import secrets
import ssl
import threading
import time
import urllib.parse


class Refusal(Exception):
    """An answer other than success."""

    def __init__(self, status, document, headers=()):
        super().__init__(status)
        self.status, self.document, self.headers = status, document, dict(headers)


class Tokens:
    """Bearer tokens, each for somebody, for a while."""

    def __init__(self, seconds=3600):
        self.seconds, self.given = seconds, {}

    def give(self, who):
        token = secrets.token_urlsafe(32)
        self.given[token] = (who, time.time() + self.seconds)
        return token

    def owner(self, authorization):
        """Who a header `Authorization` belongs to; `None` for nobody."""
        scheme, _, token = (authorization or "").partition(" ")
        who, until = self.given.get(token, (None, 0))
        return who if scheme == "Bearer" and time.time() < until else None


class Request:
    """One request, read."""

    def __init__(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        self.method, self.path = handler.command, url.path
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.headers = handler.headers
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    def form(self):
        """The body as a form."""
        return dict(urllib.parse.parse_qsl(self.body.decode()))


def serve(port, certificate, key, answer):
    """Serves `answer(request) -> (status, document, headers)` until the process ends."""
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            request = Request(self)
            try:
                with lock:
                    status, document, headers = answer(request)
            except Refusal as refusal:
                status, document, headers = refusal.status, refusal.document, refusal.headers
            body = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if body:
                self.send_header("Content-Type", "application/json; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            print(self.command, self.path, status, flush=True)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def finish_request(self, request, client_address):
            # The handshake belongs to the connection's own thread.
            super().finish_request(context.wrap_socket(request, server_side=True), client_address)

        def handle_error(self, request, client_address):
            """Whoever does not finish a handshake is no fault of the server."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    Server(("127.0.0.1", port), Handler).serve_forever()
