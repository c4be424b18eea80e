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

// FromDir is a Source of a directory that holds one kubeconfig per file; the file's base name without its extension is
// the peer. Files whose name begins with a dot and directories are left out, so that a mounted Secret or ConfigMap can be
// given as it is. Peers from it serve no regions; see FromFile.
//
// The directory is read every second and whenever a peer refuses its credentials. A file that cannot be used keeps the
// last good credentials of its peer and is logged; if there never were any, Conn says what is wrong with it. A deleted
// file removes the peer. A directory that cannot be read, that has two files of one base name, or that is empty all of a
// sudden as a volume is that is not mounted, changes nothing. Run fails if the directory is so at first.
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
			f.problems[file] = fmt.Errorf("the file's name names no peer: %w", err)
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
		return nil, fmt.Errorf("directory of kubeconfigs: %s holds none", f.path)
	}
	maps.DeleteFunc(f.good, func(name PeerName, _ Credentials) bool { return !present[name] })
	return peers, nil
}

// gone reports that a file was deleted after the directory was listed. A link that leads nowhere is there.
func gone(file string) bool {
	_, err := os.Lstat(file)
	return errors.Is(err, fs.ErrNotExist)
}
