// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authn authenticates the gateway's callers, by the authenticators of k8s.io/apiserver, and decides as whom they
// act in the regions.
//
// # Guaranteed
//
//   - A caller whom no way knows is refused. If a way cannot be used now, because its issuer or API server does not answer,
//     and no other way knows the caller, the error wraps region.ErrUnavailable.
//   - Users beginning with "system:" are refused and such groups are left out, unless a mapping of the configuration names
//     them.
//   - A token that was accepted by a review is kept for at most 10 seconds, under a hash with a key of this process.
//   - Logs and errors have no token.
package authn
