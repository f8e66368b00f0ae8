"""Devices that switch power when HTTP asks them to, each with state of its own:

  /rpc/Switch.Set, /rpc/Switch.GetStatus   outlets 0 and 1 in the shapes of Shelly's second generation
  /cm?cmnd=Power…                          relays in the shapes of Tasmota; the first also without its number
  /relays/N                                the same relays in the shape of `plugin new`: {"on": true}
  /outlets/NAME                            a controller of one's own: PUT {"state": "off"}, GET says a word

plugs.py CONFIG, where CONFIG is JSON: port; tls, certificate and key, or null; login {"basic": ["user", "password"]} or
{"bearer": "token"}; late, the seconds after its yes that a change of the controller takes; relays, the state files of
../ipmi/chassis.sh that the relays are tied to, in their order, or none: one relay with a state of its own. Standard
library only.
"""

import base64
import http.server
import json
import pathlib
import ssl
import subprocess
import sys
import threading
import urllib.parse

config = json.load(open(sys.argv[1], encoding="utf-8"))
shelly = {"0": True, "1": True}
CHASSIS = pathlib.Path(__file__).parent.parent / "ipmi" / "chassis.sh"
outlets = {"rack 3": "on", "rack 4": "on"}


class Relay:
    def __init__(self, file=None):
        self.file, self.state = file, True

    def chassis(self, *request):
        return subprocess.run([CHASSIS, self.file, *request], check=True, capture_output=True, text=True).stdout

    def is_on(self):
        return self.chassis("get", "power").strip() == "power:1" if self.file else self.state

    def switch(self, on):
        if self.file:
            self.chassis("set", "power", "1" if on else "0")
        self.state = on


relays = [Relay(file) for file in config.get("relays", [])] or [Relay()]


def wanted_login():
    login = config.get("login", {})
    if "basic" in login:
        return "Basic " + base64.b64encode(":".join(login["basic"]).encode()).decode()
    return "Bearer " + login["bearer"] if "bearer" in login else None


class Plugs(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body, kind="application/json"):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do(self):
        wanted = wanted_login()
        if wanted and self.headers.get("Authorization") != wanted:
            return self.answer(401, {"error": "who are you"})
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urllib.parse.unquote(url.path)
        if path.startswith("/rpc/Switch."):
            return self.shelly(path.removeprefix("/rpc/Switch."), query)
        if path == "/cm":
            return self.tasmota(query.get("cmnd", "").split())
        if path.startswith("/relays/"):
            return self.relay(path.removeprefix("/relays/"), body)
        if path.startswith("/outlets/"):
            return self.outlet(path.removeprefix("/outlets/"), body)
        return self.answer(404, {"error": "no such path"})

    do_GET = do_POST = do_PUT = do

    def shelly(self, call, query):
        outlet = query.get("id")
        if outlet not in shelly:
            message = f"Argument 'id', value {outlet} not found!"
            return self.answer(500, {"code": -105, "message": message})
        if call == "Set":
            was_on, shelly[outlet] = shelly[outlet], query["on"] == "true"
            return self.answer(200, {"was_on": was_on})
        status = {"id": int(outlet), "source": "HTTP_in", "output": shelly[outlet], "apower": 8.9, "voltage": 237.5}
        return self.answer(200, status)

    def tasmota(self, command):
        name = command[0].lower() if command else ""
        number = name.removeprefix("power") or "1"
        if not name.startswith("power") or not number.isdigit() or not 1 <= int(number) <= len(relays):
            return self.answer(200, {"Command": "Unknown"})
        relay = relays[int(number) - 1]
        match [word.lower() for word in command[1:]]:
            case ["on" | "off" as word]:
                relay.switch(word == "on")
            case []:
                pass
            case _:
                return self.answer(200, {"Command": "Error"})
        said = "POWER" + (number if len(relays) > 1 else "")
        return self.answer(200, {said: "ON" if relay.is_on() else "OFF"})

    def relay(self, number, body):
        if not number.isdigit() or not 1 <= int(number) <= len(relays):
            return self.answer(404, {"message": "no such relay"})
        relay = relays[int(number) - 1]
        if self.command == "PUT":
            relay.switch(json.loads(body)["on"])
        return self.answer(200, {"on": relay.is_on()})

    def outlet(self, name, body):
        if name not in outlets:
            return self.answer(404, "no such outlet", "text/plain")
        if self.command == "PUT":
            asked = json.loads(body)
            if asked["outlet"] != name or self.headers.get("Content-Type") != "application/json":
                return self.answer(400, "which outlet", "text/plain")
            outlets[name] = "switching"
            threading.Timer(config.get("late", 0), outlets.update, [{name: asked["state"]}]).start()
            return self.answer(202, "", "text/plain")
        return self.answer(200, outlets[name] + "\n", "text/plain")


server = http.server.ThreadingHTTPServer(("127.0.0.1", config["port"]), Plugs)
if config["tls"]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*config["tls"])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
