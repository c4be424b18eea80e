// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// Member is a region of a Set.
type Member struct {
	Region region.Key
	// Cluster identifies the cluster that serves the region. It is opaque and never shown to a client. When it
	// changes, the region has a new history. If two members have the same Cluster and the same regional type, only
	// the first member in the order of regions is read. Empty: the member has its own cluster, which never changes.
	Cluster string
	Client  dynamic.Interface
	// REST reads lists and watches for Reader.ListJSON without decoding them; see region.RESTFor. Nil: Client decodes
	// them, and there are no tables.
	REST rest.Interface
	// Health reports whether the region is reachable; nil: unknown. A *region.Conn and a *router.Client implement it.
	Health Health
}

// Health reports whether a region is reachable. It does no I/O and is safe for concurrent use.
type Health interface {
	// Health returns the present health. Lists skip a region for which region.Health.Unreachable returns true.
	Health() region.Health
	// Recovered returns a channel that is closed when the region is reachable again. Watches then retry the region
	// at once.
	Recovered() <-chan struct{}
}

// Set is the list of regions. Regions, Fixed and *Members provide one. It is safe for concurrent use.
type Set interface {
	// Members returns the present members. It does no I/O. The result must not be modified.
	Members() []Member
	// Watch yields the present members, then the newest members after each change, until ctx ends. A region that is
	// no longer listed has left; an unreachable region stays listed.
	Watch(ctx context.Context) iter.Seq[[]Member]
}

// Members is a Set that the program changes with Put. The zero value is empty. It is safe for concurrent use.
type Members struct {
	mu      sync.Mutex
	members []Member
	changed chan struct{} // closed and replaced by each Put
}

// Fixed returns a Set of the given members. Two members of the same region are an error.
func Fixed(members ...Member) (*Members, error) {
	m := &Members{}
	if err := m.Put(members...); err != nil {
		return nil, err
	}
	return m, nil
}

// Put replaces the members. It returns an error and changes nothing if two members have the same region, a region
// is invalid, or a member has no client.
func (m *Members) Put(members ...Member) error {
	sorted := slices.Clone(members)
	slices.SortFunc(sorted, func(a, b Member) int { return compareRegions(a.Region, b.Region) })
	for i, member := range sorted {
		if err := member.Region.Validate(); err != nil {
			return fmt.Errorf("aggregate: %w", err)
		}
		if argument.Missing(member.Client) {
			return fmt.Errorf("aggregate: region %s has no client", member.Region)
		}
		if i > 0 && sorted[i-1].Region == member.Region {
			return fmt.Errorf("aggregate: region %s is given twice", member.Region)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.members = sorted
	if m.changed != nil {
		close(m.changed)
	}
	m.changed = make(chan struct{})
	return nil
}

// Members returns the present members, sorted by region.
func (m *Members) Members() []Member {
	members, _ := m.present()
	return members
}

func (m *Members) present() ([]Member, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.members, m.changed
}

// Watch yields the members at once, and the newest members after each Put, until ctx ends.
func (m *Members) Watch(ctx context.Context) iter.Seq[[]Member] {
	return func(yield func([]Member) bool) {
		for ctx.Err() == nil {
			members, changed := m.present()
			if !yield(members) {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

// Regions returns the Set of the regions that r knows and keep accepts. Requests to each region are sent as id. A
// nil keep accepts all regions. A region in which Router.Client refuses id, for example because router.Options.Map
// returns an error, stays in the Set, and requests to it fail. Errors: r is nil, or Router.Client refuses id for the
// region any.any, which stands for all.
func Regions(r *router.Router, id router.Identity, keep func(region.Key) bool) (Set, error) {
	if r == nil {
		return nil, errors.New("aggregate: the router is nil; make one with router.New")
	}
	if _, err := r.Client(region.Key{Provider: "any", Name: "any"}, id); err != nil {
		return nil, fmt.Errorf("aggregate: %w", err)
	}
	return &routed{router: r, id: id, keep: keep, clients: map[region.Key]*router.Client{}}, nil
}

// routed is the Set of a Router's regions.
type routed struct {
	router  *router.Router
	id      router.Identity
	keep    func(region.Key) bool
	mu      sync.Mutex
	clients map[region.Key]*router.Client // reused, since a Client records which peer its caller's resourceVersions came from
}

func (s *routed) Members() []Member { return s.members(s.router.Routes()) }

func (s *routed) Watch(ctx context.Context) iter.Seq[[]Member] {
	return func(yield func([]Member) bool) {
		for routes := range s.router.Watch(ctx) {
			if !yield(s.members(routes)) {
				return
			}
		}
	}
}

// find makes the Router ask its Resolver about region k if the Router does not know k yet. A region that no peer
// serves is not an error.
func (s *routed) find(ctx context.Context, k region.Key) error {
	_, err := s.router.Lookup(ctx, k)
	if errors.Is(err, region.ErrUnknownRegion) {
		return nil
	}
	return err
}

func (s *routed) members(routes []router.Route) []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	members := make([]Member, 0, len(routes))
	for _, route := range routes {
		if s.keep != nil && !s.keep(route.Region) {
			continue
		}
		client := s.clients[route.Region]
		if client == nil {
			var err error
			if client, err = s.router.Client(route.Region, s.id); err != nil {
				members = append(members, refused(route.Region, err))
				continue
			}
			s.clients[route.Region] = client
		}
		members = append(members, Member{Region: route.Region, Cluster: string(route.Peer), Client: client.Dynamic(), REST: client.REST(), Health: client})
	}
	for key := range s.clients {
		if !slices.ContainsFunc(members, func(m Member) bool { return m.Region == key }) {
			delete(s.clients, key)
		}
	}
	return members
}

// refused returns the Member of a region in which the Router refuses the identity, for example because
// router.Options.Map returns an error. Its requests fail with cause, so that its objects do not count as absent. It has
// no Cluster, so that another region of the same peer is read.
func refused(k region.Key, cause error) Member {
	client := &http.Client{Transport: failing{&region.Error{Region: k, Op: "identify", Err: cause}}}
	config := &rest.Config{Host: "https://refused.invalid", QPS: -1}
	d, _ := dynamic.NewForConfigAndClient(config, client) // cannot fail: the configuration is constant
	config.Transport = client.Transport
	raw, _ := region.RESTFor(config)
	return Member{Region: k, Client: d, REST: raw}
}

// failing is a transport that sends nothing and returns err.
type failing struct{ err error }

func (f failing) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, f.err
}

// compareRegions orders by provider, then name.
func compareRegions(a, b region.Key) int {
	return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Name, b.Name))
}
