"""A Fibre Channel switch for tests: Fabric OS' REST API for its ports, in XML. Written from Brocade's YANG module
brocade-interface 9.1.0 and the REST API reference.

argv: PORT CERTIFICATE KEY USER PASSWORD VERSION. VERSION is 8 or 9: before 9 there is no is-enabled-state. Another user,
`reader`, with the same password may not switch ports. A port needs half a second to lose its link. Three sessions at a time.
"""
import secrets
import sys
import time
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).parent.parent))
from web import Handler, serve  # noqa: E402
from xml.etree import ElementTree  # noqa: E402
from xml.sax.saxutils import escape  # noqa: E402

USER, PASSWORD, VERSION = sys.argv[4:7]
SESSIONS, LOCK = {}, Lock()
SESSIONS_MAX = 3
DOWN_SECONDS = 0.5
LIST = '/rest/running/brocade-interface/fibrechannel'
# Each port: whether it is enabled, whether that lasts, and since when it is disabled.
PORTS = {f'0/{n}': {'enabled': True, 'persistent': False, 'since': 0.0} for n in range(8)}


def element(name, one):
    is_online = one['enabled'] or time.monotonic() < one['since'] + DOWN_SECONDS
    leaves = {
        'name': name, 'wwn': f'20:{int(name[2:]):02x}:00:05:33:00:00:01', 'enabled-state': 2 if one['enabled'] else 6,
        **({'is-enabled-state': str(one['enabled']).lower()} if VERSION == '9' else {}),
        'user-friendly-name': f'port{name[2:]}', 'operational-status': 2 if is_online else 3,
        **({'operational-status-string': 'online' if is_online else 'offline'} if VERSION == '9' else {}),
        'physical-state': 'Online' if is_online else 'No_Light', 'persistent-disable': int(one['persistent']),
    }
    return '<fibrechannel>' + ''.join(f'<{leaf}>{escape(str(it))}</{leaf}>' for leaf, it in leaves.items()) + '</fibrechannel>'


class Switch(Handler):
    content_type = 'application/yang-data+xml'

    def refuse(self, status, message):
        return status, ('<?xml version="1.0"?>\n<errors xmlns="urn:ietf:params:xml:ns:yang:ietf-restconf"><error>'
                        '<error-type>application</error-type><error-tag>operation-failed</error-tag>'
                        f'<error-message>{escape(message)}</error-message></error></errors>\n'), {}

    def who(self):
        """The user of a session, or of the request itself, which newer switches take as well."""
        session = SESSIONS.get(self.headers.get('Authorization'))
        user, password = self.basic() or ('', '')
        is_known = user in (USER, 'reader') and password == PASSWORD
        return session or (user if is_known else None)

    def answer(self, method, path, query):
        with LOCK:
            user = self.who()
            if user is None:
                return self.refuse(401, 'Invalid credentials')
            if path == '/rest/login' and method == 'POST':
                if len(SESSIONS) >= SESSIONS_MAX:
                    return self.refuse(503, 'Max limit for REST sessions reached')
                token = f'Custom_Basic {secrets.token_hex(24)}'
                SESSIONS[token] = user
                return 200, '', {'Authorization': token}
            if path == '/rest/logout' and method == 'POST':
                SESSIONS.pop(self.headers.get('Authorization'), None)
                return 204, '', {}
            if path != LIST:
                return self.refuse(404, 'Not Found')
            if method == 'GET':
                ports = '\n'.join(element(name, one) for name, one in PORTS.items())
                return 200, f'<?xml version="1.0"?>\n<Response>\n{ports}\n</Response>\n', {}
            return self.change(user) if method == 'PATCH' else self.refuse(405, 'Method not allowed')

    def change(self, user):
        if user != USER:
            return self.refuse(403, 'Permission denied')
        asked = {one.tag: (one.text or '').strip() for one in ElementTree.fromstring(self.body)}
        found = PORTS.get(asked.pop('name', ''))
        known = {'enabled-state': {'2': True, '6': False}, 'persistent-disable': {'1': True, '0': False}}
        if VERSION == '9':
            known['is-enabled-state'] = {'true': True, 'false': False}
        wrong = [leaf for leaf, it in asked.items() if it not in known.get(leaf, {})]
        if found is None or wrong or len(asked) != 1:
            return self.refuse(400, f'Invalid port or leaf: {wrong}')
        leaf, it = next(iter(asked.items()))
        value = known[leaf][it]
        if leaf == 'persistent-disable':
            found['persistent'] = value
            value = not value
        if found['enabled'] and not value:
            found['since'] = time.monotonic()
        found['enabled'] = value
        return 204, '', {}


serve(Switch)
