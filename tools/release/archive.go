// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// write writes the archive and the SBOM of a program.
func (r *release) write(p *program, license []byte) error {
	name := filepath.Join(r.dir, strings.Join([]string{p.name, r.version, p.goos, p.goarch}, "_"))
	suffix, packed := ".tar.gz", tarball
	if p.goos == "windows" {
		suffix, packed = ".zip", zipped
	}
	archive, err := packed([]entry{{"LICENSE", 0o644, license}, {p.file(), 0o755, p.data}}, r.time)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+suffix, archive, 0o644); err != nil {
		return err
	}
	bom, err := sbom(p, r.time)
	if err != nil {
		return err
	}
	return os.WriteFile(name+".cdx.json", bom, 0o644)
}

// tarball returns a compressed archive of files, all of the same time and of the owner 0.
func tarball(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// zipped is tarball for Windows.
func zipped(files []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		head := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		head.SetMode(os.FileMode(f.mode))
		to, err := w.CreateHeader(head)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// checksum writes SHA256SUMS of the files in dir, without its folders.
func checksum(dir string) error {
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
