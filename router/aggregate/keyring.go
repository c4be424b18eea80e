// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"sync"
	"sync/atomic"
)

// minKey is the minimum length of a key in bytes.
const minKey = 16

// Keyring has the keys that authenticate resourceVersions and continue tokens. Processes whose Keyrings have a key in
// common accept each other's tokens of this key. So a client can go on at another replica, or at the same one after a
// restart, without listing again. It is safe for concurrent use.
//
// To rotate a key, call Replace in each process three times:
//
//  1. Add the new key as the last one in all processes.
//  2. Make it the first one in all processes. From then on they make their tokens with it.
//  3. Remove the old key when no client uses a token of it any longer. A watch with bookmarks renews its token within
//     Options.Bookmark; a paged list should not take longer than an API server keeps its versions, 5 to 10 minutes.
type Keyring struct{ keys atomic.Pointer[[]*tokenKey] }

// NewKeyring returns a Keyring with these keys. The first key makes tokens; all keys are accepted. It returns an error
// if there is no key, if a key is shorter than 16 bytes, or if two keys are equal. Use random bytes.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	k := &Keyring{}
	return k, k.Replace(keys...)
}

// Replace replaces all keys. Streams and lists that are under way go on. It returns the errors of NewKeyring, and keeps
// the present keys then.
func (k *Keyring) Replace(keys ...[]byte) error {
	if len(keys) == 0 {
		return errors.New("aggregate: a keyring needs at least one key")
	}
	all := make([]*tokenKey, 0, len(keys))
	for i, key := range keys {
		if len(key) < minKey {
			return fmt.Errorf("aggregate: key %d of the keyring has %d bytes; want at least %d random bytes", i+1, len(key), minKey)
		}
		if slices.ContainsFunc(keys[:i], func(other []byte) bool { return hmac.Equal(other, key) }) {
			return fmt.Errorf("aggregate: key %d of the keyring is a repetition of an earlier one", i+1)
		}
		all = append(all, newTokenKey(slices.Clone(key)))
	}
	k.keys.Store(&all)
	return nil
}

// RandomKeyring returns a Keyring whose tokens only this process accepts.
func RandomKeyring() *Keyring {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	k, _ := NewKeyring(key)
	return k
}

func (k *Keyring) all() []*tokenKey { return *k.keys.Load() }

// seed returns the seed for new fingerprints.
func (k *Keyring) seed() uint64 { return k.all()[0].seed }

// tokenKey is one key.
type tokenKey struct {
	macs sync.Pool
	// seed is the seed of the fingerprints that belong to tokens of this key. A token with other fingerprints, which
	// were begun with an earlier key, contains their seed, encrypted with mask.
	seed, mask uint64
}

func newTokenKey(key []byte) *tokenKey {
	k := &tokenKey{seed: derive(key, "fingerprints of "), mask: derive(key, "mask of ")}
	k.macs.New = func() any { return hmac.New(sha256.New, key) }
	return k
}

// derive returns a number that only processes with the key can compute.
func derive(key []byte, purpose string) uint64 {
	sum := sha256.Sum256(append([]byte(purpose), key...))
	return binary.BigEndian.Uint64(sum[:])
}

// sum appends the truncated HMAC-SHA256 of payload to dst.
func (k *tokenKey) sum(dst, payload []byte) []byte {
	mac, _ := k.macs.Get().(hash.Hash)
	defer k.macs.Put(mac)
	mac.Reset()
	_, _ = mac.Write(payload) // a hash never fails
	var full [sha256.Size]byte
	return append(dst, mac.Sum(full[:0])[:macSize]...)
}
