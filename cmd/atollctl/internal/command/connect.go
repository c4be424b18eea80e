// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
)

const (
	userAgent = "atollctl"
	flatten   = "a kubeconfig must hold everything itself and one context: kubectl config view --minify --flatten; " +
		"for a context of your own kubeconfig, use --context NAME=CONTEXT"
)

// peers holds the connections of one run. The zero value has no connections.
type peers struct {
	region.Directory
}

// connect returns connections to all peers that the flags name. The first call makes the
// connections; later calls return the same ones. connect does no network I/O.
func (s *session) connect(ctx context.Context) (region.Directory, error) {
	if s.peers.Directory != nil {
		return s.peers.Directory, nil
	}
	listed, err := s.listed(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := region.NewSnapshot(listed...); err != nil {
		return nil, badInput("", "%w", err)
	}
	conns := make([]*region.Conn, 0, len(listed))
	var problems error
	for _, p := range listed {
		conn, err := region.NewConn(p, region.ConnOptions{})
		switch {
		case problems == nil:
			problems = err
		case err != nil:
			problems = fmt.Errorf("%w; %w", problems, err)
		}
		conns = append(conns, conn)
	}
	if problems != nil {
		return nil, badInput(flatten, "%w", problems)
	}
	s.peers.Directory = region.Fixed(conns...)
	return s.peers.Directory, nil
}

// listed returns the peers that the flags name.
func (s *session) listed(ctx context.Context) ([]region.Peer, error) {
	switch {
	case s.config != "" && len(s.kubeconfigs) > 0:
		return nil, badInput("use one of them", "--config and --kubeconfig both name peers")
	case s.config != "" && len(s.contexts) > 0:
		return nil, badInput("use one of them", "--config and --context both name peers")
	case s.flagsNamePeers():
		listed, err := fromKubeconfigs(s.kubeconfigs)
		if err != nil {
			return nil, err
		}
		others, err := s.fromContexts(s.contexts)
		return append(listed, others...), err
	}
	if file := s.peersFile(); file != "" {
		return fromFile(ctx, file)
	}
	return nil, badInput("use --context NAME=CONTEXT or --kubeconfig NAME=PATH for each peer, or --config FILE", "no peers are named")
}

// flagsNamePeers reports whether flags name single peers.
func (s *session) flagsNamePeers() bool { return len(s.kubeconfigs)+len(s.contexts) > 0 }

// peersFile returns the file that lists the peers: that of --config. If no flag names peers, it is
// that of ATOLL_CONFIG, else atoll/peers.yaml in the user's directory of configurations. It returns an
// empty path if there is no such file.
func (s *session) peersFile() string {
	if s.config != "" || s.flagsNamePeers() {
		return s.config
	}
	if file := s.getenv("ATOLL_CONFIG"); file != "" {
		return file
	}
	dir := s.userDir("XDG_CONFIG_HOME", ".config")
	file := filepath.Join(dir, "atoll", "peers.yaml")
	if _, err := os.Stat(file); !filepath.IsAbs(dir) || err != nil {
		return ""
	}
	return file
}

func fromKubeconfigs(flags []string) ([]region.Peer, error) {
	listed := make([]region.Peer, 0, len(flags))
	for _, flag := range flags {
		name, path, ok := strings.Cut(flag, "=")
		if !ok || path == "" {
			return nil, badInput("write --kubeconfig NAME=PATH", "--kubeconfig %q names no peer and path", flag)
		}
		if err := region.PeerName(name).Validate(); err != nil {
			return nil, badInput("write --kubeconfig NAME=PATH", "--kubeconfig %q: %w", flag, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, badInput("", "peer %s: read kubeconfig: %w", name, err)
		}
		credentials, err := region.ParseKubeconfig(data, region.Trust{})
		if err != nil {
			return nil, badInput(flatten, "peer %s: kubeconfig %s: %w", name, path, err)
		}
		listed = append(listed, region.Peer{Name: region.PeerName(name), Credentials: credentials})
	}
	return listed, nil
}

// fromFile reads the peers from the file once. It does not watch the file. The source's log is discarded: connect returns
// the same errors.
func fromFile(ctx context.Context, path string) ([]region.Peer, error) {
	if _, err := os.ReadFile(path); err != nil {
		return nil, badInput("", "--config: %w", err)
	}
	source, err := region.FromFile(path, region.Trust{})
	if err != nil {
		return nil, badInput("", "--config %s: %w", path, err)
	}
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, logr.Discard()))
	defer cancel()
	var first *region.Snapshot
	err = source.Run(ctx, func(s *region.Snapshot) {
		if first == nil {
			first = s
		}
		cancel()
	})
	switch {
	case err != nil:
		return nil, badInput("", "--config %s: %w", path, err)
	case first == nil:
		return nil, badInput("", "--config %s: %w", path, context.Cause(ctx))
	}
	var listed []region.Peer
	for p := range first.Peers() {
		listed = append(listed, *p)
	}
	if len(listed) == 0 {
		return nil, badInput("list at least one", "--config %s names no peers", path)
	}
	return listed, nil
}

// names returns the names of the peers for a message.
func (p peers) names() string {
	if p.Directory == nil {
		return "none"
	}
	var names []string
	for peer := range p.Snapshot().Peers() {
		names = append(names, string(peer.Name))
	}
	return strings.Join(names, ", ")
}

// known returns an error if no configured peer has the name. The error names flag, the flag whose
// value is the name.
func (p peers) known(flag string, name string) error {
	if _, err := p.Conn(region.PeerName(name)); err != nil {
		return badInput("known peers: "+p.names(), "%s %q: %w", flag, name, region.ErrUnknownPeer)
	}
	return nil
}

// peerNames returns the candidates for shell completion of a peer name. It does no network I/O.
func (s *session) peerNames() []string {
	var names []string
	for _, flag := range s.kubeconfigs {
		if name, _, ok := strings.Cut(flag, "="); ok {
			names = append(names, name)
		}
	}
	for _, flag := range s.contexts {
		name, _, _ := strings.Cut(flag, "=")
		names = append(names, name)
	}
	if file := s.peersFile(); file != "" {
		// An unreadable file adds no candidates.
		listed, _ := fromFile(context.Background(), file)
		for _, p := range listed {
			names = append(names, string(p.Name))
		}
	}
	slices.Sort(names)
	return names
}
