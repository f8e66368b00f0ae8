"""A client that is neither Microsoft's nor ours: apache-libcloud's driver for Azure Resource Manager, as it is
published. Only the port of a connection is ours: the driver logs in at 443, whatever it is told.

argv: URL, authority of its certificate, application's file, machine's path, `view`, `stop` or `start`. Prints the
state that the driver reads, once that no longer changes.
"""
import json
import pathlib
import sys
import time
import urllib.parse

import libcloud.security
from libcloud.common.azure_arm import AzureResourceManagementConnection, publicEnvironments
from libcloud.compute.drivers.azure_arm import AzureNodeDriver
from libcloud.http import LibcloudConnection

_, url, authority, file, path, what = sys.argv
application = json.loads(pathlib.Path(file).read_text())
libcloud.security.CA_CERTS_PATH = authority


class Here(LibcloudConnection):
    def __init__(self, host, port, secure=True, **more):
        super().__init__(host, urllib.parse.urlsplit(url).port, secure=secure, **more)


AzureResourceManagementConnection.conn_class = Here
here = {"resourceManagerEndpointUrl": url, "activeDirectoryEndpointUrl": url}
driver = AzureNodeDriver(
    application["tenant"],
    application["subscription"],
    application["id"],
    application["secret"],
    cloud_environment=publicEnvironments["default"] | here,
)
node = driver.ex_get_node(path)
if what != "view":
    getattr(driver, f"{what}_node")(node)
while (node := driver.ex_get_node(path)).state in ("pending", "unknown"):
    time.sleep(0.2)
print(node.state)
