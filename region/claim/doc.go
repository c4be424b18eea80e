// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim arbitrates RegionClaims: of the claims of one provider for one name, in
// all peers, one is Bound and the others are in Conflict. The Bound one gates the
// ServiceCluster of the same namespace and name in its peer.
//
// With a central plane, an [Arbiter] decides and records each decision there, in a
// Lease of the name REGION.PROVIDER in [Options].Namespace, which it writes by
// compare-and-swap. Any number of Arbiters may run. Without one, RegionClaims are a
// fan-out [Kind]: the peers' own API servers decide, and an Arbiter without a plane
// reports it. The statuses are the same.
//
// # What is guaranteed
//
//   - A decision is durable: statuses that were lost, Arbiters that begin anew and peers
//     that do not answer, for however long, change nothing. A decision ends in two ways
//     only: the claim is deleted, which the Arbiter reads at its peer, or the peer is
//     missing from the Directory for [Options].Departure. A claim that is deleted and
//     made again is another claim. One that waits for finalizers still holds.
//   - A status says Bound only if the decision on record named this very claim, by its
//     UID, when the status was sent, and it is written under the resourceVersion of that
//     claim. The region is not given to another before the claim was read to be gone. So
//     Arbiters never serve two claims as Bound at once, however many of them race and
//     however late their writes arrive, but for a peer that was removed from the ring or
//     restored from a backup: it serves what it last stored until an Arbiter reaches it
//     again.
//   - What a peer that does not answer serves as Bound is true: it keeps its regions.
//   - Who wins does not depend on the order in which claims are seen. Those that are known
//     when it is decided, [Options].Settle after the first, are compared by creation time
//     and then by the UID of the peer's cluster. Creation times are the peers': a clock
//     that is behind wins ties. Nobody who comes later displaces a holder.
//   - The loser's status names the holder's peer and since when; the times are those of
//     Arbiters' clocks.
//   - A region that nobody holds is not given away while a peer that joined less than
//     [Options].Patience ago has yet to answer; after that a dead peer delays nobody. A
//     claim in a peer that does not answer wins nothing.
//   - A ServiceCluster that has no RegionClaim gets one, owned by it and deleted with it.
//     Guards and reservations of the fan-out protocol get none.
//   - A ServiceCluster's condition RegionBound follows its claim, and its phase is Pending
//     while it is not True. Before a region is given to another peer, the gate in the peer
//     that gave it up is closed. Other conditions are other writers'; so is the phase of an
//     open gate, if one of them writes it. Nothing in it names a peer.
//   - Statuses are written by server-side apply as [FieldManager] and only if something
//     differs: a steady state makes no request but watches.
//   - If a Lease is lost, the claim whose status says Bound gets its decision back.
//   - Claims of different providers never meet.
//   - Only what an Arbiter wrote counts. A status that somebody else has written, or
//     changed, as the fields' managers tell, decides nothing: not for Arbiters, not for
//     the gate, not for region/central, which routes. It is always corrected: at once, and
//     if it is replaced again after a second, two, four, up to five minutes, until that
//     has ended for so long. The gate is corrected likewise. A new decision is told at once.
//   - Who replaces a status again and again is named ([Observer].Contradicted), also if
//     that is the Arbiters of another central plane that has the same peer.
//   - Two Arbiters that see different peers do not write in turns: one that does not see
//     all peers replaces nothing that another has told unless it knows the holder to be there.
//
// # What is not
//
//   - The decisions are as durable as the plane. One that was restored from a backup has
//     the decisions of then; they count.
//   - While the plane does not answer nothing is decided: new claims are Pending, and
//     regions are not handed over. What is Bound stays so. Replicas that share the work
//     by Leases in that plane own none of it meanwhile: then new claims have no status.
//   - The gate of a ServiceCluster is no fence: for a moment, two Arbiters that share a
//     region may leave it open in a peer that has just given the region up. The claim's
//     status is one.
//   - Who may write statuses as [FieldManager] is an Arbiter. Nobody else needs to write
//     them at all: the API server is where to forbid it. Between two corrections a status
//     says what the other wrote, and so does a gate that was itself overwritten.
//   - While the plane does not answer a status that somebody else has written stays, and
//     the gate beside it: whether the claim is Bound is not known then.
//   - Planes know nothing of one another. A peer that two of them have is told by both;
//     what its claims say then is what was written last.
//   - Directories of different replicas must not differ for longer than
//     [Options].Departure, or a peer that one of them does not know yet loses its regions.
//
// # Without a plane
//
// A claim that was applied in one peer alone is adopted by a coordinator, whose guards
// keep the name in the others. Claims that were applied in several peers before that
// cannot be adopted: each keeps its name from the other's guard. An Arbiter settles them
// by the same rule, the elder first, once every peer of the Directory answers; then the
// status Bound is itself the decision, sticky and durable, and the others are in Conflict
// with it. It is written by compare-and-swap after Conflict was written to every rival as
// it was read, so that two Arbiters never bind two. When the Bound one is deleted, the
// others are Pending again and begin anew; whoever is left alone is adopted, and stays
// Bound if it was.
//
//   - As long as one peer does not answer, nothing of this is decided: it may have the
//     region. What is Bound stays so.
//   - A peer that is not in an Arbiter's Directory is not asked. Directories of different
//     replicas must not differ while claims are applied.
//   - Whoever overwrites the status Bound of a claim that no coordinator has adopted
//     takes the decision back: it is made anew, by the same rule.
package claim
