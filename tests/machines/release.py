#!/usr/bin/env python3
"""release.py: how soon a volume and its pod are given back once a machine is proven off, on real machines.

Needs a lab of three machines that is up, and a node-remedy that is built. A lab is a folder with lab.py (freezes a
machine, runs commands in it), manifests/csi.yaml (a StatefulSet with a CSI volume), run/kubectl, run/kubeconfig and run/netns. Each run
freezes the machine that a pod with a CSI volume runs on, and waits until node-remedy has switched it off, released
it and switched it on again. Prints a row of a table for each mode: how often the pod was made anew, and the seconds from the
proof to the detached volume and to the new pod that runs.

  release.py --lab FOLDER --binary FILE [--release-mode prompt paced] [--runs 5] [--name WORDS]

Several modes take turns, so that load affects all of them.

FOLDER is the recipe's; LAB_DIR names another place for what it made, as for its own scripts.
"""
import argparse, datetime, itertools, json, os, pathlib, subprocess, sys, threading, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
API, TOKEN = "https://10.77.0.1:6443", "Authorization: Bearer admin-token"
FENCES = "/apis/node-remedy.io/v1alpha1/nodefences"
CONFIGURATION = """
apiVersion: v1
kind: Namespace
metadata: {name: node-remedy}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: machines, namespace: node-remedy}
data: {nodes.csv: "node,bmc-address\\nn1,10.77.0.101\\nn2,10.77.0.102\\nn3,10.77.0.103\\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: bmc-credentials, namespace: node-remedy}
stringData: {username: admin, password: secret}
---
apiVersion: node-remedy.io/v1alpha1
kind: RemedyConfiguration
metadata: {name: machines}
spec:
  thresholdConfigs: [{nodeLeaseAge: 20s, remedy1: [{name: fence}]}]
  policies: {maxUnhealthyPercent: 60, coolDown: 1s, breaker: {maxIncidents: 1000, window: 1m, coolDown: 1m}, releaseMode: %s}
---
apiVersion: node-remedy.io/v1alpha1
kind: FenceConfiguration
metadata: {name: machines}
spec:
  nodeSelector: "node-remedy.io/fence=ipmi"
  inventory: {configMap: machines, key: nodes.csv}
  methods:
  - name: power
    plugin: ipmi
    parameters: {address: "${inventory['bmc-address']}"}
    credentials: [{secret: bmc-credentials}]
    action: reboot
  isolation: [{name: keep-new-pods-away, methods: [quarantine]}]
  powerManagement: [{name: power, methods: [power]}]
  grants: [{plugin: ipmi, cidrs: [10.77.0.0/24], ports: [623]}]
"""


class Lab:
    def __init__(self, recipe):
        self.recipe = recipe
        self.run = pathlib.Path(os.environ.get("LAB_DIR", recipe / ".lab")).resolve() / "run"
        if not (self.run / "netns").exists():
            sys.exit(f"release.py: no lab runs in {self.run}; start it with up.sh 3")
        self.inside = ["nsenter", "--net=/run/netns/" + (self.run / "netns").read_text().strip()]

    def kubectl(self, *words, given=None):
        done = subprocess.run([self.run / "kubectl", *words], input=given, text=True, capture_output=True, timeout=60)
        if done.returncode:
            sys.exit(f"release.py: kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def act_on(self, node, *words):
        command = [sys.executable, self.recipe / "lab.py", node, *words]
        subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)

    def get(self, path):
        asked = [*self.inside, "curl", "-sk", "-m", "10", API + path, "-H", TOKEN]
        return json.loads(subprocess.run(asked, capture_output=True, text=True, timeout=20).stdout)

    def until(self, what, seconds, question):
        end = time.time() + seconds
        while time.time() < end:
            try:
                answer = question()
            except (ValueError, KeyError):
                answer = None
            if answer:
                return answer
            time.sleep(0.5)
        sys.exit(f"release.py: not within {seconds} s: {what}")

    def node_of_pod(self):
        """The node that the pod runs on, if it does."""
        pod = self.get("/api/v1/namespaces/default/pods/csi-0")
        is_up = pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        return pod["spec"]["nodeName"] if is_up else None

    def is_ready(self, node):
        conditions = self.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


class Watch(threading.Thread):
    """Events of a watch, each with when it arrived."""

    def __init__(self, lab, path):
        super().__init__(daemon=True)
        since = lab.get(path)["metadata"]["resourceVersion"]
        asked = f"{API}{path}?watch=1&resourceVersion={since}"
        self.curl = subprocess.Popen([*lab.inside, "curl", "-skN", asked, "-H", TOKEN], stdout=subprocess.PIPE)
        self.seen = []
        self.start()

    def run(self):
        for line in self.curl.stdout:
            event = json.loads(line)
            self.seen.append((time.time(), event["type"], event["object"]))

    def first(self, is_it):
        return next((at for at, kind, one in list(self.seen) if is_it(kind, one)), None)

    def end(self):
        self.curl.kill()


def one_run(lab):
    home = lab.until("the pod runs", 240, lab.node_of_pod)
    held = lab.get("/apis/storage.k8s.io/v1/volumeattachments")["items"]
    held = [one["metadata"]["name"] for one in held if one["spec"]["nodeName"] == home]
    old = lab.get("/api/v1/namespaces/default/pods/csi-0")["metadata"]["uid"]
    pods = Watch(lab, "/api/v1/namespaces/default/pods")
    attachments = Watch(lab, "/apis/storage.k8s.io/v1/volumeattachments")
    known = {one["metadata"]["name"] for one in lab.get(FENCES)["items"]}
    fences = Watch(lab, FENCES)
    # After a boot the kubelet's certificate may not be on the disk yet. A power cut would leave an empty file, and no kubelet.
    lab.act_on(home, "exec", "sync")
    lab.act_on(home, "freeze")
    ours = lambda one: one.get("status", {}) if one["metadata"]["name"] not in known else {}
    is_over = lambda _, one: ours(one).get("status") in ("Final", "Error")
    lab.until(f"the incident of {home} is over", 600, lambda: fences.first(is_over))
    lab.until(f"{home} is Ready", 240, lambda: lab.is_ready(home))
    lab.until("the pod runs elsewhere", 240, lambda: lab.node_of_pod() not in (None, home))
    for watch in (pods, attachments, fences):
        watch.end()
    proven = fences.first(lambda _, one: ours(one).get("proof"))
    detached = attachments.first(lambda kind, one: kind == "DELETED" and one["metadata"]["name"] in held)
    made = [one["metadata"]["uid"] for _, kind, one in pods.seen if kind == "ADDED" and one["metadata"]["uid"] != old]
    running = pods.first(lambda kind, one: one["metadata"]["uid"] != old and one["status"]["phase"] == "Running")
    state = [ours(one)["status"] for _, _, one in fences.seen if ours(one)][-1]
    if state == "Error":
        sys.exit(f"release.py: the incident of {home} ended in state Error; see node-remedy's log in {lab.run}/logs")
    return {"home": home, "made": len(made), "detached": detached - proven, "running": running - proven}


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--lab", type=pathlib.Path, required=True)
    asked.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/debug/node-remedy")
    asked.add_argument("--release-mode", choices=["prompt", "paced"], nargs="+", default=["prompt"])
    asked.add_argument("--runs", type=int, default=5)
    asked.add_argument("--name", default="as built")
    asked = asked.parse_args()
    lab = Lab(asked.lab.resolve())
    for file in sorted((ROOT / "deploy/crds").glob("*.yaml")):
        lab.kubectl("apply", "--server-side", "-f", str(file))
    lab.kubectl("label", "node", "--all", "--overwrite", "node-remedy.io/fence=ipmi")
    lab.kubectl("apply", "-f", "-", given=CONFIGURATION % asked.release_mode[0])
    lab.kubectl("apply", "-f", str(asked.lab / "manifests/csi.yaml"))
    log = open(lab.run / "logs" / f"node-remedy-{asked.name.replace(' ', '-')}.log", "w")
    words = ["run", f"--kubeconfig={lab.run}/kubeconfig", "--namespace=node-remedy", "--identity=measured"]
    process = subprocess.Popen([*lab.inside, asked.binary, *words], stdout=log, stderr=log)
    try:
        runs = {mode: [] for mode in asked.release_mode}
        for number, mode in itertools.product(range(asked.runs), asked.release_mode):
            lab.kubectl("apply", "-f", "-", given=CONFIGURATION % mode)
            runs[mode].append(one_run(lab))
            told = f"{mode}, {number + 1} of {asked.runs}: {runs[mode][-1]}"
            print(f"{datetime.datetime.now():%H:%M:%S} {told}", file=sys.stderr, flush=True)
    finally:
        process.terminate()
        process.wait()
    for mode, results in runs.items():
        once = sum(run["made"] == 1 for run in results)
        spread = lambda key: " ".join(f"{at:.1f}" for at in sorted(run[key] for run in results))
        print(f"| {asked.name}, {mode} | {once} of {len(results)} | {spread('detached')} | {spread('running')} |")


main()
