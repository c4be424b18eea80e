// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterdaemonset carries out ClusterDaemonSets: workloads that run once in every chosen
// cluster.
//
// A [Controller] works on one API server. For each ClusterDaemonSet it keeps one Deployment per chosen
// cluster, named NAME--CLUSTER and labelled for that cluster's syncer. The Deployment has the template,
// the selector and the replicas per cluster of the ClusterDaemonSet. The Controller computes the status
// of the ClusterDaemonSet from the status of these Deployments, which the syncers report.
//
//	c, err := clusterdaemonset.New(api, splitter.SyncTargets(api), clusterdaemonset.Options{})
//	err = c.Start(ctx)
//
// The Controller chooses all clusters that spec.clusterSelector selects, with two exceptions: a draining
// cluster is not chosen, and an unschedulable one is chosen only if it has its Deployment already.
//
// Guaranteed:
//   - A cluster that joins gets its Deployment, and a cluster that drains or leaves loses it. The other
//     Deployments are not written.
//   - An unreachable cluster keeps its Deployment, however long it is unreachable. It counts in
//     unknownClusters, and not in readyClusters.
//   - Each Deployment follows the ClusterDaemonSet. The Controller repairs a Deployment that another
//     client changes or deletes, and deletes all Deployments before the ClusterDaemonSet is gone.
//   - Apart from ClusterDaemonSets, the Controller changes and deletes only Deployments whose label has
//     the UID of a ClusterDaemonSet. It leaves alone any other object with the name of a Deployment, even
//     one created at the same moment, and reports it in the condition Ready (reason NameTaken). A
//     Splitter and a placement.Controller leave the Deployments of a ClusterDaemonSet alone.
//   - A cluster counts as ready only if its Deployment has the present spec, the cluster has observed it,
//     and all replicas have the present template and are ready. The condition Ready has the
//     observedGeneration, and its message names at most ten of the clusters that are not ready.
//   - While a selector cannot be read or the API server rejects the template, the present Deployments
//     stay as they are. The Controller still deletes those of draining and removed clusters.
//   - The Controller writes nothing when nothing differs, also not after a restart. It decides nothing
//     from a stale cache, and all its writes fail on an object that has changed since it was read.
//
// Not guaranteed:
//   - That clusters roll out a new template one after another: each cluster rolls it out at once, with
//     the default strategy of a Deployment.
//   - Anything about objects that the pods refer to, such as ConfigMaps. A PlacementPolicy that selects
//     them places them. PlacementPolicies do not place ClusterDaemonSets.
//   - That a Deployment in a removed cluster ends if the cluster's syncer left its finalizer behind.
//   - That a Deployment whose annotations another client has changed is deleted when its SyncTarget is gone. It
//     is deleted with the ClusterDaemonSet.
//   - That a Deployment which another client created with the label, but under a name that is not
//     NAME--CLUSTER, is repaired or deleted.
//   - Anything if workload controllers run on the API server of the ClusterDaemonSets: they would run the
//     Deployments there, too.
package clusterdaemonset
