// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import "errors"

// FromPeers is a Source of fixed peers.
func FromPeers(peers ...Peer) (Source, error) { return nil, errors.New("not yet") }

// FromDir is a Source of a directory that holds one kubeconfig per file; the file's base name is the peer.
func FromDir(path string, trust Trust) (Source, error) { return nil, errors.New("not yet") }

// FromFile is a Source of one file that lists peers, their regions and kubeconfigs.
func FromFile(path string, trust Trust) (Source, error) { return nil, errors.New("not yet") }
