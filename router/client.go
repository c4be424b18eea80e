// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region"
)

// Client is a region.API that acts with a caller's identity. It is safe for concurrent use. Its errors are the peer's
// own answers, or *region.Error values. A *region.Error wraps region.ErrUnknownRegion, region.ErrUnknownPeer,
// region.ErrUnavailable, ErrCredentials, ErrBusy, ErrIdentity, the error of the request's context, the Resolver's
// refusal, or the error for a redirect.
type Client struct {
	api       region.API
	raw       rest.Interface
	transport *clientTransport
}

// Dynamic returns a dynamic client that sends requests to the region with the identity of c.
func (c *Client) Dynamic() dynamic.Interface { return c.api.Dynamic() }

// Metadata returns a metadata client that sends requests to the region with the identity of c.
func (c *Client) Metadata() metadata.Interface { return c.api.Metadata() }

// Discovery returns a client for the types that the region's peer serves to the identity of c. Each call times out
// after 32 seconds.
func (c *Client) Discovery() region.Discovery { return c.api.Discovery() }

// Region returns the region that c sends requests to.
func (c *Client) Region() region.Key { return c.transport.key }

// Health returns the state of the peer that serves the region now, without I/O. Health.State is Unknown if no peer
// is known.
func (c *Client) Health() region.Health { return c.transport.router.Health(c.transport.key) }

// Recovered returns a channel that is closed when a probe finds the region's present peer reachable again; see
// region.Conn.Recovered. It is nil if no peer is known.
func (c *Client) Recovered() <-chan struct{} {
	if conn := c.transport.router.known(c.transport.key); conn != nil {
		return conn.Recovered()
	}
	return nil
}

// REST returns a client for raw requests to the region with the identity of c; see region.RESTFor.
func (c *Client) REST() rest.Interface { return c.raw }

// Transport returns a RoundTripper that sends any request except upgraded streams to the region, with the identity
// of c. Use it in reverse proxies. It uses path and query of the request's URL and ignores scheme and host. It
// removes identity headers and hop-by-hop headers; see StripIdentity. A redirect by the peer is an error.
func (c *Client) Transport() http.RoundTripper { return c.transport }

// HTTPClient returns an HTTP client that uses Transport. It has no timeout of its own: limit each request by its
// context. URLs begin with Config().Host.
func (c *Client) HTTPClient() *http.Client { return &http.Client{Transport: c.transport} }

// Client returns the API of region k for the identity id. It sends nothing to a peer. If no route to k is known, it
// asks the Resolver, as Lookup does, and ignores an error of the Resolver: no peer need serve k yet. The Client looks
// up the peer for each request, so it follows the region when the region moves to another peer. Open watches then end,
// and a list or watch from an older resourceVersion gets 410 Gone, so that informers list again instead of mixing two
// histories. Errors: k is not a valid region name, id is refused, or New did not make r.
func (r *Router) Client(k region.Key, id Identity) (*Client, error) {
	if r.directory == nil {
		return nil, errNotMade
	}
	if err := k.Validate(); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	id, err := r.identify(k, id)
	if err != nil {
		return nil, fmt.Errorf("router: client of region %s: %w", k, err)
	}
	c := &Client{transport: newTransport(r, k, id)}
	config := c.Config()
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	api, err := region.APIFor(config)
	if err != nil {
		return nil, fmt.Errorf("router: client of region %s: %w", k, err)
	}
	if c.raw, err = region.RESTFor(config); err != nil {
		return nil, fmt.Errorf("router: client of region %s: %w", k, err)
	}
	c.api = api
	return c, nil
}

// Config returns a configuration for any client-go client with the identity of c, except for upgraded streams. The
// caller may modify the configuration. Credentials and impersonation that the caller sets in it are removed from the
// requests. If no route to the region is known, Config asks the Resolver, as Lookup does.
func (c *Client) Config() *rest.Config {
	config := &rest.Config{
		Host:      fmt.Sprintf("https://%s.invalid", c.transport.key),
		Transport: c.transport,
		QPS:       -1,
	}
	if conn, err := c.transport.conn(); err == nil {
		config.ContentConfig = conn.Config().ContentConfig
	}
	return config
}

// StreamConfig returns a configuration without a Transport, for SPDY and WebSocket streams with the identity of c to
// the peer that serves the region now. Use it for one stream only. For Self and Impersonate it holds the library's
// credentials. It looks up the region as Lookup does. Errors: those of Lookup, region.ErrUnknownPeer,
// region.ErrUnavailable, ErrIdentity.
func (c *Client) StreamConfig() (*rest.Config, error) {
	conn, err := c.transport.conn()
	if err != nil {
		return nil, err
	}
	if err := c.transport.router.guards.place(c.transport.id, conn.Peer()); err != nil {
		return nil, &region.Error{Peer: conn.Peer(), Region: c.transport.key, Op: "stream", Err: err}
	}
	config, err := conn.StreamConfig()
	if err != nil {
		return nil, &region.Error{Peer: conn.Peer(), Region: c.transport.key, Op: "stream", Err: err}
	}
	return c.transport.router.guards.stream(c.transport.id, config), nil
}

// BeginStream counts an upgraded stream against the region's Budget.Streams. A program opens such a stream with
// StreamConfig. The caller must call end when the stream has ended. Errors: ErrBusy, and the errors of Lookup.
func (c *Client) BeginStream(ctx context.Context) (end func(), err error) {
	e, err := c.transport.router.lookup(ctx, c.transport.key)
	if err != nil {
		return nil, err
	}
	if end, err = e.budget.open(ctx); err != nil {
		return nil, &region.Error{Peer: e.Peer, Region: c.transport.key, Op: "stream", Err: err}
	}
	return end, nil
}

var _ region.API = (*Client)(nil)
