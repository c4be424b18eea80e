// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// This is the layout of a bbolt file, version 2. This package reads a file page by page before bbolt maps it,
// because bbolt does not validate pages: a damaged page makes bbolt panic, and a page beyond the end of the file
// causes a fault that cannot be recovered.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2
	pageHeader  = 16
	metaSize    = 64
	elementSize = 16
	bucketSize  = 16

	branchPage = 0x01
	leafPage   = 0x02
	metaPage   = 0x04
	bucketLeaf = 0x01
)

// errNotBolt means that bbolt has written neither meta page.
var errNotBolt = errors.New("not a bbolt file")

// meta is the content of one of the two meta pages.
type meta struct {
	pageSize int64
	root     uint64
	pages    uint64 // all pages in use have smaller numbers
	txid     uint64
}

func parseMeta(b []byte) (m meta, bolt bool, err error) {
	if len(b) < pageHeader+metaSize {
		return meta{}, false, errors.New("meta page is cut short")
	}
	flags, b := binary.NativeEndian.Uint16(b[8:]), b[pageHeader:pageHeader+metaSize]
	bolt = binary.NativeEndian.Uint32(b) == boltMagic
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	switch {
	case !bolt:
		return meta{}, false, errors.New("meta page is not bbolt's")
	case binary.NativeEndian.Uint32(b[4:]) != boltVersion:
		return meta{}, true, errors.New("meta page has an unknown version")
	case binary.NativeEndian.Uint64(b[56:]) != sum.Sum64():
		return meta{}, true, errors.New("meta page has a wrong checksum")
	case flags != metaPage:
		return meta{}, true, errors.New("meta page is marked as another type")
	}
	return meta{
		pageSize: int64(binary.NativeEndian.Uint32(b[8:])),
		root:     binary.NativeEndian.Uint64(b[16:]),
		pages:    binary.NativeEndian.Uint64(b[40:]),
		txid:     binary.NativeEndian.Uint64(b[48:]),
	}, true, nil
}

// readMetas returns the valid meta pages, newest first, and in damage the fault of an invalid one. A meta page lies
// within one sector and is written atomically, so an invalid page is damage and not a commit that a crash
// interrupted.
func readMetas(f io.ReaderAt) (metas []meta, damage error, err error) {
	buf := make([]byte, pageHeader+metaSize)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	first, bolt, err0 := parseMeta(buf[:n])
	if err0 == nil {
		metas = append(metas, first)
	}
	second, err := readSecondMeta(f, metas)
	if err != nil {
		return nil, nil, err
	}
	metas = append(metas, second.found...)
	err1 := second.damage
	switch {
	case !bolt && !second.bolt:
		return nil, nil, errNotBolt
	case len(metas) == 0:
		return nil, errors.Join(err0, err1), nil
	case len(metas) == 2 && metas[0].txid < metas[1].txid:
		metas[0], metas[1] = metas[1], metas[0]
	case len(metas) == 1:
		damage = fmt.Errorf("one of two meta pages is damaged, the last commit may be missing: %w", errors.Join(err0, err1))
	}
	return metas, damage, nil
}

// secondMeta is the result of a search for the second meta page.
type secondMeta struct {
	found  []meta // the valid second meta page, if any
	bolt   bool   // bbolt has written a meta page there, valid or not
	damage error  // the fault of the last page that was read
}

// readSecondMeta reads the page after the first one. Its position is the page size, which only a valid first meta page
// contains; without a valid first page, readSecondMeta tries all sizes.
func readSecondMeta(f io.ReaderAt, first []meta) (secondMeta, error) {
	var second secondMeta
	buf := make([]byte, pageHeader+metaSize)
	for size := int64(1 << 10); size <= 1<<24; size <<= 1 {
		if len(first) > 0 && size != first[0].pageSize {
			continue
		}
		n, err := f.ReadAt(buf, size)
		if err != nil && !errors.Is(err, io.EOF) {
			return second, err
		}
		m, bolt, damage := parseMeta(buf[:n])
		second.bolt, second.damage = second.bolt || bolt, damage
		if damage == nil && m.pageSize == size {
			second.found = []meta{m}
			break
		}
	}
	return second, nil
}

// isCut reports whether a file is the beginning of a longer bbolt file. The missing part may contain the marker of
// a log, so at the path of a log such a file counts as a damaged log. So does an empty file: a log gets its path
// only when it is complete.
func isCut(file io.ReaderAt, size int64, metas []meta) (bool, error) {
	if len(metas) > 0 {
		m := metas[0]
		return m.pages > uint64(size/max(m.pageSize, 1)), nil
	}
	if size >= pageHeader+metaSize {
		return false, nil
	}
	begin := make([]byte, pageHeader, pageHeader+8)
	binary.NativeEndian.PutUint16(begin[8:], metaPage)
	begin = binary.NativeEndian.AppendUint32(begin, boltMagic)
	begin = binary.NativeEndian.AppendUint32(begin, boltVersion)
	begin = begin[:min(size, int64(len(begin)))]
	got := make([]byte, len(begin))
	if _, err := file.ReadAt(got, 0); err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(got, begin), nil
}

// walker visits every key and value below one meta page.
type walker struct {
	file  io.ReaderAt
	meta  meta
	seen  map[uint64]bool
	visit func(bucket string, key, value []byte)

	buckets    map[string]bool // the names of the buckets found
	sequences  map[string]uint64
	misordered bool // a search would miss some key
}

// walk checks the page tree of m and calls visit for each pair in the buckets of the root, in order. The slices passed
// to visit are only valid during the call. An error means that walk may have left out pairs.
func walk(file io.ReaderAt, size int64, m meta, visit func(bucket string, key, value []byte)) (*walker, error) {
	w := &walker{
		file: file, meta: m, seen: map[uint64]bool{0: true, 1: true}, visit: visit,
		buckets: map[string]bool{}, sequences: map[string]uint64{},
	}
	if m.pageSize < 1<<10 || m.pageSize > 1<<24 || m.pageSize&(m.pageSize-1) != 0 {
		return w, fmt.Errorf("page size %d is impossible", m.pageSize)
	}
	if m.pages > uint64(size/m.pageSize) {
		return w, fmt.Errorf("file has %d bytes, its %d pages need %d", size, m.pages, m.pages*uint64(m.pageSize))
	}
	err := w.page(m.root, "", nil)
	for _, name := range []string{metaBucket, opsBucket, histBucket, idemBucket} {
		if !w.buckets[name] {
			err = errors.Join(err, fmt.Errorf("bucket %q is missing", name))
		}
	}
	return w, err
}

// page visits the tree below page id, whose keys must not be smaller than least.
func (w *walker) page(id uint64, bucket string, least []byte) error {
	head := make([]byte, pageHeader)
	if id >= w.meta.pages {
		return fmt.Errorf("page %d lies beyond the last, %d", id, w.meta.pages-1)
	}
	if _, err := w.file.ReadAt(head, int64(id)*w.meta.pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if overflow >= w.meta.pages-id {
		return fmt.Errorf("page %d runs beyond the last", id)
	}
	for i := id; i <= id+overflow; i++ {
		if w.seen[i] {
			return fmt.Errorf("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	if got := binary.NativeEndian.Uint64(head); got != id {
		return fmt.Errorf("page %d says that it is page %d", id, got)
	}
	p := make([]byte, (int64(overflow)+1)*w.meta.pageSize)
	if _, err := w.file.ReadAt(p, int64(id)*w.meta.pageSize); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if err := w.elements(p, bucket, least); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (w *walker) elements(p []byte, bucket string, least []byte) error {
	flags, count, err := parseHeader(p)
	if err != nil {
		return err
	}
	// Damage in one element must not hide the other elements.
	var errs []error
	for i := range count {
		e, ok := parseElement(p, flags, i, count)
		if !ok {
			return errors.Join(append(errs, fmt.Errorf("element %d is damaged", i))...)
		}
		if c := bytes.Compare(least, e.key); c > 0 || c == 0 && i > 0 {
			w.misordered = true
		}
		least = e.key
		switch {
		case flags == branchPage:
			errs = append(errs, w.page(e.child, bucket, e.key))
		case e.kind == bucketLeaf && bucket == "":
			errs = append(errs, w.bucket(string(e.key), e.value))
		case e.kind == bucketLeaf || bucket == "":
			errs = append(errs, fmt.Errorf("key %q is in an unknown place", e.key))
		default:
			w.visit(bucket, e.key, e.value)
		}
	}
	return errors.Join(errs...)
}

// parseHeader returns the type of page p and the number of its elements. It checks that so many elements fit into
// p.
func parseHeader(p []byte) (flags uint16, count int, err error) {
	flags, count = binary.NativeEndian.Uint16(p[8:]), int(binary.NativeEndian.Uint16(p[10:]))
	switch {
	case flags != branchPage && flags != leafPage:
		err = fmt.Errorf("unknown type %#x", flags)
	case flags == branchPage && count == 0:
		err = errors.New("branch without children")
	case pageHeader+count*elementSize > len(p):
		err = fmt.Errorf("%d elements do not fit", count)
	}
	return flags, count, err
}

// element is one element of a page.
type element struct {
	kind       uint32 // on a leaf: bucketLeaf, or zero for a key-value pair
	child      uint64 // on a branch: the page with the keys that are not smaller than key
	key, value []byte
}

// parseElement returns element i of count in page p. ok is false if the element lies outside the part of p for keys
// and values.
func parseElement(p []byte, flags uint16, i, count int) (e element, ok bool) {
	at := pageHeader + i*elementSize
	head := p[at : at+elementSize]
	var pos, ksize, vsize uint32
	if flags == branchPage {
		pos, ksize = binary.NativeEndian.Uint32(head), binary.NativeEndian.Uint32(head[4:])
		e.child = binary.NativeEndian.Uint64(head[8:])
	} else {
		e.kind, pos = binary.NativeEndian.Uint32(head), binary.NativeEndian.Uint32(head[4:])
		ksize, vsize = binary.NativeEndian.Uint32(head[8:]), binary.NativeEndian.Uint32(head[12:])
	}
	start := uint64(at) + uint64(pos)
	middle := start + uint64(ksize)
	end := middle + uint64(vsize)
	if end > uint64(len(p)) || start < uint64(pageHeader+count*elementSize) || e.kind&^bucketLeaf != 0 {
		return element{}, false
	}
	e.key, e.value = p[start:middle], p[middle:end]
	return e, true
}

func (w *walker) bucket(name string, value []byte) error {
	w.buckets[name] = true
	if len(value) < bucketSize {
		return fmt.Errorf("bucket %q is cut short", name)
	}
	w.sequences[name] = binary.NativeEndian.Uint64(value[8:])
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.page(root, name, nil)
	}
	inline := value[bucketSize:]
	if len(inline) < pageHeader || binary.NativeEndian.Uint16(inline[8:]) != leafPage {
		return fmt.Errorf("bucket %q is damaged", name)
	}
	return w.elements(inline, name, nil)
}
