"""Real nova over TLS on loopback: API, scheduler, conductor and compute with nova's own fake hypervisor, in one
process. It is the base class of nova's functional tests, which its wheel ships, kept alive: sqlite, messages in memory.

argv: PORT CERTIFICATE KEY FOLDER KEYSTONE_URL CA. Tokens are asked for at keystone, and nova's own policies decide
what their roles may do. Writes the ids of its two servers, node1 and node2, to FOLDER/servers when it is ready.
"""
import json
import os
import ssl
import sys
import unittest
import urllib.error
import urllib.request
from pathlib import Path

PORT, CERTIFICATE, KEY, FOLDER, KEYSTONE, CA = sys.argv[1:7]
sys.argv = sys.argv[:1]

# nova looks for api-paste.ini beside its own package, and pip puts it beside the interpreter.
import nova  # noqa: E402
etc, beside = Path(sys.prefix) / 'etc', Path(nova.__file__).parent.parent / 'etc'
if not beside.exists():
    try:
        os.symlink(etc, beside)
    except FileExistsError:
        pass

from nova.tests.functional import integrated_helpers  # noqa: E402
import eventlet.wsgi  # noqa: E402

TRUST = ssl.create_default_context(cafile=CA)


def who(token):
    """User, roles and project's name of a token; none if keystone refuses it."""
    headers = {'X-Auth-Token': token, 'X-Subject-Token': token}
    asked = urllib.request.Request(f'{KEYSTONE}/auth/tokens', headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=20, context=TRUST) as answer:
            told = json.load(answer)['token']
    except urllib.error.HTTPError:
        return None
    project = told.get('project', {}).get('name', '')
    return told['user']['name'], ','.join(role['name'] for role in told.get('roles', [])), project


class Serve(integrated_helpers._IntegratedTestBase):
    api_major_version = 'v2.1'
    ADMIN_API = True
    microversion = 'latest'
    TIMEOUT_SCALING_FACTOR = 0

    def test_serve(self):
        # As clouds are set up: who only reads may not stop. The base class lets whoever is of the project.
        from nova import policy
        self.flags(enforce_new_defaults=True, group='oslo_policy')
        policy.reset()
        policy.init(suppress_deprecation_warnings=True)
        servers = [self._create_server(name=name, networks='none')['id'] for name in ('node1', 'node2')]
        from nova.api import wsgi
        application = wsgi.Loader().load_app('osapi_compute')
        own_project = self.api.project_id

        def door(environ, start):
            found = who(environ.get('HTTP_X_AUTH_TOKEN', ''))
            if found is None:
                start('401 Unauthorized', [('Content-Type', 'application/json')])
                message = 'The request you have made requires authentication.'
                return [json.dumps({'error': {'code': 401, 'title': 'Unauthorized', 'message': message}}).encode()]
            user, roles, project = found
            print(user, environ['REQUEST_METHOD'], environ['PATH_INFO'], flush=True)
            environ['HTTP_X_AUTH_USER'], environ['HTTP_X_ROLES'] = user, roles
            environ['HTTP_X_AUTH_PROJECT_ID'] = own_project if project == 'cluster' else project
            return application(environ, start)

        listening = eventlet.wrap_ssl(
            eventlet.listen(('127.0.0.1', int(PORT))), certfile=CERTIFICATE, keyfile=KEY, server_side=True)
        Path(FOLDER, 'servers').write_text('\n'.join(servers))
        eventlet.wsgi.server(listening, door, log_output=False)


if __name__ == '__main__':
    unittest.main(argv=['nova', 'Serve.test_serve'])
