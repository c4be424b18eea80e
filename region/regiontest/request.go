// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

// User is the user of a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Request is one request as the server received it.
type Request struct {
	Time         time.Time
	Method, Path string
	User         User  // the effective user: the impersonated user, if any
	Impersonator *User // the user who impersonates; nil without impersonation
	Verb         string
	Group        string
	Version      string
	Resource     string // empty for paths that are not resources, such as discovery
	Subresource  string
	Namespace    string
	Name         string // from the path: empty for lists, watches and creations
	FieldManager string
	DryRun       bool
	Code         int   // of the response; zero while in progress or without a response
	Err          error // why there was no response: a fault, a partition or a canceled request
}

// GroupResource returns the group and the resource.
func (r Request) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// call is a request that the server processes.
type call struct {
	Request
	http     *http.Request
	query    url.Values
	resource *resource
	warnings []string
	id       int // in the history

	unauthenticated error // the error of authenticate; nil if the user is known
}

// parse returns a call with the verb, the object and the options that the method, the path and the
// query of r name.
func parse(r *http.Request) *call {
	c := &call{http: r, query: r.URL.Query()}
	c.Time, c.Method, c.Path = time.Now(), r.Method, r.URL.Path
	c.FieldManager = c.query.Get("fieldManager")
	c.DryRun = c.query.Get("dryRun") == "All"
	c.Verb = strings.ToLower(r.Method)
	parts := strings.FieldsFunc(r.URL.Path, func(r rune) bool { return r == '/' })
	switch {
	case len(parts) > 2 && parts[0] == "api":
		c.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.Group, c.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return c
	}
	if parts[0] == "namespaces" && c.Group == "" {
		switch {
		case len(parts) == 1:
		case len(parts) == 2, parts[2] == "status", parts[2] == "finalize":
			c.Namespace = parts[1]
		default:
			c.Namespace, parts = parts[1], parts[2:]
		}
	} else if parts[0] == "namespaces" && len(parts) > 2 {
		c.Namespace, parts = parts[1], parts[2:]
	}
	c.Resource = parts[0]
	if len(parts) > 1 {
		c.Name = parts[1]
	}
	if len(parts) > 2 {
		c.Subresource = strings.Join(parts[2:], "/")
	}
	c.Verb = verb(r.Method, c.Name, c.query)
	return c
}

func verb(method, name string, query url.Values) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case name != "":
		return "get"
	case requestinfo.IsTrue(query["watch"]):
		return "watch"
	default:
		return "list"
	}
}

// key returns the key of the request's object.
func (c *call) key() objectKey {
	if !c.resource.namespaced {
		return objectKey{name: c.Name}
	}
	return objectKey{namespace: c.Namespace, name: c.Name}
}

// history is a bounded ring of requests.
type history struct {
	mu    sync.Mutex
	limit int
	first int // id of the oldest
	ring  []Request
}

func (h *history) add(r Request) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) == h.limit {
		h.ring[h.first%h.limit] = r
		h.first++
		return h.first + h.limit - 1
	}
	h.ring = append(h.ring, r)
	return h.first + len(h.ring) - 1
}

func (h *history) update(id int, change func(*Request)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if id >= h.first && id < h.first+len(h.ring) {
		change(&h.ring[id%h.limit])
	}
}

func (h *history) list() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ring) < h.limit {
		return slices.Clone(h.ring)
	}
	list := make([]Request, 0, len(h.ring))
	for i := range h.ring {
		list = append(list, h.ring[(h.first+i)%len(h.ring)])
	}
	return list
}

// reset removes all requests from the history. The later results of requests in progress are not
// recorded.
func (h *history) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = (h.first/h.limit + 2) * h.limit
	h.ring = h.ring[:0]
}
