// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package central takes the peers from a central plane: from its Peer objects (master.kubecarrier.io) and the Secrets that
// they name.
//
//	source, err := central.New(plane, central.Options{Local: local})
//	ring, err := region.NewRing(source, region.Options{})
//	peers, err := central.NewPeers(source, ring, central.PeersOptions{})
//	master, err := central.NewMaster(plane, func(ctx context.Context) error { ... ring.Start, peers.Start ... }, central.MasterOptions{})
//	err = master.Start(ctx)
//
// A [Source] reads, [Peers] writes the status of the Peers, and a [Master] runs both as long as the plane's KubeCarrier
// says spec.master: true. A program that only routes, such as a gateway, needs a Source and no more: what Peers decides
// stands in the status of the Peers, where every reader finds the same.
//
// # Acceptance
//
// Nobody reaches a cluster that was not accepted. Peers looks at it over a connection of its own, reads the UID of its
// kube-system namespace, whether it is a master and whether it has the types, and writes nothing there; then it notes the
// UID in the Peer's status.clusterUID, and the Source gives the credentials to the Ring. Refused are
//   - an installation that is a master (IsMaster), also when it becomes one later; the plane's own, whose Peer is named
//     local, is excepted;
//   - a cluster that another Peer has (SameCluster): the Peer that was accepted first stays; of two that are accepted at
//     once, the younger goes. It takes the place as soon as the other is deleted;
//   - one without the types (CRDsMissing) or without the rights to read them (RightsMissing), though once accepted it stays.
//
// A Peer that is refused stays in the Snapshot, without regions and with withheld credentials ([region.Withheld]): those
// who hold a connection lose it, and what it held is nobody else's as long as its Peer object exists. It is looked at
// again every 30 seconds.
//
// # What a status says
//
// Regions are those whose RegionClaims are Bound in the peer, as an arbiter wrote it (regionv1alpha1.RegionClaimManager): of one
// whose status somebody else has written since, what the arbiter wrote last; of one that was so when this
// program began, what the Peer's own status says. The version is that of the label app.kubernetes.io/version on
// the peer's KubeCarrier, without one that of its API server. Conditions are explained at the type; phase follows from
// Ready.
//
// # Guaranteed
//
//   - Secrets are watched by their metadata. Only those that Peers name are read, and each is checked as hostile input. A
//     change is published as soon as the watch tells of it.
//   - A Secret that is missing or bad leaves the last good credentials in use. A kubeconfig that reaches another cluster
//     than status.clusterUID is refused, also after a restart: nothing but the question who it is is sent there.
//   - Absence is not deletion. While the plane is away nothing is published; a peer that does not answer keeps its regions
//     and its place. Only a Peer object that is deleted, or about to be, leaves the Snapshot.
//   - One peer per region. A region stays with the Peer whose status lists it; another that has it Bound too is told who
//     serves it (RegionServedTwice) and gets it when that one gives it up.
//   - A status is written when it changes and at no other time, and of one that changes again and again only every 5
//     seconds. A change of health is noticed within half a second; how long the Ring takes to be sure of it is its
//     ProbeOptions' business.
//   - One peer's trouble stays its own: each look and each watch has its own time limits and its own back-off.
//
// # Not guaranteed
//
//   - That two replicas never accept one cluster, or give one region, at the same moment. Both see it, and the younger
//     Peer gives way; readers agree on the elder all the time.
//   - Without [PeersOptions.Shards], two programs that see a peer differently write its status in turns, at most every 5
//     seconds each.
//   - That what a master does ends before it is refused: between its KubeCarrier's change and its refusal there is the
//     time of a watch event and a write.
//   - That a cluster which another central plane has too is refused: nothing is written into a cluster that is looked at,
//     so nothing there says whose peer it is, and a mark would outlive a plane that is built anew. It shows where the two
//     disagree: an Account of the one is a Conflict in the other, a PeerSet has other members than are configured, and of
//     RegionClaims see claim.Observer.Contradicted.
//   - That who wrote a status is known without managedFields: where an API server or a proxy in between leaves them out of its
//     answers, the status of every claim looks like somebody else's.
//   - status.lastContact is as old as the last change of the status.
//   - A Peer lists at most 1,024 regions.
//   - The Peer local is not deleted when the installation is no master any more.
package central
