// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"sync"

	"github.com/atoll-dev/atoll/router"
)

// maxClients is the maximum size of each of the two generations of cached clients.
const maxClients = 2048

// clients caches the clients of regions by identity. A client must be reused because it records which peer its
// caller's resourceVersions came from.
type clients struct {
	routes *router.Router
	max    int

	mu         sync.Mutex
	young, old map[clientKey]*router.Client
}

type clientKey struct {
	key      key
	identity string
}

func newClients(routes *router.Router) *clients {
	return &clients{routes: routes, max: maxClients, young: map[clientKey]*router.Client{}}
}

// get returns the client of region k for the identity id. Its errors are those of Router.Lookup and of Router.Client.
func (c *clients) get(ctx context.Context, k key, id router.Identity) (*router.Client, error) {
	if _, err := c.routes.Lookup(ctx, k); err != nil {
		return nil, err
	}
	at := clientKey{k, id.Fingerprint()}
	if client := c.find(at); client != nil {
		return client, nil
	}
	client, err := c.routes.Client(k, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if present := c.young[at]; present != nil {
		return present, nil
	}
	c.keep(at, client)
	return client, nil
}

func (c *clients) find(at clientKey) *router.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.young[at]; client != nil {
		return client
	}
	client := c.old[at]
	if client != nil {
		c.keep(at, client)
	}
	return client
}

// keep puts a client that was just used into the young generation. A full young generation becomes the old one, and
// the previous old generation is dropped. The caller holds c.mu.
func (c *clients) keep(at clientKey, client *router.Client) {
	if len(c.young) >= c.max {
		c.young, c.old = make(map[clientKey]*router.Client), c.young
	}
	c.young[at] = client
}
