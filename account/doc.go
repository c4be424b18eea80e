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
package account
