// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"

	atollprometheus "github.com/atoll-dev/atoll/adapters/prometheus"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/config"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/audit"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/authn"
	"github.com/atoll-dev/atoll/cmd/atoll-gateway/internal/metrics"
	"github.com/atoll-dev/atoll/region"
)

// Options adjust a Gateway. The zero value works.
type Options struct {
	// Stdout receives audit events if the configuration names "-". Nil: os.Stdout.
	Stdout io.Writer
	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default.
	Logger logr.Logger
}

// Gateway serves regions. Use New.
type Gateway struct {
	config  *config.Configuration
	opts    Options
	source  region.Source
	kept    *region.Kept // nil: no cache
	ring    *region.Ring
	authn   *authn.Authenticator
	audit   *audit.Log
	metrics *metrics.Metrics
	events  *atollprometheus.Metrics // of the packages that the gateway consists of
	cert    *certificate
	parts   []func(context.Context) error // run from Start until the end
	closers []func() error                // of files that Start closes otherwise
	streams streams
	handler http.Handler

	draining chan struct{} // closed when the gateway drains
	serving  chan struct{} // closed when listeners are set
	address  net.Addr
	health   net.Addr
}

// New makes a Gateway. It reads the files of the configuration, and listens at no address. Background requests to issuers
// of tokens end with ctx. Errors name the field of the configuration.
func New(ctx context.Context, c *config.Configuration, opts Options) (*Gateway, error) {
	if c == nil {
		return nil, errors.New("gateway: the configuration is nil; make one with config.Load")
	}
	if opts.Stdout == nil {
		opts.Stdout = os.Stdout
	}
	g := &Gateway{config: c, opts: opts, draining: make(chan struct{}), serving: make(chan struct{})}
	for _, step := range []func(context.Context) error{g.newEvents, g.newRing, g.newAuthentication, g.newServing, g.newHandler} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, g.Close())
		}
	}
	return g, nil
}

// Close releases the files of a Gateway that is not started. Start closes them otherwise.
func (g *Gateway) Close() error {
	var faults []error
	for _, release := range g.closers {
		faults = append(faults, release())
	}
	return errors.Join(faults...)
}

// newEvents makes the metrics of the gateway's parts, whose Observers must exist before the parts.
func (g *Gateway) newEvents(context.Context) (err error) {
	g.events, err = atollprometheus.New(atollprometheus.Options{Directory: func() region.Directory { return g.ring }})
	return err
}

func (g *Gateway) newAuthentication(ctx context.Context) (err error) {
	g.authn, err = authn.New(ctx, &g.config.Authentication, g.ring)
	return err
}

// newServing reads the serving certificate and opens the audit log.
func (g *Gateway) newServing(context.Context) (err error) {
	if g.cert, err = readCertificate(g.config.Serving.CertificateFile, g.config.Serving.KeyFile); err != nil {
		return fmt.Errorf("serving.certificateFile: %w", err)
	}
	if g.audit, err = audit.Open(g.config.Audit.File, g.opts.Stdout); err != nil {
		return fmt.Errorf("audit.file: %w", err)
	}
	g.closers = append(g.closers, g.audit.Close)
	g.metrics = metrics.New(g.ring, g.events, metrics.Values{
		AuditFailed: g.audit.Failed, Expiry: g.cert.expiry,
		Kept: func() bool { _, stale := g.keptSince(); return stale },
	})
	return nil
}

// Start serves until ctx ends, and then drains. It blocks, and returns nil if it ended because ctx has ended, and otherwise
// why it cannot go on. Call it once.
func (g *Gateway) Start(ctx context.Context) error {
	ctx = g.logging(ctx)
	// The parts run on while requests drain.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", g.config.Serving.Address)
	if err != nil {
		return fmt.Errorf("serving.address: %w", errors.Join(err, g.Close()))
	}
	health, err := config.Listen(ctx, "tcp", g.config.Health.Address)
	if err != nil {
		return fmt.Errorf("health.address: %w", errors.Join(err, listener.Close(), g.Close()))
	}
	g.address, g.health = listener.Addr(), health.Addr()
	close(g.serving)
	logr.FromContextOrDiscard(ctx).Info("The gateway serves", "address", g.address.String(), "health", g.health.String())

	group, running := errgroup.WithContext(running)
	for _, run := range g.parts {
		group.Go(func() error { return run(running) })
	}
	group.Go(func() error {
		defer stop() // the parts end after the requests
		return g.serve(ctx, running, listener, health)
	})
	return group.Wait()
}

func (g *Gateway) logging(ctx context.Context) context.Context {
	logger := g.opts.Logger
	if logger.IsZero() {
		var err error
		if logger, err = logr.FromContext(ctx); err != nil {
			logger = logr.FromSlogHandler(slog.Default().Handler())
		}
	}
	return logr.NewContext(ctx, logger)
}

// Addresses blocks until the gateway listens, and returns the addresses of clients and of health. If ctx ends first, it
// returns the error of ctx.
func (g *Gateway) Addresses(ctx context.Context) (clients, health net.Addr, err error) {
	select {
	case <-g.serving:
		return g.address, g.health, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}
