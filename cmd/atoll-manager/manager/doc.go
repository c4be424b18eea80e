// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager is the program atoll-manager, for embedding: it runs the loops of a central plane, by a configuration.
//
//	c, err := config.Load("/etc/atoll/manager.yaml")
//	m, err := manager.New(c, manager.Options{})
//	err = m.Start(ctx)
//
// While the plane's KubeCarrier has spec.master: true, it runs the ring of peers, their status and membership, the
// arbitration of RegionClaims, the probes of ServiceClusters, the replication and upkeep of Accounts, the sweeps of the
// fan-out protocol, and the catalogue of regions. With workloads in the configuration, it also places and divides the
// workloads of the plane over the clusters of its SyncTargets.
//
// # Guaranteed
//
//   - Any number of replicas may run. They have no leader: they share the work by Leases, and for a moment two may do the
//     same, which does no harm.
//   - New checks the configuration, and the kubeconfig and the files with WorkloadTypes that it names, and does no other I/O. Start ends only with its
//     context or if it cannot listen: an unreachable plane or peer is retried.
//   - When ctx ends, Start waits for all loops and gives up the replica's Lease, so that the others take over at once.
//
// # Not guaranteed
//
//   - That a peer answers: /readyz names the peers that do not, and does not depend on them.
//   - Syncers: they run beside each cluster, or in a program of their own.
package manager
