// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group fanout.atoll.dev: PeerSet, the
// object in each peer that lists the peers of the ring, and [Fanout], the state that
// every object under the fan-out protocol carries in spec.fanout. Operation, the
// record of one operation in a central log, is in wal/v1alpha1.
//
// The package does no I/O. Programs with CRDs of their own take the schema of the claim
// from [Schema].
//
// The schemas guarantee, once an API server serves the CRDs of package config: a claim
// cannot be changed or dropped, a stage never goes back, and a guard carries no payload,
// whichever client writes. They do not guarantee that a name is unique over peers, since
// CEL sees one object in one peer: the protocol does.
//
// +kubebuilder:object:generate=true
// +groupName=fanout.atoll.dev
package v1alpha1
