// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/atoll-dev/atoll/internal/backoff"
)

// ProbeOptions configure health probes. The zero value works.
type ProbeOptions struct {
	Interval   time.Duration // between probes of a healthy peer; zero: 10 s
	Timeout    time.Duration // of one probe or rotation; zero: 5 s
	Failures   int           // in a row, to become Unhealthy; zero: 3
	Successes  int           // in a row, to become Healthy again; zero: 2
	MaxBackoff time.Duration // between probes of a peer that fails; zero: Interval
}

func (o *ProbeOptions) complete() error {
	if o.Interval < 0 || o.Timeout < 0 || o.Failures < 0 || o.Successes < 0 || o.MaxBackoff < 0 {
		return errors.New("ring: Options.Probe holds a negative value; zero means the default")
	}
	o.Interval = orDefault(o.Interval, 10*time.Second)
	o.Timeout = orDefault(o.Timeout, 5*time.Second)
	o.Failures = orDefault(o.Failures, 3)
	o.Successes = orDefault(o.Successes, 2)
	o.MaxBackoff = orDefault(o.MaxBackoff, o.Interval)
	return nil
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// minBackoff prevents a busy loop if the options contain tiny durations.
const minBackoff = time.Millisecond

// backoff returns the delay after this number of failures in a row: a tenth of Interval, doubled after each further
// failure, at most MaxBackoff. Jitter never makes the delay longer than MaxBackoff, so MaxBackoff bounds how late a
// recovery is noticed.
func (o *ProbeOptions) backoff(failures int) time.Duration {
	d := jitter(backoff.After(failures, o.Interval/10, o.MaxBackoff))
	return max(min(d, o.MaxBackoff), minBackoff)
}

// jitter varies d by up to a tenth, so that peers and processes do not probe in step.
func jitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*float64(d)/5)
}

// prober probes one member and decides its health, with hysteresis. Only one probe at a time uses it.
type prober struct {
	member    *member
	opts      ProbeOptions
	successes int
	failures  int
	repeated  bool // an immediate retry after 401 was used
	failing   bool // the last probe failed, or no probe has ended yet
}

// probing is the running probe. The zero value means that none runs.
type probing struct {
	next   chan time.Duration // receives the delay until the next probe, then is closed
	cancel context.CancelFunc
}

func (p *probing) begin(ctx context.Context, probe func(context.Context) time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	next := make(chan time.Duration, 1)
	p.next, p.cancel = next, cancel
	go func() {
		defer close(next)
		next <- probe(ctx)
	}()
}

// end cancels the probe, if it still runs, and waits for it.
func (p *probing) end() {
	if p.next == nil {
		return
	}
	p.cancel()
	for range p.next {
	}
	*p = probing{}
}

// probe probes the peer once, stores the result as the health of its connection, reports it to the Observer, and
// returns the delay until the next probe.
func (p *prober) probe(ctx context.Context, log logr.Logger) time.Duration {
	conn := p.member.conn
	began := time.Now()
	conn.current.Load().readTerm()
	identity, err := p.ask(ctx)
	if ctx.Err() != nil {
		return p.opts.Interval
	}
	before := conn.health.Load()
	after := p.judge(*before, err)
	after.Identity = identity
	if err != nil {
		after.Identity = before.Identity // the UID was not read
	}
	after.Probed = began
	conn.health.Store(&after)
	if err == nil && p.failing {
		conn.recover()
	}
	p.failing = err != nil
	if after.Identity != nil && before.Identity == nil {
		log.Error(after.Identity, "Peer forbids its credentials to read namespaces/kube-system; newer credentials cannot be used")
	}
	if after.State != before.State {
		log.Info("Peer's health changed", "from", before.State.String(), "to", after.State.String(), "reason", fmt.Sprint(after.Err))
	}
	p.member.ring.opts.Observer.probed(ctx, ProbeEvent{
		Peer: conn.Peer(), Elapsed: time.Since(began), Err: err, Health: conn.Health(),
	})
	if err == nil {
		p.repeated = false
		if after.State == Healthy {
			return jitter(p.opts.Interval)
		}
		return p.opts.backoff(1)
	}
	// Subtract the duration of the probe, so that probes that time out begin at most MaxBackoff apart.
	spent := min(time.Since(began), p.opts.MaxBackoff*9/10)
	if apierrors.IsUnauthorized(err) && !p.repeated {
		// New credentials may be available: the rejection has made the Source read them again.
		p.repeated = true
		return 0
	}
	return max(p.opts.backoff(p.failures)-spent, minBackoff)
}

// ask reads /readyz, or /version if that gives 403 or 404, and the UID of the cluster once per generation of the
// credentials. A peer that forbids reading the UID is healthy too.
func (p *prober) ask(ctx context.Context) (identity, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.opts.Timeout)
	defer cancel()
	conn := p.member.conn
	_, err = fetch(ctx, conn.own, "/readyz")
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		_, err = fetch(ctx, conn.own, "/version")
	}
	if err != nil {
		return nil, &Error{Peer: conn.Peer(), Op: "probe", Err: cause(err)}
	}
	uid, err := conn.UID(ctx)
	switch {
	case errors.Is(err, ErrIdentityUnknown):
		return err, nil
	case err != nil:
		return nil, err
	}
	if first := p.member.ring.claim(uid, p.member); first != conn.Peer() {
		return nil, &Error{Peer: conn.Peer(), Op: "probe",
			Err: fmt.Errorf("%w: %s and %s (kube-system has UID %s)", ErrSameCluster, first, conn.Peer(), uid)}
	}
	return nil, nil
}

// judge applies the result of one probe to the previous health.
func (p *prober) judge(h Health, err error) Health {
	if err == nil {
		p.failures = 0
		p.successes++
		if h.State == Unknown || h.State == Unhealthy && p.successes >= p.opts.Successes {
			return Health{State: Healthy, Since: time.Now()}
		}
		return h
	}
	p.successes = 0
	p.failures++
	certain := errors.Is(err, ErrSameCluster) || errors.Is(err, ErrOtherCluster)
	if h.State != Unhealthy && (certain || p.failures >= p.opts.Failures) {
		return Health{State: Unhealthy, Since: time.Now(), Err: err}
	}
	if h.State != Healthy {
		h.Err = err
	}
	return h
}
