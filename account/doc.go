// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package account describes Accounts as a kind that the package fanout brings
// to all peers, and makes in each peer what an Account needs there.
//
// An Account is an actor, a provider or a tenant. It is the same in every peer:
// a [fanout.Coordinator] whose Options.Kinds hold [Kind] adds, updates and
// removes it in all of them or in none. [Kinds] returns it together with
// ServiceClusters, which live in the namespace of an Account.
//
// A [Controller] keeps what is made in each peer as it is to be.
//
// # Who may do what
//
// Authorization is Kubernetes' own. In the Account's namespace of each peer its
// subjects are bound to one Role for each of spec.roles, named by [RoleName]. By
// [DefaultRights]:
//
//	Provider  ServiceClusters and RegionClaims: all but deletecollection;
//	          Secrets: create, update, patch, delete, and no reading
//	Tenant    Regions: get, list, watch
//
// [KindWith] takes other rights. A coordinator must itself hold what it grants.
//
// # Replication
//
// A [Replicator] keeps the objects of a central plane, Accounts or any other kind
// that exists Everywhere, present in all peers. The central object is the wish;
// what stands in the peers is under the protocol of the package fanout, as if it
// had been added by fan-out. How the two meet depends on where the wish stands:
//
//   - Apart, the central plane is no peer: the wish has no claim, and the peers have
//     copies of it, with the annotation [OriginAnnotation]. The protocol needs no
//     central plane to go on, and the plane may be lost without losing an Account.
//   - In place, the central plane's cluster is one of the peers (the Peer "local"):
//     the wish is adopted as it stands, and is the home of its copies.
//
// It promises, while a [fanout.Coordinator] is started somewhere:
//
//   - A change of the wish is committed as soon as its home answers. Peers that do
//     not answer are brought along when they do; they delay no others. (One that
//     hangs does, until its probes have found that out: half a minute by default.)
//     What is new needs every peer once, by the rules of an add: until then it
//     waits, and its condition names who is silent.
//   - In a peer the central plane wins. The API server refuses to change a replica;
//     an edited home is, by the protocol, a request for the next revision, and the
//     Replicator answers it with one more that has the wish's content. A copy that
//     somebody deletes comes back.
//   - Ready is True only if every member of the ring holds the latest revision and
//     is ready with it. Silence is Unknown, never False. Exceptions have a condition
//     each, PresentIn.PEER, 32 at most; a status stays small with a thousand peers.
//   - A deleted wish is kept in all peers, with the condition RemovalHeld, while
//     something lives in its namespace, a peer does not answer, or more were deleted at
//     once than [Options] allow with RemovalCap.
//   - A deleted wish goes when every peer has confirmed that nothing of it is left:
//     [Finalizer]. A peer that has left the directory is not asked. A copy that a
//     peer shows later, because it was away or restored, is never added anew.
//   - A peer that joins has everything before it counts.
//   - What was not made for the wish is neither changed nor removed. An equal object
//     is taken over; one that differs is a conflict, whose condition says in which
//     fields. A copy whose wish is not there is left alone, and its home has the
//     condition Orphaned: a central plane may have been restored from a backup.
//
// Several kinds take several Replicators. Status is written only where it changes, and
// of an object that changes again and again once a second.
//
// # Catalogue
//
// A [Catalog] publishes the regions of a directory as Region objects in the
// namespaces of the tenants that may use them: all of an Account with the role
// Tenant, unless [CatalogOptions] select. [Gather] lists any types in all peers and
// says from which regions each object comes. Neither has a word of peers in what it
// hands to tenants.
//
// # What is guaranteed
//
//   - In each peer where the Account is Active its namespace is made, named like
//     the Account and labelled with [Label], with the Roles and RoleBindings of its
//     subjects, and the Account's status there says so. Until it says Ready every
//     sweep tries again, and a Controller at once.
//   - With a Controller, a namespace, Role or RoleBinding that somebody edits or
//     deletes comes back. In a peer that is Quarantined they are taken away.
//   - A Role or RoleBinding goes when the Account no longer has its role or
//     subjects.
//   - A namespace, Role or RoleBinding that was there before and is not labelled is
//     never changed or deleted. Such a namespace is used; such a Role is a conflict
//     that the condition RolesReady names.
//   - A namespace that is being deleted counts as held: the Account is not
//     Ready in that peer until a new one stands in its place. This shows in the
//     status.
//   - When the Account is removed, its namespace goes after all that the
//     Account holds and before the Account itself, and only by the UID that was
//     read.
//   - The status is written by server-side apply under the field manager
//     [FieldManager], and only if it changes. Conditions are the truth;
//     status.phase is derived from them.
//
// # What is not
//
// Without a Controller, what somebody deletes while the status says Ready is made
// anew only with the next change of the Account. Roles are namespaced: what is
// cluster-scoped is granted to nobody. A process that
// crashes between making a namespace and learning that the Account was removed
// meanwhile leaves an empty namespace, which carries the label.
//
// A Replicator acts on what it has seen by list and watch: for the moments of an
// edit of the home, that edit is in force. A home that is restored from before the
// removal of its Account is, to the protocol, an Account again; its condition Orphaned
// says so, and a person decides. A central plane that becomes a peer when its
// objects are in other peers already keeps these as they are: the wish stays in the
// plane, its copies in the other peers, and only they count for it. Peers that are configured and have joined no ring
// hold nothing and do not count, and adds are refused until they have joined or are
// configured no more.
package account
