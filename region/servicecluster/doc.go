// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servicecluster makes ServiceClusters Ready. A [Controller] probes the cluster of each ServiceCluster that may
// be used, with the kubeconfig in its Secret, and reports the result in the status: the conditions Claimed, Reachable
// and Ready, the phase, and the Kubernetes version of the cluster.
//
// # Guaranteed
//
//   - A cluster is probed only while the ServiceCluster is committed (stage Configured), not being deleted, and its
//     region is bound (condition RegionBound, written by region/claim). Guards and reservations are neither probed nor
//     written.
//   - Ready is True only while the name is claimed, the region is bound, and the cluster answered a probe with its
//     kubeconfig. A cluster that answered becomes unreachable after [Options].Failures failed probes in a row.
//   - ServiceClusters of one name that were applied in several peers without a claim have the same condition Claimed. It
//     names all of them by UID and creation time, and has the remedy.
//   - A kubeconfig is hostile input: region.ParseKubeconfig checks it with a zero region.Trust, so it names no program,
//     no file, no proxy and no identity to impersonate. The default probe connects to no loopback, link-local, multicast
//     or metadata address, whatever the server's name resolves to at the moment of the connection ([Addresses]); it
//     follows no redirect, uses no proxy and no credentials but those in the kubeconfig, and reads at most 64 KiB of
//     header and 64 KiB of body. Only the version of the cluster gets into the status, if it has the form of one.
//   - Each probe is bounded by [Options].Timeout. At most [Options].Workers probes run at once in a peer, and at most
//     [Options].PerAccount of one account, so an account with many dead clusters does not delay the probes of others.
//   - An unreachable peer delays nothing in the other peers, and its clusters are not probed meanwhile: its cache may be
//     stale.
//   - The status is written by server-side apply as [FieldManager] and only if something differs. In a steady state a
//     cluster costs one read of its Secret and one probe per [Options].Interval, and no write. Messages name no peer,
//     since tenants can read them.
//
// # Not guaranteed
//
//   - A changed Secret is noticed at the next probe, not at once: the Controller reads Secrets one by one, so that it
//     needs no right to list or watch them. A ServiceCluster that names another Secret is probed at once.
//   - Private addresses are allowed, since most clusters have one. A person who may write kubeconfigs can learn from the
//     condition Reachable which of them answer: refuse your own networks with [Addresses].Deny, or by a NetworkPolicy.
//   - Reachable tells what the Controller can reach, which may have another network than the users of the cluster.
//   - That the kubeconfig has any right in its cluster: a cluster that forbids its version to the user counts as
//     reachable, without a version.
package servicecluster
