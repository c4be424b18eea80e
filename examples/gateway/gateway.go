// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/apiserver"
	"github.com/atoll-dev/atoll/router/proxy"
)

// gateway serves until ctx ends.
func gateway(ctx context.Context, o options, stdout io.Writer) error {
	source, done, err := sourceOf(ctx, o)
	if err != nil {
		return err
	}
	defer done()
	known, err := usersOf(o)
	if err != nil {
		return err
	}
	ring, err := region.NewRing(source, region.Options{})
	if err != nil {
		return err
	}
	sharing, err := aggregate.NewSharing(aggregate.SharingOptions{})
	if err != nil {
		return err
	}
	handler, err := newHandler(ring, known, sharing, o)
	if err != nil {
		return err
	}
	certificate, err := certificateOf(o)
	if err != nil {
		return err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return ring.Start(ctx) })
	group.Go(func() error { return sharing.Start(ctx) })
	<-sharing.Started() // the first watches after a restart are shared too
	group.Go(func() error { return serve(ctx, listener, handler, certificate.pair) })
	group.Go(func() error {
		select {
		case <-ring.Synced():
			return explain(stdout, listener.Addr().String(), certificate, known, ring.Snapshot())
		case <-ctx.Done():
			return nil
		}
	})
	return group.Wait()
}

// newHandler returns the gateway's handler, without a listener.
func newHandler(ring region.Directory, known users, sharing *aggregate.Sharing, o options) (http.Handler, error) {
	// The proxy has its own limits, so a request that it admits must not wait here again. In
	// addition to the requests to one region, reads of all regions send it up to half as many.
	budget := router.Budget{QPS: float32(o.qps), InFlight: o.limits.RequestsPerRegion * 3 / 2, Streams: 1500}
	routes, err := router.New(ring, router.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	opts := proxy.Options{Limits: o.limits}
	if o.operators != "" {
		if opts.Peers, err = router.New(proxy.Peers(ring), router.Options{Budget: budget}); err != nil {
			return nil, err
		}
		opts.Operator = func(r *http.Request, _ router.Identity) bool { return known.inGroup(r, o.operators) }
	}
	single, err := proxy.New(routes, known.authenticate, opts)
	if err != nil {
		return nil, err
	}
	return apiserver.New(routes, single, apiserver.Options{Sharing: sharing})
}

// serve serves on listener until ctx ends, which also ends watches and streams.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, certificate tls.Certificate) error {
	server := &http.Server{
		Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250},
	}
	closed := make(chan error, 1)
	go func() {
		<-ctx.Done()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(closing); err != nil {
			_ = server.Close() // remaining connections are closed
		}
		closed <- nil
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}

// explain prints how to use the gateway.
func explain(stdout io.Writer, address string, c *certificate, known users, s *region.Snapshot) error {
	for _, u := range known.madeUp {
		if _, err := fmt.Fprintf(stdout, "all regions:\n  kubectl '--server=https://%s/regions/*' --certificate-authority=%s --token=%s get configmaps -A\n", address, c.path, u); err != nil {
			return err
		}
	}
	for key, peer := range s.Regions() {
		if _, err := fmt.Fprintf(stdout, "%s, served by peer %s:\n", key, peer.Name); err != nil {
			return err
		}
		for _, u := range known.madeUp {
			if _, err := fmt.Fprintf(stdout, "  kubectl --server=https://%s/regions/%s --certificate-authority=%s --token=%s get --raw /version\n", address, key, c.path, u); err != nil {
				return err
			}
		}
	}
	return nil
}
