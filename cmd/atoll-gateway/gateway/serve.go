// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/reload"
)

// certificate is the serving certificate, read again when its files change.
type certificate struct {
	files   *reload.Files
	present atomic.Pointer[tls.Certificate]
}

func readCertificate(certificateFile, keyFile string) (*certificate, error) {
	c := &certificate{}
	var err error
	c.files, err = reload.New("serving certificate", func(contents ...[]byte) error {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		if err == nil {
			c.present.Store(&pair)
		}
		return err
	}, certificateFile, keyFile)
	return c, err
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.present.Load(), nil
}

// expiry returns the time at which the certificate expires.
func (c *certificate) expiry() time.Time {
	if leaf, err := x509.ParseCertificate(c.present.Load().Certificate[0]); err == nil {
		return leaf.NotAfter
	}
	return time.Time{}
}

// serve serves on both listeners until ctx ends, and then drains. Requests have contexts of running, whose end cuts them.
func (g *Gateway) serve(ctx, running context.Context, clients, health net.Listener) error {
	config := &tls.Config{GetCertificate: g.cert.get, MinVersion: tls.VersionTLS12}
	if g.config.Authentication.ClientCertificates != nil {
		config.ClientAuth = tls.RequestClientCert // authn checks it, with the present authorities
	}
	// Most lines of net/http are about connections that their clients ended: scanners, and probes of load balancers.
	lines := slog.NewLogLogger(logr.ToSlogHandler(logr.FromContextOrDiscard(ctx).WithName("http").V(1)), slog.LevelInfo)
	base := func(net.Listener) context.Context { return running }
	server := &http.Server{
		Handler: withCORS(g, g.config.Serving.AllowedOrigins), TLSConfig: config, BaseContext: base, ErrorLog: lines,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250},
	}
	probes := &http.Server{
		Handler: g.healthHandler(), BaseContext: base, ErrorLog: lines, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	group, ended := errgroup.WithContext(ctx)
	group.Go(func() error { return notClosed(server.ServeTLS(clients, "", "")) })
	group.Go(func() error { return notClosed(probes.Serve(health)) })
	group.Go(func() error {
		select {
		case <-ended.Done(): // ctx has ended, or a server has failed
		case <-running.Done(): // a part has failed
		}
		defer func() { _ = probes.Close() }()
		g.drain(running, server)
		return nil
	})
	return group.Wait()
}

func notClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// drain ends server: it serves on until load balancers have noticed that /readyz fails, then takes no connection and no
// stream, and waits for requests.
func (g *Gateway) drain(ctx context.Context, server *http.Server) {
	log := logr.FromContextOrDiscard(ctx)
	close(g.draining)
	log.Info("The gateway drains", "delay", g.config.Drain.Delay.Duration.String(), "timeout", g.config.Drain.Timeout.Duration.String())
	select {
	case <-time.After(g.config.Drain.Delay.Duration):
	case <-ctx.Done():
	}
	g.streams.drain()
	closing, cancel := context.WithTimeout(ctx, g.config.Drain.Timeout.Duration)
	defer cancel()
	if err := server.Shutdown(closing); err != nil {
		log.Info("Requests did not end in time, and are cut", "timeout", g.config.Drain.Timeout.Duration.String())
		_ = server.Close()
	}
}
