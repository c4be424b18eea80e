// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"strconv"
	"sync"
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
	kindVersion byte = 0x11
	kindCursor  byte = 0x12
)

var (
	errMalformed = errors.New("it is malformed")
	errForeign   = errors.New("it was made elsewhere, or with another key")
	errTooLong   = errors.New("it would be too long: too many regions for one token")
)

// sealer authenticates tokens with one key. It is safe for concurrent use.
type sealer struct{ macs sync.Pool }

func newSealer(key []byte) *sealer {
	s := &sealer{}
	s.macs.New = func() any { return hmac.New(sha256.New, key) }
	return s
}

func (s *sealer) sum(dst, payload []byte) []byte {
	mac, _ := s.macs.Get().(hash.Hash)
	defer s.macs.Put(mac)
	mac.Reset()
	_, _ = mac.Write(payload) // a hash never fails
	var full [sha256.Size]byte
	return append(dst, mac.Sum(full[:0])[:macSize]...)
}

// seal returns the token with the given payload. It overwrites the spare capacity of the payload slice.
func (s *sealer) seal(payload []byte) (string, error) {
	if base64.RawURLEncoding.EncodedLen(len(payload)+macSize) > maxToken {
		return "", errTooLong
	}
	return base64.RawURLEncoding.EncodeToString(s.sum(payload, payload)), nil
}

// open returns the payload of a token of the given kind. errMalformed means that the text cannot be a token.
// errForeign means that the format is right but the MAC is wrong; open then returns the payload too.
func (s *sealer) open(token string, kind byte) ([]byte, error) {
	if len(token) > maxToken {
		return nil, errMalformed
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(data) < 1+macSize || data[0] != kind {
		return nil, errMalformed
	}
	payload, mac := data[:len(data)-macSize], data[len(data)-macSize:]
	if subtle.ConstantTimeCompare(s.sum(nil, payload), mac) != 1 {
		return payload, errForeign
	}
	return payload, nil
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
