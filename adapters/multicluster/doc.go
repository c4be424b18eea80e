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
// examples/operator is a complete operator in this form.
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
//   - That a peer which answers slowly delays no other one in your reconciler: a controller runs one reconciler at a time
//     unless MaxConcurrentReconciles is set with WithOptions of mcbuilder. multicluster-runtime v0.24.1 also takes
//     SkipNameValidation only from there, not from the manager.
//   - Tests in a bubble of testing/synctest: multicluster-runtime holds a lock while a cache syncs, and the clock of the
//     bubble stands still.
package multicluster
