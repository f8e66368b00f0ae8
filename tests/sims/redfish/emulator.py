"""sushy-emulator whose fake machines are tied to the chassis of the tests' machines.

A system of SUSHY_EMULATOR_FAKE_SYSTEMS with a key `chassis` (the state file of ../ipmi/chassis.sh) has
no power of its own: it is read from there and switched there, as many seconds after the yes as
sushy-tools' fake driver takes, 1 to 11. Systems without it are sushy-tools' own.
"""
import pathlib
import random
import subprocess
import sys

from sushy_tools.emulator import main
from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver

CHASSIS = pathlib.Path(__file__).parent.parent / "ipmi" / "chassis.sh"
LATE_S = (1, 11)
POWER = {"ForceOff": "0", "On": "1", "ForceOn": "1"}

own_get, own_set = FakeDriver.get_power_state, FakeDriver.set_power_state


def chassis(state, *request):
    done = subprocess.run([CHASSIS, state, *request], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def get_power_state(self, identity):
    state = self._get(identity).get("chassis")
    if state is None:
        return own_get(self, identity)
    return "On" if chassis(state, "get", "power") == "power:1" else "Off"


def set_power_state(self, identity, wanted):
    state = self._get(identity).get("chassis")
    if state is None or wanted not in POWER:
        return own_set(self, identity, wanted)
    pathlib.Path(f"{state}.delay").write_text(str(random.randint(*LATE_S)))
    chassis(state, "set", "power", POWER[wanted])


FakeDriver.get_power_state, FakeDriver.set_power_state = get_power_state, set_power_state
sys.exit(main.main())
