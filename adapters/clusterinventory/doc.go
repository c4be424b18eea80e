// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterinventory connects Atoll with the ClusterProfiles of SIG Multicluster's inventory API
// (multicluster.x-k8s.io/v1alpha1): as a source of peers, and as an output.
//
// Source makes a peer of each ClusterProfile in a namespace. The operator configures the credential plugins; a profile
// only names one of them:
//
//	hub, err := region.APIFor(config)
//	source, err := clusterinventory.New(hub, clusterinventory.Options{
//		Namespace: "fleet",
//		Plugins:   []clusterinventory.Plugin{{Name: "google", Exec: clientcmdv1.ExecConfig{Command: "/usr/local/bin/gke-gcloud-auth-plugin", ...}}},
//		Provider:  clusterinventory.Field{Value: "google"},
//		Region:    clusterinventory.Field{Property: "location"},
//	})
//	ring, err := region.NewRing(source, region.Options{})
//
// Publisher writes a ClusterProfile for each peer of a Directory:
//
//	publisher, err := clusterinventory.NewPublisher(hub, ring, clusterinventory.PublisherOptions{Namespace: "fleet", Manager: "atoll"})
//	...
//	err = publisher.Start(ctx)
//
// # Guaranteed
//
//   - A Source writes nothing. It runs only the programs of Options.Plugins, with their own arguments and variables and
//     those that Plugin.Args and Plugin.Env allow. The arguments and variables of one profile appear in no other
//     credentials.
//   - A profile that cannot be used is logged with its field. Its peer keeps the last good state, and the other peers are
//     not affected. If there is no good state, Ring.Conn returns the error.
//   - Absence is not deletion: while the hub is unreachable nothing changes. A deleted profile removes its peer.
//   - If a profile has the property cluster.clusterset.k8s.io, its peer is used only after the ClusterProperty of this
//     name was read in the cluster. If the cluster has another ID, Ring.Conn returns an error that wraps
//     region.ErrOtherCluster, and existing connections end. The ID is read again every 5 minutes.
//   - A Publisher changes and deletes only profiles that it made itself, for its own manager. It deletes those of peers
//     that have left. It writes nothing while the profiles are as they must be.
//
// # Not guaranteed
//
//   - That a cluster without the About API, or without its property, has the expected ID: it cannot be compared.
//   - That the arguments of a profile arrive: the CRD of v0.1.2 refuses lists in an extension.
//   - A Publisher writes no access providers: other programs need credentials of their own for its profiles.
//   - That a profile shows the health of this moment. It follows the probes of the Ring.
//   - The condition Joined, which the API does not have.
package clusterinventory
