// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Fingerprint tells identities apart: it is the same for two of them if, and only if, requests of both are made alike. No
// secret can be read from it, so that it may be the key of a cache.
func (id Identity) Fingerprint() string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %q %q %q %q %q", id.kind, id.token, id.peer, id.user.Name, id.user.UID, id.user.Groups)
	for _, key := range slices.Sorted(maps.Keys(id.user.Extra)) {
		_, _ = fmt.Fprintf(h, " %q %q", key, id.user.Extra[key])
	}
	return hex.EncodeToString(h.Sum(nil))
}
