// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

// TestImage builds this command. Two builds have the same digest. The image has the program, which runs, and authorities, and nothing else.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	var digests [2]bytes.Buffer
	for i, name := range []string{"a", "b"} {
		require.NoError(t, run(t.Context(), []string{"-program", "tools/image", "-out", filepath.Join(dir, name)}, &digests[i]))
	}
	require.Equal(t, digests[0].String(), digests[1].String())
	require.True(t, strings.HasPrefix(digests[0].String(), "sha256:"))

	at, err := layout.FromPath(filepath.Join(dir, "a"))
	require.NoError(t, err)
	index, err := at.ImageIndex()
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	image, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "65532:65532", config.Config.User)
	require.Equal(t, []string{"/image"}, config.Config.Entrypoint)

	layers, err := image.Layers()
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, layer := range layers {
		archive, err := layer.Uncompressed()
		require.NoError(t, err)
		read(t, archive, files)
	}
	require.Len(t, files, 2)
	require.True(t, x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"]))
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, files["image"], 0o700))
	text, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "-out is missing", "it runs")
	linked, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	require.NoError(t, err)
	require.Contains(t, string(linked), "CGO_ENABLED=0")

	// A folder that exists is not overwritten.
	require.ErrorContains(t, run(t.Context(), []string{"-out", filepath.Join(dir, "a")}, io.Discard), "exists already")
	require.ErrorContains(t, run(t.Context(), nil, io.Discard), "-out is missing")
}

// read adds the files of an archive to files.
func read(t *testing.T, archive io.ReadCloser, files map[string][]byte) {
	t.Helper()
	defer func() { require.NoError(t, archive.Close()) }()
	r := tar.NewReader(archive)
	for {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		require.Zero(t, head.ModTime.Unix())
		if head.Typeflag == tar.TypeReg {
			files[head.Name], err = io.ReadAll(r)
			require.NoError(t, err)
		}
	}
}
