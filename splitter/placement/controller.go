// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/logging"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
)

// Manager is the field manager of the Controller's writes.
const Manager = "atoll-placement"

// Controller places the objects of one API server on clusters, by the PlacementPolicies there. It
// writes annotations and labels of objects and the status of policies, nothing else; see the
// package's documentation. Run one per API server. Safe for concurrent use.
type Controller struct {
	up          region.API
	clusters    splitter.Clusters
	opts        Options
	kinds       []*kind
	policyCache *loop.Objects // the cached PlacementPolicies
	wide        wide
	policies    *policies
	undivided   *undivided
	index       *index
	queue       *loop.Queue

	mu    sync.Mutex
	list  []splitter.Cluster
	known bool
	left  map[string]map[string]time.Time // by object key and cluster: when the object was first observed to leave the cluster
}

// Options adjust a Controller. The zero value works.
type Options struct {
	// Workloads are the resources that a Splitter divides; nil: Deployments.
	Workloads []schema.GroupVersionResource
	// WorkloadTypes are declarations of further types; nil: none. A Splitter divides their objects, with two exceptions.
	// Objects with a podSelector, and those to which a declared reference leads, are placed as Others are. Objects of a
	// type with a scaleTarget and the division None are not placed: the condition DependentsPlaced lists them.
	WorkloadTypes []v1alpha1.WorkloadTypeSpec
	// Others are the resources whose objects keep their name in each cluster; nil: ConfigMaps, Secrets, ServiceAccounts,
	// PersistentVolumeClaims, Services, Ingresses and NetworkPolicies.
	Others []schema.GroupVersionResource
	// Default is the policy for objects in any namespace that no PlacementPolicy selects; nil: no policy.
	Default *v1alpha1.PlacementPolicySpec
	// Periods are the times that pass before a changed readiness of a cluster takes effect. Use the same
	// Periods as for the Splitter.
	splitter.Periods
	// Linger is how long an object that keeps its name stays in a cluster after it was placed elsewhere; zero: 5
	// minutes. Pods that still run in the cluster may need the object.
	Linger time.Duration
	// Workers is how many objects are reconciled concurrently; zero: 8.
	Workers int
	// Observer receives events; nil: none.
	Observer *Observer

	// Logger receives log lines. Zero: the logger of Start's context, else slog.Default. To log nothing, use
	// logr.FromSlogHandler(slog.DiscardHandler).
	Logger logr.Logger
}

// Observer has functions that a Controller calls on events. Any of them may be nil. They must not
// block and must be safe for concurrent use.
type Observer struct {
	// Placed is called after the Controller wrote the placement of an object, and after such a write failed
	// with an error other than a Conflict or NotFound.
	Placed func(context.Context, PlacedEvent)
}

// PlacedEvent is the outcome of one placement of an object.
type PlacedEvent struct {
	Resource         schema.GroupResource
	APIVersion, Kind string
	Object           types.NamespacedName
	UID              types.UID // of the object
	// Before and After are the clusters before and after the write; Leaving are those of After that the object is
	// leaving.
	Before, After, Leaving []string
	// By names the policy that selects the object. It is the value of PlacedByAnnotation.
	By  string
	Err error
}

func (o *Observer) placed(ctx context.Context, e PlacedEvent) {
	if o != nil && o.Placed != nil {
		o.Placed(ctx, e)
	}
}

var gvrOfPolicies = v1alpha1.GroupVersion.WithResource("placementpolicies")

// New returns a Controller for one API server. The Controller watches clusters, which permits only one watch: do
// not pass the value that the Splitter has. New does no I/O; see Start. It fails if a resource is listed twice or
// the default policy's selectors cannot be read.
func New(up region.API, clusters splitter.Clusters, opts Options) (*Controller, error) {
	switch {
	case argument.Missing(up):
		return nil, errors.New("placement: up is nil: pass what region.APIFor returns, or a region.Conn")
	case argument.Missing(clusters):
		return nil, errors.New("placement: clusters is nil: pass splitter.SyncTargets of an API server, or StaticClusters")
	}
	if opts.Linger <= 0 {
		opts.Linger = 5 * time.Minute
	}
	policies, err := newPolicies(opts.Default)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		up: up, clusters: clusters, opts: opts, policies: policies, index: newIndex(),
		queue: loop.NewQueue(loop.QueueOptions{Workers: opts.Workers}), left: map[string]map[string]time.Time{},
	}
	kinds, listed, err := opts.kinds()
	if err != nil {
		return nil, err
	}
	seen := map[schema.GroupResource]bool{}
	for _, k := range kinds {
		seen[k.gvr.GroupResource()] = true
		c.watch(k)
	}
	c.kinds = kinds
	c.undivided = c.newUndivided(seen, listed)
	c.policyCache = loop.NewObjects(up.Dynamic(), gvrOfPolicies, loop.ObjectsOptions{
		Strip: loop.KeepManager(Manager), Changed: c.policyChanged, Indexed: true, Flows: c.all,
	})
	c.wide = c.newWide()
	c.policies.wide = c.wide
	return c, nil
}

// Start runs until ctx ends, waits for all goroutines that it started, then returns nil. It waits for types that
// the API server does not serve yet; until the server serves PlacementPolicies, nothing is placed. It writes
// nothing if nothing differs. Call it once.
func (c *Controller) Start(ctx context.Context) error {
	if c.up == nil {
		return errors.New("placement: the Controller was not made by New")
	}
	ctx = logging.Into(ctx, c.opts.Logger, "placement")
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, k := range c.kinds {
		wg.Go(func() { _ = k.objects.Start(ctx) }) // retries errors until ctx ends
	}
	for _, cache := range append(c.undivided.caches, c.policyCache, c.wide.policies, c.wide.namespaces) {
		wg.Go(func() { _ = cache.Start(ctx) })
	}
	wg.Go(func() {
		for list := range splitter.States(ctx, c.clusters, c.opts.Periods) {
			c.mu.Lock()
			c.list, c.known = list, true
			c.mu.Unlock()
			c.all()
		}
	})
	return c.queue.Start(ctx, c.work)
}

// watch gives a kind its cache.
func (c *Controller) watch(k *kind) {
	opts := loop.ObjectsOptions{
		Packed: true, Strip: stripOther(k.gvr.GroupResource()), Indexed: true, Flows: c.all, Changed: func(key types.NamespacedName) { c.otherChanged(k, key) },
	}
	if k.selects != nil {
		opts.Strip = stripDeclared(k.selects)
	}
	if k.divided {
		opts.Strip, opts.Changed = stripDeclared(k.of), func(key types.NamespacedName) { c.workloadChanged(k, key) }
	}
	k.objects = loop.NewObjects(c.up.Dynamic(), k.gvr, opts)
}

// stripOther returns a func that removes all fields but the metadata, selectors of pods, and the references of an
// Ingress, ServiceAccount or HorizontalPodAutoscaler. Thus the data of Secrets are not kept in memory.
func stripOther(resource schema.GroupResource) func(*unstructured.Unstructured) {
	keep := map[schema.GroupResource][]string{
		{Resource: services}: {"selector"}, networkPolicies: {"podSelector"}, ingresses: {"defaultBackend", "rules", "tls"},
		autoscalers: {"scaleTargetRef"}, budgets: {"selector"},
	}[resource]
	return func(obj *unstructured.Unstructured) {
		stripMetadata(obj)
		keepFields(obj, "imagePullSecrets", "spec")
		spec, _ := obj.Object["spec"].(map[string]any)
		maps.DeleteFunc(spec, func(name string, _ any) bool { return !slices.Contains(keep, name) })
		if len(spec) == 0 {
			delete(obj.Object, "spec")
		}
	}
}

// keepFields removes all fields of an object but its type, its metadata and the given ones.
func keepFields(obj *unstructured.Unstructured, names ...string) {
	maps.DeleteFunc(obj.Object, func(field string, _ any) bool {
		return field != "apiVersion" && field != "kind" && field != "metadata" && !slices.Contains(names, field)
	})
}

func stripMetadata(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}

func (c *Controller) add(k *kind, key types.NamespacedName) {
	c.queue.Add(strconv.Itoa(k.number) + "/" + key.String())
}

// policyKeys is the prefix of the queue's keys for policies.
const policyKeys = "policy"

// allPolicies requeues every policy.
func (c *Controller) allPolicies() {
	for _, key := range slices.Concat(c.policyCache.Keys(), c.wide.policies.Keys()) {
		c.queue.Add(policyKeys + "/" + key.String())
	}
}

// policiesIn requeues the policies of a namespace, and the cluster-wide ones.
func (c *Controller) policiesIn(namespace string) {
	for _, key := range slices.Concat(c.policyCache.Keys(), c.wide.policies.Keys()) {
		if key.Namespace == namespace || key.Namespace == "" {
			c.queue.Add(policyKeys + "/" + key.String())
		}
	}
}

// all requeues every object and policy.
func (c *Controller) all() {
	c.allPolicies()
	for _, k := range c.kinds {
		for _, key := range k.objects.Keys() {
			c.add(k, key)
		}
	}
}

func (c *Controller) policyChanged(key types.NamespacedName) {
	cache := c.policyCache
	if key.Namespace == "" {
		cache = c.wide.policies
	}
	obj, _ := cache.Get(key)
	changed := c.policies.set(key, obj)
	c.queue.Add(policyKeys + "/" + key.String())
	if !changed {
		return
	}
	for _, k := range c.kinds {
		c.addAll(k, key.Namespace)
	}
}

// addAll requeues all objects of a kind in a namespace, or in all namespaces if namespace is empty.
func (c *Controller) addAll(k *kind, namespace string) {
	for _, key := range k.objects.Keys() {
		if namespace == "" || key.Namespace == namespace {
			c.add(k, key)
		}
	}
}

// workloadChanged requeues a workload and its dependents. For a shard it requeues the shard's parent.
func (c *Controller) workloadChanged(k *kind, key types.NamespacedName) {
	at := objectID{k.number, key}
	var now workload
	var part shard
	obj, isShard := k.objects.Get(key)
	if isShard {
		if part, isShard = shardOf(obj); !isShard {
			now = newWorkload(k.of, obj)
		}
	}
	before := c.index.setShard(at, part, isShard)
	for _, s := range []shard{before, part} {
		if s.name != "" {
			c.add(k, types.NamespacedName{Namespace: key.Namespace, Name: s.name})
		}
	}
	if !isShard {
		c.add(k, key)
	}
	if old := c.index.setWorkload(at, now); !old.same(now) {
		c.followers(key.Namespace, old, now)
		if c.undivided.any(key.Namespace) {
			c.policiesIn(key.Namespace)
		}
	}
}

// otherChanged requeues an object that keeps its name, and those whose placement depends on it.
func (c *Controller) otherChanged(k *kind, key types.NamespacedName) {
	c.add(k, key)
	obj, _ := k.objects.Get(key)
	switch k.gvr.GroupResource() {
	case schema.GroupResource{Resource: services}:
		c.index.setService(key, obj)
		for _, ingress := range c.index.ingressesTo(key) {
			c.routeChanged(ingress, c.index.secretsOf(ingress))
		}
	case schema.GroupResource{Resource: serviceAccounts}:
		c.secretsChanged(key.Namespace, c.index.setAccount(key, obj))
	case ingresses:
		c.routeChanged(key, c.index.setIngress(key, obj))
	}
}

// routeChanged requeues an Ingress and the Secrets with the given names.
func (c *Controller) routeChanged(ingress types.NamespacedName, names []string) {
	for _, k := range c.kinds {
		if k.gvr.GroupResource() == ingresses {
			c.add(k, ingress)
		}
	}
	c.secretsChanged(ingress.Namespace, names)
}

// secretsChanged requeues the Secrets with the given names.
func (c *Controller) secretsChanged(namespace string, names []string) {
	for _, k := range c.kinds {
		if k.gvr.GroupResource() != (schema.GroupResource{Resource: secrets}) {
			continue
		}
		for _, name := range names {
			c.add(k, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
}

// followers requeues the objects that the workloads and their ServiceAccounts refer to, and all objects of the namespace
// that may select their pods: Services, NetworkPolicies, and Ingresses with their Secrets.
func (c *Controller) followers(namespace string, ws ...workload) {
	for _, w := range ws {
		c.secretsChanged(namespace, c.index.pullSecretsOf(namespace, w))
	}
	for _, k := range c.kinds {
		switch resource := k.gvr.GroupResource(); {
		case k.divided:
		case resource == ingresses:
			for _, key := range k.objects.Keys() {
				if key.Namespace == namespace {
					c.routeChanged(key, c.index.secretsOf(key))
				}
			}
		case resource == networkPolicies, resource.String() == services, k.selects != nil:
			c.addAll(k, namespace)
		default:
			for _, w := range ws {
				for ref := range w.refs {
					if ref.resource == resource.String() {
						c.add(k, types.NamespacedName{Namespace: namespace, Name: ref.name})
					}
				}
			}
		}
	}
}
