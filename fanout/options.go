// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// Options configure a Coordinator. The zero value works.
type Options struct {
	// Kinds are the kinds that may be fanned out; recovery needs them, too. Nil means
	// ServiceClusters alone.
	Kinds []Kind

	// Scheme finds the kind of typed objects. Nil means the types of this
	// module. Unstructured objects need no Scheme.
	Scheme *runtime.Scheme

	// Identity names this coordinator in claims and in error messages. No step of the protocol depends
	// on it. Abort takes an operation with this name in its claims for one of this coordinator. Zero
	// means host name and process.
	Identity string

	// LeaseTimeout is how long an operation or a change of the membership may show no sign of life
	// before another coordinator may delete its reservations, take over its entry in a shared log, or
	// finish the change. Zero means 15 seconds. Safety does not depend on LeaseTimeout: it decides
	// only when another coordinator may try this.
	LeaseTimeout time.Duration

	// CallTimeout bounds each request to a peer. In an operation on an object, a request to a peer
	// that the Directory knows to be Unhealthy gets at most a second. After such a request has
	// timed out, no operation asks that peer for five seconds. Zero means 12 seconds: longer than
	// the 10 seconds that an API server gives a webhook by default, so that the API server's
	// answer names the webhook.
	CallTimeout time.Duration

	// Cleanup bounds the work of an operation after its context has ended: deleting its own
	// reservations, or finding out whether its commit was applied. Zero means 10 seconds.
	Cleanup time.Duration

	// SweepEvery is the pause between two sweeps of Start. Zero means one minute.
	SweepEvery time.Duration

	// NoteEvery is how often Start writes into the PeerSet of each peer the epochs of the other
	// PeerSets. A noted epoch shows later that a peer was restored from an older state. Start writes
	// at most once in SweepEvery, and skips a peer to which any coordinator has written notes less
	// than half of NoteEvery ago. Zero means one minute. Negative means never; then only
	// contradictions between peers show a restored peer.
	NoteEvery time.Duration

	// RemovalCap limits how many plain deletes of primaries take effect. If there are more, such as
	// after the deletion of a CRD, they look like an accident and are held. Zero holds plain deletes
	// of more than 5 primaries of a kind that are also more than 10 % of the kind's primaries in a
	// peer.
	RemovalCap RemovalCap

	// Shard divides the objects that Start sweeps and adopts among the replicas of a program,
	// by keys "KIND/NAME" or "KIND/NAMESPACE/NAME". Nil means all objects. A Shard only saves
	// work: any number of replicas may sweep the same object. Every replica recovers the open
	// operations of its log, whatever the Shard.
	Shard Shard

	// MaxInFlight is how long a peer may still apply a request whose answer was lost. An aborted
	// operation whose reservation may yet appear stays in the log for that time. Zero means 5
	// minutes. Safety does not depend on MaxInFlight: a reservation that appears later holds no
	// name, and a sweep deletes it.
	MaxInFlight time.Duration

	// Observer receives events. May be nil.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log
	// nothing, use logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Shard selects the objects that a replica works on, by keys such as "Account/acme".
type Shard = region.Shard

func (o Options) withDefaults() Options {
	if o.Kinds == nil {
		o.Kinds = []Kind{ServiceClusters()}
	}
	if o.Scheme == nil {
		o.Scheme = defaultScheme()
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		o.Identity = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	o.RemovalCap = o.RemovalCap.withDefaults()
	for _, d := range []struct {
		field *time.Duration
		zero  time.Duration
	}{
		{&o.LeaseTimeout, 15 * time.Second},
		{&o.CallTimeout, 12 * time.Second},
		{&o.Cleanup, 10 * time.Second},
		{&o.SweepEvery, time.Minute},
		{&o.NoteEvery, time.Minute},
		{&o.MaxInFlight, 5 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.zero
		}
	}
	return o
}

// defaultScheme returns a scheme of the types of this module that can be fanned out.
func defaultScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// AddToScheme of generated types fails only on a duplicate kind.
	utilruntime.Must(accountv1alpha1.AddToScheme(scheme))
	utilruntime.Must(regionv1alpha1.AddToScheme(scheme))
	return scheme
}

// Unreachable is the policy of an operation for a peer that does not answer.
type Unreachable int

const (
	// Fail ends the operation without effect if it is not committed yet.
	Fail Unreachable = iota
	// Wait retries until the context ends, and then has the effect of Fail.
	Wait
	// Forward, for removals, continues without the peer. For an object that exists once, the peer's
	// guard holds no name once the primary is deleted, and a sweep deletes the guard when the peer
	// answers again. For an object that exists everywhere, Remove returns while the removal waits
	// for the peer.
	Forward
)

// AddOptions tune one Add, Update, Agree or Plan.
type AddOptions struct {
	// Target is the peer in which the object is created. Required for kinds that exist once. For kinds
	// that exist everywhere it is the primary's peer; if it is empty, the Coordinator picks a peer.
	Target region.PeerName

	// IdempotencyKey makes a repeated call return the first call's result, also after a
	// restart. Zero means that each call is a request of its own.
	IdempotencyKey string

	// FieldManager is the field manager that owns the payload's fields after the commit, as if it had
	// applied them. Zero means "atoll". The protocol always owns the claim's fields.
	FieldManager string

	// Unreachable is the policy for peers that do not answer: Fail, the default, or Wait.
	Unreachable Unreachable

	// Durable makes the call return only when the operation is durable. For a kind that exists once,
	// that takes one more request to each peer after the commit. See Operation.Durable.
	Durable bool

	// Revision, for Update, is the revision that the update replaces: Kind.State of the object that
	// the caller read has it. If the object has another revision, the error is a *ConflictError. Zero
	// replaces any revision.
	Revision int64

	// UID, for Update, unless empty, is the UID of the object, or of one of its replicas; an object
	// of the name with another UID is not changed.
	UID types.UID
}

// RemoveOptions tune one Remove.
type RemoveOptions struct {
	// UID, unless empty, is the UID of the primary to remove; an object of the name with
	// another UID stays.
	UID types.UID

	// Revision, for a kind that exists Everywhere, is the revision to remove, and ResourceVersion is
	// the resourceVersion of the primary to remove. If the object has another one when the removal
	// would be committed, the error is a *ConflictError. Zero and empty remove any.
	Revision        int64
	ResourceVersion string

	// IdempotencyKey makes a repeated call return the first call's result.
	IdempotencyKey string

	// Unreachable is the policy for peers that do not answer: Fail, the default, Wait or
	// Forward. A committed removal continues in any case.
	Unreachable Unreachable
}

func (o Options) validate() error {
	seen := map[schema.GroupKind]bool{}
	for i, k := range o.Kinds {
		switch {
		case k.Resource.Resource == "" || k.Resource.Version == "" || k.Kind == "":
			return fmt.Errorf("fanout: Options.Kinds[%d]: Resource and Kind are required", i)
		case seen[k.GroupKind()]:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s is listed twice", i, k.GroupKind())
		case !k.Within.Empty() && !k.Namespaced:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s is Within %s but has no namespace", i, k.Kind, k.Within.Resource)
		case k.Guard != nil && k.Mode != Once:
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s exists %s, so it has replicas and no guards: leave Guard nil", i, k.Kind, k.Mode)
		case len(k.Holds) > 0 && (k.Namespaced || k.Mode != Everywhere):
			return fmt.Errorf("fanout: Options.Kinds[%d]: %s Holds others, so it must be cluster-scoped and Everywhere", i, k.Kind)
		}
		seen[k.GroupKind()] = true
	}
	if share := o.RemovalCap.Share; !(share > 0 && share <= 1) {
		return fmt.Errorf("fanout: Options.RemovalCap.Share is %v: it must be above 0 and at most 1", share)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"LeaseTimeout", o.LeaseTimeout},
		{"CallTimeout", o.CallTimeout},
		{"Cleanup", o.Cleanup},
		{"SweepEvery", o.SweepEvery},
		{"MaxInFlight", o.MaxInFlight},
	} {
		if d.value < 0 {
			return fmt.Errorf("fanout: Options.%s is %s: it must not be negative", d.field, d.value)
		}
	}
	return nil
}
