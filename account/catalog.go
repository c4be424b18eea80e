// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/account/v1alpha1"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/backoff"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// PublishedLabel is the label of each Region that a Catalog has published. A Catalog never changes
// or deletes a Region without this label.
const PublishedLabel = "kubecarrier.io/published"

// CatalogFieldManager is the field manager of a Catalog's writes.
const CatalogFieldManager = "atoll-catalog"

var regionsResource = v1alpha1.GroupVersion.WithResource("regions")

// CatalogOptions configure a Catalog. The zero value publishes all regions to all
// tenants.
type CatalogOptions struct {
	// Tenants selects, by labels, the Accounts with the role Tenant that regions are published to;
	// nil: all Accounts with this role.
	Tenants labels.Selector
	// May reports whether a tenant may use a region; nil: every tenant may use every region. It
	// must be pure, and must not modify tenant.
	May func(tenant *v1alpha1.Account, k region.Key) bool
	// Describe returns the text that people see about a region; nil: only its name. It must be
	// pure.
	Describe func(k region.Key) v1alpha1.RegionMetadata
	// Shard selects the tenants of this replica, by keys "Catalog/TENANT"; nil: all.
	Shard Shard

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Catalog publishes the regions of a directory as Region objects in the namespaces of the tenants
// that may use them. It writes to one API server: a central plane or, with one Catalog per peer
// (see region.Engage), a peer. The Region objects do not name peers. Safe for concurrent use; any
// number may run.
type Catalog struct {
	target                        region.API
	directory                     region.Directory
	opts                          CatalogOptions
	queue                         *loop.Queue
	accounts, namespaces, regions *loop.Objects
	known                         atomic.Bool // the directory has listed its regions
}

// NewCatalog returns a Catalog. It does no I/O; see Start. It fails if an argument is nil.
func NewCatalog(target region.API, d region.Directory, opts CatalogOptions) (*Catalog, error) {
	switch {
	case argument.Missing(target):
		return nil, errors.New("account: target is nil: pass region.APIFor(...) or a *region.Conn")
	case argument.Missing(d):
		return nil, errors.New("account: directory is nil: pass a region.Ring or region.Fixed(...)")
	}
	if opts.Tenants == nil {
		opts.Tenants = labels.Everything()
	}
	c := &Catalog{target: target, directory: d, opts: opts, queue: loop.NewQueue(loop.QueueOptions{})}
	c.accounts = loop.NewObjects(target.Dynamic(), resource, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Flows: c.all,
		Changed: func(key types.NamespacedName) { c.queue.Add(key.Name) },
	})
	c.namespaces = loop.NewObjects(target.Dynamic(), namespacesResource, loop.ObjectsOptions{
		Strip: loop.KeepManager(), Flows: c.all,
		Changed: func(key types.NamespacedName) { c.queue.Add(key.Name) },
	})
	c.regions = loop.NewObjects(target.Dynamic(), regionsResource, loop.ObjectsOptions{
		Labels: PublishedLabel, Strip: loop.KeepManager(), Flows: c.all,
		Changed: func(key types.NamespacedName) { c.queue.Add(key.Namespace) },
	})
	return c, nil
}

// Start runs until ctx ends, waits for all that it started, then returns nil. The Catalog deletes the Region of a
// region that no peer serves. A region whose peer is unreachable keeps its Region, with Ready Unknown. The Catalog
// writes nothing if nothing differs. Call Start once.
func (c *Catalog) Start(ctx context.Context) error {
	ctx = logging.Into(ctx, c.opts.Logger, "catalog")
	var wg sync.WaitGroup
	defer wg.Wait()
	// Caches retry errors until ctx ends.
	for _, o := range c.copies() {
		wg.Go(func() { _ = o.Start(ctx) })
	}
	wg.Go(func() {
		for range c.directory.Watch(ctx) {
			c.known.Store(true)
			c.all()
		}
	})
	wg.Go(func() { c.attend(ctx) })
	wg.Go(func() { loop.Resharded(ctx, c.opts.Shard, c.all) })
	return c.queue.Start(ctx, c.work)
}

func (c *Catalog) copies() []*loop.Objects {
	return []*loop.Objects{c.accounts, c.namespaces, c.regions}
}

// all requeues every Account, and every namespace that contains Regions.
func (c *Catalog) all() {
	for _, obj := range c.accounts.List() {
		c.queue.Add(obj.GetName())
	}
	for _, obj := range c.regions.List() {
		c.queue.Add(obj.GetNamespace())
	}
}

// attend calls the method all when a peer becomes reachable or unreachable. It checks once a second.
func (c *Catalog) attend(ctx context.Context) {
	before := map[region.PeerName]metav1.ConditionStatus{}
	for backoff.Sleep(ctx, time.Second) {
		now := map[region.PeerName]metav1.ConditionStatus{}
		for p := range c.directory.Snapshot().Peers() {
			now[p.Name] = c.answers(p.Name)
		}
		if !maps.Equal(before, now) {
			before = now
			c.all()
		}
	}
}

// answers returns the status True if the peer is reachable, else Unknown: an unreachable peer may
// still serve the region.
func (c *Catalog) answers(peer region.PeerName) metav1.ConditionStatus {
	conn, err := c.directory.Conn(peer)
	if err != nil {
		return metav1.ConditionUnknown
	}
	h := conn.Health()
	if h.State == region.Healthy || h.State == region.Unknown && !h.LastContact.IsZero() {
		return metav1.ConditionTrue
	}
	return metav1.ConditionUnknown
}

func (c *Catalog) work(ctx context.Context, name string) (again time.Duration, err error) {
	if !loop.OwnsKey(c.opts.Shard, "Catalog/"+name) || !c.known.Load() {
		return 0, nil
	}
	if slices.ContainsFunc(c.copies(), func(o *loop.Objects) bool { return o.Err() != nil }) {
		return 0, nil // a stale cache decides nothing: Flows requeues all tenants when it is fresh
	}
	if ns, ok := c.namespaces.Get(types.NamespacedName{Name: name}); !ok || ns.GetDeletionTimestamp() != nil {
		return 0, nil // a missing namespace holds no Regions, and a terminating one is deleted with its Regions
	}
	want, have := c.wanted(name), c.published(name)
	var errs []error
	for _, regionName := range slices.Sorted(maps.Keys(want)) {
		errs = append(errs, c.publish(ctx, name, want[regionName], have[regionName]))
		delete(have, regionName)
	}
	for _, regionName := range slices.Sorted(maps.Keys(have)) {
		errs = append(errs, discard(ctx, c.regionsIn(name), have[regionName]))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, &region.Error{Op: "publish regions to " + name, Err: err}
	}
	return 0, nil
}

// wanted returns the regions to publish to a tenant, keyed by the names of their Region objects.
func (c *Catalog) wanted(name string) map[string]region.Key {
	want := map[string]region.Key{}
	tenant := c.tenant(name)
	if tenant == nil {
		return want
	}
	for k := range c.directory.Snapshot().Regions() {
		if c.opts.May == nil || c.opts.May(tenant, k) {
			want[k.String()] = k
		}
	}
	return want
}

// published returns the Regions of a namespace by name.
func (c *Catalog) published(namespace string) map[string]*unstructured.Unstructured {
	have := map[string]*unstructured.Unstructured{}
	for _, obj := range c.regions.List() {
		if obj.GetNamespace() == namespace {
			have[obj.GetName()] = obj
		}
	}
	return have
}

func (c *Catalog) regionsIn(namespace string) dynamic.ResourceInterface {
	return c.target.Dynamic().Resource(regionsResource).Namespace(namespace)
}

// publish creates the Region of k in a namespace, or corrects have, the existing one. It writes the
// status only of an existing Region.
func (c *Catalog) publish(ctx context.Context, namespace string, k region.Key, have *unstructured.Unstructured) error {
	err := ensure(ctx, c.regionsIn(namespace), have, c.manifest(namespace, k), CatalogFieldManager)
	switch {
	case errors.Is(err, errForeign):
		logging.From(ctx).Info("Another client's object has the name of a Region and is left alone",
			"namespace", namespace, "region", k.String())
		return nil
	case err == nil && have != nil:
		return c.report(ctx, have, k)
	default:
		return err
	}
}

// tenant returns the Account with this name; nil if no regions are published to it.
func (c *Catalog) tenant(name string) *v1alpha1.Account {
	obj, ok := c.accounts.Get(types.NamespacedName{Name: name})
	if !ok || obj.GetDeletionTimestamp() != nil || !c.opts.Tenants.Matches(labels.Set(obj.GetLabels())) {
		return nil
	}
	account := &v1alpha1.Account{Spec: specOf(obj)}
	account.Name, account.Labels, account.Annotations, account.UID = name, obj.GetLabels(), obj.GetAnnotations(), obj.GetUID()
	if !slices.Contains(account.Spec.Roles, v1alpha1.AccountTenant) {
		return nil
	}
	// The Account must be in effect: Active, or, in a central plane that is no peer, held by a
	// Replicator's finalizer.
	switch f := account.Spec.Fanout; {
	case f != nil && f.Stage == fanoutv1alpha1.StageActive, f == nil && slices.Contains(obj.GetFinalizers(), Finalizer):
		return account
	default:
		return nil
	}
}

func (c *Catalog) manifest(namespace string, k region.Key) *unstructured.Unstructured {
	spec := map[string]any{"provider": map[string]any{"name": k.Provider}}
	if c.opts.Describe != nil {
		metadata := map[string]any{}
		m := c.opts.Describe(k)
		if m.DisplayName != "" {
			metadata["displayName"] = m.DisplayName
		}
		if m.Description != "" {
			metadata["description"] = m.Description
		}
		if len(metadata) > 0 {
			spec["metadata"] = metadata
		}
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetAPIVersion(v1alpha1.GroupVersion.String())
	obj.SetKind("Region")
	obj.SetNamespace(namespace)
	obj.SetName(k.String())
	obj.SetLabels(map[string]string{PublishedLabel: "true"})
	return obj
}

// report writes into the status of obj, the Region of k, whether the region can be used. It writes
// nothing if the status already reports this.
func (c *Catalog) report(ctx context.Context, obj *unstructured.Unstructured, k region.Key) error {
	status, phase := metav1.ConditionUnknown, v1alpha1.RegionPending
	ready := metav1.Condition{
		Type: string(v1alpha1.RegionConditionReady), Reason: string(v1alpha1.RegionReasonPending),
		Message: "the region's peer was not reached", ObservedGeneration: obj.GetGeneration(),
	}
	if p, ok := c.directory.Snapshot().Locate(k); ok && c.answers(p.Name) == metav1.ConditionTrue {
		status, phase = metav1.ConditionTrue, v1alpha1.RegionReady
		ready.Reason, ready.Message = string(v1alpha1.RegionReasonAvailable), "the region is served and reachable"
	}
	ready.Status = status
	content := map[string]any{
		"observedGeneration": obj.GetGeneration(), "phase": string(phase), "conditions": withTransitionTimes(obj, []metav1.Condition{ready}),
	}
	if statusContains(obj.Object["status"], content) {
		return nil
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": content}}
	apply.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Region"))
	apply.SetNamespace(obj.GetNamespace())
	apply.SetName(obj.GetName())
	apply.SetResourceVersion(obj.GetResourceVersion()) // API servers ignore the UID in writes of a status
	_, err := c.regionsIn(obj.GetNamespace()).ApplyStatus(ctx, obj.GetName(), apply,
		metav1.ApplyOptions{FieldManager: CatalogFieldManager, Force: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
