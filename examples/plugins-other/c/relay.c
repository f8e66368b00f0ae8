// A fence method in C: relays with the firmware Tasmota, each the only feed of a node.
//
// `GET /cm?cmnd=Power2` reads relay 2 and `GET /cm?cmnd=Power2%20Off` switches it; both answer with its
// state, `{"POWER2": "OFF"}`. The host adds user name and password. The same device in Rust, with more words
// for what can go wrong: examples/plugins/tasmota.
//
// What a function of the contract declares as `result<T, failure>` is here a bool and two places to write to.
// One instance lives for one call, so what it allocates is never freed: the host drops it all.

#include <stdlib.h>
#include <string.h>

#include "fence_method.h"

// The names that wit-bindgen makes are whole paths.
typedef node_remedy_fence_types_failure_t failure_t;
typedef node_remedy_fence_types_failure_kind_t kind_t;
typedef node_remedy_fence_types_outcome_t outcome_t;
typedef node_remedy_fence_types_plug_state_t state_t;
typedef node_remedy_fence_types_request_t request_t;
typedef fence_method_string_t string_t;
#define KIND(name) NODE_REMEDY_FENCE_TYPES_FAILURE_KIND_##name
#define STATE(name) NODE_REMEDY_FENCE_TYPES_PLUG_STATE_##name
#define ACTION(name) NODE_REMEDY_FENCE_TYPES_ACTION_##name
#define NET(name) NODE_REMEDY_FENCE_NET_NET_ERROR_##name

// The endpoint in manifest.json.
#define ENDPOINT "relay"
// Boards have no more relays.
#define RELAYS_MAX 28
// One request of a board on the same network takes milliseconds.
#define REQUEST_MS 5000
// Between two reads of a poll, and what a poll leaves of the deadline for its answer.
#define PAUSE_MS 1000
// A sentence or a path; what is longer is cut.
#define TEXT_MAX 256

typedef struct {
    char bytes[TEXT_MAX];
    size_t len;
} text_t;

static void say_n(text_t *text, const char *words, size_t len) {
    size_t room = TEXT_MAX - text->len;
    if (len > room) len = room;
    memcpy(text->bytes + text->len, words, len);
    text->len += len;
}

static void say(text_t *text, const char *words) { say_n(text, words, strlen(words)); }

static void say_number(text_t *text, unsigned number) {
    if (number >= 10) say_number(text, number / 10);
    char digit = (char)('0' + number % 10);
    say_n(text, &digit, 1);
}

static string_t borrowed(const text_t *text) {
    return (string_t){.ptr = (uint8_t *)text->bytes, .len = text->len};
}

static void copy(string_t *to, const text_t *text) {
    fence_method_string_dup_n(to, text->bytes, text->len);
}

// Fills in a failure; gives false, so that it can be returned at once.
static bool fail(failure_t *failure, kind_t kind, const text_t *detail) {
    memset(failure, 0, sizeof *failure);
    failure->kind = kind;
    copy(&failure->detail, detail);
    return false;
}

static bool fail_with(failure_t *failure, kind_t kind, const char *words) {
    text_t detail = {.len = 0};
    say(&detail, words);
    return fail(failure, kind, &detail);
}

static kind_t kind_of_net(uint8_t error) {
    switch (error) {
    case NET(DENIED): return KIND(DENIED);
    case NET(UNREACHABLE):
    case NET(REFUSED): return KIND(UNREACHABLE);
    case NET(TIMEOUT): return KIND(TIMEOUT);
    case NET(CANCELLED): return KIND(CANCELLED);
    case NET(LOGIN): return KIND(UNAUTHENTICATED);
    default: return KIND(OTHER);
    }
}

static kind_t kind_of_status(uint16_t status) {
    switch (status) {
    case 401: return KIND(UNAUTHENTICATED);
    case 403: return KIND(DENIED);
    case 404: return KIND(UNSUPPORTED);
    case 429: return KIND(THROTTLED);
    default: return KIND(DEVICE);
    }
}

typedef struct {
    const char *bytes;
    size_t len;
} body_t;

// Sends a command, its word after the relay's number, and gives the body of its answer.
static bool command(unsigned relay, const char *word, body_t *body, failure_t *failure) {
    text_t path = {.len = 0};
    say(&path, "/cm?cmnd=Power");
    say_number(&path, relay);
    say(&path, word);
    node_remedy_fence_net_http_request_t request = {.path = borrowed(&path), .timeout_ms = REQUEST_MS};
    fence_method_string_set(&request.method, "GET");
    string_t endpoint;
    fence_method_string_set(&endpoint, ENDPOINT);
    text_t detail = {.len = 0};
    say(&detail, "GET ");
    say_n(&detail, path.bytes, path.len);
    node_remedy_fence_net_http_response_t response;
    uint8_t error;
    if (!node_remedy_fence_net_fetch(&endpoint, &request, &response, &error)) {
        say(&detail, ": no answer");
        fail(failure, kind_of_net(error), &detail);
        failure->retryable = error == NET(TIMEOUT);
        return false;
    }
    if (response.status != 200) {
        say(&detail, ": HTTP ");
        say_number(&detail, response.status);
        fail(failure, kind_of_status(response.status), &detail);
        failure->device_code.is_some = true;
        failure->device_code.val = response.status;
        return false;
    }
    *body = (body_t){.bytes = (const char *)response.body.ptr, .len = response.body.len};
    return true;
}

static size_t after_blanks(const body_t *body, size_t at) {
    while (at < body->len && strchr(" \t\r\n", body->bytes[at]) != NULL) at++;
    return at;
}

// Whether the body says `"NAME": "VALUE"`. It is a flat JSON object of a few known words, and this no parser:
// whatever it does not recognise is unknown, which is never taken for off.
static bool says(const body_t *body, const text_t *name, const char *value) {
    size_t value_len = strlen(value);
    for (size_t start = 0; start + name->len < body->len; start++) {
        if (memcmp(body->bytes + start, name->bytes, name->len) != 0) continue;
        size_t at = after_blanks(body, start + name->len);
        if (at >= body->len || body->bytes[at] != ':') continue;
        at = after_blanks(body, at + 1);
        if (at + value_len <= body->len && memcmp(body->bytes + at, value, value_len) == 0) return true;
    }
    return false;
}

typedef struct {
    state_t state;
    const char *words;
} reading_t;

// What the relay is: never what was asked of it.
static bool read_relay(unsigned relay, reading_t *reading, failure_t *failure) {
    body_t body;
    if (!command(relay, "", &body, failure)) return false;
    text_t numbered = {.len = 0}, only = {.len = 0};
    say(&numbered, "\"POWER");
    say_number(&numbered, relay);
    say(&numbered, "\"");
    say(&only, "\"POWER\"");
    // A board with one relay calls it POWER.
    bool on = says(&body, &numbered, "\"ON\"") || (relay == 1 && says(&body, &only, "\"ON\""));
    bool off = says(&body, &numbered, "\"OFF\"") || (relay == 1 && says(&body, &only, "\"OFF\""));
    if (on == off) {
        *reading = (reading_t){STATE(UNKNOWN), "the answer does not say what the relay is"};
    } else {
        *reading = on ? (reading_t){STATE(ON), "relay is ON"} : (reading_t){STATE(OFF), "relay is OFF"};
    }
    return true;
}

static bool done(outcome_t *outcome, state_t state, const text_t *detail) {
    memset(outcome, 0, sizeof *outcome);
    outcome->state = state;
    copy(&outcome->detail, detail);
    return true;
}

// What is read, once or until it is what the host waits for.
static bool status(const request_t *request, unsigned relay, outcome_t *outcome, failure_t *failure) {
    reading_t reading;
    if (!read_relay(relay, &reading, failure)) return false;
    while (request->until.is_some && request->until.val != reading.state) {
        if (node_remedy_fence_op_elapsed_ms() + 2 * PAUSE_MS >= request->deadline_ms) break;
        if (!node_remedy_fence_op_sleep(PAUSE_MS)) {
            return fail_with(failure, KIND(CANCELLED), "cancelled while polling the relay");
        }
        if (!read_relay(relay, &reading, failure)) return false;
    }
    text_t detail = {.len = 0};
    say(&detail, reading.words);
    return done(outcome, reading.state, &detail);
}

// Asks for one change and reads what came of it.
static bool change(unsigned relay, state_t wanted, outcome_t *outcome, failure_t *failure) {
    const char *word = wanted == STATE(OFF) ? "Off" : "On";
    reading_t reading;
    // A board that does not answer is not asked for anything.
    if (!read_relay(relay, &reading, failure)) return false;
    string_t note, refusal;
    fence_method_string_set(&note, word);
    if (!node_remedy_fence_op_begin_effect(&note, &refusal)) {
        text_t detail = {.len = 0};
        say(&detail, "the host did not let it begin: ");
        say_n(&detail, (const char *)refusal.ptr, refusal.len);
        return fail(failure, KIND(CANCELLED), &detail);
    }
    body_t body;
    if (!command(relay, wanted == STATE(OFF) ? "%20Off" : "%20On", &body, failure)) return false;
    if (!read_relay(relay, &reading, failure)) return false;
    text_t detail = {.len = 0};
    say(&detail, word);
    say(&detail, " accepted; ");
    say(&detail, reading.words);
    bool is_done = reading.state == wanted || reading.state == STATE(UNKNOWN);
    return done(outcome, is_done ? reading.state : STATE(TRANSITIONING), &detail);
}

// The relay's number; 0 where the plug names none.
static unsigned relay_of(const string_t *plug) {
    unsigned number = 0;
    if (plug->len == 0 || plug->len > 2) return 0;
    for (size_t at = 0; at < plug->len; at++) {
        if (plug->ptr[at] < '0' || plug->ptr[at] > '9') return 0;
        number = number * 10 + (plug->ptr[at] - '0');
    }
    return number <= RELAYS_MAX ? number : 0;
}

bool exports_node_remedy_fence_method_run(request_t *request, outcome_t *ret, failure_t *err) {
    unsigned relay = relay_of(&request->plug);
    if (relay == 0) {
        text_t detail = {.len = 0};
        say(&detail, "found plug \"");
        say_n(&detail, (const char *)request->plug.ptr, request->plug.len);
        say(&detail, "\", expected a relay, 1 to ");
        say_number(&detail, RELAYS_MAX);
        return fail(err, KIND(NO_SUCH_PLUG), &detail);
    }
    switch (request->action) {
    case ACTION(STATUS):
    case ACTION(MONITOR): return status(request, relay, ret, err);
    case ACTION(OFF): return change(relay, STATE(OFF), ret, err);
    case ACTION(ON): return change(relay, STATE(ON), ret, err);
    default: return fail_with(err, KIND(UNSUPPORTED), "a relay has no reset");
    }
}

bool exports_node_remedy_fence_method_plugs(exports_node_remedy_fence_method_plugs_request_t *request,
                                            exports_node_remedy_fence_method_list_plug_info_t *ret,
                                            failure_t *err) {
    (void)request;
    (void)ret;
    return fail_with(err, KIND(UNSUPPORTED), "a relay board does not list its relays");
}
