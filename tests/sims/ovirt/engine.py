"""An oVirt engine for tests: tokens, virtual machines, searches and actions, in JSON and XML. Written from the
REST API guide; ovirt-engine-sdk-python, which speaks XML only, drives it too.

argv: PORT CERTIFICATE KEY USER PASSWORD. Another user, `reader@internal`, with the same password sees machines and may
not switch them. node1 and both twins run; a machine needs half a second to do what it was told.
"""
import json
import secrets
import sys
import time
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).parent.parent))
from web import Handler, Refusal, serve  # noqa: E402

USER, PASSWORD = sys.argv[4:6]
READER = 'reader@internal'
TOKENS, LOCK = {}, Lock()
TAKES_SECONDS = 0.5
BASE = '/ovirt-engine/api'


def machine(number, name):
    return {'id': f'0e100000-0000-4000-8000-{number:012}', 'name': name, 'status': 'up'}


MACHINES = [machine(41, 'node1'), machine(42, 'twin'), machine(43, 'twin')]
# What is due: when, which machine, which status.
DUE = []


def settle():
    for due in [one for one in DUE if one[0] <= time.monotonic()]:
        DUE.remove(due)
        due[1]['status'] = due[2]


class Engine(Handler):
    def say(self, status, element, members):
        """One object, or a list of machines, in what the client reads."""
        if 'xml' in self.headers.get('Accept', 'application/xml'):
            return status, self.xml(element, members), {'Content-Type': 'application/xml;charset=utf-8'}
        if isinstance(members, list):
            members = {'vm': members} if members else {}
        return status, json.dumps(members), {}

    def xml(self, element, members):
        if isinstance(members, list):
            return f'<{element}>' + ''.join(self.xml('vm', one) for one in members) + f'</{element}>'
        reference = f' href="{BASE}/vms/{members["id"]}" id="{members["id"]}"' if 'id' in members else ''
        inner = ''.join(f'<{name}>{escape(value)}</{name}>' for name, value in members.items() if name != 'id')
        return f'<{element}{reference}>{inner}</{element}>'

    def fault(self, status, detail):
        raise_as = {'reason': 'Operation Failed', 'detail': detail}
        return self.say(status, 'fault', raise_as)

    def answer(self, method, path, query):
        if path.startswith('/ovirt-engine/sso/oauth/token'):
            return self.token()
        if path.startswith('/ovirt-engine/services/sso-logout'):
            return 200, '{}', {}
        scheme, _, token = self.headers.get('Authorization', '').partition(' ')
        user = TOKENS.get(token) if scheme == 'Bearer' else None
        if user is None:
            raise Refusal(401)
        with LOCK:
            settle()
            return self.about(method, path, query, user)

    def token(self):
        asked = {name: values[0] for name, values in parse_qs(self.body.decode()).items()}
        is_known = asked.get('username') in (USER, READER) and asked.get('password') == PASSWORD
        if asked.get('grant_type') != 'password' or asked.get('scope') != 'ovirt-app-api' or not is_known:
            raise Refusal(400, {
                'error': 'access_denied', 'error_code': 'access_denied',
                'error_description': 'Cannot authenticate user: The user name or password is incorrect..'})
        token = secrets.token_urlsafe(32)
        TOKENS[token] = asked['username']
        return 200, json.dumps({'access_token': token, 'scope': 'ovirt-app-api', 'exp': '9223372036854775807',
                                'token_type': 'bearer'}), {}

    def about(self, method, path, query, user):
        parts = path.removeprefix(BASE).strip('/').split('/')
        if not path.startswith(BASE + '/vms') or parts[0] != 'vms':
            raise Refusal(404)
        if len(parts) == 1:
            field, _, name = query.get('search', ['name='])[0].partition('=')
            if field != 'name':
                return self.fault(400, f'The search criteria {field} is not known here.')
            # As the engine's search: no heed of letter case.
            seen = [one for one in MACHINES if not name or one['name'].lower() == name.lower()]
            return self.say(200, 'vms', seen)
        found = next((one for one in MACHINES if one['id'] == parts[1]), None)
        if found is None:
            raise Refusal(404)
        if len(parts) == 2 and method == 'GET':
            return self.say(200, 'vm', found)
        if method != 'POST' or len(parts) != 3 or parts[2] not in ('start', 'stop', 'reset'):
            raise Refusal(404)
        return self.switch(user, found, parts[2])

    def switch(self, user, found, word):
        if user != USER:
            return self.fault(403, 'User is not authorized to perform this action.')
        if (found['status'] == 'down') != (word == 'start'):
            return self.fault(409, f"[Cannot {word} VM. VM is {found['status']}.]")
        if word == 'start':
            found['status'] = 'wait_for_launch'
        DUE.append((time.monotonic() + TAKES_SECONDS, found, 'down' if word == 'stop' else 'up'))
        return self.say(200, 'action', {'status': 'complete'})


serve(Engine)
