"""A stand-in for Google Compute Engine and for the place where its tokens are asked for.

argv: port, certificate, key, folder. Writes a key file for each account into the folder, then serves:

* POST /token (RFC 7523): checks signature, issuer, audience, scope and times of the statement; and the same
  at /o/oauth2/token, Google's older place, which apache-libcloud asks
* GET /compute/v1/projects/P/zones/Z/instances/N, and POST .../stop, start, reset
* GET /compute/v1/projects/P/zones/Z/operations/O
* GET /compute/v1/projects/P/zones

Every answer is held against the published discovery document of Google's own client before it is sent;
one that does not fit ends the process.
"""
import base64
import json
import os
import pathlib
import re
import sys
import time

import googleapiclient
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from cloud_server import Refusal, Tokens, serve  # noqa: E402

PORT, CERTIFICATE, KEY, FOLDER = int(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
HERE = f"https://127.0.0.1:{PORT}"
# Clients name Google's place in their statements, wherever they send them.
AUDIENCES = {
    "/token": {f"{HERE}/token", "https://oauth2.googleapis.com/token"},
    "/o/oauth2/token": {"https://accounts.google.com/o/oauth2/token"},
}
SCOPES = {"https://www.googleapis.com/auth/compute", "https://www.googleapis.com/auth/cloud-platform"}
PROJECT, ZONE = "proving-ground", "europe-west1-b"
DOCUMENT = pathlib.Path(googleapiclient.__file__).parent / "discovery_cache/documents/compute.v1.json"
DISCOVERY = json.loads(DOCUMENT.read_text())
READS, CHANGES = {"get", "list"}, {"stop", "start", "reset"}
ACCOUNTS = {"fence": READS | CHANGES, "reader": READS}

# Accounts --------------------------------------------------------------------------------------------

public_keys = {}
tokens = Tokens()


def make_account(name):
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    email = f"{name}@{PROJECT}.iam.gserviceaccount.com"
    public_keys[email] = (name, private.public_key())
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": f"key-of-{name}",
        "private_key": pem.decode(),
        "client_email": email,
        "client_id": "1",
        "token_uri": f"{HERE}/token",
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(file))


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def token(request):
    def refuse(why):
        raise Refusal(400, {"error": "invalid_grant", "error_description": why})

    form = request.form()
    if form.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer":
        raise Refusal(400, {"error": "unsupported_grant_type"})
    try:
        head, claims, signature = form["assertion"].split(".")
        said, stated = json.loads(decode(head)), json.loads(decode(claims))
    except (KeyError, ValueError):
        refuse("Invalid JWT.")
    name, public = public_keys.get(stated.get("iss"), (None, None))
    if public is None:
        refuse("Invalid grant: account not found")
    try:
        public.verify(
            decode(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    except InvalidSignature:
        refuse("Invalid JWT Signature.")
    now = time.time()
    begins, ends = stated.get("iat", 0), stated.get("exp", 0)
    if said.get("alg") != "RS256" or stated.get("aud") not in AUDIENCES[request.path]:
        refuse("Invalid JWT: algorithm or audience.")
    if not (begins <= now + 60 and now < ends <= begins + 3600):
        refuse("Invalid JWT: Token must be a short-lived token and in a reasonable timeframe.")
    if not SCOPES & set(stated.get("scope", "").split()):
        raise Refusal(400, {"error": "invalid_scope"})
    given = {"access_token": tokens.give(name), "expires_in": 3599, "token_type": "Bearer"}
    return 200, given, {}


# Machines --------------------------------------------------------------------------------------------


def zone():
    link = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}"
    return {
        "kind": "compute#zone",
        "id": "2100",
        "name": ZONE,
        "status": "UP",
        "region": f"{link}/regions/{ZONE[:-2]}",
        "selfLink": f"{link}/zones/{ZONE}",
    }


def zones():
    link = zone()["selfLink"].rpartition("/")[0]
    return {"kind": "compute#zoneList", "id": f"projects/{PROJECT}/zones", "items": [zone()], "selfLink": link}


class Instance:
    """One instance: what it is, and what it will be."""

    def __init__(self, name, number):
        self.name, self.number, self.status, self.comes = name, number, "RUNNING", []

    def settle(self):
        while self.comes and self.comes[0][0] <= time.time():
            self.status = self.comes.pop(0)[1]

    def document(self):
        self.settle()
        link = zone()["selfLink"]
        return {
            "kind": "compute#instance",
            "id": str(self.number),
            "name": self.name,
            "status": self.status,
            "zone": link,
            "selfLink": f"{link}/instances/{self.name}",
            "machineType": f"{link}/machineTypes/e2-small",
            "tags": {"fingerprint": "42WmSpB8rSM="},
        }


instances = {name: Instance(name, 7001 + at) for at, name in enumerate(["worker-1", "worker-2"])}
operations = {}
# What becomes of an instance, and after how many seconds.
BECOMES = {
    "stop": [(0, "STOPPING"), (2, "TERMINATED")],
    "start": [(0, "PROVISIONING"), (1, "STAGING"), (2, "RUNNING")],
    "reset": [],
}


def change(instance, action):
    now = time.time()
    instance.settle()
    if action == "reset" and instance.status != "RUNNING":
        raise error(400, "resourceNotReady", f"The resource '{instance.name}' is not ready")
    is_so = (action == "stop" and instance.status == "TERMINATED") or (
        action == "start" and instance.status == "RUNNING"
    )
    steps = [] if is_so else BECOMES[action]
    instance.comes = [(now + after, status) for after, status in steps]
    instance.settle()
    name = f"operation-{len(operations) + 1}"
    operations[name] = (now, now + (steps[-1][0] if steps else 0), action, instance)
    return operation(name)


def operation(name):
    if name not in operations:
        raise error(404, "notFound", f"The resource '{name}' was not found")
    begun, ends, action, instance = operations[name]
    share = (time.time() - begun) / max(ends - begun, 0.001)
    status = "DONE" if time.time() >= ends else "RUNNING" if share > 0.3 else "PENDING"
    link = zone()["selfLink"]
    return {
        "kind": "compute#operation",
        "id": "1",
        "name": name,
        "operationType": action,
        "status": status,
        "progress": 100 if status == "DONE" else 0,
        "zone": link,
        "selfLink": f"{link}/operations/{name}",
        "targetLink": f"{link}/instances/{instance.name}",
    }


def error(status, reason, message):
    one = {"message": message, "domain": "global", "reason": reason}
    return Refusal(status, {"error": {"code": status, "message": message, "errors": [one]}})


# The API ---------------------------------------------------------------------------------------------


def fits(value, schema, where):
    """Holds a value against a schema of the discovery document; nothing that it does not name may be there."""
    schema = DISCOVERY["schemas"][schema["$ref"]] if "$ref" in schema else schema
    kind = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}[schema["type"]]
    if not isinstance(value, kind) or ("enum" in schema and value not in schema["enum"]):
        raise ValueError(f"{where}: {value!r}")
    if kind is dict:
        for name, member in value.items():
            if name not in schema["properties"]:
                raise ValueError(f"{where}: no property {name}")
            fits(member, schema["properties"][name], f"{where}.{name}")
    if kind is list:
        for at, member in enumerate(value):
            fits(member, schema["items"], f"{where}[{at}]")


def published():
    """The published methods that are served: HTTP method, pattern of the path, id, schema, parameters."""
    for group, names in [("instances", {"get"} | CHANGES), ("zoneOperations", {"get"}), ("zones", {"list"})]:
        for name in names:
            method = DISCOVERY["resources"][group]["methods"][name]
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", "/" + DISCOVERY["servicePath"] + method["path"])
            queries = {key for key, one in method["parameters"].items() if one["location"] == "query"}
            queries |= set(DISCOVERY["parameters"])
            yield method["httpMethod"], re.compile(pattern), name, group, method["response"], queries


METHODS = list(published())


def answer(request):
    if request.method == "POST" and request.path in AUDIENCES:
        return token(request)
    for method, pattern, name, group, schema, queries in METHODS:
        match = pattern.fullmatch(request.path)
        if method != request.method or not match:
            continue
        if not set(request.query) <= queries:
            raise error(400, "invalidParameter", f"Unknown name in {sorted(request.query)}")
        who = tokens.owner(request.headers.get("Authorization"))
        if who is None:
            raise error(401, "authError", "Request had invalid authentication credentials.")
        place = match.groupdict()
        place = {"zone": ZONE, "instance": None} | place
        resource = f"projects/{place['project']}/zones/{place['zone']}/instances/{place['instance']}"
        if name not in ACCOUNTS[who]:
            raise error(403, "forbidden", f"Required 'compute.instances.{name}' permission for '{resource}'")
        if (place["project"], place["zone"]) != (PROJECT, ZONE):
            raise error(404, "notFound", f"The resource '{resource}' was not found")
        if group == "zones":
            document = zones()
        elif group == "zoneOperations":
            document = operation(place["operation"])
        elif place["instance"] not in instances:
            raise error(404, "notFound", f"The resource '{resource}' was not found")
        else:
            instance = instances[place["instance"]]
            document = instance.document() if name == "get" else change(instance, name)
        try:
            fits(document, schema, schema["$ref"])
        except ValueError as wrong:
            print("NOT AS PUBLISHED", wrong, flush=True)
            os._exit(1)
        return 200, document, {}
    raise error(404, "notFound", f"Not found: {request.method} {request.path}")


for account in ACCOUNTS:
    make_account(account)
serve(PORT, CERTIFICATE, KEY, answer)
