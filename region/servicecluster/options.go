// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecluster

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/atoll-dev/atoll/region"
)

// FieldManager is the field manager of this package's writes.
const FieldManager = "atoll-service-cluster"

// SecretKey is the key of the kubeconfig in the Secret that a ServiceCluster names.
const SecretKey = "kubeconfig"

// Shard divides ServiceClusters among the replicas of a program, by keys such as "eu-west-1.loodse".
type Shard = region.Shard

// Options configure a Controller. The zero value works.
type Options struct {
	// Probe probes a cluster. Nil means NewProbe with the zero Addresses. It must end with its context, and be safe for
	// concurrent use.
	Probe Probe

	// Interval is the time between two probes of a reachable cluster. Zero means 30 seconds.
	Interval time.Duration

	// MaxBackoff is the longest time between two probes of a cluster that is not reachable. Zero means one minute.
	MaxBackoff time.Duration

	// Failures is the number of failed probes in a row after which a cluster that answered is unreachable. Zero means 3.
	Failures int

	// Timeout bounds each probe. Zero means 10 seconds.
	Timeout time.Duration

	// CallTimeout bounds each request to a peer. Zero means 10 seconds.
	CallTimeout time.Duration

	// Workers is the number of ServiceClusters of a peer that are worked on at once. Zero means 16.
	Workers int

	// PerAccount is the number of probes in a peer that run at once for the ServiceClusters of one account. Zero means a
	// quarter of Workers, and at least 1.
	PerAccount int

	// Shard selects the ServiceClusters of this replica, if several replicas share the work. Nil means all. It is safe
	// for two replicas to own the same one.
	Shard Shard

	// Observer receives events. May be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name  string
		field *time.Duration
		zero  time.Duration
	}{
		{"Interval", &o.Interval, 30 * time.Second},
		{"MaxBackoff", &o.MaxBackoff, time.Minute},
		{"Timeout", &o.Timeout, 10 * time.Second},
		{"CallTimeout", &o.CallTimeout, 10 * time.Second},
	} {
		if *d.field < 0 {
			return o, fmt.Errorf("servicecluster: Options.%s is %s: it must not be negative", d.name, *d.field)
		}
		if *d.field == 0 {
			*d.field = d.zero
		}
	}
	for _, n := range []struct {
		name  string
		field *int
		zero  func() int
	}{
		{"Failures", &o.Failures, func() int { return 3 }},
		{"Workers", &o.Workers, func() int { return 16 }},
		{"PerAccount", &o.PerAccount, func() int { return max(1, o.Workers/4) }},
	} {
		if *n.field < 0 {
			return o, fmt.Errorf("servicecluster: Options.%s is %d: it must not be negative", n.name, *n.field)
		}
		if *n.field == 0 {
			*n.field = n.zero()
		}
	}
	if o.Probe == nil {
		o.Probe = NewProbe(Addresses{})
	}
	return o, nil
}
