"""Real keystone over TLS on loopback: makes its database in FOLDER and serves it.

argv: PORT CERTIFICATE KEY FOLDER COMPUTE_URL PASSWORD. Users: admin (admin), reader (may only read); both with
PASSWORD, in project `cluster` of domain Default. The catalogue says that compute is at COMPUTE_URL.
"""
import os
import ssl
import subprocess
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

PORT, CERTIFICATE, KEY, FOLDER, COMPUTE_URL, PASSWORD = sys.argv[1:7]
URL = f'https://127.0.0.1:{PORT}/v3'
FOLDER = Path(FOLDER)
CONFIGURATION = FOLDER / 'keystone.conf'


def prepare():
    for name in ('fernet', 'credential'):
        (FOLDER / name).mkdir(mode=0o700)
    CONFIGURATION.write_text(
        f'[DEFAULT]\nlog_file = {FOLDER}/keystone-own.log\n'
        f'[database]\nconnection = sqlite:////{FOLDER}/keystone.db\n'
        f'[fernet_tokens]\nkey_repository = {FOLDER}/fernet\n'
        f'[credential]\nkey_repository = {FOLDER}/credential\n')
    who = ('--keystone-user', str(os.getuid()), '--keystone-group', str(os.getgid()))
    for words in (
        ('db_sync',), ('fernet_setup', *who), ('credential_setup', *who),
        ('bootstrap', '--bootstrap-password', PASSWORD, '--bootstrap-project-name', 'cluster',
         '--bootstrap-public-url', URL, '--bootstrap-region-id', 'north'),
    ):
        program = Path(sys.executable).with_name('keystone-manage')
        subprocess.run([program, '--config-file', CONFIGURATION, *words], check=True)


def fill(application):
    """The reader and the catalogue, by keystone's own API before anybody else may ask."""
    import json
    from io import BytesIO

    def ask(method, path, body, token=''):
        sent, told = json.dumps(body).encode(), {}
        environ = {
            'REQUEST_METHOD': method, 'PATH_INFO': path, 'QUERY_STRING': '', 'SCRIPT_NAME': '',
            'SERVER_NAME': '127.0.0.1', 'SERVER_PORT': PORT, 'SERVER_PROTOCOL': 'HTTP/1.1',
            'REMOTE_ADDR': '127.0.0.1', 'CONTENT_TYPE': 'application/json', 'CONTENT_LENGTH': str(len(sent)),
            'HTTP_X_AUTH_TOKEN': token, 'wsgi.input': BytesIO(sent), 'wsgi.url_scheme': 'https',
            'wsgi.errors': sys.stderr, 'wsgi.version': (1, 0), 'wsgi.multithread': True,
            'wsgi.multiprocess': False, 'wsgi.run_once': False,
        }
        answer = b''.join(application(environ, lambda status, headers: told.update(status=status, **dict(headers))))
        assert told['status'][0] == '2', (path, told['status'], answer)
        return told, json.loads(answer) if answer else {}

    domain = {'name': 'Default'}
    told, answer = ask('POST', '/v3/auth/tokens', {'auth': {
        'identity': {'methods': ['password'], 'password': {
            'user': {'name': 'admin', 'domain': domain, 'password': PASSWORD}}},
        'scope': {'project': {'name': 'cluster', 'domain': domain}}}})
    token, project = told['X-Subject-Token'], answer['token']['project']['id']
    _, made = ask('POST', '/v3/users', {'user': {'name': 'reader', 'password': PASSWORD}}, token)
    _, roles = ask('GET', '/v3/roles', {}, token)
    role = next(one['id'] for one in roles['roles'] if one['name'] == 'reader')
    ask('PUT', f"/v3/projects/{project}/users/{made['user']['id']}/roles/{role}", {}, token)
    _, made = ask('POST', '/v3/services', {'service': {'name': 'nova', 'type': 'compute'}}, token)
    ask('POST', '/v3/endpoints', {'endpoint': {
        'service_id': made['service']['id'], 'interface': 'public', 'region': 'north', 'url': COMPUTE_URL}}, token)
    _, made = ask('POST', f"/v3/users/{answer['token']['user']['id']}/application_credentials", {
        'application_credential': {'name': 'node-remedy'}}, token)
    made = made['application_credential']
    (FOLDER / 'application-credential').write_text(f"{made['id']}\n{made['secret']}\n")


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    # One slow TLS greeting must not keep others waiting.
    def setup(self):
        self.request.do_handshake()
        super().setup()


prepare()
os.environ['OS_KEYSTONE_CONFIG_FILES'] = str(CONFIGURATION)
sys.argv = sys.argv[:1]
from keystone.wsgi.api import application  # noqa: E402

fill(application)
server = make_server('127.0.0.1', int(PORT), application, Server, Handler)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print('keystone serves', URL, flush=True)
server.serve_forever()
