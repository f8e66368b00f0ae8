"""A client that is neither Google's nor ours: apache-libcloud's driver for Compute Engine, as it is published.
Only where its connections lead is ours: the driver takes no host.

argv: as client.py takes them; `what` is also the name of the driver's method, without `_node`. Prints the
instance's status when what was asked for is done.
"""
import json
import pathlib
import sys
import tempfile
import urllib.parse

import libcloud.security
from libcloud.common.google import GoogleBaseAuthConnection
from libcloud.compute.drivers.gce import GCEConnection, GCENodeDriver
from libcloud.http import LibcloudConnection

_, url, authority, key_file, project, zone, instance, what = sys.argv
account = json.loads(pathlib.Path(key_file).read_text())
libcloud.security.CA_CERTS_PATH = authority


class Here(LibcloudConnection):
    def __init__(self, host, port, secure=True, **more):
        place = urllib.parse.urlsplit(url)
        super().__init__(place.hostname, place.port, secure=secure, **more)


GCEConnection.conn_class = GoogleBaseAuthConnection.conn_class = Here
with tempfile.TemporaryDirectory() as folder:
    driver = GCENodeDriver(
        account["client_email"],
        account["private_key"],
        project=project,
        credential_file=f"{folder}/token",
    )
    node = driver.ex_get_node(instance, zone)
    if what != "get":
        getattr(driver, f"{what}_node")(node)
    print(driver.ex_get_node(instance, zone).extra["status"])
