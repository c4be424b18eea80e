// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout paces the changes of one workload that is divided over several clusters. All
// clusters share one budget: the maxUnavailable and maxSurge of the workload. [Plan] takes the
// observed state of the workload in each cluster, and returns the next step of each cluster: how many
// replicas it shall have, and whether its controller may replace pods, with which maxUnavailable and
// maxSurge.
//
//	steps, err := rollout.Plan(rollout.Budget{Replicas: 30, MaxUnavailable: 3, MaxSurge: 3}, rollout.Options{}, clusters)
//
// Plan is pure. Call it with fresh observations after each change, and write the steps to the
// clusters. It covers a new template, a new number of replicas, moves between clusters, drains, and
// clusters that are lost or return, all at the same time.
//
// Plan assumes that a cluster's controller follows the rules of the Deployment controller of
// Kubernetes. During a rollout, the controller keeps at least replicas - maxUnavailable pods
// available, and creates at most replicas + maxSurge pods. If it scales down while all pods have one
// template, it removes pods that are not available first, unless the cluster is [Cluster.Delayed].
//
// Guaranteed, whatever the clusters' controllers do within these rules, and in whatever order:
//   - The steps reduce the number of available pods over all clusters only as far as Replicas -
//     MaxUnavailable. If fewer are available already, the steps remove no available pod. Pods that
//     are unavailable count, whatever the reason and the cluster.
//   - The steps raise the number of pods over all clusters at most to Replicas + MaxSurge, plus
//     MoveSurge for moves. If there are more already, the steps add none. Pods in an unreachable
//     cluster count as long as the caller lists the cluster.
//   - A pod that is unavailable blocks no rollout of its own cluster: a new template can always
//     replace it.
//   - If pods become available, and the clusters follow their steps, repeated calls end with the
//     desired replicas and the present template in each cluster that is reachable.
//   - Without a difference between a cluster and its goal, its step changes nothing.
//
// Not guaranteed:
//   - That pods which fail by themselves stay within the budget. Plan then takes back what clusters
//     may still remove, and a cluster may remove pods before it observes that.
//   - That pods count in a cluster which the workload leaves and which has reported nothing, or which is
//     Gone: their replacements do not wait for them.
//   - That moves finish while a rollout is stuck whose pods use up the budget.
//   - Anything about strategies other than RollingUpdate.
package rollout
