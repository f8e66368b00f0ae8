"""moto's server whose instances may be tied to the chassis of the tests' machines.

The file that the environment's WIRED names says which: {INSTANCE: the state file of ../ipmi/chassis.sh}.
Such an instance is stopped and started there too, and whoever asks for its state is told what stands there.

moto's groups look after nobody's health. Here one ends an instance of its own that stops in service, as
Amazon's do within minutes, and starts another in its place, which moto does.
"""
import json
import os
import pathlib
import subprocess

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models.instances import Instance
from moto.ec2.responses.instances import InstanceResponse
from moto.server import main

CHASSIS = pathlib.Path(__file__).parent.parent / "ipmi" / "chassis.sh"
WIRED = pathlib.Path(os.environ["WIRED"])

own_start, own_stop, own_terminate = Instance.start, Instance.stop, Instance.terminate
own_describe = InstanceResponse.describe_instances


def chassis(instance, *request):
    wired = json.loads(WIRED.read_text()) if WIRED.exists() else {}
    if instance in wired:
        subprocess.run([CHASSIS, wired[instance], *request], check=True, capture_output=True)


def start(self):
    chassis(self.id, "set", "power", "1")
    return own_start(self)


def stop(self):
    chassis(self.id, "set", "power", "0")
    stopped = own_stop(self)
    place = [one.lifecycle_state for one in members(self) if one.instance.id == self.id]
    if place == ["InService"]:
        self.ec2_backend.terminate_instances([self.id])
    return stopped


def members(instance):
    groups = autoscaling_backends[instance.ec2_backend.account_id][instance.ec2_backend.region_name]
    return [one for group in groups.autoscaling_groups.values() for one in group.instance_states]


def terminate(self):
    chassis(self.id, "end")
    return own_terminate(self)


def describe(self):
    for instance in self._get_param("InstanceIds", []):
        chassis(instance, "get", "power")
    return own_describe(self)


Instance.start, Instance.stop, Instance.terminate = start, stop, terminate
InstanceResponse.describe_instances = describe
main()
