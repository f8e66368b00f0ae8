"""A fence method in Python: relays with the firmware Tasmota, each the only feed of a node.

`GET /cm?cmnd=Power2` reads relay 2 and `GET /cm?cmnd=Power2%20Off` switches it; both answer with its state,
`{"POWER2": "OFF"}`. The host adds user name and password. The same device in Rust, with more words for what
can go wrong: examples/plugins/tasmota.

What a function of the contract declares as `result<…, failure>` is here a value returned or `Err` raised.
"""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import net, op
from wit_world.imports.net import NetError
from wit_world.imports.types import Action, Failure, FailureKind, Outcome, PlugState, Request

# The endpoint in manifest.json.
ENDPOINT = "relay"
# Boards have no more relays.
RELAYS_MAX = 28
# One request of a board on the same network takes milliseconds.
REQUEST_MS = 5_000
# Between two reads of a poll, and what a poll leaves of the deadline for its answer.
PAUSE_MS = 1_000

# What each error of the network means; whatever is not here is OTHER.
NET_FAILURES = {
    NetError.DENIED: FailureKind.DENIED,
    NetError.UNREACHABLE: FailureKind.UNREACHABLE,
    NetError.REFUSED: FailureKind.UNREACHABLE,
    NetError.TIMEOUT: FailureKind.TIMEOUT,
    NetError.CANCELLED: FailureKind.CANCELLED,
    NetError.LOGIN: FailureKind.UNAUTHENTICATED,
}
# What each status means; whatever is not here is the device's own fault.
HTTP_FAILURES = {
    401: FailureKind.UNAUTHENTICATED,
    403: FailureKind.DENIED,
    404: FailureKind.UNSUPPORTED,
    429: FailureKind.THROTTLED,
}


def failed(kind, detail, retryable=False, device_code=None):
    return Err(Failure(kind, retryable, None, device_code, detail, []))


def relay_of(plug):
    number = int(plug) if plug.isascii() and plug.isdigit() and len(plug) <= 2 else 0
    if not 1 <= number <= RELAYS_MAX:
        raise failed(FailureKind.NO_SUCH_PLUG, f'found plug "{plug}", expected a relay, 1 to {RELAYS_MAX}')
    return number


def command(relay, word=""):
    """Sends a command and gives the JSON object that answers it."""
    path = f"/cm?cmnd=Power{relay}{word}"
    try:
        response = net.fetch(ENDPOINT, net.HttpRequest("GET", path, [], b"", REQUEST_MS))
    except Err as error:
        kind = NET_FAILURES.get(error.value, FailureKind.OTHER)
        name = error.value.name.lower().replace("_", "-")
        raise failed(kind, f"GET {path}: {name}", retryable=error.value == NetError.TIMEOUT)
    if response.status != 200:
        kind = HTTP_FAILURES.get(response.status, FailureKind.DEVICE)
        raise failed(kind, f"GET {path}: HTTP {response.status}", device_code=response.status)
    try:
        answer = json.loads(response.body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise failed(FailureKind.PROTOCOL, f"GET {path}: found no JSON; is this the address of a relay board?")
    return answer


def read(relay):
    """What the relay is: never what was asked of it."""
    answer = command(relay)
    # A board with one relay calls it POWER.
    said = answer.get(f"POWER{relay}", answer.get("POWER") if relay == 1 else None)
    if said == "ON":
        return PlugState.ON, "relay is ON"
    if said == "OFF":
        return PlugState.OFF, "relay is OFF"
    return PlugState.UNKNOWN, "the answer does not say what the relay is"


def status(request, relay):
    """What is read, once or until it is what the host waits for."""
    state, words = read(relay)
    while request.until is not None and request.until != state:
        if op.elapsed_ms() + 2 * PAUSE_MS >= request.deadline_ms:
            break
        if not op.sleep(PAUSE_MS):
            raise failed(FailureKind.CANCELLED, "cancelled while polling the relay")
        state, words = read(relay)
    return Outcome(state, [], words, [])


def change(relay, wanted):
    """Asks for one change and reads what came of it."""
    word = "Off" if wanted == PlugState.OFF else "On"
    # A board that does not answer is not asked for anything.
    read(relay)
    try:
        op.begin_effect(word)
    except Err as refusal:
        raise failed(FailureKind.CANCELLED, f"the host did not let it begin: {refusal.value}")
    command(relay, f"%20{word}")
    state, words = read(relay)
    is_done = state in (wanted, PlugState.UNKNOWN)
    return Outcome(state if is_done else PlugState.TRANSITIONING, [], f"{word} accepted; {words}", [])


class Method(exports.Method):
    def run(self, request: Request) -> Outcome:
        relay = relay_of(request.plug)
        match request.action:
            case Action.STATUS | Action.MONITOR:
                return status(request, relay)
            case Action.OFF:
                return change(relay, PlugState.OFF)
            case Action.ON:
                return change(relay, PlugState.ON)
            case _:
                raise failed(FailureKind.UNSUPPORTED, "a relay has no reset")

    def plugs(self, request):
        raise failed(FailureKind.UNSUPPORTED, "a relay board does not list its relays")
