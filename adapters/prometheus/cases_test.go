// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package atollprometheus

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/account"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/central"
	"github.com/atoll-dev/atoll/region/claim"
	"github.com/atoll-dev/atoll/region/servicecluster"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/region/v1alpha1"
	"github.com/atoll-dev/atoll/router"
	"github.com/atoll-dev/atoll/router/aggregate"
	"github.com/atoll-dev/atoll/router/proxy"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/clusterdaemonset"
	"github.com/atoll-dev/atoll/splitter/placement"
	"github.com/atoll-dev/atoll/syncer"
	"github.com/atoll-dev/atoll/syncer/join"
	"github.com/atoll-dev/atoll/wal"
)

// All names, operations and texts of the events contain "secret", which must not become a label value.
var (
	errSecret  = errors.New("secret")
	object     = types.NamespacedName{Namespace: "secret", Name: "secret"}
	accounts   = schema.GroupKind{Group: "catalog.kubecarrier.io", Kind: "Account"}
	deployment = schema.GroupResource{Group: "apps", Resource: "deployments"}
	served     = region.Key{Provider: "loodse", Name: "eu"}
	foreign    = region.Key{Provider: "loodse", Name: "secret"}
)

// cases returns the Observer of each package, with events for each of its funcs.
func cases() []observerCase {
	return []observerCase{
		of("region", (*Metrics).Region, fireRegion),
		of("fanout", (*Metrics).Fanout, fireFanout),
		of("router", (*Metrics).Router, fireRouter),
		of("proxy", (*Metrics).Proxy, fireProxy),
		of("aggregate", (*Metrics).Aggregate, fireAggregate),
		of("account", (*Metrics).Account, fireAccount),
		of("syncer", func(m *Metrics, next *syncer.Observer) *syncer.Observer {
			return m.Syncer(context.Background(), next)
		}, fireSyncer),
		of("splitter", (*Metrics).Splitter, fireSplitter),
		of("placement", (*Metrics).Placement, func(ctx context.Context, o *placement.Observer) {
			o.Placed(ctx, placement.PlacedEvent{Resource: deployment, Object: object, By: "secret"})
			o.Placed(ctx, placement.PlacedEvent{Resource: deployment, Object: object, Err: errSecret})
		}),
		of("clusterdaemonset", (*Metrics).ClusterDaemonSet, func(ctx context.Context, o *clusterdaemonset.Observer) {
			o.Carried(ctx, clusterdaemonset.CarriedEvent{ClusterDaemonSet: object, Written: []string{"secret"}})
			o.Carried(ctx, clusterdaemonset.CarriedEvent{ClusterDaemonSet: object, Err: errSecret})
		}),
		of("wal", (*Metrics).WAL, fireWAL),
		of("claim", (*Metrics).Claim, fireClaim),
		of("central", (*Metrics).Central, fireCentral),
		of("shard", (*Metrics).Shard, func(_ context.Context, o *shard.Observer) {
			o.Changed(1, []string{"secret-1", "secret-2"})
			o.Changed(2, []string{"secret-1"})
			o.RenewFailed(errSecret)
		}),
		of("servicecluster", (*Metrics).ServiceCluster, fireServiceCluster),
		of("join", (*Metrics).Join, fireJoin),
	}
}

func fireRegion(ctx context.Context, o *region.Observer) {
	o.Probed(ctx, region.ProbeEvent{Peer: "eu", Elapsed: 20 * time.Millisecond})
	o.Probed(ctx, region.ProbeEvent{Peer: "us", Elapsed: time.Second, Err: fmt.Errorf("secret: %w", region.ErrOtherCluster)})
	o.Rotated(ctx, region.RotateEvent{Peer: "eu"})
	o.Rotated(ctx, region.RotateEvent{Peer: "eu", Err: errSecret})
	for _, c := range []struct {
		method string
		status int
		err    error
	}{
		{"GET", 200, nil}, {"GET", 404, nil}, {"PATCH", 0, fmt.Errorf("secret: %w", context.Canceled)}, {"GET", 0, errSecret},
		{"SECRET", 200, nil}, {"GET", 987, nil},
	} {
		_, done := o.Call(ctx, region.CallEvent{Peer: "eu", Method: c.method})
		time.Sleep(30 * time.Millisecond)
		done(c.status, c.err)
	}
}

func fireFanout(ctx context.Context, o *fanout.Observer) {
	command := func(e fanout.StepEvent, takes time.Duration) {
		e.Kind, e.Key = accounts, object
		o.Step(ctx, e)
		time.Sleep(takes)
		e.Done, e.Code = true, "OK"
		o.Step(ctx, e)
	}
	add := fanout.StepEvent{Operation: "secret-1", Action: "add", Verb: "begin"}
	command(add, 2*time.Millisecond)
	add.Verb, add.Peer = "create", "eu"
	command(add, 30*time.Millisecond)
	o.End(ctx, fanout.EndEvent{Operation: "secret-1", Kind: accounts, Key: object, State: fanout.Committed})
	add.Verb = "activate"
	command(add, 30*time.Millisecond)
	o.Durable(ctx, fanout.EndEvent{Operation: "secret-1", Kind: accounts, Key: object, State: fanout.Done, Durable: true})

	command(fanout.StepEvent{Operation: "secret-2", Action: "sweep", Verb: "read", Peer: "us"}, time.Millisecond)
	o.End(ctx, fanout.EndEvent{Operation: "secret-3", Kind: accounts, State: fanout.Aborted, Err: errSecret})
	o.Durable(ctx, fanout.EndEvent{Operation: "secret-4", Kind: accounts, State: fanout.Committed})

	failed := fanout.StepEvent{Operation: "secret-5", Action: "remove", Kind: accounts, Key: object, Peer: "us", Verb: "delete"}
	o.Step(ctx, failed)
	running := failed
	running.Verb = "read"
	o.Step(ctx, running) // has no answer yet
	failed.Done, failed.Code, failed.Err = true, "Unavailable", errSecret
	o.Step(ctx, failed)

	o.Backlog(ctx, fanout.BacklogEvent{Open: 3, Oldest: time.Unix(2e9, 0), Operation: "secret-5"})
}

func fireRouter(ctx context.Context, o *router.Observer) {
	o.Routed(ctx, router.RouteEvent{Region: served, Peer: "eu"})
	o.Routed(ctx, router.RouteEvent{Region: foreign, Err: fmt.Errorf("secret: %w", region.ErrUnknownRegion)})
	o.Routed(ctx, router.RouteEvent{Region: foreign, Peer: "secret", Err: region.ErrUnknownPeer})
	o.Routed(ctx, router.RouteEvent{Region: foreign, Err: errSecret})
	o.Resolved(ctx, router.ResolveEvent{Region: foreign, Peer: "eu", Elapsed: 20 * time.Millisecond})
	o.Saved(ctx, router.SaveEvent{Routes: 7})
	o.Saved(ctx, router.SaveEvent{Routes: 9, Err: errSecret})
	o.Waited(ctx, router.WaitEvent{Region: foreign, Elapsed: 20 * time.Millisecond})
	o.Waited(ctx, router.WaitEvent{Region: foreign, Err: fmt.Errorf("secret: %w", router.ErrBusy)})
	o.Waited(ctx, router.WaitEvent{Region: foreign, Elapsed: 2 * time.Second, Err: context.DeadlineExceeded})
}

func fireProxy(ctx context.Context, o *proxy.Observer) {
	get := proxy.Event{
		Region: foreign, Method: "GET", Path: "/secret", Verb: "get", Resource: schema.GroupVersionResource{Group: "secret", Resource: "secret"},
		Namespace: "secret", Name: "secret", AuditID: "secret", Code: 200, Elapsed: 20 * time.Millisecond,
	}
	o.Served(ctx, get)
	watch, log, exec, all, raw, custom := get, get, get, get, get, get
	watch.Verb, log.Subresource, exec.Upgraded, all.All, raw.Verb, custom.Verb = "watch", "log", true, true, "post", "secret"
	custom.Code, custom.Err = 0, errSecret
	for _, e := range []proxy.Event{watch, log, exec} {
		o.Began(ctx, e)
	}
	for _, e := range []proxy.Event{watch, log, exec, all, raw, custom} {
		o.Served(ctx, e)
	}
}

func fireAggregate(ctx context.Context, o *aggregate.Observer) {
	o.Listed(ctx, []aggregate.Outcome{
		{Region: served, State: aggregate.OK, Elapsed: 20 * time.Millisecond},
		{Region: region.Key{Provider: "loodse", Name: "us"}, State: aggregate.Timeout, Elapsed: 2 * time.Second, Err: errSecret},
	})
	o.Followed(ctx, aggregate.FollowEvent{Region: served, Step: aggregate.StepWatch, State: aggregate.OK})
	o.Followed(ctx, aggregate.FollowEvent{Region: served, Step: aggregate.StepList, State: aggregate.Unreachable, Err: errSecret})
}

func fireAccount(ctx context.Context, o *account.Observer) {
	about := account.Object{APIVersion: "catalog.kubecarrier.io/v1alpha1", Kind: "Account", NamespacedName: object, UID: "secret"}
	o.Repaired(ctx, account.RepairEvent{Peer: "eu", Account: "secret", Drifted: true})
	o.Repaired(ctx, account.RepairEvent{Peer: "eu", Account: "secret", Err: errSecret})
	o.Replicated(ctx, account.ReplicateEvent{Kind: accounts, Key: object, Action: "add"})
	o.Replicated(ctx, account.ReplicateEvent{Kind: accounts, Key: object, Action: "update", Err: errSecret})
	o.Ready(ctx, account.ReadyEvent{Object: about, Status: metav1.ConditionFalse, Reason: "secret"})
	o.Ready(ctx, account.ReadyEvent{Object: about, Before: metav1.ConditionFalse, Status: metav1.ConditionFalse, Reason: "secret"})
	o.Removed(ctx, account.RemoveEvent{Object: about})
	o.Changed(ctx, account.Presence{Key: object, Total: 2, Present: 1})
	o.Changed(ctx, account.Presence{Key: object, Total: 2, Present: 2})
	o.Orphaned(ctx, account.OrphanEvent{Kind: accounts, Key: object, Peer: "eu", Object: about})
}

func fireSyncer(ctx context.Context, o *syncer.Observer) {
	for _, w := range []syncer.Write{syncer.WriteCreate, syncer.WriteStatus, syncer.WriteNamespace} {
		o.Wrote(ctx, syncer.WriteEvent{Write: w, Resource: deployment, Object: object})
	}
	o.Problem(ctx, syncer.ProblemEvent{Resource: deployment, Object: object, Reason: syncer.ReasonRefused, Message: "secret"})
	o.Overruled(ctx, syncer.OverruledEvent{Resource: deployment, Object: object, Fields: []string{"secret"}})
	o.Type(ctx, syncer.TypeEvent{Resource: deployment.WithVersion("v1"), Synced: true})
	o.Another(ctx, syncer.AnotherEvent{Message: "secret"})
	o.Capacity(ctx, syncer.CapacityEvent{Err: errSecret})
}

func fireSplitter(ctx context.Context, o *splitter.Observer) {
	o.Divided(ctx, splitter.DividedEvent{Kind: "Deployment", Parent: object, Written: []string{"secret-1", "secret-2"}, Removed: []string{"secret-3"}})
	o.Divided(ctx, splitter.DividedEvent{Kind: "Deployment", Parent: object, Err: errSecret})
	o.Cluster(ctx, splitter.ClusterEvent{Cluster: "secret", Err: errSecret})
	if o.Reported != nil { // no metric counts it
		o.Reported(ctx, splitter.ReportedEvent{Kind: "Deployment", Parent: object, Message: "secret"})
	}
}

func fireWAL(_ context.Context, o *wal.Observer) {
	o.Committed(wal.CommitEvent{Calls: 3, Elapsed: 2 * time.Millisecond})
	o.Committed(wal.CommitEvent{Calls: 1, Elapsed: time.Second, Err: errSecret})
	o.Compacted(wal.CompactEvent{Before: 9000, After: 4096, Elapsed: 20 * time.Millisecond})
	o.Compacted(wal.CompactEvent{Before: 9000, Err: errSecret})
}

func fireClaim(ctx context.Context, o *claim.Observer) {
	o.Decided(ctx, claim.DecideEvent{Region: foreign, Holder: "eu"})
	o.Reported(ctx, claim.ReportEvent{Region: foreign, Peer: "eu", UID: "secret", Phase: v1alpha1.RegionClaimBound, Reason: "secret"})
	o.Reported(ctx, claim.ReportEvent{Region: foreign, Peer: "eu", Before: v1alpha1.RegionClaimBound, Phase: v1alpha1.RegionClaimBound})
	o.Gated(ctx, claim.GateEvent{Region: foreign, Peer: "eu", Bound: true})
	o.Contradicted(ctx, claim.ContradictEvent{Region: foreign, Peer: "eu", By: "secret", Theirs: "secret"})
}

func fireCentral(ctx context.Context, o *central.Observer) {
	o.Ready(ctx, central.ReadyEvent{Peer: "eu", Status: metav1.ConditionTrue, Reason: "secret", Message: "secret"})
	o.Ready(ctx, central.ReadyEvent{Peer: "eu", Before: metav1.ConditionTrue, Status: metav1.ConditionTrue})
	o.Master(ctx, central.MasterEvent{Err: errSecret})
	o.Master(ctx, central.MasterEvent{Running: true})
}

func fireServiceCluster(ctx context.Context, o *servicecluster.Observer) {
	o.Probed(ctx, servicecluster.ProbeEvent{Region: foreign, Peer: "eu", Elapsed: 20 * time.Millisecond})
	o.Probed(ctx, servicecluster.ProbeEvent{Region: foreign, Peer: "eu", Elapsed: 2 * time.Second, Err: errSecret})
	o.Reported(ctx, servicecluster.ReportEvent{Region: foreign, Peer: "eu", Ready: metav1.ConditionTrue, Reason: "secret"})
	o.Reported(ctx, servicecluster.ReportEvent{Region: foreign, Peer: "eu", Before: metav1.ConditionTrue, Ready: metav1.ConditionTrue})
}

func fireJoin(ctx context.Context, o *join.Observer) {
	o.Approved(ctx, join.DecideEvent{Target: "secret", Request: "secret", Requester: "secret", Message: "secret"})
	o.Denied(ctx, join.DecideEvent{Requester: "secret", Message: "secret"})
	o.Expired(ctx, join.ExpireEvent{Target: "secret"})
	o.Renewed(ctx, join.RenewEvent{Target: "secret", Err: errSecret})
	o.Renewed(ctx, join.RenewEvent{Target: "secret", Expires: time.Unix(1800000000, 0)})
}
