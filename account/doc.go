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
//   - In a peer the central plane wins, unless Agreed is set in [Options]. The API server rejects a
//     change of a replica's spec. An edit of the home is, by the protocol, a request for the next
//     revision; the Replicator then commits one more revision with the content of the central
//     object. An object that is deleted in a peer comes back.
//   - Ready is True only if every Active member of the ring holds the latest revision and is ready
//     with it. A peer that is unreachable makes Ready Unknown, but never False. Each peer that is
//     an exception has a condition PresentIn.PEER, 32 at most, so a status stays small with a
//     thousand peers.
//   - A deleted central object stays in all peers, with the condition RemovalHeld, in three cases:
//     its namespace contains an object of Kind.Holds, a peer is unreachable, or more objects were
//     deleted at once than RemovalCap in [Options] allows.
//   - A deleted central object is gone once every peer has confirmed that nothing of the object is
//     left: [Finalizer]. A peer that has left the directory is not asked. If a peer was unreachable
//     or restored and shows the object later, the Replicator does not add the object to the other
//     peers.
//   - A peer that joins gets all objects before it counts as a member.
//   - An object of the same name that was not made for the central object is not removed. If it is
//     equal to the central object, the Replicator takes it over. If it differs, the Replicator does
//     not change it, and the condition Ready has the reason Conflict and names the fields. An
//     object whose central object is missing is left alone, and its home has the condition
//     Orphaned: the central plane may have been restored from a backup.
//
// Use one Replicator per kind. It writes a status only if the status changes. If a status keeps
// changing, the Replicator writes it four times at once, then once a second.
//
// # Catalogue
//
// A [Catalog] publishes the regions of a directory as Region objects in the namespaces of the
// tenants that may use them. By default these are all Accounts with the role Tenant;
// [CatalogOptions] can select some of them. [Gather] lists objects of any types in all peers and
// returns the regions that each object comes from. Neither a Region nor the result of Gather names
// peers.
//
// # Guarantees
//
//   - In each peer where the Account is Active, Atoll creates a namespace with the Account's name
//     and the label [Label], and in it the Roles and RoleBindings of the Account's subjects. The
//     Account's status in that peer reports the result. Until the status reports Ready, every sweep
//     tries again, and so does a Controller.
//   - With a Controller, a namespace, Role or RoleBinding that is edited or deleted comes back. In
//     a peer that is Quarantined the Controller deletes the Roles and RoleBindings.
//   - A Role or RoleBinding is deleted when the Account no longer has the role or the subjects.
//   - A namespace, Role or RoleBinding that existed before and is not labelled is never changed
//     or deleted. Such a namespace is used; such a Role is a conflict that the condition
//     RolesReady names.
//   - While the Account's namespace is being deleted in a peer, the Account is not Ready there. It
//     is Ready again when a new namespace has been created. The status shows this.
//   - When the Account is removed, its namespace is deleted by the UID that was read: after all
//     objects that the Account holds, and before the Account itself.
//   - The status is written by server-side apply under the field manager [FieldManager], and only
//     if it changes. status.phase is derived from the conditions.
//
// # Limits
//
// Without a Controller, a namespace, Role or RoleBinding that is deleted while the status reports
// Ready is created again only with the next change of the Account. Roles are namespaced: no subject
// gets rights on cluster-scoped resources. If a process creates a namespace and crashes before it
// learns that the Account was removed meanwhile, an empty namespace with the label is left.
//
// A Replicator reacts to watch events, so an edit of the home is in effect until the next revision.
// An edit of a replica's labels or annotations stays until the next revision, and is not reported.
// If another client removes the finalizers of a home, the home may be gone without a removal. Then
// the replicas hold the name, and the reason of Ready is Conflict: a person releases the replicas.
//
// If a home is restored from a backup that is older than the removal of its Account, the protocol
// treats the home as an Account again; its condition Orphaned reports that, and a person decides.
//
// A central plane may become a peer while its objects are in other peers already. These objects
// keep their homes there; the central object stays the desired state, and the Replicator ignores
// the plane's own peer for these objects. Peers that are configured and have joined no ring have no
// objects, and a Presence does not count them. Adds are rejected until these peers have joined or
// are no longer configured.
package account
