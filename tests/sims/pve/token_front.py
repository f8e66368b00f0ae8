"""What fakepve's command line lacks: API tokens. A TLS front that takes one token, as Proxmox VE does, and asks fakepve
in its place with a ticket of its own.

argv: PORT CERTIFICATE KEY FAKEPVE CA USER PASSWORD TOKEN, where TOKEN is user@realm!name=secret.
"""
import json
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from web import Handler, serve  # noqa: E402

FAKEPVE, CA, USER, PASSWORD, TOKEN = sys.argv[4:9]
TRUST = ssl.create_default_context(cafile=CA)
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=TRUST))


def ticket():
    form = urllib.parse.urlencode({'username': USER, 'password': PASSWORD}).encode()
    with OPENER.open(f'{FAKEPVE}/api2/json/access/ticket', form, timeout=20) as answer:
        return json.load(answer)['data']


class Front(Handler):
    def answer(self, method, path, query):
        if self.headers.get('Authorization') != f'PVEAPIToken={TOKEN}' or self.headers.get('Cookie'):
            return 401, json.dumps({'data': None, 'message': 'no such token\n'}), {}
        proof = ticket()
        asked = urllib.request.Request(FAKEPVE + self.path, method=method, data=self.body if method == 'POST' else None)
        asked.add_header('Cookie', f"PVEAuthCookie={proof['ticket']}")
        asked.add_header('CSRFPreventionToken', proof['CSRFPreventionToken'])
        try:
            with OPENER.open(asked, timeout=20) as answer:
                return answer.status, answer.read().decode(), {}
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode(), {}


serve(Front)
