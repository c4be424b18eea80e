// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	accountv1alpha1 "github.com/atoll-dev/atoll/account/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	regionv1alpha1 "github.com/atoll-dev/atoll/region/v1alpha1"
)

// Options configure a Coordinator. The zero value works.
type Options struct {
	// Kinds are what may be fanned out; they are also needed to recover. Nil
	// means ServiceClusters alone.
	Kinds []Kind

	// Scheme finds the kind of typed objects. Nil means the types of this
	// module. Unstructured objects need none.
	Scheme *runtime.Scheme

	// Identity is how this coordinator is named to others, in claims and in
	// error messages. It decides nothing. Zero means host name and process.
	Identity string

	// LeaseTimeout is how long the heartbeat of a rival may stand still before
	// its reservation is taken down. Zero means 15 seconds. Safety does not
	// depend on it: a lease decides only when somebody may try.
	LeaseTimeout time.Duration

	// CallTimeout bounds each request to a peer. In an operation on an object, one
	// that the Directory knows to be Unhealthy has a second at most, and if it does
	// not use it, no operation asks it again for five. Zero means 12 seconds: longer
	// than the 10 that an API server gives a webhook by default, so that its answer
	// names the webhook.
	CallTimeout time.Duration

	// Cleanup bounds what an operation still does after its context has ended:
	// taking down its own reservations, or finding out whether its commit was
	// applied. Zero means 10 seconds.
	Cleanup time.Duration

	// SweepEvery is the pause between the passes of Start over all peers. Zero
	// means one minute.
	SweepEvery time.Duration

	// NoteEvery is how often Start writes into the PeerSet of each peer how far those of
	// the others have come, which shows later that one was restored from an older state:
	// one request to each peer, whichever coordinator makes it, and at most once in
	// SweepEvery. Zero means one minute.
	// Negative: never; then only what contradicts it shows a restored peer.
	NoteEvery time.Duration

	// RemovalCap stops plain deletes of primaries that look like an accident, such as
	// the deletion of a CRD. Zero: more than 5 objects and 10 % of a peer's are held.
	RemovalCap RemovalCap

	// Shard divides what Start sweeps and adopts among the replicas of a program, by
	// keys "KIND/NAME" or "KIND/NAMESPACE/NAME". Nil means all. It is for economy
	// alone: any number may sweep the same object. Open operations of the log are
	// everybody's.
	Shard Shard

	// MaxInFlight is how long a request whose answer was lost may still be
	// applied by a peer. An aborted operation whose reservation may yet appear
	// stays in the log for so long. Zero means 5 minutes. Safety does not
	// depend on it: what appears late is dead and will be swept.
	MaxInFlight time.Duration

	// Observer receives what happens. Nil means nobody.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Shard says which objects a replica works on. A *shard.Members of region/shard is one.
type Shard interface {
	// Owns says whether the key is this replica's. It does no I/O.
	Owns(key string) bool
}

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

// defaultScheme knows the types of this module that can be fanned out.
func defaultScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// AddToScheme of generated types fails only on a kind that is there twice.
	utilruntime.Must(accountv1alpha1.AddToScheme(scheme))
	utilruntime.Must(regionv1alpha1.AddToScheme(scheme))
	return scheme
}

// Unreachable says what an operation does about a peer that does not answer.
type Unreachable int

const (
	// Fail ends the operation without effect if it is not yet committed.
	Fail Unreachable = iota
	// Wait tries again until the context's deadline, then fails.
	Wait
	// Forward, for removals, leaves the peer behind: what it holds is dead once
	// the primary is gone, and is swept when the peer answers again. An object
	// that exists everywhere is not gone before every peer has confirmed, so
	// there Forward means that Remove returns while the removal goes on.
	Forward
)

// AddOptions tune one Add, Update, Agree or Plan.
type AddOptions struct {
	// Target is the peer in which the object comes into being. Required for
	// kinds that exist once. For kinds that exist everywhere it names the
	// primary; zero picks one.
	Target region.PeerName

	// IdempotencyKey makes a repeated call give the first call's answer, also
	// after a restart. Zero means that each call is a request of its own.
	IdempotencyKey string

	// FieldManager owns the payload's fields after the commit, as if it had
	// applied them. Zero means "atoll". The claim's fields are always ours.
	FieldManager string

	// Unreachable says what to do about peers that do not answer: Fail, the
	// default, or Wait.
	Unreachable Unreachable

	// Durable makes the call return when the operation is durable, one request to
	// each peer later, and not at its commit. See Operation.Durable.
	Durable bool
}

// RemoveOptions tune one Remove.
type RemoveOptions struct {
	// UID, unless empty, is the UID of the primary that is to go; another
	// object of the same name is left alone.
	UID types.UID

	// IdempotencyKey makes a repeated call give the first call's answer.
	IdempotencyKey string

	// Unreachable says what to do about peers that do not answer: Fail, the
	// default, Wait or Forward. Once the removal is committed it goes on in any
	// case.
	Unreachable Unreachable
}
