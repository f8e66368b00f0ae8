"""Google's own client: google-auth and the discovery document of google-api-python-client.

argv: URL, authority of its certificate, key file, project, zone, instance, `get`, `stop` or `start`. Prints
the instance's status when what was asked for is done.
"""
import json
import pathlib
import sys
import time

import google_auth_httplib2
import googleapiclient
import httplib2
from google.oauth2 import service_account
from googleapiclient.discovery import build_from_document

_, url, authority, key_file, project, zone, instance, what = sys.argv
path = pathlib.Path(googleapiclient.__file__).parent / "discovery_cache/documents/compute.v1.json"
credentials = service_account.Credentials.from_service_account_file(
    key_file, scopes=["https://www.googleapis.com/auth/compute"]
)
http = google_auth_httplib2.AuthorizedHttp(credentials, http=httplib2.Http(ca_certs=authority))
compute = build_from_document(
    json.loads(path.read_text()), http=http, client_options={"api_endpoint": f"{url}/compute/v1/"}
)
place = {"project": project, "zone": zone}
if what != "get":
    operation = getattr(compute.instances(), what)(instance=instance, **place).execute()
    while operation["status"] != "DONE":
        time.sleep(0.2)
        operation = compute.zoneOperations().get(operation=operation["name"], **place).execute()
print(compute.instances().get(instance=instance, **place).execute()["status"])
