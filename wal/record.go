// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
	"unicode/utf8"
)

// A record is [version u8][crc32c u32][length u32][payload]. bbolt has checksums only for its two meta pages, so
// every value in the file is a record. The checksum covers version, length and payload.
const (
	recordVersion = 1
	recordHeader  = 9
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sealRecord(payload []byte) []byte {
	b := make([]byte, recordHeader, recordHeader+len(payload))
	b[0] = recordVersion
	binary.LittleEndian.PutUint32(b[5:], uint32(len(payload)))
	b = append(b, payload...)
	binary.LittleEndian.PutUint32(b[1:], recordSum(b))
	return b
}

func recordSum(b []byte) uint32 {
	sum := crc32.Update(0, castagnoli, b[:1])
	return crc32.Update(sum, castagnoli, b[5:])
}

// openRecord returns the payload of a record. The payload shares memory with b.
func openRecord(b []byte) ([]byte, error) {
	if len(b) < recordHeader {
		return nil, fmt.Errorf("record of %d bytes is shorter than its header", len(b))
	}
	if b[0] != recordVersion {
		return nil, fmt.Errorf("record version is %d, not %d", b[0], recordVersion)
	}
	if n := int64(binary.LittleEndian.Uint32(b[5:])); n != int64(len(b)-recordHeader) {
		return nil, fmt.Errorf("record holds %d bytes and says %d", len(b)-recordHeader, n)
	}
	if want, got := binary.LittleEndian.Uint32(b[1:]), recordSum(b); want != got {
		return nil, fmt.Errorf("checksum is %08x and should be %08x", got, want)
	}
	return b[recordHeader:], nil
}

// encodeEntry returns the record of an entry with all its fields. A string is preceded by its length; a time is
// encoded as seconds and nanoseconds.
func encodeEntry(e Entry) []byte {
	b := make([]byte, 0, recordHeader+len(e.Data)+len(e.Outcome)+256)
	for _, s := range []string{e.ID, e.Kind, e.Key, e.Owner, e.State, e.Version} {
		b = appendBytes(b, s)
	}
	b = appendTime(b, e.Began)
	b = appendTime(b, e.Ended)
	b = appendBytes(b, e.Data)
	b = appendBytes(b, e.Outcome)
	return sealRecord(b)
}

// decodeEntry returns an Entry that shares no memory with record.
func decodeEntry(record []byte) (Entry, error) {
	payload, err := openRecord(record)
	if err != nil {
		return Entry{}, err
	}
	r := reader{rest: payload}
	e := Entry{
		ID: r.text(), Kind: r.text(), Key: r.text(), Owner: r.text(), State: r.text(), Version: r.text(),
		Began: r.time(), Ended: r.time(), Data: r.bytes(), Outcome: r.bytes(),
	}
	if r.failed || len(r.rest) > 0 {
		return Entry{}, errors.New("record is not an entry")
	}
	return e, nil
}

// encodeName returns the record that maps an idempotency key to an ID. The record repeats the key, since bbolt
// has no checksum for keys.
func encodeName(key, id string) []byte {
	return sealRecord(appendBytes(appendBytes(nil, key), id))
}

func decodeName(record []byte) (key, id string, err error) {
	payload, err := openRecord(record)
	if err != nil {
		return "", "", err
	}
	r := reader{rest: payload}
	key, id = r.text(), r.text()
	if r.failed || len(r.rest) > 0 {
		return "", "", errors.New("record is not a key")
	}
	return key, id, nil
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

// reader decodes the fields of a payload. After the first error it returns zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) take() []byte {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > uint64(len(r.rest)-size) {
		r.failed, r.rest = true, nil
		return nil
	}
	field := r.rest[size : size+int(n)]
	r.rest = r.rest[size+int(n):]
	return field
}

func (r *reader) text() string { return string(r.take()) }

func (r *reader) bytes() []byte { return append([]byte(nil), r.take()...) }

func (r *reader) time() time.Time {
	sec, n := binary.Varint(r.rest)
	nsec, m := binary.Uvarint(r.rest[max(n, 0):])
	if n <= 0 || m <= 0 || nsec > 999_999_999 {
		r.failed, r.rest = true, nil
		return time.Time{}
	}
	r.rest = r.rest[n+m:]
	return time.Unix(sec, int64(nsec)).UTC()
}

func (e Entry) validate() error {
	if e.ID == "" {
		return &FieldError{Field: "ID", Reason: "is empty, must be unique and ordered by time"}
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"ID", e.ID, MaxID}, {"Kind", e.Kind, MaxName}, {"Key", e.Key, MaxKey}, {"Owner", e.Owner, MaxName}, {"State", e.State, MaxName}} {
		if len(f.value) > f.limit {
			return tooLong(f.name, len(f.value), f.limit)
		}
		if !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0) {
			return &FieldError{Field: f.name, Reason: "must be valid UTF-8 without NUL"}
		}
	}
	if len(e.Data) > MaxData {
		return tooLong("Data", len(e.Data), MaxData)
	}
	return nil
}

func tooLong(field string, length, limit int) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf("is %d bytes long, at most %d are allowed", length, limit)}
}
