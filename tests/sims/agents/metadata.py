"""What fence agents say of their parameters, a line for each agent: name, letter, and `!` for a flag. Modules that they
lack here are stood in for: metadata needs none of them. Arguments: where fence-agents is unpacked, agents."""

import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import runpy
import subprocess
import sys
from unittest.mock import MagicMock
import xml.etree.ElementTree as tree

LACKED = """azure boto3 botocore google googleapiclient httplib2 keystoneauth1 keystoneclient msrestazure
novaclient oauth2client pexpect pycurl requests suds urllib3""".split()


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in LACKED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__all__ = [], spec, []
        return module

    def exec_module(self, module):
        pass


def metadata(path):
    with open(path, "rb") as program:
        if program.read(4) == b"\x7fELF":
            return subprocess.run([path, "-o", "metadata"], capture_output=True, text=True).stdout
    sys.argv = [path, "-o", "metadata"]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        runpy.run_path(path, run_name="__main__")
    return said.getvalue()


root = sys.argv[1]
agents = sys.argv[2:]
sys.path.insert(0, os.path.join(root, "usr/share/fence"))
sys.meta_path.insert(0, StandIn())
for agent in agents:
    words = [agent]
    for one in tree.fromstring(metadata(os.path.join(root, "usr/sbin", agent))).find("parameters"):
        option = one.find("getopt").get("mixed")
        letter = option[1] if option.startswith("-") and option[1] != "-" else ""
        flag = "!" if one.find("content").get("type") == "boolean" else ""
        words.append(f"{one.get('name')}:{letter}{flag}")
    print(*words)
sys.stdout.flush()
# Each agent registered a last word, which fails.
os._exit(0)
