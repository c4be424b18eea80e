// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package central reads the peers from a central plane: from its Peer objects (master.kubecarrier.io) and the Secrets that
// they name.
//
//	source, err := central.New(plane, central.Options{Local: local})
//	ring, err := region.NewRing(source, region.Options{})
//	peers, err := central.NewPeers(source, ring, central.PeersOptions{})
//	master, err := central.NewMaster(plane, func(ctx context.Context) error { ... ring.Start, peers.Start ... }, central.MasterOptions{})
//	err = master.Start(ctx)
//
// A [Source] reads, [Peers] writes the status of the Peers, and a [Master] runs both while the plane's KubeCarrier has
// spec.master: true. A program that only routes, such as a gateway, needs only a Source: the decisions of Peers are in the
// status of the Peers, the same for every reader.
//
// # Acceptance
//
// Before a cluster is accepted, the Ring does not connect to it. Peers inspects it over a separate connection,
// read-only: the UID of its kube-system namespace, whether it is a master, and whether it has the types. Then Peers
// writes the UID to the Peer's status.clusterUID, and the Source passes the credentials to the Ring. Peers refuses
//   - an installation that is a master (IsMaster), even if it becomes one later, except the plane's own, whose Peer is named
//     local;
//   - a cluster that another Peer has (SameCluster): the Peer that was accepted first stays; of two that are accepted
//     at the same time, the younger is refused. The refused Peer is accepted once the other is deleted;
//   - a cluster without the types (CRDsMissing) or without the rights to read them (RightsMissing). A cluster that was
//     accepted before stays accepted in these cases.
//
// A refused Peer stays in the Snapshot, without regions and with withheld credentials ([region.Withheld]): existing
// connections to it end, and the peer does not count as departed while the Peer object exists. Peers inspects the
// cluster again every 30 seconds.
//
// # Status
//
//   - The regions are those whose RegionClaims in the peer are Bound according to a status that an arbiter wrote
//     (regionv1alpha1.RegionClaimManager). If another client has overwritten the status of a claim, the last status by
//     an arbiter counts. If it was overwritten before this program started, a region that the Peer's own status lists
//     stays.
//   - The version is the label app.kubernetes.io/version of the peer's KubeCarrier, or else the version of its API server.
//   - Conditions are documented at the type; phase is derived from Ready.
//
// # Guaranteed
//
//   - Secrets are watched by their metadata. Only the Secrets that Peers name are read, and each is checked as hostile input.
//     A change is published as soon as it is observed.
//   - If a Secret is missing or invalid, the last good credentials stay in use. A kubeconfig that reaches another cluster than
//     status.clusterUID is rejected, even after a restart: only the request for the UID is sent to that cluster.
//   - Absence is not deletion. While the plane is unreachable nothing is published; an unreachable peer keeps its regions and
//     its place. Only a Peer object that is deleted, or being deleted, leaves the Snapshot.
//   - One peer per region. A region stays with the Peer whose status lists it. If the region is Bound in another peer
//     too, the status of the other Peer names the Peer that serves it (RegionServedTwice). When the first Peer loses the
//     region, the other gets it.
//   - A status is written only when it changes. If it keeps changing, it is written 20 times at once, and then only
//     every 5 seconds. A change of health is noticed within half a second; the Ring's ProbeOptions determine when
//     health changes.
//   - A failing peer does not affect the others: each inspection and each watch has its own timeouts and backoff.
//
// # Not guaranteed
//
//   - That two replicas never accept one cluster, or assign one region, at the same moment. Both notice it and refuse the
//     younger Peer; readers always agree on the older one.
//   - That two programs agree without [PeersOptions.Shards]: if they see different states of a peer, they overwrite its
//     status in turns, at most every 5 seconds each.
//   - That a new master is refused before it starts to work: its refusal takes a watch event and a write after the change of
//     its KubeCarrier.
//   - That a cluster of another central plane is refused. Peers writes nothing into a cluster, so the cluster has no
//     mark of its owner; such a mark would also outlive a plane that is rebuilt. The disagreement of two planes shows
//     elsewhere: an Account of one is a Conflict in the other, a PeerSet has other members than are configured, and for
//     RegionClaims see claim.Observer.Contradicted.
//   - That the writer of a status is known without managedFields: if an API server or a proxy omits them, every claim's status
//     counts as another client's.
//   - That status.lastContact is recent: it is as old as the last change of the status.
//   - That a Peer lists all its regions: it lists at most 1,024.
//   - That the Peer local is deleted when the installation is no longer a master: it stays.
package central
