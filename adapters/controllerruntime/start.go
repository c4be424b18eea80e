// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime

import (
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

// PartialStart makes caches of a Config that sync with the regions that answer, at least one. The objects of another
// region are added when it answers, as events of the running informers. From then on the cache keeps them while the region
// is unreachable, as every cache of a Config does. The zero value works. It is safe for concurrent use.
//
// Until a region is no longer Missing, a reconciler must not take the absence of an object for its deletion.
type PartialStart struct {
	mu     sync.Mutex
	caches []*aggregate.Delivered
}

// NewCache makes one cache. Pass it as NewCache in cluster.Options, or in manager.Options. The handler of the Config must be
// an *apiserver.Handler, because the policy of the requests is in their context. NewCache does not block; its errors are
// those of cache.New.
func (p *PartialStart) NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	delivered := &aggregate.Delivered{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return policed{next, aggregate.RequireDelivered(delivered)}
	})
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	opts.HTTPClient = client
	made, err := cache.New(config, opts)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caches = append(p.caches, delivered)
	return made, nil
}

// Missing returns the regions whose objects some informer of the caches has never had, sorted by provider and name. A region
// is missing only after an informer has asked for its objects. Use it for a log line, a metric or a readiness check.
func (p *PartialStart) Missing() []region.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []region.Key
	for _, delivered := range p.caches {
		all = append(all, delivered.Missing()...)
	}
	slices.SortFunc(all, region.Key.Compare)
	return slices.Compact(all)
}

// policed is a RoundTripper whose requests have a policy.
type policed struct {
	next   http.RoundTripper
	policy aggregate.Policy
}

// RoundTrip implements http.RoundTripper.
func (p policed) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.next.RoundTrip(r.WithContext(aggregate.WithPolicy(r.Context(), p.policy)))
}
