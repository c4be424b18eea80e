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
// # What is guaranteed
//
//   - In each peer where the Account is Active its namespace is made, named like
//     the Account and labelled with [Label], and the Account's status there
//     names it. Until the status says Ready every sweep tries again.
//   - A namespace that was there before and is not labelled is used, and never
//     deleted.
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
// Roles and RoleBindings for the Account's subjects are not made. A namespace
// that somebody deletes while the status says Ready is made anew only with the
// next change of the Account. A process that
// crashes between making a namespace and learning that the Account was removed
// meanwhile leaves an empty namespace, which carries the label.
package account
