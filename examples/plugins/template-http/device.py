"""A relay board to try the plugin on: relays 1 to 4, all on.

  python3 device.py 127.0.0.1:8080 admin secret

GET /relays/2 answers {"on": true}; PUT /relays/2 with such a document switches. Standard library only.
"""

import base64
import http.server
import json
import sys

address, user, password = sys.argv[1:4]
host, port = address.rsplit(":", 1)
wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
relays = {f"/relays/{number}": True for number in range(1, 5)}


class Board(http.server.BaseHTTPRequestHandler):
    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != wanted:
            return self.answer(401, {"message": "who are you"})
        if self.path not in relays:
            return self.answer(404, {"message": "no such relay"})
        if self.command == "PUT":
            relays[self.path] = json.loads(body)["on"]
        return self.answer(200, {"on": relays[self.path]})

    do_GET = do_PUT = do


http.server.ThreadingHTTPServer((host, int(port)), Board).serve_forever()
