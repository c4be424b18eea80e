// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splitter divides workloads over clusters, and makes one status of theirs.
//
// [Divide] gives replicas to clusters, by one rule for all: Webster's and Sainte-Laguë's divisor method, within minima,
// maxima and room, continued from what is present, over any number of levels of regions and zones. The result is a [Plan]:
// data that says who gets what, what finds no place, and why.
//
//	plan, err := splitter.Divide(splitter.Demand{Replicas: 15, UID: deployment.UID}, []splitter.Share{
//		{Name: "cluster-1", Weight: new(int64(2)), Present: 6},
//		{Name: "cluster-2", Weight: new(int64(3)), Capacity: new(int64(40))},
//	})
//
// A [Splitter] does that in an API server: each parent, a Deployment for instance, gets one shard per cluster, an object of
// the same kind named PARENT--CLUSTER and labelled for that cluster's syncer, and the parent's status is made of theirs. What
// a kind of workload is made of is a [Kind]; where it may go is a [Placement]; which clusters there are say [Clusters].
//
//	split, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{})
//	err = split.Start(ctx)
//
// Without a Placement of its own it divides over all clusters; package placement has one that follows PlacementPolicies.
//
// A syncer puts its finalizer on each shard before it makes a copy. With [Options].Finalize shards are made with it, which
// saves that write.
//
// Guaranteed of a division, for each level, all modes and any bounds (docs/division.md tells of the tests and of other
// methods):
//   - Nothing is lost: what clusters get and what finds no place add up. Bounds are kept.
//   - More replicas take none away anywhere; fewer add none anywhere.
//   - Who joins only takes from the others, who leaves only gives to them. Nobody else is shuffled.
//   - Nothing moves that need not, and no more than allowed.
//   - Equal claims are decided in the same way each time for one object, and fairly over many.
//   - Whole numbers, without overflow or rounding; the order of the input does not matter.
//
// Guaranteed of a Splitter:
//   - Shards follow every change of their parent, are put right if others change or delete them, and go before it does.
//   - Only what is marked as cut from that very parent is changed or removed, by UID. An object that has a shard's name is
//     left alone, even one made at the same moment, and the parent's condition Placed says so. A parent that already has a cluster is not divided.
//   - A shard that was not read is not absent, and a cluster that does not answer has not lost anything: its shards count
//     as they last were, keep what they have for a while, and get nothing more. Workloads without a shard there go on
//     being balanced.
//   - Replicas move only when enough work elsewhere: those that are available do not fall below what the parent's own
//     maxUnavailable allows by anything that the Splitter does. No move begins before the last one is done. A replica that
//     does not work where there are too many anyway keeps none from beginning, and a rollout of a Deployment keeps all, also
//     one that is paused or stuck.
//   - No cluster gets more replicas of a parent than it can hold pods, as far as its SyncTarget says that. Nodes that go move
//     nothing: what a cluster has it keeps, also when it can hold less. Nodes that come bring it to its share, as any balance.
//   - A SyncTarget with a weight that cannot be read counts as one without a weight, and keeps nobody waiting.
//   - The parent's observedGeneration is its generation only when every cluster has seen its part of it.
//   - Where all is as it should be nothing is written, by a restart neither. Nor is anything that was worked out before the
//     Splitter has seen all that it has written of a parent and its shards.
//
// Not guaranteed:
//   - That a request to take replicas away counts which nobody has heard of: one that the API server carries out only after
//     it was asked what had become of it, or after the process that sent it has died and another has read its copy. It
//     fails if its shard has been written since.
//   - That a rollout which begins while replicas move, or while a cluster drains, takes only what is left of maxUnavailable:
//     the clusters' own controllers do it. What they take counts from when they have said it.
//   - That a drain, or fewer replicas, during a rollout take those first that do not work: a Deployment's controller takes from
//     old and new pods in proportion.
//   - That a StatefulSet, or what has a Kind by paths, which is in several clusters becomes smaller while some do not work: any
//     replica may be the one that goes, so it waits until enough others work. In one cluster it does not wait.
//   - That replicas which were taken from a cluster and given back before it has reported the loss count as lost: what it
//     says counts.
//   - That a workload is balanced of which a replica never becomes available where it is to stay. Clusters drain all the
//     same, as far as what works allows.
//   - That each cluster gets its quota rounded down or up. No divisor method can promise that together with the above; the
//     distance is rarely more than one replica.
//   - That a rollout of the pods keeps one budget over all clusters if it is given as a percentage: each shard has its own,
//     rounded for itself.
//   - That pods of a StatefulSet keep their ordinals when they move, or that their volumes follow.
//   - That replicas which find no node in their cluster are told from those that are not ready yet, unless the syncers count
//     them (syncer.Options.Unscheduled): then [ConditionScheduled] names the clusters, as they last were. Beside that a parent
//     names a cluster by what that one's controllers say: a Deployment in Available, Progressing and ReplicaFailure, a
//     StatefulSet in Available, a Job in FailureTarget and Failed. Of DaemonSets there are counters only, and of CronJobs and
//     what has a Kind by paths, whose status has no conditions that are known, nothing is said of nodes: their shards have the
//     annotation.
//   - That a workload runs once while a cluster is lost: what it has goes on there, and the replicas are placed elsewhere after
//     Options.Grace. [ConditionDuplicated] has their number until its syncer has removed them; for kinds by paths and
//     DaemonSets there is no such condition. That nothing new is started in a cluster that returns before that is the
//     syncer's part: see its Options.Lease.
//   - That a cluster is drained when there is no room elsewhere: what may be unavailable leaves it without another place, and
//     the rest stays. A CronJob and a Job with indices, which are not divided, leave it all the same and run nowhere until there
//     is room. Of Jobs and CronJobs nothing says that they have no place, but Observer.Divided.
//   - That clusters have room for all parents together: each parent is divided for itself, and pods that are not of any are not
//     looked at.
//   - Anything if workload controllers run in the API server of the parents: they would act on parents and shards alike.
package splitter
