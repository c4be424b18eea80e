// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Conn is a lasting connection to one peer. Clients made from it stay valid when the peer's credentials, CA or address
// change; see Rotate. It is an API, as ourselves, and safe for concurrent use.
type Conn struct {
	peer *Peer
	api  *clients
}

// ConnOptions adjust a Conn. The zero value works.
type ConnOptions struct {
	// Drain is how long requests and streams of replaced credentials may go on; zero: 5 minutes.
	Drain time.Duration
	// Refresh is called when the peer refuses the credentials (401). It asks whoever provides them to look again, and
	// must not block. May be nil.
	Refresh func()
	// Await is how long a refused request waits for newer credentials; zero: 2 seconds if Refresh is set, otherwise it
	// does not wait.
	Await time.Duration
	// Observer may be nil.
	Observer *Observer
}

// NewConn makes a connection to p. It does no I/O and starts nothing.
func NewConn(p Peer, opts ConnOptions) (*Conn, error) { return nil, errors.New("not yet") }

// Peer returns the peer's name.
func (c *Conn) Peer() PeerName { return c.peer.Name }

// Dynamic returns a client of this peer, without a limit of its own on requests per second.
func (c *Conn) Dynamic() dynamic.Interface { return c.api.dynamic }

// Metadata returns a client of this peer, without a limit of its own on requests per second.
func (c *Conn) Metadata() metadata.Interface { return c.api.metadata }

// Discovery returns a client of this peer. Its calls end after 32 seconds.
func (c *Conn) Discovery() Discovery { return c.api.discovery }

// Config returns a configuration for any client-go client. It is a copy: set UserAgent, QPS or Impersonate freely. Its
// Transport is the Conn and its TLS fields are empty, so it serves everything except upgraded streams.
func (c *Conn) Config() *rest.Config { return nil }

// StreamConfig returns a plain configuration with the credentials of this moment, for SPDY and WebSocket (exec, attach,
// port-forward), which client-go dials around Transport. Use it for one stream and drop it.
func (c *Conn) StreamConfig() (*rest.Config, error) { return nil, nil }

// CallerTransport carries requests that bring their own Authorization header. It never presents the peer's client
// certificate, since an API server would prefer that certificate to the header. A request without a bearer token fails.
func (c *Conn) CallerTransport() http.RoundTripper { return nil }

// Rotate builds, probes and swaps in new credentials. On error the old ones stay in use. Errors: ErrOtherCluster,
// ErrUnavailable, or what the peer answered.
func (c *Conn) Rotate(ctx context.Context, creds Credentials) error { return nil }

// UID returns the UID of the peer's kube-system namespace, which identifies the cluster: two names for one cluster are
// found by it. It is read once per generation of the credentials and remembered. It needs the right to get that
// namespace.
func (c *Conn) UID(ctx context.Context) (types.UID, error) { return "", nil }

// Health returns what the last probes found. A Conn that is in no Ring is not probed and stays Unknown.
func (c *Conn) Health() Health { return Health{} }
