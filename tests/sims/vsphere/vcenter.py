"""A vCenter for tests: sessions, virtual machines and hosts, in both forms of the REST API. Written from the
vSphere Automation API reference; apache-libcloud's driver for the old form drives it too.

argv: PORT CERTIFICATE KEY USER PASSWORD. Another user, `reader`, with the same password sees machines and may not
switch them; `stranger` sees none. vm-41 node1 runs, vm-42 and vm-43 are both called twin.
"""
import json
import secrets
import sys
from pathlib import Path
from threading import Lock

sys.path.insert(0, str(Path(__file__).parent.parent))
from web import Handler, Refusal, serve  # noqa: E402

USER, PASSWORD = sys.argv[4:6]
ACCOUNTS = {USER: 'operator', 'reader': 'reader', 'stranger': 'stranger'}
SESSIONS, LOCK = {}, Lock()
# More of them are a 400.
LIST_MAX = 1000


def machine(number, name):
    tail = f'{number:012}'
    return {'name': name, 'power': 'POWERED_ON', 'host': 'host-9',
            'bios_uuid': f'4213ab00-2222-4333-8444-{tail}', 'instance_uuid': f'5013ab00-2222-4333-8444-{tail}'}


MACHINES = {'vm-41': machine(41, 'node1'), 'vm-42': machine(42, 'twin'), 'vm-43': machine(43, 'twin')}
# Which change leads where, and from where it is refused.
POWER = {'stop': 'POWERED_OFF', 'start': 'POWERED_ON', 'suspend': 'SUSPENDED', 'reset': 'POWERED_ON'}
SESSION_PATHS = {'/api/session': False, '/rest/com/vmware/cis/session': True}


class VCenter(Handler):
    def refuse(self, status, kind, message):
        messages = [{'id': f'com.vmware.{kind.lower()}', 'default_message': message, 'args': []}]
        if self.is_old:
            named = f'com.vmware.vapi.std.errors.{kind.lower()}'
            raise Refusal(status, {'type': named, 'value': {'messages': messages}})
        raise Refusal(status, {'error_type': kind, 'messages': messages})

    def say(self, status, value=None):
        if value is None:
            return (200 if self.is_old else 204), '', {}
        return status, json.dumps({'value': value} if self.is_old else value), {}

    def answer(self, method, path, query):
        self.is_old = path.startswith('/rest/')
        if path in SESSION_PATHS:
            return self.session(method)
        role = SESSIONS.get(self.headers.get('vmware-api-session-id'))
        if role is None:
            self.refuse(401, 'UNAUTHENTICATED', 'Authentication required.')
        parts = path.strip('/').split('/')[2:]
        if path.split('/')[2:3] != ['vcenter'] or not parts:
            raise Refusal(404)
        # The old form writes filters as filter.names.
        filters = {name.removeprefix('filter.'): values for name, values in query.items()}
        with LOCK:
            return self.about(method, role, parts, filters)

    def session(self, method):
        if method == 'DELETE':
            SESSIONS.pop(self.headers.get('vmware-api-session-id'), None)
            return self.say(204)
        user, password = self.basic() or ('', '')
        if user not in ACCOUNTS or password != PASSWORD:
            self.refuse(401, 'UNAUTHENTICATED', 'Authentication required.')
        token = secrets.token_hex(16)
        SESSIONS[token] = ACCOUNTS[user]
        return self.say(200 if self.is_old else 201, token)

    def about(self, method, role, parts, filters):
        if parts == ['host'] and method == 'GET':
            if role != 'operator':
                self.refuse(403, 'UNAUTHORIZED', 'Permission to perform this operation was denied.')
            return self.say(200, [{'host': 'host-9', 'name': 'esx9.lan', 'connection_state': 'CONNECTED',
                                   'power_state': 'POWERED_ON'}])
        if parts == ['vm'] and method == 'GET':
            return self.listed(role, filters)
        if parts[0] != 'vm' or len(parts) < 2:
            raise Refusal(404)
        found = MACHINES.get(parts[1])
        if found is None or role == 'stranger':
            self.refuse(404, 'NOT_FOUND', f"Virtual machine with identifier '{parts[1]}' does not exist.")
        if len(parts) == 2 and method == 'GET':
            identity = {name: found[name] for name in ('name', 'bios_uuid', 'instance_uuid')}
            return self.say(200, {'name': found['name'], 'power_state': found['power'], 'identity': identity})
        if parts[2:] == ['power'] and method == 'GET':
            return self.say(200, {'state': found['power']})
        return self.switch(method, role, found, parts, filters)

    def listed(self, role, filters):
        seen = {} if role == 'stranger' else MACHINES
        listed = [
            {'vm': id, 'name': one['name'], 'power_state': one['power'], 'cpu_count': 2, 'memory_size_MiB': 4096}
            for id, one in seen.items()
            if id in filters.get('vms', [id]) and one['name'] in filters.get('names', [one['name']])
            and one['host'] in filters.get('hosts', [one['host']])
        ]
        if len(listed) > LIST_MAX:
            self.refuse(400, 'UNABLE_TO_ALLOCATE_RESOURCE', 'Too many virtual machines. Add more filter criteria.')
        return self.say(200, listed)

    def switch(self, method, role, found, parts, filters):
        words = parts[3:] if self.is_old else filters.get('action', [])
        if parts[2:3] != ['power'] or method != 'POST' or len(words) != 1 or words[0] not in POWER:
            raise Refusal(404)
        if role != 'operator':
            self.refuse(403, 'UNAUTHORIZED', 'Permission to perform this operation was denied.')
        word, wanted = words[0], POWER[words[0]]
        if word == 'reset' and found['power'] != 'POWERED_ON':
            self.refuse(400, 'NOT_ALLOWED_IN_CURRENT_STATE', 'The virtual machine is not powered on.')
        if word != 'reset' and found['power'] == wanted:
            self.refuse(400, 'ALREADY_IN_DESIRED_STATE', 'The virtual machine is in that state already.')
        found['power'] = wanted
        return self.say(204)


serve(VCenter)
