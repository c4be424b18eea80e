// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options configure Members. The zero value works.
type Options struct {
	// Identity names this replica in its group. Replicas that run at the same time need different ones, such as the
	// names of their Pods. Empty: the host's name and a random suffix.
	Identity string
	// Lease is how long after its last renewal a replica counts as live, at least a second; zero: 15 seconds. A replica
	// renews its Lease three times in this time.
	Lease time.Duration
	// Observer may be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Observer receives events. All funcs may be nil; they are never called concurrently and must not block.
type Observer struct {
	// Changed is called with each new generation and the sorted identities of the replicas that share the keys; none if
	// this replica owns nothing.
	Changed func(generation uint64, live []string)
	// RenewFailed is called when this replica's Lease could not be renewed.
	RenewFailed func(error)
}

func (o *Observer) changed(generation uint64, live []string) {
	if o != nil && o.Changed != nil {
		o.Changed(generation, live)
	}
}

func (o *Observer) renewFailed(err error) {
	if o != nil && o.RenewFailed != nil {
		o.RenewFailed(err)
	}
}

const defaultLease = 15 * time.Second

// complete sets defaults and checks the options.
func (o *Options) complete(namespace, group string) error {
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Lease < time.Second {
		return fmt.Errorf("shard: Options.Lease is %v: set at least one second, or zero for %v", o.Lease, defaultLease)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("shard: Options.Identity is empty and the host has no name: %w", err)
		}
		o.Identity = strings.Trim(fmt.Sprintf("%.50s", strings.ToLower(host)), "-.") + "-" + strings.ToLower(rand.Text()[:8])
	}
	var errs []error
	for _, check := range []struct{ name, value string }{{"namespace", namespace}, {"group", group}} {
		for _, msg := range validation.IsDNS1123Label(check.value) {
			errs = append(errs, fmt.Errorf("shard: the %s is %q: %s", check.name, check.value, msg))
		}
	}
	for _, msg := range validation.IsDNS1123Subdomain(leaseName(group, o.Identity)) {
		errs = append(errs, fmt.Errorf("shard: Options.Identity is %q, which cannot be part of a Lease's name: %s", o.Identity, msg))
	}
	return errors.Join(errs...)
}
