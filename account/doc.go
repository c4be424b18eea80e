// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package account defines Accounts as a kind that package fanout adds to all peers, and creates
// the objects that an Account needs in each peer.
//
// An Account is an actor, a provider or a tenant. It is the same in every peer: a
// [fanout.Coordinator] whose Options.Kinds contain [Kind] adds, updates and removes it in all of
// them or in none. [Kinds] returns it together with ServiceClusters, which live in the namespace
// of an Account.
//
// A [Controller] restores the Account's namespace, Roles and RoleBindings in each peer when another
// client edits or deletes them.
//
// # Authorization
//
// Authorization is Kubernetes' own. In the Account's namespace of each peer its subjects are
// bound to one Role for each of spec.roles, named by [RoleName]. By [DefaultRights]:
//
//	Provider  ServiceClusters and RegionClaims: all but deletecollection;
//	          Secrets: create, update, patch, delete; not get, list, watch
//	Tenant    Regions: get, list, watch
//
// [KindWith] takes other rights. A coordinator must itself hold the rights that it grants.
//
// # Replication
//
// A [Replicator] keeps the objects of a central plane, Accounts or any other kind that exists
// Everywhere, present in all peers. The central object is the desired state. In the peers the
// object is under the protocol of package fanout, as if it had been added by fan-out. There are
// two cases:
//
//   - Apart: the central plane is no peer. The central object has no claim, and the objects in
//     the peers have the annotation [OriginAnnotation]. The protocol does not need the central
//     plane, and losing the plane loses no Account.
//   - In place: the central plane's cluster is one of the peers (the Peer "local"). The central
//     object is adopted, and is the home of its replicas.
//
// A Replicator guarantees, while a [fanout.Coordinator] is started somewhere:
//
//   - A change of a central object is committed as soon as its home is reachable. Unreachable
//     peers get it when they return, and delay no others. (A peer that hangs delays the others
//     until its probes fail: half a minute by default.) A new object needs every peer once, like
//     any add: until then it waits, and its condition names the unreachable peers.
//   - In a peer the central plane wins. The API server rejects a change of a replica's spec. An edit of
//     the home is, by the protocol, a request for the next revision; the Replicator then commits
//     one more revision with the content of the central object. An object that is deleted in a
//     peer comes back.
//   - Ready is True only if every member of the ring holds the latest revision and is ready with
//     it. An unreachable peer makes it Unknown, never False. Each peer that is an exception has a
//     condition PresentIn.PEER, 32 at most; a status stays small with a thousand peers.
//   - A deleted central object stays in all peers, with the condition RemovalHeld, while its
//     namespace contains something, a peer is unreachable, or more were deleted at once than
//     RemovalCap in [Options] allows.
//   - A deleted central object is gone once every peer has confirmed that nothing of it is left:
//     [Finalizer]. A peer that has left the directory is not asked. An object that a peer shows
//     later, because the peer was unreachable or restored, is never added anew.
//   - A peer that joins has all objects before it counts.
//   - Objects that were not made for the central object are neither changed nor removed. An equal
//     one is taken over; a different one is a conflict, whose condition names the fields. An
//     object whose central object is missing is left alone, and its home has the condition
//     Orphaned: the central plane may have been restored from a backup.
//
// Use one Replicator per kind. It writes a status only if it changes; the status of an object
// that keeps changing is written once a second.
//
// # Catalogue
//
// A [Catalog] publishes the regions of a directory as Region objects in the namespaces of the
// tenants that may use them. By default these are all Accounts with the role Tenant;
// [CatalogOptions] can select some of them. [Gather] lists any types in all peers and returns the
// regions that each object comes from. Neither reveals peers to tenants.
//
// # Guarantees
//
//   - In each peer where the Account is Active, its namespace is created, named like the Account
//     and labelled with [Label], with the Roles and RoleBindings of its subjects. The Account's
//     status there reports this. Until it reports Ready, every sweep tries again, and a
//     Controller at once.
//   - With a Controller, a namespace, Role or RoleBinding that is edited or deleted comes back.
//     In a peer that is Quarantined the Roles and RoleBindings are deleted.
//   - A Role or RoleBinding is deleted when the Account no longer has its role or subjects.
//   - A namespace, Role or RoleBinding that existed before and is not labelled is never changed
//     or deleted. Such a namespace is used; such a Role is a conflict that the condition
//     RolesReady names.
//   - While a namespace is being deleted, the Account is not Ready in that peer, until a new
//     namespace has been created. The status shows this.
//   - When the Account is removed, its namespace is deleted after all objects that the Account
//     holds and before the Account itself, and only by the UID that was read.
//   - The status is written by server-side apply under the field manager [FieldManager], and only
//     if it changes. status.phase is derived from the conditions.
//
// # Limits
//
// Without a Controller, an object that is deleted while the status reports Ready is created again
// only with the next change of the Account. Roles are namespaced: cluster-scoped resources are
// granted to no subject. A process that crashes between creating a namespace and learning that
// the Account was removed meanwhile leaves an empty namespace with the label.
//
// A Replicator reacts to watch events: an edit of the home is in effect until the next revision. An
// edit of a replica's labels or annotations stays until the next revision, and is not reported. If
// a home is gone without a removal, because another client removed its finalizers, its replicas
// hold the name, and the condition is Conflict: a person releases them.
//
// If a home is restored from a backup that is older than the removal of its Account, the protocol
// treats it as an Account again; its condition Orphaned reports that, and a person decides.
//
// A central plane may become a peer while its objects are in other peers already. These objects
// keep their homes there; the central object stays the desired state, and the plane's own peer
// does not count for it. Peers that are configured and have joined no ring hold nothing and do
// not count. Adds are rejected until they have joined or are no longer configured.
package account
