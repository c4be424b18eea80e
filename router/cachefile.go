// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/atomicfile"
	"github.com/atoll-dev/atoll/region"
)

// FileCache is a Cache in one file.
type FileCache struct {
	path    string
	routes  []CachedRoute
	damaged string
}

const (
	fileFormat  = "atoll.dev/routes"
	fileVersion = 1
)

// routesFile is the content of the file. Sum is the SHA-256 of the bytes of Routes.
type routesFile struct {
	Format  string          `json:"format"`
	Version int             `json:"version"`
	Sum     string          `json:"sha256"`
	Routes  json.RawMessage `json:"routes"`
}

type fileRoute struct {
	Region string          `json:"region"`
	Peer   region.PeerName `json:"peer"`
	UID    types.UID       `json:"uid,omitempty"`
	Source bool            `json:"source,omitempty"`
	At     time.Time       `json:"at"`
}

// OpenCache reads the file at path. The file need not exist, but its directory must. OpenCache renames a damaged file,
// see Damaged: the program then starts without the saved routes and learns them again. The file has mode 0600. It
// decides which of the Directory's peers receives a region's requests: keep it where other users cannot write. Errors:
// path is empty, its directory does not exist, the file cannot be read or renamed, or a later version of this library
// wrote the file. If two processes share a file, the last write wins.
func OpenCache(path string) (*FileCache, error) {
	if path == "" {
		return nil, errors.New("cache: the path is empty; give that of a file in an existing directory")
	}
	c := &FileCache{path: path}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("cache %s: %w", path, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("cache %s: its parent is no directory", path)
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("cache: %w", err)
	}
	if c.routes, err = decodeRoutes(data); err == nil {
		return c, nil
	}
	if errors.Is(err, errLater) {
		return nil, fmt.Errorf("cache %s: %w", path, err)
	}
	c.damaged = path + ".damaged"
	if err := os.Rename(path, c.damaged); err != nil {
		return nil, fmt.Errorf("cache %s is damaged: %w", path, err)
	}
	return c, nil
}

// Damaged returns the path to which OpenCache renamed a damaged file. It returns "" if the file was intact or did not
// exist.
func (c *FileCache) Damaged() string { return c.damaged }

// Load returns the routes that OpenCache read or, after a Save, the saved ones.
func (c *FileCache) Load() ([]CachedRoute, error) { return c.routes, nil }

// Save replaces the file of the cache: it writes a temporary file in the same directory, syncs the temporary file, and
// renames it to the cache's path.
func (c *FileCache) Save(routes []CachedRoute) error {
	if c.path == "" {
		return errors.New("cache: the FileCache was not made by OpenCache")
	}
	data, err := encodeRoutes(routes)
	if err != nil {
		return fmt.Errorf("cache %s: %w", c.path, err)
	}
	if err := atomicfile.Replace(c.path, data); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	c.routes = routes
	return nil
}

var errLater = errors.New("it was written by a later version of this library")

func encodeRoutes(routes []CachedRoute) ([]byte, error) {
	listed := make([]fileRoute, len(routes))
	for i, c := range routes {
		listed[i] = fileRoute{Region: c.Region.String(), Peer: c.Peer, UID: c.UID, Source: c.Source, At: c.At.UTC()}
	}
	raw, err := json.Marshal(listed)
	if err != nil {
		return nil, err
	}
	return json.Marshal(routesFile{Format: fileFormat, Version: fileVersion, Sum: sum(raw), Routes: raw})
}

func decodeRoutes(data []byte) ([]CachedRoute, error) {
	var file routesFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	switch {
	case file.Format != fileFormat:
		return nil, fmt.Errorf("its format is %q, not %q", file.Format, fileFormat)
	case file.Version > fileVersion:
		return nil, fmt.Errorf("%w (%d)", errLater, file.Version)
	case file.Version < 1:
		return nil, fmt.Errorf("its version is %d", file.Version)
	case file.Sum != sum(file.Routes):
		return nil, errors.New("its checksum is wrong")
	}
	var listed []fileRoute
	if err := json.Unmarshal(file.Routes, &listed); err != nil {
		return nil, err
	}
	now := time.Now()
	routes := make([]CachedRoute, len(listed))
	for i, l := range listed {
		k, err := region.ParseKey(l.Region)
		if err != nil {
			return nil, err
		}
		if err := l.Peer.Validate(); err != nil {
			return nil, err
		}
		if l.At.After(now) {
			l.At = now // the clock was set back after the save: a route cannot have been confirmed in the future
		}
		routes[i] = CachedRoute{Region: k, Peer: l.Peer, UID: l.UID, Source: l.Source, At: l.At}
	}
	return routes, nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
