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

// Controller keeps, in each peer, what Active Accounts need there: namespace, Roles
// and RoleBindings that somebody edits or deletes come back. It needs no central
// plane and no Coordinator; any number may run. Safe for concurrent use.
type Controller struct {
	directory region.Directory
	opts      ControllerOptions
}

// ControllerOptions configure a Controller. The zero value works.
type ControllerOptions struct {
	// Rights are those that the Coordinator's KindWith has; nil: DefaultRights.
	Rights Rights
	// Shard says which Accounts of which peers this replica works on, by keys
	// "PEER/ACCOUNT"; nil: all.
	Shard Shard
	// Workers is how many Accounts of one peer are worked on at once; zero: 4.
	Workers int
	// Observer receives what happens. Nil means nobody.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// NewController checks its arguments and does no I/O; see Start.
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

// Start works until ctx ends, waits for all it started, then returns nil. Each peer
// has a queue and a back-off of its own, so that one that does not answer delays no
// other. Where all is as it should be it writes nothing. Call it once.
func (k *Controller) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, k.opts.Logger, "accounts")
	return region.Engage(ctx, k.directory, func(ctx context.Context, c *region.Conn) error {
		ctx = logr.NewContext(ctx, logging.From(ctx).WithValues("peer", c.Peer()))
		return k.newKeeper(c).start(ctx)
	})
}

// keeper works on the Accounts of one peer.
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
		// Objects go on through errors until ctx ends.
		wg.Go(func() { _ = o.Start(ctx) })
	}
	wg.Go(func() { resharded(ctx, p.opts.Shard, p.all) })
	return p.queue.Start(ctx, p.work)
}

func (p *keeper) copies() []*loop.Objects {
	return []*loop.Objects{p.accounts, p.namespaces, p.roles, p.bindings, p.sets}
}

// all asks for work on every Account.
func (p *keeper) all() {
	for _, o := range p.accounts.List() {
		p.queue.Add(o.GetName())
	}
}

func (p *keeper) work(ctx context.Context, name string) (again time.Duration, err error) {
	if !owns(p.opts.Shard, string(p.conn.Peer())+"/"+name) {
		return 0, nil
	}
	for _, o := range p.copies() {
		if o.Err() != nil {
			return 0, nil // what is old proves nothing; its flow is told
		}
	}
	account, ok := p.accounts.Get(types.NamespacedName{Name: name})
	if !ok || stageOf(account) != fanoutv1alpha1.StageActive || leaving(account) {
		return 0, nil
	}
	drifted := false
	if p.quarantined() {
		// What was revoked while the peer was away must not be in force here until
		// the audit of its return has said what stays.
		if !p.granted(name) {
			return 0, nil
		}
		err = withdraw(ctx, p.conn, name)
	} else {
		if p.complete(account) {
			return 0, nil
		}
		drifted = ready(account)
		// The copies may be of different moments: after a restore of the peer one of them
		// may show an Account that is not there, and another that it has no namespace.
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

// quarantined says whether the peer has come back and is being audited.
func (p *keeper) quarantined() bool {
	set, ok := p.sets.Get(types.NamespacedName{Name: fanoutv1alpha1.PeerSetName})
	if !ok {
		return false
	}
	return selfState(set) == fanoutv1alpha1.PeerQuarantined
}

// granted says whether anything of RBAC stands in the namespace for the account.
func (p *keeper) granted(name string) bool {
	return len(p.ours(p.roles, name))+len(p.ours(p.bindings, name)) > 0
}

// ours are the objects in an account's namespace that were made for it, by name.
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

// complete says whether an Account has all that it is to have, by the copies.
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

// same says whether have is want and nothing else.
func same(have map[string]*unstructured.Unstructured, want []*unstructured.Unstructured) bool {
	for _, w := range want {
		if h, ok := have[w.GetName()]; !ok || drifted(h, w) {
			return false
		}
	}
	return len(have) == len(want)
}
