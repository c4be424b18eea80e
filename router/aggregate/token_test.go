// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"encoding/base64"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var testKeys = keyringOf("the key of tests")

// keyringOf returns a Keyring with these keys, which must have 16 bytes.
func keyringOf(keys ...string) *Keyring {
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(key))
	}
	k, err := NewKeyring(all...)
	if err != nil {
		panic(err)
	}
	return k
}

func anyID() *rapid.Generator[sourceID] {
	return rapid.Custom(func(t *rapid.T) (id sourceID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), len(id), len(id)).Draw(t, "id"))
		return id
	})
}

func anyRevision() *rapid.Generator[string] {
	return rapid.OneOf(rapid.Just(""), rapid.StringMatching(`0|[1-9][0-9]{0,22}`), rapid.StringMatching(`[+0a-z]{1,9}`))
}

// anySeed draws the seed of fingerprints: usually that of the key that makes the token.
func anySeed() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.Just(testKeys.seed()), rapid.Uint64Min(1))
}

func anyVersion() *rapid.Generator[version] {
	return rapid.Custom(func(t *rapid.T) version {
		v := version{origin: -1, seed: anySeed().Draw(t, "seed")}
		for _, id := range rapid.SliceOfN(anyID(), 0, 5).Draw(t, "ids") {
			v.at = set(v.at, position{id, anyRevision().Draw(t, "rv"), rapid.Uint64().Draw(t, "stamp")})
		}
		if len(v.at) > 0 && rapid.Bool().Draw(t, "object") {
			v.origin = rapid.IntRange(0, len(v.at)-1).Draw(t, "origin")
			v.own = rapid.OneOf(rapid.Just(v.at[v.origin].rv), anyRevision()).Draw(t, "own")
		}
		return v
	})
}

func anyCursor() *rapid.Generator[cursor] {
	return rapid.Custom(func(t *rapid.T) cursor {
		c := cursor{inner: rapid.String().Draw(t, "inner"), seed: anySeed().Draw(t, "seed")}
		for _, id := range rapid.SliceOfN(anyID(), 1, 5).Draw(t, "ids") {
			p := pinned{id: id, absent: rapid.Bool().Draw(t, "absent")}
			if !p.absent {
				p.rv = anyRevision().Draw(t, "rv")
			}
			c.sources = append(c.sources, p)
		}
		c.next = rapid.IntRange(0, len(c.sources)-1).Draw(t, "next")
		return c
	})
}

func TestTokensAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, c := anyVersion().Draw(t, "version"), anyCursor().Draw(t, "cursor")
		token, err := v.encode(testKeys)
		require.NoError(t, err)
		again, err := decodeVersion(testKeys, token)
		require.NoError(t, err)
		require.Equal(t, v, again)
		_, err = decodeCursor(testKeys, token)
		require.ErrorIs(t, err, errMalformed, "a version is no continue token")
		if token, err = c.encode(testKeys); err != nil {
			t.Fatal(err)
		}
		cursor, err := decodeCursor(testKeys, token)
		require.NoError(t, err)
		require.Equal(t, c, cursor)
	})
}

// A token in which any bit was changed is refused, and so is a token made with another key.
func TestTokensAreAuthentic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token, err := anyCursor().Draw(t, "cursor").encode(testKeys)
		require.NoError(t, err)
		_, err = decodeCursor(keyringOf("another test key"), token)
		require.ErrorIs(t, err, errForeign)
		data, err := base64.RawURLEncoding.DecodeString(token)
		require.NoError(t, err)
		data[rapid.IntRange(0, len(data)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		_, err = decodeCursor(testKeys, base64.RawURLEncoding.EncodeToString(data))
		require.Error(t, err)
	})
}

// A token of another version of Atoll is foreign, not malformed: 410 makes the client list again.
func TestTokensOfOtherVersions(t *testing.T) {
	token, err := version{origin: -1}.encode(testKeys)
	require.NoError(t, err)
	data, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	data[0] ^= 0x30
	_, err = decodeVersion(testKeys, base64.RawURLEncoding.EncodeToString(data))
	require.ErrorIs(t, err, errForeign)
}

// A version has exactly one encoding: decodeVersion refuses payloads that encode a version in another way.
func TestOtherTextsOfAVersionAreRefused(t *testing.T) {
	id := sourceID{1}
	for name, payload := range map[string][]byte{
		"a number in more bytes than it takes": append(append([]byte{kindVersion, 1}, id[:]...), 1, 0x85, 0, 0, 0),
		"a number as text":                     append(append([]byte{kindVersion, 1}, id[:]...), 3, '5', 0, 0),
		"a source twice":                       append(append(append(append([]byte{kindVersion, 2}, id[:]...), 0, 0), id[:]...), 0, 0, 0),
		"sources out of order":                 append(append(append(append([]byte{kindVersion, 2}, id[:]...), 0, 0), make([]byte, 8)...), 0, 0, 0),
		"an origin that is not listed":         append(append([]byte{kindVersion, 1}, id[:]...), 0, 0, 2, 0),
		"an own version that is no other":      append(append([]byte{kindVersion, 1}, id[:]...), 0, 0, 1, 1, 0),
		"something behind it":                  append(append([]byte{kindVersion, 1}, id[:]...), 0, 0, 0, 0),
		"more sources than there are bytes":    {kindVersion, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := testKeys.seal(slices.Clone(payload), 0)
			require.NoError(t, err)
			_, err = decodeVersion(testKeys, token)
			require.ErrorIs(t, err, errMalformed)
		})
	}
}

// About two thousand regions fit into a token.
func TestTooManyRegionsForAToken(t *testing.T) {
	for regions, want := range map[int]error{2000: nil, 2500: errTooLong} {
		v := version{origin: -1}
		for i := range regions {
			v.at = append(v.at, position{id: sourceID{byte(i >> 8), byte(i)}, rv: "123456789", stamp: math.MaxUint64})
		}
		_, err := v.encode(testKeys)
		require.ErrorIs(t, err, want, "%d regions", regions)
	}
}

// FuzzTokens decodes any payload with a valid seal, and checks that an accepted payload is
// canonical.
func FuzzTokens(f *testing.F) {
	v := version{at: []position{{sourceID{1}, "17", 5}, {sourceID{2}, "x", 0}}, origin: 1, own: "16"}
	f.Add(v.append(nil), uint64(0))
	f.Add(cursor{sources: []pinned{{id: sourceID{1}, rv: "7"}, {absent: true}}, inner: "abc"}.append(nil), uint64(7))
	f.Add([]byte{}, uint64(1))
	f.Fuzz(func(t *testing.T, payload []byte, seed uint64) {
		_, _ = decodeVersion(testKeys, string(payload))
		_, _ = decodeCursor(testKeys, string(payload))
		token, err := testKeys.seal(slices.Clone(payload), seed)
		if err != nil {
			return
		}
		if v, err := decodeVersion(testKeys, token); err == nil {
			again, err := v.encode(testKeys)
			require.NoError(t, err)
			require.Equal(t, token, again)
		}
		if c, err := decodeCursor(testKeys, token); err == nil {
			again, err := c.encode(testKeys)
			require.NoError(t, err)
			require.Equal(t, token, again)
		}
	})
}
