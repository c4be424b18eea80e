// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement says on which clusters objects are placed, by PlacementPolicies, and moves them.
//
// [Choose] is the decision, pure: labels and States of clusters, shares and numbers of the policy, what is present. A
// [Controller] takes it for all objects of an API server and writes it where everybody can read it: into annotations of
// the object. A splitter.Splitter divides what is divisible with [Place]; everything else keeps its name and gets a label
// per cluster, by which syncers find it. The three meet only in objects.
//
//	placed, err := placement.New(api, splitter.SyncTargets(api), placement.Options{})
//	split, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{Place: placement.Place})
//	err = errors.Join(placed.Start(ctx), split.Start(ctx)) // each in a goroutine of its own
//
// The annotations, of splitter/v1alpha1: splitter.atoll.dev/placement lists the clusters, splitter.atoll.dev/leaving those
// of them that are about to be left, splitter.atoll.dev/placed-by names the policy, and splitter.atoll.dev/division is how
// a workload is divided over them.
//
// An object's policy is the first of its namespace that selects it, by priority and name, or else Options.Default. A
// policy without a selector selects all workloads, and none of the objects that keep their name: no Secret goes anywhere
// because of a policy that does not speak of it. Policies with Dependents take those along that the pods of a workload
// refer to.
//
// Guaranteed:
//   - A state changes in one write, annotations and labels together, which fails if the object has changed since it was
//     read: NONE, A, (A,B), A, NONE, and never anything between.
//   - Clusters that join take nobody's place, and of clusters that leave only the objects that they had are placed anew.
//     Nothing depends on the order in which anything is read.
//   - What moves is first placed where it goes. A workload is placed where it was until it has no shard there any more,
//     which the Splitter removes as others work elsewhere; an object that keeps its name stays for Options.Linger, and a
//     dependent as long as a workload that refers to it. If there is nowhere to go, all stays where it is.
//   - Only the mode None, and the end of all references to a dependent, takes an object away from all clusters. An object
//     whose policy is deleted stays where it is, and one in whose namespace a policy cannot be read does too.
//   - A cluster that does not answer keeps what it has for Periods.Grace, and after that until there is another place.
//   - Labels that it did not write are not touched: neither those of other tools, nor a label for a cluster that the
//     annotation does not list. An object that somebody else has given to one cluster is left alone.
//   - What is not known is not absent: without fresh copies nothing is taken away. While one of Options.Workloads cannot be
//     read, or is not served, nothing that keeps its name leaves a cluster.
//   - Where all is as it should be nothing is written, by a restart neither.
//
// Not guaranteed:
//   - That clusters are chosen by the room that they have. Place keeps each workload below the pods that a cluster can hold,
//     as far as its SyncTarget says that; the sum over workloads is not looked at.
//   - That Options.Linger is kept to over a restart: since when something is to leave is known in memory, and then begins anew.
//   - That groups stay even: what is present is kept, even if a new group has less.
//   - That volumes follow: a PersistentVolumeClaim that is placed in another cluster gets another, empty volume there.
//   - That kinds without replicas, a DaemonSet or CronJob for instance, work in the new place before they leave the old.
//   - Anything about labels of clusters whose annotation somebody else has removed: they count as that person's.
package placement
