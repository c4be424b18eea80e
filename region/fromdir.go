// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// FromDir makes a Source of a directory that holds one kubeconfig per file; the file's base name without its extension
// is the name of the peer. The Source skips directories and files whose name begins with a dot, so that a mounted
// Secret or ConfigMap works as it is. Its peers serve no regions; see FromFile.
//
// The directory is read every second and whenever a peer rejects its credentials. A file that cannot be used is logged,
// and its peer keeps its last good credentials; if there are none, Conn returns the error. A deleted file removes the
// peer. Nothing changes if the directory cannot be read, has two files with the same base name, or becomes empty, as an
// unmounted volume does. If the first read finds the directory in such a state, Run fails.
func FromDir(path string, trust Trust) (Source, error) { return newFiles(path, trust, readDir) }

func readDir(f *files) ([]Peer, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, fmt.Errorf("directory of kubeconfigs: %w", err)
	}
	var peers []Peer
	present := make(map[PeerName]bool)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") || entry.IsDir() {
			continue
		}
		file := filepath.Join(f.path, entry.Name())
		name := PeerName(strings.TrimSuffix(entry.Name(), filepath.Ext(entry.Name())))
		if err := name.Validate(); err != nil {
			f.problems[file] = fmt.Errorf("the file's name is not the name of a peer: %w", err)
			continue
		}
		data, err := readBounded(file)
		if err != nil && gone(file) {
			continue
		}
		peers = append(peers, Peer{Name: name, Credentials: f.credentials(name, file, data, err)})
		present[name] = true
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("directory of kubeconfigs: %s is empty", f.path)
	}
	maps.DeleteFunc(f.good, func(name PeerName, _ Credentials) bool { return !present[name] })
	return peers, nil
}

// gone reports whether a file was deleted after the directory was listed. A dangling link still exists.
func gone(file string) bool {
	_, err := os.Lstat(file)
	return errors.Is(err, fs.ErrNotExist)
}
