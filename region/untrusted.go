// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// untrustedHeader bounds the header of a response of a server that is not trusted, in bytes.
const untrustedHeader = 64 << 10

// UntrustedClient returns an HTTP client for the server of the credentials, and the server's address, for a program
// that trusts neither: a tenant's kubeconfig, for example. Every request has its own connection, by dial, which decides
// which addresses are allowed; nil means net.Dialer. The client sends the credentials and no others, follows no
// redirect, uses no proxy, and accepts at most 64 KiB of header. The caller bounds the time and the body. It does no I/O.
// It returns an error for the zero value, and for a FromConfig with functions or a Transport, which could do all of this
// differently. The client is safe for concurrent use.
func (c Credentials) UntrustedClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) (*http.Client, *url.URL, error) {
	if err := c.check(); err != nil {
		return nil, nil, err
	}
	if c.config.Transport != nil || c.config.WrapTransport != nil || c.config.Dial != nil || c.config.Proxy != nil {
		return nil, nil, errors.New("credentials: a configuration with Transport, WrapTransport, Dial or Proxy, or a kubeconfig with proxy-url, cannot be used for a server that is not trusted")
	}
	server, _, err := rest.DefaultServerUrlFor(c.config)
	if err != nil {
		return nil, nil, err
	}
	verify, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return nil, nil, err
	}
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	transport, err := rest.HTTPWrappersForConfig(c.config, &http.Transport{
		DialContext: dial, TLSClientConfig: verify, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: untrustedHeader,
	})
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, server, nil
}
