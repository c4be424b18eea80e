// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime lets controllers of controller-runtime work in all regions, with typed clients and caches.
//
// Clusters has a cluster.Cluster for each peer of a region.Directory:
//
//	clusters, err := controllerruntime.New(ring, controllerruntime.Options{})
//	...
//	err = mgr.Add(clusters) // mgr is a manager.Manager
//	...
//	eu, err := clusters.Get("eu-west")
//	...
//	err = eu.GetClient().Get(ctx, key, &deployment)
//
// Config returns a rest.Config for all regions together, from an apiserver.Handler in the same process. A
// cluster.Cluster, a client.Client or an informer of this Config sees the objects of all regions under names such as
// db@eu.loodse. PartialStart lets its cache start while a region is unreachable.
//
// Loop lets a loop of Atoll run in a manager, and Emit lets the manager's recorder write Atoll's Events. Package adapters/multicluster is a Provider for multicluster-runtime.
//
// # Guaranteed
//
//   - The cluster.Cluster of a peer outlives its credentials. When token, certificate, CA or address change, its
//     informers do not list again, and its clients stay valid.
//   - A peer that does not answer at the start delays no other peer. It is engaged when it answers.
//   - A cluster that is engaged has all indexes.
//   - A cache of Config never takes the objects of an unreachable region for deleted, with and without PartialStart.
//   - When Start has returned, no goroutine of a cluster is left.
//
// # Not guaranteed
//
//   - That an engaged peer answers now. Its cache has the objects that it read last.
//   - Streams: the host of Cluster.GetConfig does not resolve. For exec, attach and port-forward use Conn.StreamConfig.
package controllerruntime
