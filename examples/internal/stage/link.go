// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
)

// Link forwards connections to a cluster while it is not cut. Its methods are safe for concurrent use.
type Link struct {
	to       string
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
}

// NewLink returns a link to the cluster of a kubeconfig, and a kubeconfig that leads through the
// link.
func NewLink(data []byte) (*Link, []byte, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, nil, err
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil {
		return nil, nil, errors.New("the kubeconfig has no current context with a cluster")
	}
	server := config.Clusters[current.Cluster]
	to, err := url.Parse(server.Server)
	if err != nil {
		return nil, nil, err
	}
	l := &Link{to: to.Host, conns: map[net.Conn]bool{}}
	if to.Port() == "" {
		l.to = net.JoinHostPort(to.Hostname(), "443")
	}
	var listen net.ListenConfig
	if l.listener, err = listen.Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, err
	}
	if server.TLSServerName == "" {
		server.TLSServerName = to.Hostname()
	}
	to.Host = l.listener.Addr().String()
	server.Server = to.String()
	through, err := clientcmd.Write(*config)
	if err != nil {
		return nil, nil, errors.Join(err, l.listener.Close())
	}
	l.running.Go(l.serve)
	return l, through, nil
}

func (l *Link) serve() {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		if !l.keep(conn) {
			continue
		}
		l.running.Go(func() { l.pass(conn) })
	}
}

// keep registers a connection, or closes it if the link is cut.
func (l *Link) keep(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = conn.Close()
		return false
	}
	l.conns[conn] = true
	return true
}

func (l *Link) pass(from net.Conn) {
	defer l.forget(from)
	var dialer net.Dialer
	to, err := dialer.DialContext(context.Background(), "tcp", l.to)
	if err != nil || !l.keep(to) {
		return
	}
	defer l.forget(to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].Close()
		})
	}
	both.Wait()
}

func (l *Link) forget(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, conn)
}

// Cut closes all connections and rejects new ones if down is true. Otherwise the link accepts
// connections again.
func (l *Link) Cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	if down {
		for conn := range l.conns {
			_ = conn.Close()
		}
	}
}

// IsCut reports whether the link is cut.
func (l *Link) IsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// Close ends the link and waits for its goroutines.
func (l *Link) Close() {
	_ = l.listener.Close()
	l.Cut(true)
	l.running.Wait()
}
