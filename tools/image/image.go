// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// epoch is the time of all files and of the image, so that the same content has the same digest.
var epoch = time.Unix(0, 0).UTC()

// compile returns the program in a folder of the repository, built for Linux so that it depends on nothing.
func compile(ctx context.Context, program, arch string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, ".")
	cmd.Dir = filepath.Join("..", "..", filepath.FromSlash(program))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=", "GOAMD64=", "GOARM64=", "GOEXPERIMENT=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build of %s: %w: %s", program, err, text)
	}
	return os.ReadFile(file)
}

// assemble returns the image of a program: the authorities below, the program above.
func assemble(program, arch string, binary []byte) (v1.Image, error) {
	name := path.Base(program)
	authorities, err := layerOf(entry{"etc/ssl/certs/ca-certificates.crt", 0o444, roots()})
	if err != nil {
		return nil, err
	}
	own, err := layerOf(entry{name, 0o555, binary})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, authorities, own); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, config(image, name, arch))
}

// config returns the configuration of the image: the program runs as a user without rights.
func config(image v1.Image, name, arch string) *v1.ConfigFile {
	file, err := image.ConfigFile()
	if err != nil {
		file = &v1.ConfigFile{}
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: []string{"/" + name}, User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{"org.opencontainers.image.source": "https://github.com/atoll-dev/atoll", "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return file
}

// entry is a file of a layer.
type entry struct {
	name string
	mode int64
	data []byte
}

// layerOf returns a layer with one file, and the folders above it.
func layerOf(e entry) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, dir := range above(e.name) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: epoch, Format: tar.FormatPAX}); err != nil {
		return nil, err
	}
	if _, err := w.Write(e.data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// above returns the folders above a file, outermost first.
func above(name string) []string {
	var dirs []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}

// roots returns the certificate authorities in PEM.
func roots() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot express the constraint
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

// write writes the image to a new folder.
func write(folder string, image v1.Image) error {
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists already", folder)
	}
	at, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return at.AppendImage(image)
}
