"""A stand-in for Azure Resource Manager and for the place where its clients log in.

argv: port, certificate, key, folder. Writes id and secret of each application into the folder, then serves:

* POST /TENANT/oauth2/v2.0/token (client credentials): checks form, application, secret and scope
* POST /TENANT/oauth2/token, the login before that, which apache-libcloud uses: `resource` in the place of `scope`
* what azure-mgmt-compute asks of three machines, one of them in a scale set: get, instance view, powerOff,
  start, restart, deallocate. Paths, methods and api-version are those that its own request builders make
* the operations that those are

Whoever logged in the older way may ask with the older api-versions that apache-libcloud asks with: what is served here
has the same shape in them. Whoever logged in as today must name the version of azure-mgmt-compute.

A machine takes two seconds to change.
"""
import json
import pathlib
import secrets
import sys
import time
import urllib.parse
import uuid

from azure.mgmt.compute.operations import _operations as published

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from cloud_server import Refusal, Tokens, serve  # noqa: E402

PORT, CERTIFICATE, KEY, FOLDER = int(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
HERE = f"https://127.0.0.1:{PORT}"
TENANT = "7e4a0000-1111-2222-3333-444444444444"
SUBSCRIPTION = "01234567-89ab-cdef-0123-456789abcdef"
GROUP = "proving-ground"
SCOPE = "https://management.azure.com/.default"
RESOURCE = "https://management.core.windows.net/"
OLDER_VERSIONS = {"2021-11-01", "2015-06-15"}
READS, CHANGES = {"get", "instance_view"}, {"power_off", "start", "restart", "deallocate"}
APPLICATIONS = {"fence": READS | CHANGES, "reader": READS}

tokens = Tokens()
clients = {}
for name in APPLICATIONS:
    client = {"id": str(uuid.uuid4()), "secret": secrets.token_urlsafe(30)}
    clients[client["id"]] = (name, client["secret"])
    (FOLDER / f"{name}.json").write_text(json.dumps(client | {"tenant": TENANT, "subscription": SUBSCRIPTION}))


def login(request, is_older):
    def refuse(status, error, why):
        raise Refusal(status, {"error": error, "error_description": why})

    form = request.form()
    if form.get("grant_type") != "client_credentials":
        refuse(400, "unsupported_grant_type", "AADSTS70003: The grant type is not supported.")
    if is_older and form.get("resource") != RESOURCE:
        refuse(400, "invalid_resource", "AADSTS500011: The resource principal was not found in the tenant.")
    if not is_older and form.get("scope") != SCOPE:
        refuse(400, "invalid_scope", "AADSTS1002012: The provided value for scope is not valid.")
    name, secret = clients.get(form.get("client_id"), (None, None))
    if name is None:
        refuse(400, "unauthorized_client", "AADSTS700016: Application was not found in the directory.")
    if not secrets.compare_digest(form.get("client_secret", ""), secret):
        refuse(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
    versions = OLDER_VERSIONS if is_older else {VERSION}
    given = {"token_type": "Bearer", "expires_in": 3599, "access_token": tokens.give((name, versions))}
    # The older login writes its numbers as text.
    older = {"expires_in": "3599", "expires_on": str(int(time.time()) + 3599), "resource": RESOURCE}
    return 200, given | (older if is_older else {}), {}


class Machine:
    """One machine: what it is, and what it will be."""

    def __init__(self, name, uuid_end, **names):
        # Names as the published request builders want them.
        self.name, self.names, self.vm_id = name, names, f"11111111-2222-3333-4444-{uuid_end:012}"
        self.power, self.comes = "running", []

    def settle(self):
        while self.comes and self.comes[0][0] <= time.time():
            self.power = self.comes.pop(0)[1]

    def view(self):
        self.settle()
        provisioned = {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioned"}
        power = {"code": f"PowerState/{self.power}", "level": "Info", "displayStatus": f"VM {self.power}"}
        return {"statuses": [provisioned, power]}

    def document(self, path, with_view):
        network = {"networkInterfaces": [{"id": f"{path.partition('/providers/')[0]}/{NIC}/{self.name}"}]}
        properties = {"vmId": self.vm_id, "provisioningState": "Succeeded", "networkProfile": network}
        if with_view:
            properties["instanceView"] = self.view()
        kind = "virtualMachines" if "vm_name" in self.names else "virtualMachineScaleSets/virtualMachines"
        return {
            "id": path,
            "name": self.name,
            "type": f"Microsoft.Compute/{kind}",
            "location": "westeurope",
            "properties": properties,
        }


# Not served: whoever asks for it is refused.
NIC = "providers/Microsoft.Network/networkInterfaces"
machines = [
    Machine("worker-1", 1, vm_name="worker-1"),
    Machine("worker-2", 2, vm_name="worker-2"),
    Machine("pool_0", 3, vm_scale_set_name="pool", instance_id="0"),
]
operations = {}
BECOMES = {
    "power_off": [(0, "stopping"), (2, "stopped")],
    "deallocate": [(0, "deallocating"), (2, "deallocated")],
    "start": [(0, "starting"), (2, "running")],
    "restart": [],
}


def routes():
    """What may be asked: method, path and parameters, as azure-mgmt-compute writes them."""
    for machine in machines:
        kind = "virtual_machines" if "vm_name" in machine.names else "virtual_machine_scale_set_vms"
        for action in READS | CHANGES:
            name = "get_instance_view" if (kind, action) == ("virtual_machine_scale_set_vms", "instance_view") else action
            build = getattr(published, f"build_{kind}_{name}_request")
            more = {"skip_shutdown": True} if action == "power_off" else {}
            more |= {"expand": "instanceView"} if action == "get" else {}
            made = build(resource_group_name=GROUP, subscription_id=SUBSCRIPTION, **machine.names, **more)
            url = urllib.parse.urlsplit(made.url)
            yield (made.method, url.path.lower()), (machine, action, url.path, dict(urllib.parse.parse_qsl(url.query)))


ROUTES = dict(routes())
VERSION = next(iter(ROUTES.values()))[3]["api-version"]
OPERATIONS = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/westeurope/operations/"


def error(status, code, message):
    return Refusal(status, {"error": {"code": code, "message": message}})


def change(machine, action):
    now = time.time()
    machine.settle()
    steps = [(now + after, power) for after, power in BECOMES[action]]
    if action == "restart" and machine.power != "running":
        raise error(409, "OperationNotAllowed", f"Operation 'restart' is not allowed: '{machine.name}' is not running.")
    if steps and steps[-1][1] == machine.power:
        steps = []
    machine.comes = steps
    machine.settle()
    name = str(uuid.uuid4())
    operations[name] = (now, steps[-1][0] if steps else now)
    at = f"{HERE}{OPERATIONS}{name}?p=1&api-version={VERSION}"
    headers = {"Azure-AsyncOperation": at, "Location": f"{at}&monitor=true", "Retry-After": "1"}
    return 202, None, headers


def operation(name):
    if name not in operations:
        raise error(404, "NotFound", "The operation was not found.")
    begun, ends = operations[name]
    status = "Succeeded" if time.time() >= ends else "InProgress"
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun))
    return 200, {"name": name, "status": status, "startTime": started}, {}


def answer(request):
    if request.method == "POST" and request.path in {f"/{TENANT}/oauth2/v2.0/token", f"/{TENANT}/oauth2/token"}:
        return login(request, is_older="v2.0" not in request.path)
    if request.path.endswith(("/oauth2/v2.0/token", "/oauth2/token")):
        raise Refusal(400, {"error": "invalid_request", "error_description": "AADSTS90002: Tenant not found."})
    who, versions = tokens.owner(request.headers.get("Authorization")) or (None, set())
    if who is None:
        raise error(401, "InvalidAuthenticationToken", "The access token is invalid.")
    if request.query.get("api-version") not in versions:
        raise error(400, "InvalidApiVersionParameter", "The api-version is invalid.")
    if request.method == "GET" and request.path.startswith(OPERATIONS):
        return operation(request.path[len(OPERATIONS) :])
    machine, action, path, known = ROUTES.get((request.method, request.path.lower()), (None,) * 4)
    if machine is None:
        raise error(404, "ResourceNotFound", f"The Resource '{request.path}' was not found.")
    if action not in APPLICATIONS[who]:
        raise error(403, "AuthorizationFailed", f"The client does not have authorization to perform action '{action}'.")
    if not set(request.query) <= set(known):
        raise error(400, "InvalidParameter", f"Unknown parameters in {sorted(request.query)}.")
    if action == "get":
        return 200, machine.document(path, "$expand" in request.query), {}
    return (200, machine.view(), {}) if action == "instance_view" else change(machine, action)


serve(PORT, CERTIFICATE, KEY, answer)
