// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strconv"
)

const (
	// maxToken is the maximum length of an encoded token. Tokens are part of URLs, which servers limit: Go's limit
	// is 1 MiB.
	maxToken = 64 << 10
	// macSize is the length of the truncated HMAC-SHA256.
	macSize = 16
)

// These are the kinds of tokens. The high half of the byte is the version of the encoding.
const (
	kindVersion byte = 0x21
	kindCursor  byte = 0x32

	encoding byte = 0xf0
)

var (
	errMalformed = errors.New("it is malformed")
	errForeign   = errors.New("it was made with another key, or by another version")
	errTooLong   = errors.New("it would be too long: too many regions for one token")
)

// A token is the base64 text of a payload, a byte 0 or an encrypted seed and a byte 1, and a MAC of all before it.
const (
	ownSeed   byte = 0
	otherSeed byte = 1
)

// seal returns the token with the given payload, whose fingerprints have the given seed. 0 stands for no fingerprints.
// It overwrites the spare capacity of the payload slice.
func (k *Keyring) seal(payload []byte, seed uint64) (string, error) {
	key := k.all()[0]
	if seed == 0 || seed == key.seed {
		payload = append(payload, ownSeed)
	} else {
		payload = append(binary.BigEndian.AppendUint64(payload, seed^key.mask), otherSeed)
	}
	if base64.RawURLEncoding.EncodedLen(len(payload)+macSize) > maxToken {
		return "", errTooLong
	}
	return base64.RawURLEncoding.EncodeToString(key.sum(payload, payload)), nil
}

// open returns the payload of a token of the given kind, and the seed of its fingerprints. errMalformed means that the
// text cannot be a token. errForeign means that the format is right but no key has made the MAC, or that another version
// of Atoll has made the token; open then returns the payload if it can be read.
func (k *Keyring) open(token string, kind byte) (payload []byte, seed uint64, err error) {
	if len(token) > maxToken {
		return nil, 0, errMalformed
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	switch {
	case err != nil || len(data) < 2+macSize || data[0]&^encoding != kind&^encoding:
		return nil, 0, errMalformed
	case data[0] != kind:
		return nil, 0, errForeign
	}
	signed, mac := data[:len(data)-macSize], data[len(data)-macSize:]
	var by *tokenKey
	for _, key := range k.all() {
		if subtle.ConstantTimeCompare(key.sum(nil, signed), mac) == 1 {
			by = key
		}
	}
	payload, flag := signed[:len(signed)-1], signed[len(signed)-1]
	switch {
	case flag == ownSeed && by != nil:
		return payload, by.seed, nil
	case flag == ownSeed:
		return payload, 0, errForeign
	case flag != otherSeed || len(payload) < 1+8:
		return nil, 0, errMalformed
	}
	payload, masked := payload[:len(payload)-8], payload[len(payload)-8:]
	if by == nil {
		return payload, 0, errForeign
	}
	if seed = binary.BigEndian.Uint64(masked) ^ by.mask; seed == by.seed || seed == 0 {
		return nil, 0, errMalformed // it has a shorter text
	}
	return payload, seed, nil
}

// sourceID identifies a type in a region, as served by one cluster.
type sourceID [8]byte

// reader decodes a payload. After the first error, all its methods return zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) bytes(n uint64) []byte {
	if r.bad || n > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) id() (id sourceID) {
	copy(id[:], r.bytes(uint64(len(id))))
	return id
}

// revision decodes a region's resourceVersion: 0 means none, 1 a number, n > 1 a text of n-2 bytes.
func (r *reader) revision() string {
	switch n := r.uvarint(); n {
	case 0:
		return ""
	case 1:
		return strconv.FormatUint(r.uvarint(), 10)
	default:
		return string(r.bytes(n - 2))
	}
}

func appendRevision(b []byte, rv string) []byte {
	if rv == "" {
		return append(b, 0)
	}
	if n, ok := number(rv); ok {
		return binary.AppendUvarint(append(b, 1), n)
	}
	return append(binary.AppendUvarint(b, uint64(len(rv))+2), rv...)
}

// number returns the value of rv. It returns false if rv is not the canonical text of a number.
func number(rv string) (uint64, bool) {
	n, err := strconv.ParseUint(rv, 10, 64)
	return n, err == nil && (len(rv) == 1 || rv[0] != '0') && rv[0] != '+'
}
