// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// target is the destination of a request.
type target struct {
	clients *clients
	key     key
	path    string // the path at the peer, encoded
}

// target reads the destination of a request from its path. Every invalid destination gets a 404. If the caller is no
// operator, /peers gets the same answer as an unknown path.
func (p *Proxy) target(r *http.Request, id router.Identity) (target, error) {
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	name, path, _ := strings.Cut(rest, "/")
	t := target{clients: p.regions, path: "/" + path}
	name, err := url.PathUnescape(name)
	switch {
	case err != nil:
	case kind == "regions" || kind == "clusters":
		t.key, err = region.ParseKey(name)
	case kind == "peers" && p.peers != nil && p.guards.operator(p.operator(r, id)):
		t.clients, t.key = p.peers, key{Provider: peerProvider, Name: name}
		err = t.key.Validate()
	default:
		return target{}, refusal{http.StatusNotFound, "nothing is served at this path; want /regions/NAME.PROVIDER/..."}
	}
	if err != nil {
		return target{}, refusal{http.StatusNotFound, "this is no region's name; want /regions/NAME.PROVIDER/..."}
	}
	return t, nil
}

// locate sets u to the URL of t. The host in it is a placeholder, which the transport replaces by the peer's host.
func (t target) locate(u *url.URL) {
	u.Scheme, u.Host, u.User = "https", t.key.String()+".invalid", nil
	u.RawPath = t.path
	u.Path, _ = url.PathUnescape(t.path) // no error: the whole path was decoded before
}
