// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"bytes"
	"encoding/binary"
)

// cursor is the content of a continue token: the position in a paged list. Its sources are in the order in which
// the list returns them.
type cursor struct {
	query   [8]byte // the hash of the list's query
	sources []pinned
	next    int    // the first source that has not been read to its end
	seed    uint64 // of the stamps
	inner   string // the region's continue token for the source at next; empty: from the source's beginning
	columns string // of a table whose regions have different columns, as a JSON array
}

// pinned is a source with the version at which the first page read it.
type pinned struct {
	id     sourceID
	rv     string
	stamp  uint64 // of the state at rv; zero: unknown
	absent bool   // the source did not answer, and is not part of this list
}

func (c cursor) append(b []byte) []byte {
	b = append(append(b, kindCursor), c.query[:]...)
	b = binary.AppendUvarint(b, uint64(len(c.sources)))
	for _, p := range c.sources {
		b = append(b, p.id[:]...)
		if p.absent {
			b = append(b, 1)
			continue
		}
		b = binary.AppendUvarint(appendRevision(append(b, 0), p.rv), p.stamp)
	}
	b = binary.AppendUvarint(b, uint64(c.next))
	b = append(binary.AppendUvarint(b, uint64(len(c.inner))), c.inner...)
	return append(binary.AppendUvarint(b, uint64(len(c.columns))), c.columns...)
}

func (c cursor) encode(k *Keyring) (string, error) { return k.seal(c.append(nil), c.seed) }

// decodeCursor decodes a token of encode.
func decodeCursor(k *Keyring, token string) (cursor, error) {
	payload, seed, err := k.open(token, kindCursor)
	if err != nil {
		return cursor{}, err
	}
	r := &reader{rest: payload[1:]}
	c := cursor{seed: seed}
	copy(c.query[:], r.bytes(uint64(len(c.query))))
	n := r.uvarint()
	for i := uint64(0); i < n && !r.bad; i++ {
		p := pinned{id: r.id()}
		if p.absent = r.uvarint() == 1; !p.absent {
			p.rv, p.stamp = r.revision(), r.uvarint()
		}
		c.sources = append(c.sources, p)
	}
	next := r.uvarint()
	c.inner, c.columns = string(r.bytes(r.uvarint())), string(r.bytes(r.uvarint()))
	if r.bad || next >= uint64(len(c.sources)) {
		return cursor{}, errMalformed
	}
	if c.next = int(next); !bytes.Equal(c.append(nil), payload) {
		return cursor{}, errMalformed
	}
	return c, nil
}
