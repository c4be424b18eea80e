// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package syncer keeps objects of one API server, the upstream, in step with another, the downstream: what is labelled
// for the downstream's SyncTarget goes down, and what the downstream reports of it comes up.
//
// An object with the label v1alpha1.ClusterLabel is for one cluster; one with a label of v1alpha1.StateLabelPrefix for each
// of several is for all of them. Workloads and what belongs to them, and every custom type that both sides serve, are
// synced, namespaced or not (see [DefaultTypes] and Power below); types that come and go are noticed by polling. Namespaces
// are made when they are needed.
//
// # What is guaranteed
//
//   - What the syncer did not make is never changed or deleted, unless [AdoptPolicy] says so: a copy is made by a request
//     that creates or fails, and deleted by its UID.
//   - Absence is not deletion. A copy is deleted only on evidence that its origin was withdrawn: the origin is being
//     deleted, or it is no longer for this cluster and still has the finalizer of this target, or a watch reported that it
//     went, or the Syncer itself removed that finalizer. Without evidence the copy stays and has [ReasonOriginGone]: an
//     upstream that was restored from a backup lacks what is newer than the backup. If the upstream has another object of
//     that name for this target, the copy becomes that one's: it is changed, and not deleted. Nothing is written or deleted of a type
//     while one of its two lists is not up to date. To stop, to lose a type and to lose a connection delete nothing, and too
//     many deletions at once wait for [Syncer.Release].
//   - A downstream object that lost its marks (the label and annotations by which it is recognised) is recognised by its
//     managedFields, by the marks that are left and by the finalizer upstream, and gets them back. One that another client
//     copied with its marks is not. Where nothing says of which object it is, it stays as it is, and the problem has the
//     commands. A mark that names no object that can exist counts as lost.
//   - A finalizer of this syncer that another client added to an object that is not for the cluster is removed within 36
//     minutes.
//   - An object of another client that has the place of ours is watched by its name, up to 100 of a type, so that its
//     deletion is noticed at once. Without an event it is tried again after a minute, then after twice the time, up to
//     an hour: two requests an hour at rest.
//   - With a Heartbeat, a Syncer that cannot renew its lease (see [Options].Lease) writes nothing and stops nothing. When it has
//     the lease again it removes what moved away before it creates or changes anything downstream.
//   - An object upstream is there until its copy is gone: by a finalizer, which is removed when the object is no longer for
//     this cluster.
//   - A status is that of the present spec, with the upstream's own generations; until there is one the last known
//     stays. What is not known is never written as zero or empty.
//   - The heartbeat says what the cluster's nodes can hold, if they can be read, and is not kept waiting by that.
//   - At rest nothing is written, and a restart writes nothing: what was written is recorded in annotations of the copy, and
//     a change by somebody else shows in its managedFields. An object takes two writes (the finalizer and the copy), or one
//     if it was created with v1alpha1.FinalizerPrefix; a change of it one, a change of its status one, its deletion two.
//   - Who changes downstream what belongs to the upstream is overruled and named, and after a few times left alone: then the
//     object has [ReasonFight] (see [FightCap]).
//   - Owner references, finalizers, UIDs and the labels and annotations of tools that track what they applied do not pass
//     in either direction.
//   - One object, type or side in trouble does not stop another: [Syncer.Status] and [Observer] name it with a [Reason].
//   - Fields and bounds by which the two sides do not define a type alike are named in Losses of [TypeStatus] and in the
//     condition TypesCompatible, as far as both sides describe the type by OpenAPI.
//   - An object that is labelled for the target and whose type is not synced is named in [Syncer.Status] and in the condition
//     ObjectsUnsynced, within about 10 minutes, if the Syncer may list the type, with Conditions or a Heartbeat; if
//     Types leaves the type out, as far as Report of [Options] selects it.
//   - Two syncers of one target that write the same SyncTarget, or other contents of one copy, or meet each other's copies,
//     notice each other: AnotherSyncer of [Status], Another of [Observer] and the condition AnotherSyncer say so. A copy or a
//     status that another one goes on to overwrite is left alone for 10 minutes at a time.
//
// # Power
//
// A syncer creates downstream what any author upstream has labelled, with its own rights. So it refuses, in both directions:
//
//   - Types of Kubernetes that grant an identity or control over a cluster, such as CertificateSigningRequests, RBAC,
//     webhooks, Nodes, PersistentVolumes and StorageClasses, unless [Options.Permit] names their [Power]; and types of
//     Kubernetes that this release does not know.
//   - Objects in namespaces of a cluster itself (kube-*) and of an installed syncer (atoll-syncer-*), by their name on
//     either side, whatever is permitted.
//   - Secrets that are credentials of a cluster: bootstrap tokens, tokens of ServiceAccounts, and any with the annotation
//     kubernetes.io/service-account.name.
//   - What [Options.Refuse] refuses. Custom types can grant rights as well, such as those of authorization.openshift.io or
//     of policy engines: nothing but that func, [Options.Types] and the rights of the syncer keep them out.
//
// A refused object has [ReasonNotPermitted] in [Syncer.Status], in its condition if Conditions asks for it, and is counted in
// the condition ObjectsRefused of the SyncTarget. Types that need a Power, but Namespaces and Endpoints, are watched upstream for that, without Types; a
// syncer that may not list them says so in the Err of the type and asks every 10 minutes. An object that an earlier release has
// synced stays on both sides as it is. If it is deleted upstream, it waits until a person has deleted the copy, has
// permitted the type, or has stopped the syncer and called [Syncer.Detach], which removes the finalizer and leaves the copy.
//
// # What is not
//
//   - Which fields belong to the downstream is known for core types (addresses and ports of Services, selectors of Jobs,
//     volumes of claims, tokens of ServiceAccounts); for others [Rule] says it. Replicas belong to the upstream unless a Rule
//     makes them FirstWriter, as they should be for what an autoscaler scales downstream, and Up if the upstream is to show
//     them.
//   - A change that the downstream refuses is reported, and that is all, unless a Rule says Recreate of an immutable field.
//   - A status that a side refuses is reported as well. When what refused it has become right, that is noticed an hour later
//     at most, or as soon as the status or the spec changes.
//   - Namespaces are not deleted, and their labels do not go down, unless [NamespaceOptions] or PermitNamespaces say so. Diff
//     does not show what NamespaceOptions do, and [Manifests] do not grant what they need.
//   - A request that was sent before the lease was lost is not recalled. Removals that the valve holds are waited for after a
//     return, unless they were held before: [Syncer.Release] lets the rest go on.
//   - Workloads are not judged: which pods a namespace admits, external IPs of Services and priorities of pods are for the
//     downstream's own admission to restrict.
//   - Definitions of types are not synced here but by package crds; objects of a type wait until both sides serve it.
//   - Objects that are born downstream stay there, unless [Options.Upsync] brings them up.
//   - A copy that somebody deletes is made again, unless [DeleteUpstream] was chosen; and then too, if no syncer ran at the
//     time.
//   - With [DeleteUpstream], a downstream that is restored from an older backup while a Syncer runs is one in which somebody
//     has deleted what is newer than the backup: that is deleted upstream too, as far as [DeleteCap] lets it. Stop the Syncer,
//     restore, and start it when all is there: it makes the copies again. What was born downstream after the backup is
//     deleted upstream in any case.
//   - Capacity is what nodes that are ready and not cordoned have, of cpu, memory and pods. Taints, what is used, and nodes that
//     an autoscaler would add are not looked at: spec.pods of the SyncTarget says it for those.
//   - Two syncers of one target at once are not coordinated: both write, except what they would overwrite again and again.
//     Without a Heartbeat, two with the same configuration are not noticed: they write the same.
//   - What the evidence of a deletion does not cover: an upstream that was restored from a backup deletes copies of objects
//     that were being deleted in the backup, or were leaving this cluster in it. Specs go back to those of the backup. An
//     object that has moved to another cluster since runs in both until a person decides.
//   - A deletion by force is not seen while no Syncer runs: if a person removes the finalizer and deletes the object, or
//     SyncTarget and objects are deleted and the SyncTarget is made again, the copy waits for a decision.
//   - A field that the downstream has dropped, where no field of its object is declared there, is not sent again when the
//     downstream's definition changes, until the object changes.
//   - Of a type whose status is not a subresource downstream nobody can tell which spec a status speaks of: it goes up once
//     the present spec is there.
//   - Finalizers that the upstream's own admission adds are its own affair: without kube-controller-manager nobody removes
//     kubernetes.io/pvc-protection from a claim; such an upstream is to run without StorageObjectInUseProtection.
//   - Pods that find no node are counted if [Options.Unscheduled] asks for it, and only those whose controller, or whose
//     ReplicaSet's, is a copy: not those of the Jobs of a CronJob, nor of what was born downstream.
//   - What an object needs (ConfigMaps, Secrets, ServiceAccounts) is synced only if it is labelled itself.
//
// # Before it writes
//
// [Syncer.Diff] says what a pass over each object would write on either side, by dry runs, and changes nothing.
//
// # Many clusters
//
// [Targets] serve each SyncTarget of an upstream, and keep its conditions. A [Mode] says where its Syncer runs: in their own
// process, if it has a kubeconfig (Push); inside its cluster, where they install it, look after it and remove it (Pull); or
// elsewhere, and then they say when its heartbeat stands still (None). What is installed is [Manifests], which can be applied
// by hand as well; what it runs is an [Agent]: examples/syncer is a program of one.
//
// A SyncTarget that is deleted lets its objects upstream go, once nobody works for it any more; the copies stay where they
// are.
//
// A crds.Fleet keeps the definitions of types in step between the upstream and all clusters that Targets reach, and tells
// them how these stand.
//
// # Rights
//
// Upstream: get, list, watch and patch of what is synced, patch of its status, and get of namespace kube-system. Downstream:
// get, list, watch, create, patch and delete of it, create of namespaces, and get of namespace kube-system. With Upsync also
// create and delete of it upstream, and create of namespaces there; with DeleteUpstream delete of it. With a heartbeat
// get of the SyncTarget and patch of its status upstream and, for its capacity, list of nodes downstream; an Agent lists and
// watches the SyncTarget too; Targets get, list, watch and patch all of them and get the Secrets that they name. With
// Unscheduled list of pods and get of ReplicaSets downstream. NamespaceOptions need more, which is in the rules below.
//
// [UpstreamRights], [DownstreamRights], [UnscheduledRights], [TargetsRights] and [InstallRights] are these as rules, for types
// that are named. Types that need a Power which is not permitted have no rules.
package syncer
