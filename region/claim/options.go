// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/atoll-dev/atoll/region/v1alpha1"
)

// FieldManager owns what this package writes: the status of RegionClaims, and the
// condition RegionBound of ServiceClusters.
const FieldManager = v1alpha1.RegionClaimManager

// Options adjust an Arbiter. The zero value works.
type Options struct {
	// Namespace is that of the central plane in which decisions are kept, and must
	// exist there. Nobody but arbiters should write Leases in it. Zero means
	// "kubecarrier-system".
	Namespace string

	// Settle is how long a region that nobody holds must be known to be claimed
	// before it is given away, so that claims that are made at once meet. Zero means
	// one second.
	Settle time.Duration

	// Patience is how long, after a peer came into the Directory, its first answer is
	// waited for before a region is given away without it. Zero means 10 seconds.
	Patience time.Duration

	// Departure is how long a peer must be missing from the Directory before the
	// regions that it held are given up. It must be longer than the Directories of two
	// replicas can differ. Zero means one minute.
	Departure time.Duration

	// CallTimeout bounds each request. Zero means 10 seconds.
	CallTimeout time.Duration

	// Workers is how many regions are worked on at once. Zero means 8.
	Workers int

	// Shard says which regions are ours, where several replicas share the work. Nil
	// means all. Two replicas that take one for theirs do no harm.
	Shard Shard

	// Observer receives what happens. Nil means nobody.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Shard divides regions among the replicas of a program, by keys such as
// "eu-west-1.loodse". A *shard.Members is one.
type Shard interface {
	// Owns says whether key is this replica's. It must not block.
	Owns(key string) bool
	// Watch yields after each change of who owns what, until ctx ends.
	Watch(ctx context.Context) iter.Seq[uint64]
}

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
