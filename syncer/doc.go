// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer syncs objects from one API server, the upstream, to another, the downstream. It writes the objects
// that have the label of the downstream's SyncTarget to the downstream, and their status back to the upstream. The
// upstream object is the origin of its downstream object.
//
// An object with the label v1alpha1.ClusterLabel is for one cluster; an object with several labels
// v1alpha1.StateLabelPrefix is for several. Workloads, the types that belong to them, and every custom type that both
// sides serve are synced, namespaced or not: see [DefaultTypes] and Power below. Discovery is polled, so that types may
// appear and disappear. Namespaces are created when objects need them.
//
// # Guarantees
//
//   - The syncer never changes or deletes an object that it did not create, unless [AdoptPolicy] allows it. A request
//     to create fails if the object exists. A request to delete names the UID.
//   - Absence is not deletion. A downstream object is deleted only on evidence that its origin was withdrawn: the
//     origin is being deleted; or it is no longer for this cluster and still has the finalizer of this target; or a
//     watch reported that it was deleted or is no longer for this cluster; or the Syncer itself removed that finalizer.
//   - Without evidence the downstream object stays, with [ReasonOriginGone]: an upstream that was restored from a
//     backup lacks the objects that are newer than the backup. If the upstream now has another object for this target
//     with the name of the origin, that object becomes the origin: the downstream object is changed, and not deleted.
//   - While the cache of one side is stale, nothing of the type is written or deleted. Nothing is deleted because
//     the Syncer stops, a type is no longer served, or a connection breaks. Too many deletions at once wait for
//     [Syncer.Release].
//   - The marks of a downstream object are the label and the annotations by which the syncer recognises it. If it loses
//     them, the syncer recognises it by its managedFields, by the marks that are left and by the finalizer of its
//     origin, and writes the marks again. An object that another client copied with its marks is not taken for a
//     downstream object. If the origin remains unknown, the object stays as it is, and the reported problem has the
//     remedy. A mark that names an impossible object counts as lost.
//   - If another client adds the finalizer of this target to an object that is not for the cluster, the finalizer is
//     removed within 36 minutes.
//   - Another client's object may have the name of a downstream object that is to be created. Up to 100 such objects of
//     a type are watched by name, so that their deletion is noticed at once. Without an event the syncer retries after
//     a minute, and doubles the delay up to an hour. At rest that costs two requests an hour.
//   - With a Heartbeat, a Syncer that cannot renew its lease (see [Options].Lease) writes nothing and stops no
//     workload. When it has the lease again, it deletes the objects that moved away before it creates or changes
//     anything downstream.
//   - A finalizer keeps an origin until its downstream object is gone. It is removed when the object is no longer for
//     this cluster.
//   - The status upstream belongs to the present spec, and has the generations of the upstream object. Until there is
//     such a status the last known one stays. A value that is not known is never written as zero or empty.
//   - The heartbeat has the capacity of the cluster's nodes, if they can be read. A heartbeat does not wait for
//     the nodes to be read.
//   - At rest, and at a restart, the Syncer writes nothing: annotations of the downstream object record the last write,
//     and its managedFields show changes by other clients. A new object costs two writes (the finalizer and the
//     downstream object), or one if it was created with v1alpha1.FinalizerPrefix; a change of its spec costs one, a
//     change of its status one, its deletion two.
//   - If another client changes a field downstream that belongs to the upstream, the syncer changes it back and reports
//     the field and the client. After a few times it leaves the object as it is, with [ReasonFight]: see [FightCap].
//   - Owner references, finalizers, UIDs, and the labels and annotations of tools that track their objects are not
//     synced in either direction.
//   - A failure of one object, type or side does not stop another: [Syncer.Status] and [Observer] report it with a
//     [Reason].
//   - Fields and bounds that the two sides define differently are reported in Losses of [TypeStatus] and in the
//     condition TypesCompatible, as far as both sides describe the type by OpenAPI.
//   - An object that is labelled for the target and whose type is not synced is reported in [Syncer.Status] and in the
//     condition ObjectsUnsynced within about 10 minutes. This needs Conditions or a Heartbeat, and the right to list
//     the type; of the types that Types leaves out, only those that Report of [Options] selects are listed.
//   - Two syncers of one target notice each other if they write the same SyncTarget, write different contents of one
//     downstream object, or find each other's downstream objects. AnotherSyncer of [Status], Another of [Observer] and
//     the condition AnotherSyncer report it. An object or a status that another syncer keeps overwriting is left alone
//     for 10 minutes at a time.
//
// # Power
//
// A syncer creates downstream, with its own rights, each object that an author upstream has labelled. So it refuses
// these, in both directions:
//
//   - Types of Kubernetes that grant an identity or control over a cluster, such as CertificateSigningRequests, RBAC,
//     webhooks, Nodes, PersistentVolumes and StorageClasses, unless [Options.Permit] names their [Power]; and types of
//     Kubernetes that this release does not know.
//   - Objects in namespaces of a cluster itself (kube-*) and of an installed syncer (atoll-syncer-*), by their name on
//     either side. No permit allows these.
//   - Secrets that are credentials of a cluster: bootstrap tokens, tokens of ServiceAccounts, and any with the
//     annotation kubernetes.io/service-account.name.
//   - Types and objects that [Options.Refuse] rejects. Custom types can grant rights as well, such as those of
//     authorization.openshift.io or of policy engines: only this func, [Options.Types] and the rights of the syncer
//     keep them out.
//
// A refused object has [ReasonNotPermitted] in [Syncer.Status], and in its condition if Conditions is set. The
// condition ObjectsRefused of the SyncTarget counts and names it. Types that need a Power, except Namespaces and
// Endpoints, are watched upstream for this report if Types is nil. If the syncer may not list such a type, the Err of
// the type reports it, and the syncer retries every 10 minutes.
//
// An object that an earlier release synced stays on both sides as it is. If it is deleted upstream, its deletion waits
// until a person deletes the downstream object, permits the type, or stops the syncer and calls [Syncer.Detach], which
// removes the finalizer and leaves the downstream object.
//
// # Limits
//
//   - The syncer knows which fields belong to the downstream for core types (addresses and ports of Services, selectors
//     of Jobs, volumes of claims, tokens of ServiceAccounts); for other types, a [Rule] defines it. Replicas belong to
//     the upstream unless a Rule makes them FirstWriter. Use FirstWriter if an autoscaler scales downstream, and Up if
//     the upstream is to show the replicas.
//   - A change that the downstream rejects is only reported, unless a Rule has Recreate for an immutable field.
//   - A status that a side rejects is reported too. It is sent again after an hour, or when the status or the spec
//     changes.
//   - Namespaces are not deleted, and their labels do not go down, unless [NamespaceOptions] or PermitNamespaces allow
//     it. Diff does not show the effects of NamespaceOptions, and targets.Manifests do not grant the rights that these
//     need.
//   - A request that was sent before the lease was lost is not recalled. When the syncer has the lease again, it
//     creates and changes nothing downstream while DeleteCap holds deletions. Deletions that DeleteCap held already
//     before the lease was back do not count. [Syncer.Release] ends the wait.
//   - Workloads are not checked. The downstream's own admission decides which pods a namespace admits, and restricts
//     external IPs of Services and priorities of pods.
//   - Package crds, not this one, syncs the definitions of types. Objects of a type wait until both sides serve it.
//   - Objects that are born downstream, which means that another client creates them there, stay there unless
//     [Options.Upsync] selects them.
//   - A downstream object that another client deletes is created again. With [DeleteUpstream] its origin is deleted
//     instead, but only if a syncer ran at the time.
//   - With [DeleteUpstream], a backup of the downstream must not be restored while a Syncer runs: objects that are
//     newer than the backup look deleted, and their origins are deleted, up to [DeleteCap]. Stop the Syncer, restore,
//     and start it again: it creates the missing objects. The upstream objects of objects that were born downstream
//     after the backup are deleted in any case.
//   - Capacity is the cpu, memory and pods of the nodes that are ready and not cordoned. It ignores taints, present
//     use, and nodes that an autoscaler would add; spec.pods of the SyncTarget can include these.
//   - Two syncers of one target at once are not coordinated: both write, except for contents that they keep
//     overwriting. Without a Heartbeat, two syncers with the same configuration do not notice each other, since they
//     write the same contents.
//   - The evidence of a deletion does not cover this case: an upstream that was restored from a backup deletes the
//     downstream objects of objects that were being deleted, or were leaving this cluster, in the backup. Specs return
//     to those of the backup. If an object has moved to another cluster since the backup, it runs in both clusters
//     until a person decides.
//   - A forced deletion is not noticed while no Syncer runs: a person removes the finalizer and deletes the object, or
//     SyncTarget and objects are deleted and the SyncTarget is created again. The downstream object then waits for a
//     decision.
//   - The downstream may drop a field if its definition of the type declares no field of the parent object. Such a
//     field is sent again when the object changes, but not when the definition changes.
//   - If the status is not a subresource downstream, the spec that a status belongs to is unknown: the status goes up
//     once the downstream object has the present spec.
//   - The syncer does not remove finalizers that the upstream's own admission adds. Without kube-controller-manager,
//     kubernetes.io/pvc-protection stays on claims: run such an upstream without StorageObjectInUseProtection.
//   - Pods without a node are counted if [Options.Unscheduled] is set. A pod counts only if its controller, or the
//     controller of its ReplicaSet, is a downstream object. Pods of the Jobs of a CronJob, and pods of objects that
//     were born downstream, do not count.
//   - The objects that an object needs (ConfigMaps, Secrets, ServiceAccounts) are synced only if they have the label
//     themselves.
//
// # Dry run
//
// [Syncer.Diff] yields the writes that a reconcile of each object would make on either side. It makes dry runs, and
// changes nothing.
//
// # Many clusters
//
// Package targets runs a Syncer for each SyncTarget of an upstream: in one process, or inside the clusters, where it
// installs a program with a Syncer. Package crds syncs the definitions of types.
//
// # Rights
//
// Upstream, the syncer needs get, list, watch and patch of the synced types, patch of their status, and get of
// namespace kube-system. Downstream it needs get, list, watch, create, patch and delete of the synced types, create of
// namespaces, and get of namespace kube-system. These options and programs need more:
//
//   - Upsync: create and delete of its types upstream, and create of namespaces there.
//   - DeleteUpstream: delete of the synced types upstream.
//   - Heartbeat: get of the SyncTarget and patch of its status upstream; for the capacity, list of nodes downstream.
//   - Unscheduled: list of pods and get of ReplicaSets downstream.
//   - NamespaceOptions: see the rules of the functions below.
//
// [UpstreamRights], [DownstreamRights] and [UnscheduledRights] return these rights as rules for given types. A type
// that needs a Power which is not permitted has no rules.
package syncer
