"""What the stand-ins for devices with an HTTPS API share: TLS, bodies, and a line of log for each request."""
import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


class Refusal(Exception):
    """An answer that ends a request: its status and its document."""

    def __init__(self, status, document=None):
        super().__init__(status)
        self.status, self.document = status, document


class Handler(BaseHTTPRequestHandler):
    """Calls `answer(method, path, query)` of what inherits it; its result is (status, text, headers)."""
    protocol_version = 'HTTP/1.1'
    content_type = 'application/json'

    def setup(self):
        # One slow TLS greeting must not keep others waiting.
        self.request.settimeout(20)
        self.request.do_handshake()
        super().setup()

    def _any(self):
        target = urlsplit(self.path)
        self.body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        try:
            status, text, headers = self.answer(self.command, unquote(target.path), parse_qs(target.query))
        except Refusal as refusal:
            status, headers = refusal.status, {}
            text = '' if refusal.document is None else json.dumps(refusal.document)
        sent = text.encode()
        self.send_response(status)
        for name, value in {'Content-Type': self.content_type, **headers}.items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PATCH = do_DELETE = _any

    def basic(self):
        """User and password as RFC 7617 has them, or none."""
        scheme, _, token = self.headers.get('Authorization', '').partition(' ')
        if scheme != 'Basic':
            return None
        user, _, password = base64.b64decode(token).decode().partition(':')
        return user, password

    def log_message(self, form, *rest):
        print(form % rest, flush=True)


def serve(handler):
    """argv: PORT CERTIFICATE KEY, and what else the stand-in takes."""
    port, certificate, key = sys.argv[1:4]
    server = ThreadingHTTPServer(('127.0.0.1', int(port)), handler)
    server.daemon_threads = True
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()
