// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Controller maintains, in each peer, the namespaces, Roles and RoleBindings of Active Accounts:
// it restores those that are edited or deleted. It needs no central plane and no Coordinator; any
// number may run. Safe for concurrent use.
type Controller struct {
	directory region.Directory
	opts      ControllerOptions
}

// ControllerOptions configure a Controller. The zero value works.
type ControllerOptions struct {
	// Rights must equal the rights that the Coordinator's kind was made with; see KindWith. Nil:
	// DefaultRights.
	Rights Rights
	// Shard selects the Accounts and peers of this replica, by keys "PEER/ACCOUNT"; nil: all.
	Shard Shard
	// Workers is how many Accounts of one peer are reconciled at once; zero: 4.
	Workers int
	// Observer receives events; nil: none.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// NewController returns a Controller. It does no I/O; see Start. It fails if d is nil.
func NewController(d region.Directory, opts ControllerOptions) (*Controller, error) {
	if argument.Missing(d) {
		return nil, errors.New("account: directory is nil: pass a region.Ring or region.Fixed(...)")
	}
	if opts.Rights == nil {
		opts.Rights = DefaultRights()
	}
	if opts.Workers <= 0 {
		opts.Workers = 4
	}
	return &Controller{directory: d, opts: opts}, nil
}

// Start runs until ctx ends, waits for all that it started, then returns nil. Each peer has its own queue and backoff,
// so an unreachable peer delays no other. The Controller writes nothing if nothing differs. Call Start once.
func (k *Controller) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, k.opts.Logger, "accounts")
	return region.Engage(ctx, k.directory, func(ctx context.Context, c *region.Conn) error {
		ctx = logr.NewContext(ctx, logging.From(ctx).WithValues("peer", c.Peer()))
		return k.newKeeper(c).start(ctx)
	})
}

// keeper reconciles the Accounts of one peer.
type keeper struct {
	*Controller
	conn  *region.Conn
	queue *loop.Queue

	accounts, namespaces, roles, bindings, sets *loop.Objects
}

func (k *Controller) newKeeper(c *region.Conn) *keeper {
	p := &keeper{Controller: k, conn: c, queue: loop.NewQueue(loop.QueueOptions{Workers: k.opts.Workers})}
	copyOf := func(gvr schema.GroupVersionResource, labels string, changed func(types.NamespacedName)) *loop.Objects {
		return loop.NewObjects(c.Dynamic(), gvr, loop.ObjectsOptions{
			Labels: labels, Strip: loop.KeepManager(), Changed: changed, Flows: p.all,
		})
	}
	byName := func(key types.NamespacedName) { p.queue.Add(key.Name) }
	byNamespace := func(key types.NamespacedName) { p.queue.Add(key.Namespace) }
	p.accounts = copyOf(resource, "", byName)
	p.namespaces = copyOf(namespacesResource, Label, byName)
	p.roles = copyOf(rolesResource, Label, byNamespace)
	p.bindings = copyOf(bindingsResource, Label, byNamespace)
	p.sets = loop.NewObjects(c.Dynamic(), peerSetsResource, loop.ObjectsOptions{
		Strip: keepSelf, Changed: func(types.NamespacedName) { p.all() }, Flows: p.all,
	})
	return p
}

func (p *keeper) start(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, o := range p.copies() {
		// Caches retry errors until ctx ends.
		wg.Go(func() { _ = o.Start(ctx) })
	}
	wg.Go(func() { loop.Resharded(ctx, p.opts.Shard, p.all) })
	return p.queue.Start(ctx, p.work)
}

func (p *keeper) copies() []*loop.Objects {
	return []*loop.Objects{p.accounts, p.namespaces, p.roles, p.bindings, p.sets}
}

// all requeues every Account of the peer.
func (p *keeper) all() {
	for _, o := range p.accounts.List() {
		p.queue.Add(o.GetName())
	}
}

func (p *keeper) work(ctx context.Context, name string) (again time.Duration, err error) {
	if !loop.OwnsKey(p.opts.Shard, string(p.conn.Peer())+"/"+name) {
		return 0, nil
	}
	for _, o := range p.copies() {
		if o.Err() != nil {
			return 0, nil // a stale cache decides nothing: Flows requeues all Accounts when it is fresh
		}
	}
	account, ok := p.accounts.Get(types.NamespacedName{Name: name})
	if !ok || stageOf(account) != fanoutv1alpha1.StageActive || leaving(account) {
		return 0, nil
	}
	drifted := false
	if p.quarantined() {
		// Rights that were revoked while the peer was unreachable must not return: grant none until the peer is no
		// longer Quarantined.
		if !p.granted(name) {
			return 0, nil
		}
		err = withdraw(ctx, p.conn, name)
	} else {
		if p.complete(account) {
			return 0, nil
		}
		drifted = ready(account)
		// The caches may show different times: after the peer is restored, one of them may still
		// show a deleted Account while another shows no namespace. So read the Account live.
		if account, err = current(ctx, p.conn, account); err != nil || account == nil {
			return 0, err
		}
		err = activate(ctx, p.conn, account, p.opts.Rights)
	}
	p.opts.Observer.repaired(ctx, RepairEvent{
		Peer: p.conn.Peer(), Account: name, UID: account.GetUID(), Drifted: drifted, Err: err,
	})
	return 0, err
}

func stageOf(account *unstructured.Unstructured) fanoutv1alpha1.Stage {
	stage, _, _ := unstructured.NestedString(account.Object, "spec", "fanout", "stage")
	return fanoutv1alpha1.Stage(stage)
}

// quarantined reports whether the objects in the peer are being judged, because the peer joins, rejoins or was
// restored.
func (p *keeper) quarantined() bool {
	set, ok := p.sets.Get(types.NamespacedName{Name: fanoutv1alpha1.PeerSetName})
	if !ok {
		return false
	}
	return selfState(set) == fanoutv1alpha1.PeerQuarantined
}

// granted reports whether the Account's namespace has a Role or RoleBinding that was made for the
// Account.
func (p *keeper) granted(name string) bool {
	return len(p.ours(p.roles, name))+len(p.ours(p.bindings, name)) > 0
}

// ours returns, by name, the objects in an Account's namespace that were made for the Account.
func (p *keeper) ours(o *loop.Objects, account string) map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, role := range accountRoles {
		key := types.NamespacedName{Namespace: account, Name: RoleName(role)}
		if obj, ok := o.Get(key); ok && obj.GetLabels()[Label] == account {
			found[key.Name] = obj
		}
	}
	return found
}

// complete reports whether the Account's status is Ready, and the caches show exactly the objects that the Account
// needs in the peer.
func (p *keeper) complete(account *unstructured.Unstructured) bool {
	if !ready(account) {
		return false
	}
	name := account.GetName()
	made := meta.FindStatusCondition(statusIn(account).Conditions, ConditionNamespaceReady)
	if made.Reason != "Shared" {
		ns, ok := p.namespaces.Get(types.NamespacedName{Name: name})
		if !ok || !ours(ns) || ns.GetDeletionTimestamp() != nil {
			return false
		}
	}
	roles, bindings := p.opts.Rights.grants(account)
	return same(p.ours(p.roles, name), roles) && same(p.ours(p.bindings, name), bindings)
}

// same reports whether the objects in have are exactly those in want, and none of them has drifted.
func same(have map[string]*unstructured.Unstructured, want []*unstructured.Unstructured) bool {
	for _, w := range want {
		if h, ok := have[w.GetName()]; !ok || drifted(h, w) {
			return false
		}
	}
	return len(have) == len(want)
}
