// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events tells people what the loops do, as Events of Kubernetes beside the
// objects that they are about: where "kubectl describe" shows them.
//
//	recorder := events.New(events.Options{Instance: podName})
//	peers, err := central.NewPeers(source, ring, central.PeersOptions{Observer: recorder.Peers(plane, nil)})
//	claims, err := claim.New(plane, ring, claim.Options{Observer: recorder.Claims(ring, nil)})
//	accounts, err := account.NewReplicator(plane, ring, coordinator, account.Options{Observer: recorder.Accounts(plane, ring, nil)})
//	go recorder.Start(ctx)
//
// The loops know nothing of Events: a [Recorder] makes Observers, which pass on to those
// that a program has anyway. What is written, by the object that it is about:
//
//	Peer in the central plane     PeerReady; Unreachable, CredentialsRejected, IsMaster, SameCluster and the
//	                              other reasons of its condition Ready
//	RegionClaim in its peer       Bound, Conflict, and Lost if it was Bound before
//	Account in the central plane  Converged; PeersMissing, PeersUnknown, PeersNotReady or Conflict; Removed
//	Account in a peer             Repaired or RepairFailed, Orphaned
//
// Objects of other kinds that a Replicator keeps have the Events of Accounts in the central plane.
//
// # Guaranteed
//
//   - A loop is never held up: what cannot be written is dropped.
//   - No storm: an Event that is repeated within ten minutes is counted in the one that is
//     there, which is written again once a minute at most. Different ones are limited to
//     Options.Burst at once and then ten a second.
//   - A peer that is known not to answer is not written to.
//   - The nil *Recorder is one that writes nothing.
//
// # Not guaranteed
//
//   - That there is an Event for each change: conditions say how it is, Events what happened,
//     as far as could be written.
//   - Events of objects without a namespace are in the namespace default, as Kubernetes wants it.
package events
