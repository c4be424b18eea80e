// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer syncs objects from one API server, the upstream, to another, the downstream. It writes the objects
// that have the label of the downstream's SyncTarget to the downstream, and their status back to the upstream. The
// upstream object is the origin of its downstream object.
//
// An object with the label v1alpha1.ClusterLabel is for one cluster. Labels that begin with v1alpha1.StateLabelPrefix
// place an object in several clusters. Workloads, the types that belong to them, and every custom type that both sides
// serve are synced, namespaced or not: see [DefaultTypes] and Power below. Discovery is polled, so types may appear
// and disappear. Namespaces are created when objects need them.
//
// # Guarantees
//
//   - In the downstream, the syncer never changes or deletes an object that it did not create, unless [AdoptPolicy]
//     allows it. A request to create fails if the object exists. A request to delete names the UID.
//   - Absence is not deletion. The syncer deletes a downstream object for good only on evidence that its origin was
//     withdrawn. Each of these is evidence: the origin is being deleted; the origin is no longer for this cluster and
//     still has the finalizer of this target; a watch reported that the origin was deleted or is no longer for this
//     cluster; the Syncer itself removed that finalizer. The syncer replaces a downstream object if a [Rule] has
//     Recreate, or if [NamespaceMap] now maps the origin to another namespace.
//   - Without evidence the downstream object stays, with [ReasonOriginGone], until a person calls [Syncer.Release]: an
//     upstream that was restored from a backup lacks the objects that are newer than the backup. If the upstream now
//     has another object for this target with the name of the origin, that object becomes the origin: the downstream
//     object is changed, and not deleted.
//   - For each type, the syncer has caches of the origins and of their downstream objects. While one of these caches
//     is stale, the syncer writes and deletes none of these objects. Nothing is deleted because the Syncer stops, a
//     type is no longer served, or a connection breaks. Too many deletions at once (see [DeleteCap]) wait for
//     [Syncer.Release].
//   - The marks of a downstream object are the label and the annotations by which the syncer recognises the object. If
//     the object loses marks, the syncer recognises it by its managedFields, by the marks that are left and by the
//     finalizer of its origin, and writes the marks again. If another client copies a downstream object together with
//     its marks, the syncer does not take the copy for a downstream object. If the origin remains unknown, the object
//     stays as it is, and the reported problem has the remedy. A mark that names an impossible object counts as lost.
//   - If another client adds the finalizer of this target to an object that is not for the cluster, the syncer removes
//     the finalizer within 36 minutes.
//   - Another client's object may have the name of a downstream object that is to be created. Up to 100 such objects
//     of a type are watched by name, so that their deletion is noticed at once. Without an event the syncer retries
//     after a minute, and doubles the delay up to an hour. From then on the syncer makes two requests an hour for such
//     an object.
//   - With a Heartbeat, a Syncer that cannot renew its lease (see [Options].Lease) writes nothing but the status of
//     its SyncTarget, and stops no workload. When it has the lease again, it deletes the downstream objects whose
//     origins moved to other clusters, before it creates or changes anything downstream.
//   - A finalizer keeps an origin that is deleted until its downstream object is gone. When an origin is no longer for
//     this cluster, the syncer deletes the downstream object and removes the finalizer. While Options.DeleteCap holds the
//     deletion, the finalizer stays.
//   - The syncer writes a status upstream only if the downstream has observed the present spec, as far as
//     status.observedGeneration shows that. The status that it writes has the generations of the upstream object.
//     Until the downstream has such a status, the last known one stays upstream. An unknown value is never written as
//     zero or empty.
//   - The heartbeat has the capacity of the cluster's nodes, if they can be read. A heartbeat does not wait for the
//     nodes to be read.
//   - At rest, and at a restart, the Syncer writes nothing but heartbeats: annotations of the downstream object record
//     the last write, and its managedFields show changes by other clients. A new object costs two writes: the
//     finalizer and the downstream object. It costs one write if the client that created it also set the finalizer,
//     see v1alpha1.FinalizerPrefix. A change of its spec costs one write, a change of its status one, its deletion
//     two.
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
//     the condition AnotherSyncer report it. If another syncer keeps overwriting an object or a status, the syncer
//     leaves it alone for 10 minutes at a time.
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
//     authorization.openshift.io or of policy engines: only Refuse, [Options.Types] and the rights of the syncer keep
//     them out.
//
// A refused object has [ReasonNotPermitted] in [Syncer.Status], and in its condition if Conditions is set. A token of
// a ServiceAccount has [ReasonNotSyncable] instead. The condition ObjectsRefused of the SyncTarget counts the refused
// objects and names some of them. For this report, types that need a Power, except Namespaces, Endpoints and
// EndpointSlices, are watched upstream if Types is nil. If the syncer may not list such a type, the Err of the type
// reports it, and the syncer retries every 10 minutes.
//
// A refused object that an earlier release synced stays on both sides as it is. If it is deleted upstream, its
// deletion waits until a person deletes the downstream object, permits the type, or stops the syncer and calls
// [Syncer.Detach], which removes the finalizer and leaves the downstream object.
//
// # Limits
//
//   - The syncer knows which fields belong to the downstream for core types (addresses and ports of Services, selectors
//     of Jobs, volumes of claims, tokens of ServiceAccounts, rules of aggregated ClusterRoles); for other types, a
//     [Rule] defines it. Replicas belong to the upstream. Exceptions: a HorizontalPodAutoscaler that this Syncer syncs sets the replicas of the Deployment,
//     StatefulSet, ReplicaSet or ReplicationController that it targets; the syncer then does not overwrite them. For
//     other types and other autoscalers, use a Rule with FirstWriter. Use Up if the upstream is to show the replicas.
//   - A change that the downstream rejects is reported, and is sent again every 10 minutes. If a [Rule] has Recreate
//     and the field is immutable, the syncer replaces the downstream object instead.
//   - A status that a side rejects is reported too. It is sent again after an hour, or when the status or the spec
//     changes.
//   - Namespaces are not deleted, and their labels do not go down, unless [NamespaceOptions] or PermitNamespaces allow
//     it. Diff does not show the effects of NamespaceOptions, and targets.Manifests do not grant the rights that
//     NamespaceOptions need.
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
//   - With [DeleteUpstream], a backup of the downstream must not be restored while a Syncer runs: to the Syncer,
//     objects that are newer than the backup look deleted, so it deletes their origins, up to [DeleteCap]. Stop the
//     Syncer, restore, and start it again: it creates the missing objects. The upstream objects of objects that were
//     born downstream after the backup are deleted in any case.
//   - Capacity is the cpu, memory, pods, ephemeral storage and extended resources of the nodes that are ready and not
//     cordoned, at most 32 resources. It ignores the taints of nodes, present use, and nodes that an autoscaler would
//     add; spec.pods of the SyncTarget can include these nodes.
//   - Two syncers of one target at once are not coordinated: both write, except for contents that they keep
//     overwriting. Without a Heartbeat, two syncers with the same configuration do not notice each other, since they
//     write the same contents.
//   - A restore of the upstream from a backup can delete downstream objects. If an object was being deleted in the
//     backup, or was leaving this cluster, the Syncer deletes its downstream object. Specs return to those of the
//     backup. If an object has moved to another cluster since the backup, it runs in both clusters until a person
//     decides.
//   - While no Syncer runs, a forced deletion is not noticed: a person removes the finalizer and deletes the object,
//     or deletes the SyncTarget and the objects and then creates the SyncTarget again. The downstream object stays
//     until a person decides.
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
// [Syncer.Diff] yields the writes that a reconcile of each object would make on either side. It sends them as dry
// runs, and changes nothing.
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
// namespaces, and get of namespace kube-system. These options need more rights:
//
//   - Upsync: create and delete of its types upstream, and create of namespaces there.
//   - DeleteUpstream: delete of the synced types upstream.
//   - Heartbeat: get of the SyncTarget and patch of its status upstream; for the capacity, list of nodes downstream.
//   - Unscheduled: list of pods and get of ReplicaSets downstream.
//   - Rules that give a field of a status to the upstream: patch of the status of their types downstream.
//   - NamespaceOptions: see the rules that the functions below return.
//
// [UpstreamRights], [DownstreamRights] and [UnscheduledRights] return these rights as rules for given types, except
// for the status downstream. They return no rules for a type that needs a Power which is not permitted.
package syncer
