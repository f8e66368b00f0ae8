//! Bugs that can be seeded on purpose, to see that tests find them.
//!
//! Each removes one check, or changes one behaviour. Only a build with the feature `seeded-bugs`
//! can seed one; in every other build [`guard`] is its condition and nothing more.

macro_rules! bugs {
    ($($(#[$doc:meta])* $bug:ident = $name:literal breaks $invariant:literal,)*) => {
        /// The bugs. Each says what is no longer asked for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[$doc])* $bug,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$bug,)*];

            /// What it is called.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $name,)*
                }
            }

            /// The invariant that it is expected to break.
            pub const fn invariant(self) -> &'static str {
                match self {
                    $(Self::$bug => $invariant,)*
                }
            }
        }
    };
}

bugs! {
    /// A read proves that a machine is off, whatever it says.
    AnyReadIsOff = "any-read-is-off" breaks "S1",
    /// Of what one method switched on another one of the same machine believes that it is off.
    OnOfOtherMethodForgotten = "on-of-other-method-forgotten" breaks "S1",
    /// An `off` that a device said yes to proves that its machine is off.
    ReplyIsProof = "release-on-reply" breaks "S1",
    /// Power is not read again before a batch of deletes.
    NoReadAgain = "no-read-before-a-batch" breaks "S1",
    /// Cut storage is not read again before a batch of deletes behind it.
    CutNotReadAgain = "no-read-of-a-cut-before-a-batch" breaks "S1",
    /// Cut storage is not read once everything behind it is released.
    CutNotWatched = "cut-not-watched" breaks "S1",
    /// What was cut, and undone behind a release, is cut again only where all allows a first cut.
    UndoneCutAsksLeave = "undone-cut-asks-leave" breaks "S1",
    /// A release continues although the node reports again.
    SignsVoidNothing = "signs-void-nothing" breaks "S1",
    /// A feed that reads off is all of them.
    OneFeedIsAll = "one-feed-is-all" breaks "S1",
    /// The storage of a driver is cut once one of several ways to it is.
    OneWayIsAll = "one-way-is-all" breaks "S1",
    /// A sign of life between the noting and the reads is no reason to doubt them.
    SignsOfLifeIgnored = "signs-of-life-ignored" breaks "S1",
    /// That another node fell silent when a plug was cut is no reason to doubt whose plug it is.
    WiringTrusted = "wiring-trusted" breaks "S1",
    /// An off whose session is slow is sent although a storm began after it was decided on.
    StormAfterIntent = "storm-after-intent" breaks "S13",
    /// A dump releases pods with volumes, whatever the policy says.
    DumpsCoverAll = "dumps-cover-all" breaks "S1",
    /// What covers some of a node's pods allows the out-of-service taint.
    TaintOfAPart = "taint-of-a-part" breaks "S1",
    /// What an earlier pass cut and released behind is not read any more.
    EarlierCutsForgotten = "earlier-cuts-forgotten" breaks "S1",
    /// Cuts behind a release are not read while power is tried.
    CutNotReadMeanwhile = "cut-not-read-meanwhile" breaks "S1",
    /// Storage that somebody gave back behind a release is not cut again.
    UndoneCutLeft = "undone-cut-left" breaks "S1",
    /// A boot that names itself only after its storage was cut is taken for a newer one.
    UnnamedBootIsOther = "unnamed-boot-is-other" breaks "S1",
    /// A cut of an earlier step of the ladder is not made again when it is undone.
    OtherStepsCutLeft = "other-steps-cut-left" breaks "S1",
    /// Proofs by a dump and by cut storage take turns, and power waits for them.
    DumpsTakeTurns = "dumps-take-turns" breaks "L5",
    /// A proof by silence hides that pods were released behind a cut.
    SilenceHidesCuts = "silence-hides-cuts" breaks "S1",
    /// An undone cut is made again although another node has the address by now.
    CutAgainUnasked = "cut-again-unasked" breaks "S10",
    /// After a person's word a cut that was undone before, and made again, is not read any more.
    WordForLaterCuts = "word-for-later-cuts" breaks "S1",
    /// A cut that was undone once and made again is not read any more.
    UndoneOnceOnly = "undone-once-only" breaks "S1",
    /// A cut that was undone behind a release and could not be made again at once stays undone.
    LostCutGivenUp = "lost-cut-given-up" breaks "S1",
    /// A cut that we gave back ourselves counts as undone by somebody else.
    OwnGivingBackAccused = "own-giving-back-accused" breaks "S23",
    /// On the way back a machine counts as off by reads alone, whatever spoke against them when it was to be proven off.
    RefutedOffBelieved = "refuted-off-believed" breaks "S1",
    /// Cuts are given back to a machine that may run what was released.
    CutsGoBackAlive = "cuts-go-back-alive" breaks "S1",
    /// A neighbour that was heard before a slow outlet went off is taken for one that does not hang on it.
    LateOutletBelieved = "late-outlet-believed" breaks "S1",
    /// A neighbour that a plug rebooted when it came on again counts as heard.
    NeighbourBootsIgnored = "neighbour-boots-ignored" breaks "S1",
    /// A neighbour's silence that ended before the off excuses every boot after it, however late.
    OldSilenceExcusesBoots = "old-silence-excuses-boots" breaks "S1",
    /// A power-off by a neighbour's own incident explains a silence that began long before.
    LaterOffExplains = "later-off-explains" breaks "S1",
    /// A machine whose Node is gone counts as off.
    GoneIsOff = "gone-is-off" breaks "S1",
    /// Pods and attachments that vanished behind a cut by others' hands count as still there.
    VanishedForgotten = "vanished-forgotten" breaks "S1",
    /// A pod that tolerates the out-of-service taint, and that others deleted behind a cut, counts as still there.
    ToleratingForgotten = "tolerating-forgotten" breaks "S1",
    /// What vanished behind a cut counts as still there until something is released.
    VanishedBeforeProof = "vanished-before-proof" breaks "S1",
    /// A cut's last read that says off is forgotten after two later reads that say nothing, or on.
    StoodForgotten = "stood-forgotten" breaks "S1",
    /// Cuts that stand are not read while the next one waits to be made.
    IsolatingUnwatched = "isolating-unwatched" breaks "S1",
    /// After a call, what vanished behind a cut is seen only when the phase itself looks again.
    CutUnseen = "cut-unseen" breaks "S1",
    /// Whoever aborted is forgotten once the node is well: it is switched off again when it is lost before its incident ends.
    AbortForgotten = "abort-forgotten" breaks "S10",
    /// That a plug may be another machine's is forgotten where it cannot be switched on.
    WrongPlugHidden = "wrong-plug-hidden" breaks "S6",
    /// An incident ends once its node is well, although its only outlet may still be off.
    DarkOutletForgotten = "dark-outlet-forgotten" breaks "S6",
    /// A living kubelet counts as having let go only if it uses no volume of the driver, not even one of a pod that stands.
    NeighbourHoldsAll = "neighbour-holds-all" breaks "S10",
    /// A node that is heard counts as cut off.
    HeardIsCutOff = "heard-is-cut-off" breaks "S1",
    /// What was decided is carried out, however long ago, and whoever leads by now.
    NothingWithheld = "nothing-withheld" breaks "S1",
    /// Slots are given out although all are taken.
    SlotsUnlimited = "slots-unlimited" breaks "S2",
    /// A slot is given back as soon as the machine is proven off.
    SlotReturnedEarly = "slot-returned-early" breaks "S2",
    /// Slots of a zone are given out although all are taken.
    ZoneSlotsUnlimited = "zone-slots-unlimited" breaks "S2",
    /// Nodes are worked on that another remediator has.
    LocksIgnored = "locks-ignored" breaks "S2",
    /// A lock of ours counts for as long as it says, though others tell another time.
    DoubtfulLockKept = "doubtful-lock-kept" breaks "S2",
    /// A control-plane node is cut whatever is left of the control plane.
    QuorumIgnored = "quorum-ignored" breaks "S3",
    /// A pod that any kubelet can make counts as a member of etcd that votes.
    UnlabelledMemberVotes = "unlabelled-member-votes" breaks "S3",
    /// Bytes are sent to devices without the leader's Lease.
    SendsWithoutLease = "sends-without-lease" breaks "S4",
    /// The send gate is not checked before bytes are sent.
    GateNotAsked = "gate-not-asked" breaks "S4",
    /// Each installation has a leader of its own.
    LeaseOfItsOwn = "lease-of-its-own" breaks "S4",
    /// The leader's Lease is taken although its holder renews it.
    TakesLeaseAtOnce = "takes-lease-at-once" breaks "S4",
    /// What was decided is done although it could not be recorded.
    ActsUnrecorded = "acts-unrecorded" breaks "S5",
    /// What a dead process had sent counts as never sent.
    RepeatsBlindly = "repeats-blindly" breaks "S5",
    /// Only what was surely switched off is switched on again.
    UnheardOffForgotten = "unheard-off-forgotten" breaks "S6",
    /// A machine that is well on one feed leaves the other one off.
    DarkFeedForgotten = "dark-feed-forgotten" breaks "S6",
    /// Of a machine whose `on` failed a person is told that it is off, whatever it reads.
    OnNotReadAgain = "on-not-read-again" breaks "S23",
    /// A condition's age is taken from the stamp of its last report, whatever clock wrote it.
    ReportsByTheirStamps = "reports-by-their-stamps" breaks "S23",
    /// An incident that a person's word holds back counts as one that did nothing, although a device, after our off,
    /// still says on.
    ToldOffForgotten = "told-off-forgotten" breaks "S6",
    /// A power device that is silent keeps what was cut from being given back to a newer boot.
    SilentFeedHoldsCuts = "silent-feed-holds-cuts" breaks "S6",
    /// A create whose answer was lost counts as held back once what it was decided on has grown old.
    UnheardCreateHeldBack = "unheard-create-held-back" breaks "S6",
    /// A NetworkFence that stands after a create whose answer was lost counts as made once for all.
    UnheardCreateForgotten = "unheard-create-forgotten" breaks "S6",
    /// A machine is switched on while our out-of-service taint, which was asked for, may still be put.
    LateTaintForgotten = "late-taint-forgotten" breaks "S1",
    /// What somebody else is switching off just now counts as switched off by us.
    OthersOffIsOurs = "others-off-is-ours" breaks "S6",
    /// A Job's success counts for a newer boot, or for a node that was heard since.
    JobOfAnOlderBoot = "job-of-an-older-boot" breaks "S1",
    /// A plug counts as the node's although its wiring was corrected since the off.
    DisputeIgnored = "dispute-ignored" breaks "S1",
    /// A node that renews its Lease counts as not well before its next report is due.
    ReportNotAwaited = "report-not-awaited" breaks "S23",
    /// A cordon or quarantine that the API server does not accept is waited for without end.
    MarkAwaitedForEver = "mark-awaited-for-ever" breaks "L5",
    /// A slot that a record of another leader says it has counts, although it may have gone to another.
    SlotOfAnotherBelieved = "slot-of-another-believed" breaks "S2",
    /// A Job is started on leave that was given before the previous Job had stopped.
    JobStartedOnOldLeave = "job-started-on-old-leave" breaks "S21",
    /// A cut is not read while it waits to be given back.
    WaitingCutNotRead = "waiting-cut-not-read" breaks "S1",
    /// A cut that was read a while ago proves that its storage is cut.
    OldCutIsProof = "old-cut-is-proof" breaks "S1",
    /// Plugs of one device are switched off at once for several nodes.
    NeighboursAtOnce = "neighbours-at-once" breaks "S23",
    /// A neighbour counts as silent by the watch alone, although its Lease is renewed.
    NeighbourLeasesNotRead = "neighbour-leases-not-read" breaks "S23",
    /// Once its Node is gone, an incident that waits for a silent device restarts its way back at each look.
    TurnsBackForEver = "turns-back-for-ever" breaks "S6",
    /// An incident that could not be opened is opened anew as its own NodeFence is seen to go.
    OpenedAtOnce = "opened-at-once" breaks "L5",
    /// What stays is asked for again at once, as fast as the API server answers.
    AskedWithoutPause = "asked-without-pause" breaks "L5",
    /// A cut whose end nobody heard is given back while it may still be made.
    LateCutForgotten = "late-cut-forgotten" breaks "S6",
    /// An outlet that goes off late, after our `on`, of a machine that is well by another one, stays off.
    LateOffForgotten = "late-off-forgotten" breaks "S6",
    /// What a device says of its power counts for some time from when it was asked, also where it took that long to answer.
    SlowReadIsOld = "slow-read-is-old" breaks "S6",
    /// A silent device is waited for before an off of a node that is well again, and what another one switched off stays so.
    OffAwaitedOfAWellNode = "off-awaited-of-a-well-node" breaks "S6",
    /// An outlet is switched and believed although nobody tried it and nobody answers for it.
    UnverifiedPlugTrusted = "unverified-plug-trusted" breaks "S1",
    /// Before an `on` the whole time is waited in which an off may come late, although its plug reads off by now.
    LateOffNotRead = "late-off-not-read" breaks "L8",
    /// A machine whose Node is gone, or whose incident was withdrawn, stays off.
    ClosedLeftOff = "closed-left-off" breaks "S6",
    /// Nobody is told which machines are off.
    LeftOffUntold = "left-off-untold" breaks "S6",
    /// An outlet that reads off is believed while the machine's BMC reads on.
    BmcUnheard = "bmc-unheard" breaks "S1",
    /// A BMC that did not answer one call is taken to have lost its power with its outlets.
    OneSilenceIsDark = "one-silence-is-dark" breaks "S1",
    /// A BMC that reads on and then refuses one read no longer counts.
    RefusalIsNoWord = "refusal-is-no-word" breaks "S1",
    /// A BMC that fell silent with the outlets that feed it is waited for.
    DarkBmcAwaited = "dark-bmc-awaited" breaks "L1",
    /// An incident goes on waiting for a BMC that has fallen silent with the outlets that feed it.
    DarkBmcStillAwaited = "dark-bmc-still-awaited" breaks "S6",
    /// Of several devices that are to switch on, only one is waited for.
    OneDeviceAwaited = "one-device-awaited" breaks "S6",
    /// A renewal that is a little late after the way back counts as a relapse.
    LateIsRelapse = "late-is-relapse" breaks "S23",
    /// An incident parked as `JobStuck` never sees that its Job ended.
    LateEndUnheard = "late-end-unheard" breaks "L1",
    /// A milder incident that waits for a person does not make way for a threshold whose later remedy is the fence.
    LaterFenceNotDue = "later-fence-not-due" breaks "L1",
    /// After a release behind a cut went wrong, a later remedy that switches off is not used.
    OffOfLaterRemedyUnused = "off-of-later-remedy-unused" breaks "L1",
    /// What is cut again behind a release without leave is followed by cuts that nobody undid.
    MoreCutAgain = "more-cut-again" breaks "S13",
    /// A parked incident whose device answers at last does not go on with what it was about.
    LateAnswerUnused = "late-answer-unused" breaks "L1",
    /// A node that is well in its own boot after offs that never landed stays parked and quarantined.
    StuckThoughWell = "stuck-though-well" breaks "L1",
    /// On the way back a device that does not answer keeps the others from switching on and from giving back.
    SilentDeviceFirst = "silent-device-first" breaks "S6",
    /// A parked incident does not name a plug that is on and that a late off of ours may still reach.
    LateOffUntold = "late-off-untold" breaks "S6",
    /// What isolation cut stays cut when the node is well.
    CutsForgotten = "cuts-forgotten" breaks "S6",
    /// A parked incident ends with its Node, whatever is off or cut.
    ParkedEndsWithNode = "parked-ends-with-node" breaks "S6",
    /// `abort --leave-off` of a parked incident ends it also while its Node is there.
    LeaveOffEnds = "leave-off-ends" breaks "S6",
    /// A Job's word counts though the node still renews its Lease.
    JobOfTheLiving = "job-of-the-living" breaks "S1",
    /// A Job that failed or was lost releases pods as one that succeeded.
    LostJobCleans = "lost-job-cleans" breaks "S1",
    /// What the device calls its machine is not compared with the node.
    IdentityUnchecked = "identity-unchecked" breaks "S7",
    /// An off does not say for which machine it is meant.
    MachineNotNamed = "machine-not-named" breaks "S7",
    /// What a machine said of itself before a pause counts after it.
    IdentityOfBeforeThePause = "identity-of-before-the-pause" breaks "S7",
    /// Pods of DaemonSets are released with all others.
    DaemonsReleased = "daemons-released" breaks "S8",
    /// Objects are deleted by name, whatever their UID.
    DeletesByName = "deletes-by-name" breaks "S8",
    /// Pods are released before the quarantine stands.
    QuarantineNotAwaited = "quarantine-not-awaited" breaks "S9",
    /// Taints of others are dropped with ours.
    TaintsWiped = "taints-wiped" breaks "S9",
    /// A node counts as well as soon as its machine was given its power back.
    UnfenceAtOnce = "unfence-at-once" breaks "S9",
    /// The out-of-service taint is not lifted before `on`.
    BootsOutOfService = "boots-out-of-service" breaks "S9",
    /// The out-of-service taint stands on when its proof does not.
    TaintOutlives = "taint-outlives" breaks "S9",
    /// The trigger is not read again before an `off`.
    TriggerNotRead = "trigger-not-read" breaks "S10",
    /// A node that has just come back gets no time to report before it is cut.
    JustBackIgnored = "just-back-ignored" breaks "S10",
    /// A silent node that answers gets no time to renew its Lease before it is cut.
    AnswersIgnored = "answers-ignored" breaks "S10",
    /// An `off` is sent however long ago it was allowed.
    OldLeave = "old-leave" breaks "S10",
    /// Time is what the machine's wall clock says, whoever sets it.
    WallClockTrusted = "wall-clock-trusted" breaks "S10",
    /// A pause is not heard.
    PauseIgnored = "pause-ignored" breaks "S10",
    /// A maintenance is not heard.
    MaintenanceIgnored = "maintenance-ignored" breaks "S10",
    /// The label that excludes a node is ignored.
    LabelIgnored = "label-ignored" breaks "S10",
    /// A person's cordon is not heard.
    CordonIgnored = "cordon-ignored" breaks "S10",
    /// A person who is to be asked is not.
    ApprovalIgnored = "approval-ignored" breaks "S10",
    /// A policy in shadow mode is acted on.
    ShadowIgnored = "shadow-ignored" breaks "S10",
    /// Only nodes whose Ready is not True count as lost; Leases are not looked at.
    StormFromReady = "storm-from-ready" breaks "S13",
    /// However many nodes of a zone are lost, one of it is cut.
    ZonesIgnored = "zones-ignored" breaks "S13",
    /// A lost node without a zone label counts towards no zone.
    UnlabelledNotCounted = "unlabelled-not-counted" breaks "S13",
    /// A node whose zone nobody knows is cut where zones have limits.
    UnknownZoneAllowed = "unknown-zone-allowed" breaks "S13",
    /// However many nodes fell silent at once, one of them is cut.
    SilentAtOnceIgnored = "silent-at-once-ignored" breaks "S13",
    /// A watch that has fallen silent counts as one that has nothing to tell.
    SilentWatchFollowed = "silent-watch-followed" breaks "S10",
    /// The gate is not read again before an `off`.
    GateNotRead = "gate-not-read" breaks "S13",
    /// A plugin reaches addresses that no granted range holds.
    RangeUnchecked = "range-unchecked" breaks "S14",
    /// A range that is granted opens metadata services, loopback and their like, too.
    HazardsOpen = "hazards-open" breaks "S14",
    /// A plugin reaches every port of whom it may reach.
    PortUnchecked = "port-unchecked" breaks "S14",
    /// A plugin asks for every path where it may ask for one.
    PathUnchecked = "path-unchecked" breaks "S14",
    /// A plugin speaks by protocols that nobody granted.
    ProtocolUnchecked = "protocol-unchecked" breaks "S14",
    /// A plugin may use any HTTP method, not only those that its manifest lists.
    MethodUnchecked = "method-unchecked" breaks "S14",
    /// HTTP methods that a manifest asks for count as granted.
    AskIsGrant = "ask-is-grant" breaks "S14",
    /// An authentication scheme may be used without a grant.
    SchemeUnchecked = "scheme-unchecked" breaks "S14",
    /// A plugin may read fields of the answer to a login that `exposes` does not grant.
    ExposesUnchecked = "exposes-unchecked" breaks "S14",
    /// The host logs in at paths that nobody granted.
    LoginUnchecked = "login-unchecked" breaks "S14",
    /// A plugin sets headers that are the host's.
    HeadersUnchecked = "headers-unchecked" breaks "S14",
    /// A range that is granted opens the cluster's own addresses, too.
    GuardedOpen = "guarded-open" breaks "S14",
    /// An address that is granted opens the forms of it in IPv6 that may lead elsewhere.
    DisguiseOpen = "disguise-open" breaks "S14",
    /// Only the first address of a host name is checked against the grants.
    OneAddressIsAll = "one-address-is-all" breaks "S14",
    /// A call that only reads may begin effects.
    ReadsBegin = "reads-begin" breaks "S14",
    /// The budget of HTTP requests is not enforced.
    RequestsUncounted = "requests-uncounted" breaks "S14",
    /// The budget of datagrams is not enforced.
    DatagramsUncounted = "datagrams-uncounted" breaks "S14",
    /// A device that is to give back what it cut, and is silent, is asked again at once under a node that is well.
    ProbedAtOnce = "probed-at-once" breaks "L5",
    /// The same while its node is silent, and the condition that it was cut for has cleared.
    ProbedAtOnceUnheard = "probed-at-once-unheard" breaks "L5",
    /// What was parked because something could not be given back tries it again at once, and again.
    ParkedTriesAtOnce = "parked-tries-at-once" breaks "L5",
    /// The budget of credential operations is not enforced.
    OperationsUncounted = "operations-uncounted" breaks "S14",
    /// A plugin has everything done with a credential of which it is granted something.
    OperationUnchecked = "operation-unchecked" breaks "S14",
    /// A state is believed of a plugin that heard from no device.
    UnheardBelieved = "unheard-believed" breaks "S14",
    /// A plugin's words are told as it says them.
    WordsUnredacted = "words-unredacted" breaks "S15",
    /// What went over the wire is kept with the secrets in it.
    EvidenceUnredacted = "evidence-unredacted" breaks "S15",
    /// A device that echoes a secret hands it to the plugin.
    EchoUnredacted = "echo-unredacted" breaks "S15",
    /// A plugin sees the headers of an answer that carry sessions, such as `Set-Cookie`.
    SessionsShown = "sessions-shown" breaks "S15",
    /// Secrets are hidden in the body of an answer and not in its headers.
    HeadersUnredacted = "headers-unredacted" breaks "S15",
    /// A session's token is not hidden.
    TokensUnredacted = "tokens-unredacted" breaks "S15",
    /// A device on a stream that echoes a secret hands it to the plugin.
    StreamsUnredacted = "streams-unredacted" breaks "S15",
    /// A log keeps the lines of plugins as they stand.
    LogUnredacted = "log-unredacted" breaks "S15",
    /// Secrets in a plugin's fields are not hidden.
    FieldsUnredacted = "fields-unredacted" breaks "S15",
    /// A checkpoint is kept with the secrets in it.
    CheckpointUnredacted = "checkpoint-unredacted" breaks "S15",
    /// A plugin is told that a secret is in its checkpoint.
    CheckpointTells = "checkpoint-tells" breaks "S15",
    /// Only a secret's own bytes are hidden, not the form it travels in.
    FormsUnredacted = "forms-unredacted" breaks "S15",
    /// A node that uses its storage is cut all the same.
    StorageIgnored = "storage-ignored" breaks "S17",
    /// Claims of other nodes are checked only when an incident opens.
    ClaimsReadOnce = "claims-read-once" breaks "S1",
    /// A boot that was seen to end is believed when etcd is set back to it.
    BootsForgotten = "boots-forgotten" breaks "S1",
    /// A condition written by something other than the kubelet counts as a sign of life.
    AnyReportIsLife = "any-report-is-life" breaks "S23",
    /// The age of a condition is taken from the node's own clock.
    AgesBelieved = "ages-believed" breaks "S10",
    /// What a boot reports is held against the clock of the boot before it.
    ClocksOrdered = "clocks-ordered" breaks "S23",
    /// A machine that registered anew in a newer boot stays cut off.
    AnewForgotten = "anew-forgotten" breaks "S6",
    /// A device that does not answer is waited for although another method of its only-one stage may do.
    OtherWayUntried = "other-way-untried" breaks "L1",
    /// A machine is switched on while deletes of a release that was broken off may still be carried out.
    LateDeleteForgotten = "late-delete-forgotten" breaks "S1",
    /// A recovery stage opens a port that was shut before us.
    AnothersOpened = "anothers-opened" breaks "S6",
    /// A recovery stage waits for a device that does not answer, though it has nothing of ours to give back.
    RecoveryWaits = "recovery-waits" breaks "L1",
    /// The deletion of a NodeFence that is parked on its way to its end is not heard.
    ParkedUnheard = "parked-unheard" breaks "L1",
    /// A milder incident makes way for a fence once, and never for that of a later loss.
    SupersededOnce = "superseded-once" breaks "L1",
    /// What a plan cuts is cut again although its Node is gone and another one has it.
    GoneCutAgain = "gone-cut-again" breaks "S10",
    /// A port that was shut before us is cut and later opened.
    AnothersCutIsOurs = "anothers-cut-is-ours" breaks "S6",
    /// However many incidents have begun, another one is.
    BreakerIgnored = "breaker-ignored" breaks "S18",
    /// The breaker ignores creationTimestamp and dates an incident by its opener's clock.
    CreationIgnored = "creation-ignored" breaks "S18",
    /// A node is cut however few are left that can take its pods.
    HeadroomIgnored = "headroom-ignored" breaks "S19",
    /// A cordoned node counts as one that can take pods.
    CordonedTakePods = "cordoned-take-pods" breaks "S19",
    /// Pods are deleted whatever their disruption budgets allow.
    BudgetIgnored = "budget-ignored" breaks "S20",
    /// Pods are released at once where a policy paces that.
    PaceIgnored = "pace-ignored" breaks "S20",
    /// A Job may run on the node that it remedies.
    JobOnItsNode = "job-on-its-node" breaks "S21",
    /// A Job that was seen and is gone is started again.
    JobStartedAgain = "job-started-again" breaks "S21",
    /// A Job that was asked for, and is not there yet, is not waited for.
    UnseenJobNotAwaited = "unseen-job-not-awaited" breaks "S21",
    /// An incident ends although its Job goes on.
    JobOutlives = "job-outlives" breaks "S21",
    /// A NodeFence's history is not trimmed to the length that its definition allows.
    HistoryUntrimmed = "history-untrimmed" breaks "S22",
    /// What was to be looked at later is forgotten.
    LookForgotten = "look-forgotten" breaks "L8",
    /// A Node that is gone withdraws a cut that is made again behind a release.
    RecutWithdrawn = "recut-withdrawn" breaks "S1",
    /// A Node that is gone, or made anew, withdraws no off.
    GoneAfterIntent = "gone-after-intent" breaks "S10",
    /// What was held back is sent again without a pause.
    HeldBackAtOnce = "held-back-at-once" breaks "L5",
    /// Tries are not counted.
    TriesUncounted = "tries-uncounted" breaks "L1",
    /// A release that does not get on is never given up.
    StallForgotten = "stall-forgotten" breaks "L1",
    /// A watch that broke is not begun again.
    WatchNotResumed = "watch-not-resumed" breaks "L2",
    /// A Lease whose holder is dead is never taken.
    NeverTakesOver = "never-takes-over" breaks "L3",
    /// Marks are left when the incident is over.
    MarksStay = "marks-stay" breaks "L4",
    /// Passes are not counted.
    RestartsUncounted = "restarts-uncounted" breaks "L5",
}

/// `condition`; without it once `bug` is seeded.
#[inline]
pub fn guard(bug: Bug, condition: bool) -> bool {
    condition && !is_seeded(bug)
}

/// Whether this bug is seeded.
#[cfg(not(feature = "seeded-bugs"))]
pub const fn is_seeded(_: Bug) -> bool {
    false
}

#[cfg(feature = "seeded-bugs")]
pub use seeded::{is_seeded, seed_bug};

#[cfg(feature = "seeded-bugs")]
mod seeded {
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    /// One more than the bug that is seeded; 0 if none is.
    static SEEDED: AtomicU8 = AtomicU8::new(0);

    /// Seeds a bug in this whole process, instead of the one before.
    pub fn seed_bug(bug: Option<Bug>) {
        SEEDED.store(bug.map_or(0, |bug| bug as u8 + 1), Ordering::SeqCst);
    }

    /// Whether this bug is seeded.
    pub fn is_seeded(bug: Bug) -> bool {
        SEEDED.load(Ordering::Relaxed) == bug as u8 + 1
    }
}
