// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// position is the version of a source up to which a consumer has received its events.
type position struct {
	id sourceID
	rv string // empty: in the middle of a repair, which only the consumer's present stream can complete
	// stamp identifies the delivered state. It distinguishes this state from that of another history at the same
	// version. Zero: unknown.
	stamp uint64
}

// version is a composite resourceVersion: the position of each source and, for an object, that object's own
// version. A source that is not in the version was never delivered.
type version struct {
	at     []position // by id
	origin int        // index in at of the object's source; -1: the version is not of an object
	own    string     // the object's own version
	seed   uint64     // of the stamps; 0: there are none
}

// set returns at with p as the position of p's source. It may change at in place.
func set(at []position, p position) []position {
	i, ok := find(at, p.id)
	if ok {
		at[i] = p
		return at
	}
	return slices.Insert(at, i, p)
}

func unset(at []position, id sourceID) []position {
	if i, ok := find(at, id); ok {
		return slices.Delete(at, i, i+1)
	}
	return at
}

func find(at []position, id sourceID) (int, bool) {
	return slices.BinarySearchFunc(at, id, func(p position, id sourceID) int { return bytes.Compare(p.id[:], id[:]) })
}

// objectVersion returns the version of an object that a list, a get or a write returned.
func objectVersion(id sourceID, own string) version {
	return version{at: []position{{id: id, rv: own}}, own: own}
}

func (v version) append(b []byte) []byte {
	b = binary.AppendUvarint(append(b, kindVersion), uint64(len(v.at)))
	for _, p := range v.at {
		b = appendRevision(append(b, p.id[:]...), p.rv)
		b = binary.AppendUvarint(b, p.stamp)
	}
	b = binary.AppendUvarint(b, uint64(v.origin+1))
	switch {
	case v.origin < 0:
	case v.at[v.origin].rv == v.own:
		b = append(b, 0)
	default:
		b = appendRevision(append(b, 1), v.own)
	}
	return b
}

// encode returns the text of v. It is deterministic.
func (v version) encode(k *Keyring) (string, error) {
	return k.seal(v.append(make([]byte, 0, 41+macSize+26*len(v.at))), v.seed)
}

// decodeVersion decodes a text of encode. Each version has exactly one text per key; any other text is refused. If the
// text has a wrong MAC, for example of another key, decodeVersion returns the version and errForeign.
func decodeVersion(k *Keyring, token string) (version, error) {
	payload, seed, foreign := k.open(token, kindVersion)
	if payload == nil {
		return version{}, foreign
	}
	r := &reader{rest: payload[1:]}
	v := version{origin: -1, seed: seed}
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		v.at = append(v.at, position{r.id(), r.revision(), r.uvarint()})
	}
	if origin := r.uvarint(); origin > 0 && origin <= uint64(len(v.at)) && !r.bad {
		v.origin = int(origin) - 1
		if r.uvarint() == 0 {
			v.own = v.at[v.origin].rv
		} else {
			v.own = r.revision()
		}
	} else if origin != 0 {
		r.bad = true
	}
	sorted := slices.IsSortedFunc(v.at, func(a, b position) int {
		if a.id == b.id {
			return -1 // a duplicate
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	if r.bad || len(r.rest) > 0 || !sorted || !bytes.Equal(v.append(nil), payload) {
		return version{}, errMalformed
	}
	return v, foreign
}
