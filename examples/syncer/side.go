// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
)

// side is an API server with a kubeconfig in a file.
type side struct {
	*region.Conn
	path  string
	trust region.Trust
	read  []byte // last content of the file in use
}

func open(name region.PeerName, path string, trust region.Trust) (*side, error) {
	data, credentials, err := read(path, trust)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	conn, err := region.NewConn(region.Peer{Name: name, Credentials: credentials}, region.ConnOptions{})
	if err != nil {
		return nil, err
	}
	return &side{Conn: conn, path: path, trust: trust, read: data}, nil
}

func read(path string, trust region.Trust) ([]byte, region.Credentials, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, region.Credentials{}, err
	}
	credentials, err := region.ParseKubeconfig(data, trust)
	return data, credentials, err
}

// follow reads the file at the interval every until ctx ends, and uses each new kubeconfig. It logs
// an unusable kubeconfig and keeps the previous one.
func (s *side) follow(ctx context.Context, every time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		data, credentials, err := read(s.path, s.trust)
		if err == nil && bytes.Equal(data, s.read) {
			continue
		}
		if err == nil {
			err = s.Rotate(ctx, credentials)
		}
		if err != nil {
			logr.FromContextOrDiscard(ctx).Info("The kubeconfig is not used", "path", s.path, "reason", err.Error())
			continue
		}
		s.read = data
		logr.FromContextOrDiscard(ctx).Info("New credentials are used", "path", s.path)
	}
}
