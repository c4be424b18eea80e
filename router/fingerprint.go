// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
)

// Fingerprint returns a hash of the identity. Identities of the same kind with equal tokens, peers (of CallerAt) and
// users have the same hash. If two identities have the same hash, their requests carry the same credentials and
// identity headers. The hash reveals no secret, so it may be the key of a cache.
func (id Identity) Fingerprint() string {
	b := make([]byte, 0, 256)
	b = strconv.AppendInt(b, int64(id.kind), 10)
	for _, part := range []string{id.token, string(id.peer), id.user.Name, id.user.UID} {
		b = strconv.AppendQuote(b, part)
	}
	b = appendList(b, id.user.Groups)
	if len(id.user.Extra) > 0 {
		for _, key := range slices.Sorted(maps.Keys(id.user.Extra)) {
			b = appendList(strconv.AppendQuote(b, key), id.user.Extra[key])
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func appendList(b []byte, list []string) []byte {
	b = append(b, '[')
	for _, part := range list {
		b = strconv.AppendQuote(b, part)
	}
	return append(b, ']')
}
