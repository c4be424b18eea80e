// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the API types of the group fanout.atoll.dev: PeerSet,
// which names the peers of a ring in each of them; Operation, the record of one
// operation in a central log; and [Fanout], the claim that every object under
// the fan-out protocol carries in spec.fanout.
//
// The package does no I/O. Programs with CRDs of their own take the schema of the
// claim from [Schema]. What this package guarantees is in the schemas: once an API
// server serves the CRDs of package config, a claim cannot be changed or
// dropped, a stage never falls back, and a guard carries no payload, whoever
// writes. What it does not guarantee: CEL sees one object in one peer, so
// nothing here says that a name is unique over peers. That is the protocol's.
//
// +kubebuilder:object:generate=true
// +groupName=fanout.atoll.dev
package v1alpha1
