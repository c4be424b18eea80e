// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package targets runs syncers for the SyncTargets of an upstream. Package syncer syncs the objects.
//
// A [Controller] runs a Syncer for each SyncTarget, and writes the conditions of the SyncTarget. A [Mode] selects where
// the Syncer runs:
//
//   - Push: in the process of the Controller, if the SyncTarget has a kubeconfig.
//   - Pull: inside the cluster of the SyncTarget, where the Controller installs it, repairs the installation, and
//     removes it.
//   - None: elsewhere. The Controller reports if the heartbeat of the Syncer stands still.
//
// [Manifests] returns the objects of an installation, which can be applied by hand as well. The installed program runs
// an [Agent]; examples/syncer is such a program.
//
// The credentials of a syncer in a cluster can read the objects of all clusters, because RBAC knows no labels. Package
// router/clusterview gives a syncer an address of the upstream that has only the objects of its cluster.
//
// A crds.Fleet syncs the definitions of types between the upstream and all clusters that a Controller is connected to,
// and reports to the Controller which types differ.
//
// # Guarantees
//
//   - When a SyncTarget is deleted, its upstream objects are released once no syncer works for it any longer: they
//     lose the finalizer of the target. The downstream objects stay where they are.
//   - In Pull mode the SyncTarget stays until its cluster was reachable and nothing of the installation is left there,
//     or until a person sets v1alpha1.AbandonAnnotation.
//   - An Agent runs its Syncer only while the SyncTarget exists and is not being deleted, and reports that the Syncer
//     has ended. So the finalizer is not added again to objects that were released.
//   - Each upstream and each SyncTarget has an installation of its own. An object of another client with the name of
//     one of ours is neither changed nor deleted: the condition Installed has the reason Foreign.
//   - An installed syncer has rights only on the types that its Install lists.
//   - New credentials reach a running Syncer without a restart. If a new kubeconfig is not accepted, the Syncer keeps
//     its connection.
//   - A kubeconfig is rejected if it has contents that [Options].Trust does not allow. Unless a Syncer runs with an
//     earlier kubeconfig, the condition Ready then has the reason.
//   - A restart of the process releases, deletes and changes nothing. At rest nothing changes but the heartbeats, and
//     a heartbeat is no reason to apply an installation again.
//
// # Limits
//
//   - An unreachable cluster cannot be distinguished from one that was removed. A person confirms the removal by
//     v1alpha1.AbandonAnnotation.
//   - A heartbeat stands still if it has not changed for four times the Heartbeat of the Controller, by the clock of
//     the Controller. So a syncer elsewhere whose heartbeat is rarer is reported as silent while it runs.
//   - If a kubeconfig led to the wrong cluster at first and is corrected later, its Syncer keeps to the first cluster
//     and writes nothing until the process is restarted or the SyncTarget is registered again.
//   - A changed Secret is noticed at the next Recheck.
//   - Two Controllers of one upstream, and two Agents of one SyncTarget, are not coordinated: see package syncer about
//     two syncers of one target.
//   - [Manifests] do not grant the rights that syncer.NamespaceOptions need.
//
// # Rights
//
// An Agent needs list and watch of its SyncTarget, in addition to the rights of its Syncer. A Controller needs get,
// list, watch and patch of all SyncTargets, patch of their status, and get of the Secrets that they name.
//
// [Rights] returns the rights of a Controller upstream, and [InstallRights] its rights in the clusters in which it
// installs syncers, as rules for given types. A type that needs a Power which is not permitted has no rules.
package targets
