"""moto's server whose instances may be tied to the chassis of the tests' machines.

The file that the environment's WIRED names says which: {INSTANCE: the state file of ../ipmi/chassis.sh}.
Such an instance is stopped and started there too, and whoever asks for its state is told what stands there.
"""
import json
import os
import pathlib
import subprocess

from moto.ec2.models.instances import Instance
from moto.ec2.responses.instances import InstanceResponse
from moto.server import main

CHASSIS = pathlib.Path(__file__).parent.parent / "ipmi" / "chassis.sh"
WIRED = pathlib.Path(os.environ["WIRED"])

own_start, own_stop, own_describe = Instance.start, Instance.stop, InstanceResponse.describe_instances


def chassis(instance, *request):
    wired = json.loads(WIRED.read_text()) if WIRED.exists() else {}
    if instance in wired:
        subprocess.run([CHASSIS, wired[instance], *request], check=True, capture_output=True)


def start(self):
    chassis(self.id, "set", "power", "1")
    return own_start(self)


def stop(self):
    chassis(self.id, "set", "power", "0")
    return own_stop(self)


def describe(self):
    for instance in self._get_param("InstanceIds", []):
        chassis(instance, "get", "power")
    return own_describe(self)


Instance.start, Instance.stop, InstanceResponse.describe_instances = start, stop, describe
main()
