// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// FieldManager is the field manager of this package's writes, such as the status of RegionClaims
// and the gate of ServiceClusters.
const FieldManager = v1alpha1.RegionClaimManager

// Options configure an Arbiter. The zero value works.
type Options struct {
	// Namespace is the namespace of the central plane in which decisions are kept. It must exist,
	// and only arbiters should write Leases in it. Zero means "kubecarrier-system".
	Namespace string

	// Settle is how long a claim for a region without holder must be known before the region is
	// assigned, so that simultaneous claims are compared. Zero means one second.
	Settle time.Duration

	// Patience limits how long a peer that joined the Directory delays the assignment of regions:
	// no region is assigned before the peer's first response, unless Patience has passed since it
	// joined. Zero means 10 seconds.
	Patience time.Duration

	// Departure is how long a peer must be missing from the Directory before it loses its regions.
	// It must be longer than the time for which the Directories of two replicas can differ. Zero
	// means one minute.
	Departure time.Duration

	// CallTimeout bounds each request. Zero means 10 seconds.
	CallTimeout time.Duration

	// Workers is the number of regions that are reconciled at once. Zero means 8.
	Workers int

	// Shard selects the regions of this replica, if several replicas share the work. Nil means all.
	// It is safe for two replicas to own the same region.
	Shard Shard

	// Observer receives events. May be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Shard divides regions among the replicas of a program, by keys such as "eu-west-1.loodse".
type Shard = region.Shard

func (o Options) withDefaults() (Options, error) {
	if o.Namespace == "" {
		o.Namespace = "kubecarrier-system"
	}
	if msgs := validation.IsDNS1123Label(o.Namespace); len(msgs) > 0 {
		return o, fmt.Errorf("claim: Options.Namespace %q is not the name of a namespace: %s", o.Namespace, msgs[0])
	}
	for _, d := range []struct {
		name  string
		field *time.Duration
		zero  time.Duration
	}{
		{"Settle", &o.Settle, time.Second},
		{"Patience", &o.Patience, 10 * time.Second},
		{"Departure", &o.Departure, time.Minute},
		{"CallTimeout", &o.CallTimeout, 10 * time.Second},
	} {
		if *d.field < 0 {
			return o, fmt.Errorf("claim: Options.%s is %s: it must not be negative", d.name, *d.field)
		}
		if *d.field == 0 {
			*d.field = d.zero
		}
	}
	return o, nil
}
