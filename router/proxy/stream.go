// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/router"
)

// upgradeOf returns the protocol to which the headers h ask to upgrade, or "".
func upgradeOf(h http.Header) string {
	for _, list := range h["Connection"] {
		for option := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(option), "upgrade") {
				return h.Get("Upgrade")
			}
		}
	}
	return ""
}

// stream returns a transport for one upgraded stream. It is client-go's transport with the peer's TLS and the
// caller's present identity. An upgraded connection is used only once.
func (p *Proxy) stream(c *router.Client) (http.RoundTripper, error) {
	config, err := c.StreamConfig()
	if err != nil {
		return nil, err
	}
	p.guards.stream(config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	return &streamTransport{base: base, transport: transport}, nil
}

// streamTransport sends requests to the server of a configuration.
type streamTransport struct {
	base      *url.URL
	transport http.RoundTripper
}

func (t *streamTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	out := *req
	u := *req.URL
	u.Scheme, u.Host = t.base.Scheme, t.base.Host
	if prefix := strings.TrimSuffix(t.base.EscapedPath(), "/"); prefix != "" {
		u.Path, u.RawPath = strings.TrimSuffix(t.base.Path, "/")+u.Path, prefix+u.EscapedPath()
	}
	out.URL = &u
	return t.transport.RoundTrip(&out)
}

// upgraded is the body of an answer that switches protocols. A peer that refuses the client's bytes may have sent bytes
// that the client does not have yet, such as the output of a command that ended. So after a failed write, the client's
// bytes are dropped, and the stream goes on until one side closes it.
type upgraded struct {
	io.ReadWriteCloser
	refusal error
}

func (u *upgraded) Write(p []byte) (int, error) {
	if u.refusal == nil {
		_, u.refusal = u.ReadWriteCloser.Write(p)
	}
	return len(p), nil
}

// CloseWrite tells the peer that the client has closed its side.
func (u *upgraded) CloseWrite() error {
	if half, ok := u.ReadWriteCloser.(interface{ CloseWrite() error }); ok && u.refusal == nil {
		return half.CloseWrite()
	}
	return cmp.Or(u.refusal, errors.ErrUnsupported)
}
