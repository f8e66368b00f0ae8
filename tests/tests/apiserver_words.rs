//! The admission policies on a real API server: a word needs its right, and a name is the user's.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use node_remedy_api::policy::{GateLimits, IncidentPolicy};
use node_remedy_tests::cluster::Settings;
use node_remedy_tests::remedy::Installation;
use node_remedy_tests::time::until;
use node_remedy_tests::user::User;
use node_remedy_tests::{Cluster, controller, remedy};
use serde_json::{Value, json};

/// A policy is in force some seconds after it was written.
const IN_FORCE_WITHIN: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_needs_its_right_and_a_name_is_the_users_own() -> Result<()> {
    let cluster = Cluster::start("words", Settings { nodes: 1, ..Settings::QUICK }).await?;
    remedy::install(&cluster, &Installation::default()).await?;
    bind(&cluster, "alice", "node-remedy-people").await?;
    bind(&cluster, "mallory", "patches-alone").await?;
    let (alice, mallory) = (as_user(&cluster, "alice").await?, as_user(&cluster, "mallory").await?);
    let created = remedy::custom(&cluster.client(), "NodeFence");
    let uid = created.create(&PostParams::default(), &nodefence()?).await?.uid();
    let uid = uid.context("a UID")?;

    // Another word each time: one that stands there already says nothing.
    let tries = AtomicU32::new(0);
    until("the policy is in force", IN_FORCE_WITHIN, || async {
        let word = format!("not in force {}", tries.fetch_add(1, Ordering::Relaxed));
        Ok(say(&mallory, "approve", &word).await.err().map(|_| ()))
    })
    .await?;
    for word in ["retry", "abort", "approve", "ack", "confirm-off"] {
        let own = format!("{uid}/boot/mallory");
        let value = if word == "confirm-off" { own } else { uid.clone() };
        let refused = say(&mallory, word, &value).await.err();
        let refused = refused.with_context(|| format!("{word} was taken"))?.to_string();
        assert!(refused.contains(&format!("mallory has no right to {word}")), "{refused}");
    }
    for word in ["retry", "abort", "approve", "ack"] {
        say(&alice, word, &uid).await.with_context(|| format!("{word} of alice"))?;
    }
    for forged in [format!("{uid}/boot/bob"), format!("{uid}/other/alice"), format!("{uid}/boot")] {
        let refused = say(&alice, "confirm-off", &forged).await.err();
        let refused = refused.with_context(|| format!("{forged} was taken"))?.to_string();
        assert!(refused.contains("UID/BOOT-ID/USER"), "{refused}");
    }
    say(&alice, "confirm-off", &format!("{uid}/boot/alice")).await?;

    // After a restart it is about a later boot, and a person looks at the machine that runs that one.
    let later = format!("{uid}/later/alice");
    assert!(say(&alice, "confirm-off", &later).await.is_err(), "no such boot yet");
    let status = json!({"status": record("later")});
    let (params, patch) = (PatchParams::default(), Patch::Merge(status));
    created.patch_status("w1-1", &params, &patch).await.context("a record")?;
    say(&alice, "confirm-off", &later).await.context("the boot of the record")?;

    // The controller takes a word away that it has heard, and what stands bothers nobody.
    let controller = cluster.control_plane().client(User::NodeRemedy).await?;
    annotate(&controller, "confirm-off", &Value::Null).await.context("taken away")?;
    annotate(&mallory, "color", &json!("red")).await.context("a word of nobody's")?;

    for (who, by, is_taken) in
        [(&mallory, "alice", false), (&mallory, "mallory", true), (&alice, "alice", true)]
    {
        let (pauses, pause) = (remedy::custom(who, "RemedyPause"), pause(by)?);
        let made = pauses.create(&PostParams::default(), &pause).await;
        assert_eq!(made.is_ok(), is_taken, "by {by}: {made:?}");
    }
    Ok(())
}

/// Who updates plugins does not say where they may connect, nor whose signature they need.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_is_allowed_needs_the_right_to_grant() -> Result<()> {
    let cluster = Cluster::start("grants", Settings { nodes: 1, ..Settings::QUICK }).await?;
    remedy::install(&cluster, &Installation::default()).await?;
    for (user, verbs) in
        [("updates", vec!["create", "patch"]), ("grants", vec!["create", "patch", "grant"])]
    {
        make_role(&cluster, user, json!([{
            "apiGroups": ["node-remedy.io"], "resources": ["fenceplugins", "fenceconfigurations"],
            "verbs": verbs,
        }]))
        .await?;
        bind(&cluster, user, user).await?;
    }
    let (updates, grants) =
        (as_user(&cluster, "updates").await?, as_user(&cluster, "grants").await?);
    let create = async |who: &Client, name: &str, more: Value| {
        let plugins = remedy::custom(who, "FencePlugin");
        plugins
            .create(&PostParams::default(), &fence_plugin(name, more)?)
            .await
            .map_err(anyhow::Error::from)
    };
    let granted = json!({"grants": [{"cidrs": ["192.0.2.0/24"]}]});
    until("the policy is in force", IN_FORCE_WITHIN, || async {
        let name = format!("lamp-{}", std::process::id());
        let made = create(&updates, &name, granted.clone()).await;
        if made.is_ok() {
            remedy::custom(&cluster.client(), "FencePlugin")
                .delete(&name, &DeleteParams::default())
                .await?;
        }
        Ok(made.err())
    })
    .await?;
    create(&updates, "lamp", json!({})).await.context("without grants")?;
    let patch = async |who: &Client, kind: &str, name: &str, spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        remedy::custom(who, kind).patch(name, &PatchParams::default(), &patch).await
    };
    let digest = json!({"digest": format!("sha256:{}", "1".repeat(64))});
    patch(&updates, "FencePlugin", "lamp", digest.clone()).await.context("another component")?;
    let verify = json!({"verify": {"policy": "require", "keys": ["-----BEGIN PUBLIC KEY-----"]}});
    for (kind, name, spec, resource) in [
        ("FencePlugin", "lamp", granted.clone(), "fenceplugins"),
        ("FencePlugin", "lamp", verify, "fenceplugins"),
        ("FencePlugin", "lamp", json!({"limits": {"componentBytes": 25_165_824}}), "fenceplugins"),
        ("FenceConfiguration", remedy::FENCE, json!({"grants": []}), "fenceconfigurations"),
    ] {
        let refused =
            patch(&updates, kind, name, spec.clone()).await.err().context("it was taken")?;
        let expected = format!("updates has no right to grant {resource}");
        assert!(refused.to_string().contains(&expected), "{refused}");
        patch(&grants, kind, name, spec)
            .await
            .with_context(|| format!("{kind} by who may grant"))?;
    }
    patch(&updates, "FencePlugin", "lamp", digest).await.context("grants stand as they stood")?;
    let taken = patch(&updates, "FencePlugin", "lamp", json!({"verify": null})).await;
    assert!(taken.is_err(), "no signature is needed any more");
    Ok(())
}

pub(crate) fn fence_plugin(name: &str, more: Value) -> Result<DynamicObject> {
    let mut object = json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "FencePlugin",
        "metadata": {"name": name},
        "spec": {
            "source": {"configMap": {"name": "lamp", "key": "lamp.wasm"}},
            "digest": format!("sha256:{}", "0".repeat(64)),
        },
    });
    if let (Some(spec), Value::Object(more)) =
        (object.pointer_mut("/spec").and_then(Value::as_object_mut), more)
    {
        spec.extend(more);
    }
    Ok(serde_json::from_value(object)?)
}

/// What the role for people is there for: who is on call reads `status`, `explain` and `history`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_on_call_may_read_what_is_told() -> Result<()> {
    let cluster = Cluster::start("on-call", Settings { nodes: 1, ..Settings::QUICK }).await?;
    remedy::install(&cluster, &Installation::default()).await?;
    bind(&cluster, "alice", "node-remedy-people").await?;
    let admin = std::fs::read_to_string(cluster.control_plane().kubeconfig(User::Admin)?)?;
    let mut kubeconfig: Value = serde_saphyr::from_str(&admin)?;
    let user = kubeconfig.pointer_mut("/users/0/user").context("no user")?;
    user.as_object_mut().context("no user")?.insert("as".to_owned(), json!("alice"));
    let file = cluster.folder_for("alice")?.join("kubeconfig");
    std::fs::write(&file, kubeconfig.to_string())?;
    let node = cluster.bmcs.keys().next().context("no node")?;
    // Of the role of this name in kube-system she has nothing: who leads is unknown, which is not all right.
    let rows: [(&[&str], i32, &str); 4] = [
        (&["status"], 2, "no incidents"),
        (&["status"], 2, "failed to read the leader's Lease"),
        (&["explain", node], 0, "nothing was refused"),
        (&["history"], 0, ""),
    ];
    for (command, code, says) in rows {
        let said = controller::ask_as(&file, command).await?;
        let (out, err) =
            (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
        let is_so = said.status.code() == Some(code) && out.contains(says);
        assert!(is_so, "{command:?}: {out}{err}");
    }
    Ok(())
}

async fn say(client: &Client, word: &str, value: &str) -> kube::Result<DynamicObject> {
    annotate(client, word, &json!(value)).await
}

async fn annotate(client: &Client, word: &str, value: &Value) -> kube::Result<DynamicObject> {
    let key = format!("node-remedy.io/{word}");
    let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
    remedy::custom(client, "NodeFence").patch("w1-1", &PatchParams::default(), &patch).await
}

/// A client of a person whom the API server takes for `user`.
pub(crate) async fn as_user(cluster: &Cluster, user: &str) -> Result<Client> {
    let mut config = cluster.control_plane().config(User::Admin).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Client::try_from(config)?)
}

/// Binds a person to a role; `patches-alone` may patch NodeFences and pause, and say no word.
pub(crate) async fn bind(cluster: &Cluster, user: &str, role: &str) -> Result<()> {
    if role == "patches-alone" {
        let rules = json!([
            {"apiGroups": ["node-remedy.io"], "resources": ["nodefences"], "verbs": ["get", "patch"]},
            {"apiGroups": ["node-remedy.io"], "resources": ["remedypauses"], "verbs": ["create"]},
        ]);
        make_role(cluster, role, rules).await?;
    }
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }))?;
    Api::all(cluster.client()).create(&PostParams::default(), &binding).await?;
    Ok(())
}

pub(crate) async fn make_role(cluster: &Cluster, name: &str, rules: Value) -> Result<()> {
    let role: ClusterRole =
        serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules}))?;
    Api::all(cluster.client()).create(&PostParams::default(), &role).await?;
    Ok(())
}

/// A record, as short as it can be, of an incident that is about this boot.
pub(crate) fn record(boot: &str) -> Value {
    let at = "2026-01-01T00:00:00.000Z";
    json!({
        "node": "w1", "step": "Power-Management", "status": "Error", "phase": "Parked", "enteredAt": at,
        "openedAt": at, "attempt": 1, "phaseFirstOperation": 1, "retries": 0, "restarts": 1, "epoch": 1,
        "process": "p1", "livenessAtOpen": {"bootID": boot}, "nextOperation": 1,
        "goal": {"kind": "bringBack"},
    })
}

pub(crate) fn nodefence() -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "NodeFence",
        "metadata": {"name": "w1-1"},
        "spec": {
            "node": {"name": "w1", "uid": "n1", "providerID": "", "systemUUID": "4c4c",
                     "bootID": "boot"},
            "trigger": {"conditionType": "Ready", "status": "Unknown",
                        "since": "2026-11-21T03:00:00.990Z", "period": "5s"},
            "remedy": "fence",
            "plan": {"sources": ["FenceConfiguration/machines"], "methods": []},
            "policy": IncidentPolicy::default(),
            "gate": GateLimits::default(),
        },
    }))?)
}

pub(crate) fn pause(by: &str) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "node-remedy.io/v1alpha1",
        "kind": "RemedyPause",
        "metadata": {"generateName": "pause-"},
        "spec": {"reason": "new switches", "by": by},
    }))?)
}
