// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement places objects on clusters by PlacementPolicies, and moves them.
//
// [Choose] makes the decision and is pure. Its input is the labels and States of the clusters, the
// policy and the present clusters. A [Controller] calls it for all objects of an API server and writes
// the result into annotations of each object. A splitter.Splitter divides workloads with [Place]. Any
// other object keeps its name and gets a label per cluster, by which syncers find it. Controller,
// Splitter and syncers communicate only through objects.
//
//	placed, err := placement.New(api, splitter.SyncTargets(api), placement.Options{})
//	split, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{Place: placement.Place})
//	err = errors.Join(placed.Start(ctx), split.Start(ctx)) // each in a goroutine of its own
//
// The annotations, defined in splitter/v1alpha1: splitter.atoll.dev/placement lists the clusters,
// splitter.atoll.dev/leaving lists those of them that the object is leaving,
// splitter.atoll.dev/placed-by names the policy, and splitter.atoll.dev/division has the mode and
// shares of a workload.
//
// The policy of an object is the first PlacementPolicy of its namespace that selects it, by priority and
// then name. Without such a policy it is the first ClusterPlacementPolicy that selects it, by the
// same order; without that, Options.Default. A policy without a selector selects all workloads, and none
// of the objects that keep their name: a Secret is placed only by a policy that selects it. A
// policy with Dependents also places the objects that the pods of its workloads refer to, the Secrets of their
// ServiceAccounts for pulling images, the Services and NetworkPolicies that select these pods, and the Ingresses to
// these Services with their Secrets.
//
// Guaranteed:
//   - The placement of an object changes in one write, annotations and labels together, which fails
//     if the object has changed since it was read. For example, an object is placed in A, then also
//     in B, and leaves B and then A. Its placements are NONE, A, (A,B), A, NONE, with no other state
//     in between.
//   - A cluster that joins replaces no other. When clusters leave, only the objects that they had
//     are placed anew. The order in which objects are read does not matter.
//   - An object is placed in its new clusters before it leaves the old ones. A workload leaves a
//     cluster when its shard there is gone. The Splitter deletes the shard as replicas become available
//     elsewhere. An object that keeps its name stays for Options.Linger. A dependent stays at least as
//     long as a workload in that cluster refers to it. If no cluster can be chosen, the object stays in
//     its clusters.
//   - An object leaves all clusters only if its policy has the mode None. A dependent also leaves all
//     clusters when no workload refers to it any longer. An object whose policy was deleted stays in
//     its clusters. So do all objects in a namespace with an unreadable policy.
//   - An unreachable cluster keeps its objects for Periods.Grace, and after that until they are
//     placed elsewhere.
//   - The Controller does not touch labels that it did not write: neither those of other tools,
//     nor a label for a cluster that the annotation does not list. It leaves alone an object that
//     another client has given to one cluster.
//   - If some choice of clusters meets the bounds in the policy's groups, the chosen clusters meet them.
//     Among such choices it is one with the most clusters, and with the most present clusters.
//   - A cluster with a taint NoSchedule or NoExecute gets no new objects and replicas of a policy that
//     does not tolerate the taint forever. With NoExecute, present objects and replicas move when
//     TolerationSeconds have passed since the taint's TimeAdded or, if it has none, since this process
//     first observed the taint.
//   - Unknown does not count as absent: a stale cache removes nothing. While one of
//     Options.Workloads cannot be read, or is not served, no object that keeps its name leaves a
//     cluster. The same holds for Ingresses while the Services in Options.Others cannot be read, and for
//     Secrets while the Services, Ingresses or ServiceAccounts cannot.
//   - Nothing is written when nothing differs, also not after a restart.
//
// Not guaranteed:
//   - That clusters are chosen by their room. A Splitter then places replicas within the room of the chosen
//     clusters, counted over all its workloads. Preview knows only the number of pods of each cluster.
//   - That Options.Linger holds over a restart: the Controller keeps the start of this period in memory
//     only, so the whole period begins anew.
//   - That the groups of spreadBy stay even within the bounds of the policy: present clusters are
//     kept, even if a new group has fewer chosen clusters.
//   - That a HorizontalPodAutoscaler or a PodDisruptionBudget follows its workload. A Splitter may
//     divide the budgets: see splitter.DisruptionBudgets. The condition DependentsPlaced of a policy
//     with Dependents lists the objects that are not divided.
//   - That the rights of a ServiceAccount follow it. The condition DependentsPlaced of a policy with
//     Dependents lists the RoleBindings and ClusterRoleBindings.
//   - That volumes follow: a PersistentVolumeClaim that is placed in another cluster gets a new,
//     empty volume there. After Options.Linger the syncer deletes the claim in the old cluster, and
//     the reclaim policy decides whether the volume and its data remain.
//   - That kinds without replicas, a DaemonSet or CronJob for instance, are available in the new
//     cluster before they leave the old one.
//   - Anything about labels of clusters after another client has removed the annotation: they
//     count as that client's.
package placement
