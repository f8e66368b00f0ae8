// A fence method in JavaScript: relays with the firmware Tasmota, each the only feed of a node.
//
// `GET /cm?cmnd=Power2` reads relay 2 and `GET /cm?cmnd=Power2%20Off` switches it; both answer with its
// state, `{"POWER2": "OFF"}`. The host adds user name and password. The same device in Rust, with more
// words for what can go wrong: examples/plugins/tasmota.
//
// What a function of the contract declares as `result<…, failure>` is here a value returned or thrown.

import net from "node-remedy:fence/net@0.1.0";
import op from "node-remedy:fence/op@0.1.0";

/** The endpoint in manifest.json. */
const ENDPOINT = "relay";
/** Boards have no more relays. */
const RELAYS_MAX = 28;
/** One request of a board on the same network takes milliseconds. */
const REQUEST_MS = 5_000;
/** Between two reads of a poll, and what a poll leaves of the deadline for its answer. */
const PAUSE_MS = 1_000;

/** What each error of the network means; whatever is not here is "other". */
const NET_FAILURES = {
  denied: "denied",
  unreachable: "unreachable",
  refused: "unreachable",
  timeout: "timeout",
  cancelled: "cancelled",
  login: "unauthenticated",
};

/** What each status means; whatever is not here is the device's own fault. */
const HTTP_FAILURES = { 401: "unauthenticated", 403: "denied", 404: "unsupported", 429: "throttled" };

function failure(kind, detail, more = {}) {
  return { kind, retryable: false, retryAfterMs: null, deviceCode: null, detail, extra: [], ...more };
}

function relayOf(plug) {
  const number = /^[0-9]{1,2}$/.test(plug) ? Number(plug) : 0;
  if (number < 1 || number > RELAYS_MAX) {
    throw failure("no-such-plug", `found plug ${JSON.stringify(plug)}, expected a relay, 1 to ${RELAYS_MAX}`);
  }
  return number;
}

/** Sends a command and gives the JSON object that answers it. */
function command(relay, word = "") {
  const path = `/cm?cmnd=Power${relay}${word}`;
  let response;
  try {
    response = net.fetch(ENDPOINT, { method: "GET", path, headers: [], body: [], timeoutMs: REQUEST_MS });
  } catch (error) {
    throw failure(NET_FAILURES[error] ?? "other", `GET ${path}: ${error}`, { retryable: error === "timeout" });
  }
  if (response.status !== 200) {
    const kind = HTTP_FAILURES[response.status] ?? "device";
    throw failure(kind, `GET ${path}: HTTP ${response.status}`, { deviceCode: response.status });
  }
  try {
    return JSON.parse(String.fromCharCode(...response.body)) ?? {};
  } catch {
    throw failure("protocol", `GET ${path}: found no JSON; is this the address of a relay board?`);
  }
}

/** What the relay is: never what was asked of it. */
function read(relay) {
  const answer = command(relay);
  // A board with one relay calls it POWER.
  const said = answer[`POWER${relay}`] ?? (relay === 1 ? answer.POWER : undefined);
  if (said === "ON") return { state: "on", words: "relay is ON" };
  if (said === "OFF") return { state: "off", words: "relay is OFF" };
  return { state: "unknown", words: "the answer does not say what the relay is" };
}

function outcome({ state, words }) {
  return { state, identity: [], detail: words, extra: [] };
}

/** What is read, once or until it is what the host waits for. */
function status(request, relay) {
  let reading = read(relay);
  while (request.until !== null && request.until !== reading.state) {
    if (op.elapsedMs() + 2 * PAUSE_MS >= request.deadlineMs) break;
    if (!op.sleep(PAUSE_MS)) throw failure("cancelled", "cancelled while polling the relay");
    reading = read(relay);
  }
  return outcome(reading);
}

/** Asks for one change and reads what came of it. */
function change(request, relay, wanted) {
  const word = wanted === "off" ? "Off" : "On";
  // A board that does not answer is not asked for anything.
  read(relay);
  try {
    op.beginEffect(word);
  } catch (reason) {
    throw failure("cancelled", `the host did not let it begin: ${reason}`);
  }
  command(relay, `%20${word}`);
  const { state, words } = read(relay);
  const isDone = state === wanted || state === "unknown";
  return outcome({ state: isDone ? state : "transitioning", words: `${word} accepted; ${words}` });
}

export const method = {
  run(request) {
    const relay = relayOf(request.plug);
    switch (request.action) {
      case "status":
      case "monitor":
        return status(request, relay);
      case "off":
      case "on":
        return change(request, relay, request.action);
      default:
        throw failure("unsupported", `a relay has no ${request.action}`);
    }
  },

  plugs() {
    throw failure("unsupported", "a relay board does not list its relays");
  },
};
