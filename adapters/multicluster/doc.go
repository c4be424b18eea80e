// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multicluster is a Provider for sigs.k8s.io/multicluster-runtime: reconcilers that are written for
// multicluster-runtime work in all peers of a region.Directory.
//
//	provider, err := multicluster.New(ring, controllerruntime.Options{})
//	...
//	mgr, err := mcmanager.New(config, provider, manager.Options{})
//	...
//	err = mcbuilder.ControllerManagedBy(mgr).Named("x").For(&corev1.ConfigMap{}).Complete(reconciler)
//	...
//	err = mgr.Start(ctx) // it starts the provider
//
// The name of a cluster is the name of its peer. The ring runs beside the manager, for example as a Runnable of it
// (controllerruntime.Loop).
//
// # Guaranteed
//
//   - A cluster is engaged when its peer joins and has answered, and disengaged when the peer leaves. In between the
//     cluster is the same: the rotation of credentials replaces nothing.
//   - A peer that does not answer at the start delays no other peer.
//   - An error of the manager's Engage concerns one peer, whose cluster is made anew after a backoff.
//
// # Not guaranteed
//
//   - That an engaged peer answers now. Reconcilers get its errors, and its cache has the objects that it read last.
//   - That a controller which is added to a running manager sees the peers that are engaged already: multicluster-runtime
//     does not engage it with them. Add controllers before Start.
package multicluster
