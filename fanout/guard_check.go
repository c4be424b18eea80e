// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
	"github.com/atoll-dev/atoll/region"
)

// GuardError means that a peer's API server rejects the guards of a kind, for example because they
// lack a field that the kind's CRD requires. Set Kind.Guard to a function that fills the Fields.
// errors.As finds it; the *region.Error around it names the peer.
type GuardError struct {
	Kind   schema.GroupKind
	Fields []string // the fields that Kind.Guard has to fill; empty if the API server names no field
	Err    error    // the API server's answer
}

// Error has the API server's answer and the fields that Kind.Guard has to fill.
func (e *GuardError) Error() string {
	what := "make a guard that the peer takes"
	if len(e.Fields) > 0 {
		what = "fill " + strings.Join(e.Fields, ", ")
	}
	return fmt.Sprintf("the API server refuses the guard of a %s: %v: set Kind.Guard to %s", e.Kind.Kind, e.Err, what)
}

// Unwrap returns the API server's answer.
func (e *GuardError) Unwrap() error { return e.Err }

// guardRefused converts err, the answer to the create of a guard, into a *GuardError if the kind's
// schema or a policy rejected the guard. It returns every other error unchanged, and also an error
// that is only about the claim, because Kind.Guard cannot change the claim.
func (k Kind) guardRefused(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
		return err
	}
	refused := &GuardError{Kind: k.GroupKind(), Err: err}
	claim := "spec." + k.Claim.path()
	aboutClaim := false
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			switch {
			case cause.Field == "" || cause.Field == "<nil>":
			case k.Claim.annotation == "" && (cause.Field == claim || strings.HasPrefix(cause.Field, claim+".")):
				aboutClaim = true
			case !slices.Contains(refused.Fields, cause.Field):
				refused.Fields = append(refused.Fields, cause.Field)
			}
		}
	}
	if aboutClaim && len(refused.Fields) == 0 {
		return err
	}
	return refused
}

// scrubRefused adds the remedy to the error of a peer that rejects the removal of a guard's
// payload.
func scrubRefused(err error) error {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("the guard keeps a payload that it must not have: %w: apply this release's AdmissionPolicy if that refused, else delete the guard: the next sweep makes it anew", err)
}

const (
	// guardPatience is the time limit of the dry run of a guard. Without an answer in time the add
	// continues: the real create shows the result.
	guardPatience = 2 * time.Second
	// guardUnasked is the pause before the next dry run in a peer that forbids dry runs or does
	// not support them, for example because of a webhook.
	guardUnasked = time.Minute
)

// guardPlace is a kind in a cluster.
type guardPlace struct {
	namedCluster
	kind schema.GroupKind
}

// guardChecks records which peers accept the guards of which kinds.
type guardChecks struct {
	mu    sync.Mutex
	until map[guardPlace]time.Time // when to send the next dry run; zero: never again
}

func (g *guardChecks) known(at guardPlace) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	until, ok := g.until[at]
	return ok && (until.IsZero() || time.Now().Before(until))
}

func (g *guardChecks) note(at guardPlace, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		g.until = map[guardPlace]time.Time{}
	}
	g.until[at] = until
}

// taken records that the peer behind conn accepts guards of the kind.
func (g *guardChecks) taken(ctx context.Context, conn *region.Conn, k Kind) {
	if cluster, err := conn.UID(ctx); err == nil {
		g.note(guardPlace{namedCluster{conn.Peer(), cluster}, k.GroupKind()}, time.Time{})
	}
}

// refused forgets that a peer accepts guards of a kind, because the peer rejected one.
func (g *guardChecks) refused(peer region.PeerName, kind schema.GroupKind) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for at := range g.until {
		if at.peer == peer && at.kind == kind {
			delete(g.until, at)
		}
	}
}

// checkGuards sends each peer except the target a dry run of the kind's guard, before anything is
// written. It sends no further dry run to a peer that accepted a guard of the kind. err is set only
// if a peer rejects the guard or Kind.Guard fails. unasked has the errors of the peers whose dry
// run gave no result: there only the create shows whether the peer accepts the guard.
func (b *submitter) checkGuards(ctx context.Context, req request, op protocol.Operation) (unasked, err error) {
	if req.kind.Mode != Once || op.Action != protocol.Add && op.Action != protocol.Adopt {
		return nil, nil
	}
	name := operationName(op.Action, req.kind, req.key)
	if _, _, err := req.kind.guardContent(req.key); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, ErrAborted, err)
	}
	results, _ := region.Each(ctx, b.clusters.directory, "dry run of the guard", region.BestEffort(), func(ctx context.Context, conn *region.Conn) (struct{}, error) {
		if string(conn.Peer()) == op.Target {
			return struct{}{}, nil
		}
		return struct{}{}, explain(conn.Peer(), "create the guard in a dry run", b.checkGuard(ctx, conn, req, op))
	})
	for o := range results.All() {
		if _, refused := errors.AsType[*GuardError](o.Err); refused {
			return nil, fmt.Errorf("%s: %w: %w", name, ErrAborted, o.Err)
		}
	}
	return results.Err(), nil
}

func (b *submitter) checkGuard(ctx context.Context, conn *region.Conn, req request, op protocol.Operation) error {
	peer, kind := conn.Peer(), req.kind
	limit, err := b.clusters.reach.begin(b.clusters, peer)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, min(limit, guardPatience))
	defer cancel()
	if err := b.clusters.trust(call, conn); err != nil {
		return err
	}
	cluster, err := conn.UID(call)
	at := guardPlace{namedCluster{peer, cluster}, kind.GroupKind()}
	if err != nil || b.executor.guards.known(at) {
		return err
	}
	// The dry run needs a primary's UID, and the primary does not exist yet.
	of := protocol.Ref{Peer: op.Target, UID: "00000000-0000-0000-0000-000000000000"}
	obj, err := kind.bornGuard(req.key, protocol.SecondaryOf(op, string(peer), of))
	if err != nil {
		return err
	}
	var attempt region.Attempt // makes client-go send the request once
	_, err = kind.in(conn, req.key.Namespace).Create(region.WithAttempt(call, &attempt), obj, metav1.CreateOptions{FieldManager: fieldManager, DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		// An API server checks last whether the name exists, so it has accepted the guard.
		b.executor.guards.note(at, time.Time{})
	case apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		b.executor.guards.note(at, time.Now().Add(guardUnasked))
	}
	return kind.guardRefused(err)
}
