// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"sort"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is one type of object in one served version.
type resource struct {
	group, version string
	storage        string // the version that is stored
	plural         string
	singular       string
	kind, listKind string
	short          []string
	categories     []string
	namespaced     bool
	status         bool // has /status
	generation     bool // counts changes of the spec in metadata.generation
	annotations    bool // counts changes of annotations there too
	createOnUpdate bool // PUT of a missing object creates it
	unconditional  bool // PUT without a resourceVersion replaces any version
	returnsDeleted bool // DELETE responds with the object rather than a Status
	verbs          []string
	rules          objectRules
	columns        []column
	fields         map[string]func(object) string // selectable fields besides name and namespace

	managers struct {
		sync.Mutex
		bySubresource map[string]fieldManager
	}
}

// objectRules are the rules that differ between built-in and custom types.
type objectRules interface {
	// normalize drops unknown fields of o and sets defaults. It may modify o. unknown has a message
	// for each dropped field.
	normalize(o object) (normal object, unknown []string, err error)
	// prepare sets the fields that only the server sets. old is nil for a creation.
	prepare(r *resource, o, old object)
	// validate returns an error if o is invalid. old is nil for a creation.
	validate(r *resource, o, old object, subresource string) error
}

func (r *resource) gr() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.plural}
}

func (r *resource) gv() schema.GroupVersion {
	return schema.GroupVersion{Group: r.group, Version: r.version}
}

func (r *resource) gvk() schema.GroupVersionKind { return r.gv().WithKind(r.kind) }

// catalogue holds the served resources of a server. A resource in the catalogue is not modified.
type catalogue struct {
	mu        sync.RWMutex
	resources map[schema.GroupVersionResource]*resource
}

func (c *catalogue) find(gvr schema.GroupVersionResource) *resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.resources[gvr]
}

func (c *catalogue) add(resources ...*resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range resources {
		c.resources[r.gv().WithResource(r.plural)] = r
	}
}

// remove removes all versions of gr.
func (c *catalogue) remove(gr schema.GroupResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gvr := range c.resources {
		if gvr.GroupResource() == gr {
			delete(c.resources, gvr)
		}
	}
}

// all returns the resources, ordered by group, version and name.
func (c *catalogue) all() []*resource {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]*resource, 0, len(c.resources))
	for _, r := range c.resources {
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.group != b.group {
			return a.group < b.group
		}
		if a.version != b.version {
			return a.version < b.version
		}
		return a.plural < b.plural
	})
	return all
}

// namespacedResources returns one version of each namespaced resource.
func (c *catalogue) namespacedResources() []*resource {
	var found []*resource
	seen := map[schema.GroupResource]bool{}
	for _, r := range c.all() {
		if r.namespaced && !seen[r.gr()] {
			seen[r.gr()] = true
			found = append(found, r)
		}
	}
	return found
}

func (r *resource) apiResource() metav1.APIResource {
	return metav1.APIResource{
		Name: r.plural, SingularName: r.singular, Namespaced: r.namespaced, Kind: r.kind,
		Verbs: r.verbs, ShortNames: r.short, Categories: r.categories,
	}
}
