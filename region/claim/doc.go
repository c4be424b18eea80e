// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim arbitrates RegionClaims: of the claims of one provider for one name, in all peers,
// one is Bound and the others are in Conflict. A ServiceCluster stays Pending until the RegionClaim
// of the same namespace and name in its peer is Bound.
//
// With a central plane, an [Arbiter] decides and records each decision there by compare-and-swap,
// in the Lease REGION.PROVIDER in [Options].Namespace. Any number of Arbiters may run. Without a
// plane, RegionClaims are a fan-out [Kind]: the peers' API servers decide, and an Arbiter without a
// plane reports the result. The statuses are the same.
//
// # Guaranteed
//
//   - A decision is durable: lost statuses, restarted Arbiters and unreachable peers do not change
//     it. It ends in two ways only: the Arbiter reads at the peer that the claim is deleted, or the
//     peer is missing from the Directory for [Options].Departure. A claim that is deleted and
//     created again is another claim. One that waits for finalizers still holds the region.
//   - An Arbiter sends a status Bound only while the recorded decision names the UID of the claim,
//     and the write carries the resourceVersion of the claim. A region is handed over only after
//     its claim was read as deleted. So there are never two Bound claims at once, however many
//     Arbiters race and however late their writes arrive. Exception: a peer that was removed from
//     the ring or restored from a backup serves its stored status until an Arbiter reaches it.
//   - An unreachable peer keeps its regions: its Bound claims stay valid.
//   - The winner does not depend on the order in which claims are observed. [Options].Settle after
//     the first claim, the known claims are compared by creation time, then by the UID of the
//     peer's cluster. Each peer's clock sets the creation times of its claims, so a claim in a peer
//     whose clock is behind wins. A later claim never displaces a holder.
//   - The loser's status names the holder's peer, and since when it holds the region. Times are from
//     Arbiters' clocks.
//   - A region without a holder is not assigned while a peer that joined less than
//     [Options].Patience ago has not responded yet. After that, an unreachable peer delays nothing.
//     A claim in an unreachable peer wins nothing, unless its status is Bound and the decision was
//     lost.
//   - A ServiceCluster without a RegionClaim gets one, owned by it and deleted with it. Guards and
//     reservations of the fan-out protocol get none.
//   - A ServiceCluster's condition RegionBound follows its claim, and its phase is Pending while
//     the condition is not True. This condition and this phase are the *gate* of the
//     ServiceCluster; the gate is open while the condition is True. Before a region is handed over,
//     the gate in the old holder's peer is closed. Other conditions belong to other writers; so
//     does the phase while the gate is open, if another manager writes it. The gate names no peer.
//   - Statuses are written by server-side apply as [FieldManager] and only if something differs: in
//     a steady state there are no requests except the lists and watches of caches.
//   - If a Lease is lost, the claim whose status is Bound gets the decision again.
//   - Claims of different providers do not affect each other.
//   - Only an Arbiter's status counts. If managedFields show that another client wrote or changed a
//     status, this status decides nothing: not for Arbiters, not for the gate, not for routing by
//     region/central. An Arbiter corrects it at once, then after pauses of one second, two, four,
//     up to five minutes, until it has stayed unchanged for five minutes. A gate is corrected in
//     the same way. A new decision is written at once.
//   - A client that keeps replacing a status is reported ([Observer].Contradicted), including the
//     Arbiters of another central plane with the same peer.
//   - Two Arbiters that see different peers do not write in turns: an Arbiter that cannot reach
//     some peers replaces another Arbiter's status only if it knows the recorded decision or,
//     without a plane, if it reads the holder's claim from a synced cache.
//
// # Not guaranteed
//
//   - Decisions are as durable as the plane. A plane that was restored from a backup has the
//     decisions of the backup, and they count.
//   - While the plane is unreachable nothing is decided: new claims are Pending, and regions are not
//     handed over. Bound claims stay Bound. Replicas that share the work by Leases in that plane own
//     no region in that time: then new claims have no status.
//   - The gate of a ServiceCluster does not guarantee that only one peer serves a region: for a
//     moment, two Arbiters that share the region may leave the gate open in a peer that has just
//     lost the region. The claims' statuses guarantee it: two claims are never Bound at once.
//   - Every client that may write statuses as [FieldManager] is trusted as an Arbiter. No other
//     client needs to write these statuses: forbid such writes at the API server. Between two
//     corrections the status, or an overwritten gate, shows the other client's value.
//   - While the plane is unreachable, a status that another client wrote stays, and so does its
//     gate: whether the claim is Bound is not known then.
//   - Planes do not know each other. If two planes have one peer, both write to it, and its claims
//     show the last write.
//   - Directories of different replicas must not differ for longer than [Options].Departure, or a
//     peer that one of them does not know yet loses its regions.
//
// # Without a plane
//
// A coordinator adopts a claim that was applied in one peer only; then the claim's guards keep the
// name in the other peers. If users applied claims of one name in several peers before an adoption,
// no claim can be adopted, because each blocks the guards of the others. An Arbiter decides between
// them by the same rule, the oldest first, once every peer of the Directory is reachable. Then the
// status Bound is the decision, durable and sticky, and the other claims are in Conflict with it.
// Bound is written by compare-and-swap after Conflict was written to every rival, so two Arbiters
// never bind two claims. When the Bound claim is deleted, the others are Pending and the decision
// starts again. If one claim remains, a coordinator adopts it; if it was Bound, it stays Bound.
//
//   - While any peer is unreachable, nothing is decided this way: that peer may hold the region.
//     Bound claims stay Bound.
//   - A peer outside an Arbiter's Directory is not read. Directories of different replicas must not
//     differ while claims are applied.
//   - If a client overwrites the status Bound of a claim that no coordinator has adopted, the
//     decision is lost. Arbiters decide again, by the same rule.
package claim
