// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events records the results of Atoll's loops as Kubernetes Events, in the API server of
// the object that an Event is about, so that "kubectl describe" shows them.
//
//	recorder := events.New(events.Options{Instance: podName})
//	peers, err := central.NewPeers(source, ring, central.PeersOptions{Observer: recorder.Peers(plane, nil)})
//	claims, err := claim.New(plane, ring, claim.Options{Observer: recorder.Claims(ring, nil)})
//	accounts, err := account.NewReplicator(plane, ring, coordinator, account.Options{Observer: recorder.Accounts(plane, ring, nil)})
//	go recorder.Start(ctx)
//
// The loops do not depend on Events: a [Recorder] returns Observers, which also call the
// program's own Observers. These are the Events, by their object:
//
//	Peer in the central plane     PeerReady; Unreachable, CredentialsRejected, IsMaster, SameCluster and the
//	                              other reasons of its condition Ready
//	RegionClaim in its peer       Bound, Conflict, and Lost if it was Bound before; Contradicted
//	ServiceCluster in its peer    ClusterReady; Held, KubeconfigInvalid or Unreachable; if it was Ready before, also the
//	                              other reasons of its condition Ready
//	Account in the central plane  Converged; PeersMissing, PeersUnknown, PeersNotReady or Conflict; Removed
//	Account in a peer             Repaired or RepairFailed, Orphaned
//	object of a Coordinator       RemovalWaits, RemovalHeld
//	parent of a Splitter          Divided or DivisionFailed; Unplaced, NameTaken, VolumesHeld or SameOrdinals, and AllPlaced
//	                              when the condition Placed is True again; the reason of the condition Progressing while it
//	                              is False, such as ProgressDeadlineExceeded
//	object that is placed         Placed, Moved, Left, NotPlaced or PlacementFailed
//	object that is synced         "Sync" and the reason of the problem, such as SyncForeign; Synced when the problem is over;
//	                              Overwritten
//
// Objects of other kinds that an account.Replicator replicates get the same Events as Accounts,
// except Repaired and RepairFailed.
//
// With Options.Emit another recorder, such as that of a manager of controller-runtime, writes the
// Events that it takes.
//
// # Guaranteed
//
//   - A loop is never delayed: an Event that cannot be written is dropped.
//   - The rate of writes is limited. An Event that is repeated within ten minutes increases the
//     count of the existing Event, which is written at most once a minute. Different Events are
//     limited to a burst of Options.Burst and then ten per second.
//   - No Event is written to a peer that is known to be unhealthy.
//   - The nil *Recorder writes nothing.
//
// # Not guaranteed
//
//   - An Event for each change: conditions are the state, Events are a best-effort history.
//   - A namespace of its own for Events of cluster-wide objects: Kubernetes requires that these
//     Events are in the namespace default.
package events
