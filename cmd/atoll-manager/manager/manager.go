// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/events"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/shard"
)

// Options adjust a Manager. The zero value works.
type Options struct {
	// Identity is the name of this replica if the configuration has none. Empty: a name that is made up.
	Identity string
	// Central is the configuration of the clients of the central plane. Nil: that of the file in the configuration, or of the
	// Pod.
	Central *rest.Config
	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default.
	Logger logr.Logger
}

// Manager runs the loops of a central plane. Use New.
type Manager struct {
	config  *config.Configuration
	opts    Options
	members *shard.Members
	events  *events.Recorder
	master  *central.Master
	loops   *loops
	metrics *metrics

	serving chan struct{} // closed when health is set
	health  net.Addr
}

// New makes a Manager. It reads the kubeconfig and the files with WorkloadTypes that the configuration names, does no other I/O, and starts nothing. Errors
// name the field of the configuration.
func New(c *config.Configuration, opts Options) (*Manager, error) {
	if c == nil {
		return nil, errors.New("manager: the configuration is nil; make one with config.Load")
	}
	plane, err := planeOf(c.Central.KubeconfigFile, opts.Central)
	if err != nil {
		return nil, fmt.Errorf("central.kubeconfigFile: %w", err)
	}
	api, err := region.APIFor(plane)
	if err != nil {
		return nil, fmt.Errorf("central.kubeconfigFile: %w", err)
	}
	m := &Manager{config: c, opts: opts, loops: &loops{config: c, central: plane, plane: api}, serving: make(chan struct{})}
	if m.metrics, err = newMetrics(m.loops.ring.Load, func() uint64 { return m.events.Dropped() }); err != nil {
		return nil, err
	}
	identity := c.Identity
	if identity == "" {
		identity = opts.Identity
	}
	m.members, err = shard.New(api, c.Central.Namespace, "atoll-controllers", shard.Options{
		Identity: identity, Observer: m.metrics.Shard(nil), Logger: opts.Logger,
	})
	if err != nil {
		return nil, err
	}
	m.events = events.New(events.Options{Controller: "atoll-manager", Instance: m.members.Identity(), Logger: opts.Logger})
	m.loops.members, m.loops.metrics, m.loops.events = m.members, m.metrics, m.events
	if m.loops.types, err = ReadTypes(c.Workloads); err != nil {
		return nil, err
	}
	if w := m.loops.workloads(); w != nil {
		if err := w.check(); err != nil {
			return nil, err
		}
	}
	// The loops log to the master's logger, which is in their context.
	m.master, err = central.NewMaster(api, m.loops.run, central.MasterOptions{
		Shards: m.members, Observer: m.metrics.Central(nil), Logger: opts.Logger,
	})
	return m, err
}

// planeOf returns the configuration of the central plane, without a client-side rate limit.
func planeOf(kubeconfigFile string, given *rest.Config) (*rest.Config, error) {
	if given != nil {
		given = rest.CopyConfig(given)
		given.QPS = -1
		return given, nil
	}
	if kubeconfigFile == "" {
		inside, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("is not set, and this is no Pod: %w", err)
		}
		inside.QPS = -1
		return inside, nil
	}
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfigFile)
	if err != nil {
		return nil, err
	}
	c.QPS = -1
	return c, nil
}

// Start runs the loops until ctx ends, waits for them, and returns nil. It returns an error only if it cannot listen, or if
// it was called twice.
func (m *Manager) Start(ctx context.Context) error {
	ctx = m.logging(ctx)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.config.Health.Address)
	if err != nil {
		return fmt.Errorf("health.address: %w", err)
	}
	m.health = listener.Addr()
	close(m.serving)
	logr.FromContextOrDiscard(ctx).Info("The manager runs", "identity", m.members.Identity(), "health", m.health.String())
	group, ctx := errgroup.WithContext(ctx)
	for _, start := range []func(context.Context) error{m.members.Start, m.events.Start, m.master.Start} {
		group.Go(func() error { return start(ctx) })
	}
	group.Go(func() error { return m.serveHealth(ctx, listener) })
	return group.Wait()
}

func (m *Manager) logging(ctx context.Context) context.Context {
	logger := m.opts.Logger
	if logger.IsZero() {
		var err error
		if logger, err = logr.FromContext(ctx); err != nil {
			logger = logr.FromSlogHandler(slog.Default().Handler())
		}
	}
	return logr.NewContext(ctx, logger)
}

// Address blocks until the Manager listens, and returns the address of health. If ctx ends first, it returns the error of
// ctx.
func (m *Manager) Address(ctx context.Context) (net.Addr, error) {
	select {
	case <-m.serving:
		return m.health, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
