"""Microsoft's own client: azure-mgmt-compute.

argv: URL, authority of its certificate, application's file, name (`SET/NUMBER` of a machine in a scale set),
`view`, `power_off`, `start` or `deallocate`. Prints the machine's power when what was asked for is done.
"""
import json
import pathlib
import sys

import requests
from azure.core.credentials import AccessToken
from azure.mgmt.compute import ComputeManagementClient

_, url, authority, file, name, what = sys.argv
application = json.loads(pathlib.Path(file).read_text())


class Credential:
    """The client credentials grant; azure-identity asks for the same."""

    def get_token(self, *scopes, **_):
        form = {
            "grant_type": "client_credentials",
            "client_id": application["id"],
            "client_secret": application["secret"],
            "scope": " ".join(scopes),
        }
        place = f"{url}/{application['tenant']}/oauth2/v2.0/token"
        given = requests.post(place, data=form, verify=authority, timeout=30)
        given.raise_for_status()
        return AccessToken(given.json()["access_token"], 4102444800)


client = ComputeManagementClient(
    Credential(),
    application["subscription"],
    base_url=url,
    credential_scopes=["https://management.azure.com/.default"],
    connection_verify=authority,
    polling_interval=1,
)
GROUP = "proving-ground"
if "/" in name:
    machines, place = client.virtual_machine_scale_set_vms, name.split("/")
    view = machines.get_instance_view
else:
    machines, place = client.virtual_machines, [name]
    view = machines.instance_view
if what != "view":
    getattr(machines, f"begin_{what}")(GROUP, *place).result()
powers = [one.code for one in view(GROUP, *place).statuses if one.code.startswith("PowerState/")]
print(*powers)
