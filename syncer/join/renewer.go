// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
)

// RenewerOptions configure a Renewer.
type RenewerOptions struct {
	// Target is the name of the SyncTarget. Required.
	Target string
	// File is the path of the kubeconfig that the Renewer writes, with the certificate and its key. Required. Its folder must
	// be writable, and should survive restarts: after a restart without the file, a new token is needed.
	File string
	// Token is the path of the kubeconfig that NewToken returned. It may be missing once the cluster has joined.
	Token string
	// Lifetime is that of the certificates: 10 minutes or more, and at most ApproverOptions.Longest. Zero means 24 hours.
	Lifetime time.Duration
	// RenewAt is the part of a certificate's lifetime after which it is renewed: more than 0 and less than 1. Zero means a
	// number between 0.6 and 0.7, so that clusters that joined at once do not renew at once.
	RenewAt float64
	// Poll is the time between two reads of a request that is not decided yet. Zero means 2 seconds.
	Poll time.Duration
	// MaxBackoff is the longest time between two attempts that fail. Zero means 5 minutes.
	MaxBackoff time.Duration
	// Observer receives events. May be nil.
	Observer *Observer
	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

func (o RenewerOptions) withDefaults() (RenewerOptions, error) {
	if msgs := validation.IsDNS1123Subdomain(o.Target); len(msgs) > 0 {
		return o, fmt.Errorf("join: RenewerOptions.Target %q is not the name of a SyncTarget: %s", o.Target, msgs[0])
	}
	if o.File == "" {
		return o, errors.New("join: RenewerOptions.File is empty: it is the path of the kubeconfig to write")
	}
	if o.RenewAt == 0 {
		o.RenewAt = 0.6 + rand.Float64()/10
	}
	if o.RenewAt < 0 || o.RenewAt >= 1 {
		return o, fmt.Errorf("join: RenewerOptions.RenewAt is %v: it must be more than 0 and less than 1", o.RenewAt)
	}
	for _, d := range []struct {
		name        string
		field       *time.Duration
		zero, least time.Duration
	}{
		{"Lifetime", &o.Lifetime, 24 * time.Hour, shortest},
		{"Poll", &o.Poll, 2 * time.Second, time.Millisecond},
		{"MaxBackoff", &o.MaxBackoff, 5 * time.Minute, time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.zero
		}
		if *d.field < d.least {
			return o, fmt.Errorf("join: RenewerOptions.%s is %v: it must be %v or more", d.name, *d.field, d.least)
		}
	}
	return o, nil
}

// Renewer gets a client certificate for a cluster with a token, writes it into a file, and renews it in time. Make one with
// NewRenewer.
type Renewer struct {
	opts    RenewerOptions
	refused string // the token that was denied; it is not tried again
	started atomic.Bool
	once    sync.Once
	ready   chan struct{}
}

// firstBackoff is the pause after the first attempt that fails.
const firstBackoff = time.Second

// NewRenewer returns a Renewer. It does no I/O. The error names the wrong option.
func NewRenewer(opts RenewerOptions) (*Renewer, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Renewer{opts: opts, ready: make(chan struct{})}, nil
}

// Ready returns a channel that is closed when the file has a certificate that is valid, after a Step or a Start has seen it.
func (r *Renewer) Ready() <-chan struct{} { return r.ready }

// Start keeps the file until ctx ends, and returns nil. It retries failures, which it logs. Call it once.
func (r *Renewer) Start(ctx context.Context) error {
	if r.opts.File == "" {
		return errors.New("join: the Renewer was not made by NewRenewer")
	}
	if r.started.Swap(true) {
		return errors.New("join: Start was called twice")
	}
	ctx = logging.Into(ctx, r.opts.Logger, "join")
	for failures := 0; ctx.Err() == nil; {
		wait, err := r.Step(ctx)
		if err != nil && ctx.Err() == nil {
			failures++
			wait = backoff.After(failures, firstBackoff, r.opts.MaxBackoff)
			logging.From(ctx).Error(err, "No certificate for the cluster", "target", r.opts.Target, "again", wait.String())
		}
		if err == nil {
			failures = 0
		}
		if !backoff.Sleep(ctx, wait) {
			return nil
		}
	}
	return nil
}

// Step gets or renews the certificate if it is time to, and returns how long the present one need not be renewed. It
// blocks until the request is decided or ctx ends. It is idempotent, and must not be called by two goroutines at once.
func (r *Renewer) Step(ctx context.Context) (wait time.Duration, err error) {
	s, err := r.observe()
	if err != nil {
		return 0, err
	}
	now := time.Now()
	way := plan(s, now, r.opts.RenewAt)
	if way == rest {
		r.once.Do(func() { close(r.ready) })
		return s.have.renewal(r.opts.RenewAt).Sub(now), nil
	}
	expires, err := r.obtain(ctx, s, way)
	event := RenewEvent{Target: r.opts.Target, Expires: expires, Err: err}
	if err != nil && s.have != nil {
		event.Expires = s.have.notAfter
	}
	if ctx.Err() == nil {
		r.opts.Observer.renewed(ctx, event)
	}
	return 0, err
}
