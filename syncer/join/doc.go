// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package join lets clusters join an upstream without a lasting secret: a person makes a token for one SyncTarget, the
// syncer exchanges it once for a short client certificate, and renews the certificate with itself.
//
//	kubeconfig, err := join.NewToken(ctx, upstream, "my-cluster", join.TokenOptions{...}) // given to the cluster
//	approver, err := join.NewApprover(upstream, join.ApproverOptions{})                   // beside the upstream
//	renewer, err := join.NewRenewer(join.RenewerOptions{...})                             // beside the syncer
//
// A token is a token of a ServiceAccount of its own, which may create and read CertificateSigningRequests and nothing
// else. The certificate is for the user "atoll:cluster:NAME" and the group "atoll:clusters", by the signer
// kubernetes.io/kube-apiserver-client, which kube-controller-manager runs. [Manifests] has the rights of the group.
//
// # Guaranteed
//
//   - An [Approver] approves a request only if all of this holds: its usages are those of a client certificate, its lifetime
//     is set and at most ApproverOptions.Longest, its signature is right, it asks for exactly the user of one SyncTarget and
//     the group, with no other name, and with a strong key; and the requester is a token for this SyncTarget, or holds a
//     certificate for this user. The SyncTarget exists and is not being deleted.
//   - A token is used once: the approval needs a mark on its ServiceAccount that names the request, written by
//     compare-and-swap. So of two requests with one token, and with any number of Approvers, one is approved.
//   - A request with a token that was used, has expired, or is for another SyncTarget is denied with the reason, and
//     reported ([Observer].Denied). The API server itself refuses an expired token with 401.
//   - Requests of other clients are left alone: neither approved nor denied.
//   - A [Renewer] stores a new key before it sends the request, so a crash at any moment costs no token. The file with the
//     certificate is replaced atomically. A token that was denied is not tried again.
//   - An Approver decides nothing while one of its caches is stale.
//
// # Not guaranteed
//
//   - Kubernetes has no revocation of client certificates. A certificate works until it expires, at most
//     ApproverOptions.Longest later; deleting the SyncTarget ends the renewals, and removing the rights of the user ends
//     its requests at once.
//   - The rights of a syncer: bind what syncer.UpstreamRights returns to [User], or give it an address of
//     router/clusterview.
//   - If the upstream is restored from a backup, a token that was used after the backup can be used again until it expires.
//   - A user who may create tokens of ServiceAccounts in the namespace of the tokens, or approve CertificateSigningRequests,
//     can join as any cluster. Give these rights to the makers of tokens and to Approvers only.
package join
