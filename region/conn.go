// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	defaultDrain = 5 * time.Minute
	defaultAwait = 2 * time.Second
)

// Conn is a lasting connection to one peer. Clients made from it stay valid when the peer's credentials, CA or address
// change; see Rotate. It implements API with the peer's own credentials. A redirect by the peer is an error. It is safe
// for concurrent use.
type Conn struct {
	peer    *Peer
	opts    ConnOptions
	api     *clients
	own     *ownTransport
	caller  *callerTransport
	current atomic.Pointer[generation]
	retired atomic.Bool  // the peer left its Ring
	contact atomic.Int64 // when the peer last responded, in nanoseconds
	health  atomic.Pointer[Health]
	back    atomic.Pointer[chan struct{}] // closed and replaced by recover
	uid     atomic.Pointer[types.UID]     // of the cluster; never changes once known
	pinned  bool                          // uid was known at creation; until the peer has shown it, the Conn only reads the UID

	rotation atomic.Pointer[error] // why the last rotation failed
	rotating chan struct{}         // holds one value while a rotation runs
}

// ConnOptions configure a Conn. The zero value works.
type ConnOptions struct {
	// Drain is how long requests and streams with replaced credentials may continue; zero: 5 minutes.
	Drain time.Duration
	// Refresh is called when the peer rejects the credentials (401). It makes the source of the credentials read them
	// again, and must not block. May be nil.
	Refresh func()
	// Await limits how long rejected requests wait for newer credentials. The time counts from the first of several
	// rejections in a row. Zero means 2 seconds if Refresh is set, and no wait otherwise.
	Await time.Duration
	// Observer may be nil.
	Observer *Observer
}

// NewConn makes a connection to p. It does no network I/O and starts nothing. It rejects an invalid name. Other errors
// are *Error: p has no credentials, or no transport can be built from them.
func NewConn(p Peer, opts ConnOptions) (*Conn, error) {
	if err := p.Name.Validate(); err != nil {
		return nil, err
	}
	if opts.Drain <= 0 {
		opts.Drain = defaultDrain
	}
	if opts.Await <= 0 && opts.Refresh != nil {
		opts.Await = defaultAwait
	}
	c := &Conn{peer: p.clone(), opts: opts, rotating: make(chan struct{}, 1)}
	c.own, c.caller = &ownTransport{c}, &callerTransport{c}
	g, err := newGeneration(1, p.Credentials)
	if err != nil {
		return nil, &Error{Peer: p.Name, Op: "connect", Err: err}
	}
	c.current.Store(g)
	c.health.Store(&Health{})
	back := make(chan struct{})
	c.back.Store(&back)
	if p.UID != "" {
		c.uid.Store(&p.UID)
		c.pinned = true
	}
	config := c.Config()
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, &Error{Peer: p.Name, Op: "connect", Err: err}
	}
	if c.api, err = clientsFor(config, client); err != nil {
		return nil, &Error{Peer: p.Name, Op: "connect", Err: err}
	}
	return c, nil
}

// Peer returns the peer's name.
func (c *Conn) Peer() PeerName { return c.peer.Name }

// Dynamic returns a client of this peer. It has no client-side rate limit.
func (c *Conn) Dynamic() dynamic.Interface { return c.api.dynamic }

// Metadata returns a client of this peer. It has no client-side rate limit.
func (c *Conn) Metadata() metadata.Interface { return c.api.metadata }

// Discovery returns a client of this peer. Its calls time out after 32 seconds.
func (c *Conn) Discovery() Discovery { return c.api.discovery }

// Config returns a configuration for any client-go client. It is a copy: set UserAgent, QPS or Impersonate freely. With
// a BearerToken, the client's requests use that token only, as with CallerTransport. Host is a name that does not
// resolve, Transport sends each request through the Conn, and the TLS fields are empty; so the configuration works for
// everything except upgraded streams. QPS is -1: no client-side rate limit.
func (c *Conn) Config() *rest.Config {
	present := c.current.Load().creds.config
	return &rest.Config{
		Host:      fmt.Sprintf("https://%s.invalid", c.peer.Name),
		Transport: c.own,
		UserAgent: present.UserAgent,
		QPS:       -1,
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: present.AcceptContentTypes,
			ContentType:        present.ContentType,
		},
		WarningHandler:            present.WarningHandler,
		WarningHandlerWithContext: present.WarningHandlerWithContext,
	}
}

// StreamConfig returns a plain configuration with the current credentials, for SPDY and WebSocket (exec, attach,
// port-forward), which client-go dials without Transport. Use it for one stream only. Errors are *Error: ErrUnknownPeer
// if the peer has left its Ring, ErrUnavailable while Peer.UID is set and not yet verified; see UID.
func (c *Conn) StreamConfig() (*rest.Config, error) {
	g := c.current.Load()
	switch {
	case c.retired.Load():
		return nil, &Error{Peer: c.Peer(), Op: "stream", Err: ErrUnknownPeer}
	case c.pinned && g.uid.Load() == nil:
		return nil, &Error{Peer: c.Peer(), Op: "stream", Err: fmt.Errorf("%w: the UID of its cluster is not verified yet", ErrUnavailable)}
	}
	return copyConfig(g.creds.config), nil
}

// CallerTransport carries requests that bring their own Authorization header. It never presents the peer's client
// certificate, since an API server would prefer that certificate to the header. A request without a bearer token fails.
func (c *Conn) CallerTransport() http.RoundTripper { return c.caller }

// Health returns the result of the last probes. A Conn outside a Ring is not probed and stays Unknown.
func (c *Conn) Health() Health {
	h := *c.health.Load()
	g := c.current.Load()
	term := g.term.Load()
	h.Generation, h.Issued, h.Expires = g.number, term.From, term.To
	if at := c.contact.Load(); at != 0 {
		h.LastContact = time.Unix(0, at)
	}
	if err := c.rotation.Load(); err != nil {
		h.Rotation = *err
	}
	return h
}

// Recovered returns a channel that is closed at the first probe that succeeds, and then at each probe that succeeds
// after a failed one; each close is followed by a new channel. A caller can then retry at once instead of after its
// backoff. The channel of a Conn outside a Ring stays open.
func (c *Conn) Recovered() <-chan struct{} { return *c.back.Load() }

func (c *Conn) recover() {
	next := make(chan struct{})
	close(*c.back.Swap(&next))
}

// Rotate replaces the credentials. It builds transports for creds, reads the UID of the kube-system namespace with
// them, and uses them if the cluster is the same as before. From then on new requests use them; requests and streams on
// the old ones end after Drain. On any error the old ones stay in use. Errors are *Error: ErrOtherCluster,
// ErrIdentityUnknown, ErrUnavailable, or the peer's response. Rotate blocks; rotations of one Conn run one at a time.
// Credentials that are in use already are not an error.
func (c *Conn) Rotate(ctx context.Context, creds Credentials) error {
	began := time.Now()
	changed, err := c.replace(ctx, creds)
	if err == nil && !changed {
		return nil
	}
	if err != nil {
		err = &Error{Peer: c.Peer(), Op: "rotate", Err: cause(err)}
	}
	c.opts.Observer.rotated(ctx, RotateEvent{
		Peer: c.Peer(), Generation: c.current.Load().number, Elapsed: time.Since(began), Err: err,
	})
	return err
}

func (c *Conn) replace(ctx context.Context, creds Credentials) (changed bool, err error) {
	select {
	case c.rotating <- struct{}{}:
		defer func() { <-c.rotating }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	old := c.current.Load()
	if creds.err == nil && creds.equal(old.creds) {
		return false, nil
	}
	next, err := newGeneration(old.number+1, creds)
	if err != nil {
		return false, err
	}
	if _, err := c.identify(ctx, next); err != nil {
		return false, err
	}
	c.current.Store(next)
	old.supersede(c.opts.Drain)
	if c.retired.Load() {
		next.supersede(c.opts.Drain)
	}
	return true, nil
}

// Close rejects new requests (ErrUnknownPeer) and ends those that run. It is for a Conn of NewConn outside a Ring, and
// is idempotent.
func (c *Conn) Close() {
	c.retire()
	c.current.Load().end()
}

// Refresh makes the Source read newer credentials. Call it when a peer rejects the credentials of StreamConfig (401).
// For requests of Config with the peer's own credentials, the Conn calls it itself. It does not block, and does nothing
// without ConnOptions.Refresh.
func (c *Conn) Refresh() {
	if c.opts.Refresh != nil {
		c.opts.Refresh()
	}
}

// retire rejects new requests and ends the running ones after Drain, because the peer left its Ring.
func (c *Conn) retire() {
	c.retired.Store(true)
	c.current.Load().supersede(c.opts.Drain)
}
