// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/internal/requestinfo"
)

// users are all clients except loops: the users in the script, and the client that applies EditBefore, DeleteBefore
// and RemakeBefore.
type users struct {
	servers map[string]Server
	turns   turns // of users, loops and faults; nil without Scenario.Always

	mu      sync.Mutex
	owned   map[Object]bool // true: the script wrote it; false: it existed at the start
	applied map[Object]applied
	deleted map[Object]bool // deleted by the script after it was written: not created again
	removed []removal
}

// applied is the last apply of the script to an object. The object is created again by the same apply: with another
// request its fields would get another owner, and a later step could not remove a field.
type applied struct {
	body    []byte
	manager string
}

// removal is an object of a user that another client deleted.
type removal struct {
	of       Object
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
}

// edited is the annotation that a client sets to edit an object, so that its resourceVersion changes.
const edited = "perturb.atoll.dev/edited"

// newUsers returns the users, who own all initial objects of the servers.
func newUsers(ctx context.Context, servers map[string]Server) (*users, error) {
	u := &users{servers: servers, owned: map[Object]bool{}, applied: map[Object]applied{}, deleted: map[Object]bool{}}
	for name, s := range servers {
		err := eachObject(ctx, s, func(resource schema.GroupVersionResource, o *unstructured.Unstructured) {
			u.owned[Object{name, resource.GroupResource().String(), o.GetNamespace(), o.GetName()}] = false
		})
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", name, err)
		}
	}
	return u, nil
}

func (u *users) objects() map[Object]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.owned)
}

// access returns the configuration with which a user reaches a server. It makes the user the owner of each object that
// the user writes.
func (u *users) access(name string) *rest.Config {
	server, ok := u.servers[name]
	if !ok {
		panic(fmt.Sprintf("perturb: a user asks for server %q; there are %v", name, slices.Sorted(maps.Keys(u.servers))))
	}
	config := server.Config()
	config.Wrap(func(next roundTripper) roundTripper { return &owning{users: u, server: name, next: next} })
	return config
}

// owning is a RoundTripper that records the writes of a user.
type owning struct {
	users  *users
	server string
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (o *owning) RoundTrip(r *http.Request) (*http.Response, error) {
	info, err := requestinfo.Of(r)
	if err != nil || !info.IsResource {
		return o.next.RoundTrip(r)
	}
	switch info.Verb {
	case "get", "list", "watch":
		return o.next.RoundTrip(r)
	case "delete":
		o.users.mu.Lock()
		o.users.deleted[o.objectOf(info, info.Name)] = true
		o.users.mu.Unlock()
	case "create", "patch", "update":
		if err := o.record(r, info); err != nil {
			return nil, err
		}
	}
	defer o.users.turns.take()()
	return o.next.RoundTrip(r)
}

// record records that the script owns the object of a write, and the apply that can create the object again.
func (o *owning) record(r *http.Request, info requestinfo.Info) (err error) {
	name := info.Name
	if info.Verb == "create" && name == "" {
		if name, err = nameIn(r); err != nil {
			return err
		}
	}
	of := o.objectOf(info, name)
	var body []byte
	applies := info.Verb == "patch" && info.Subresource == "" && r.Header.Get("Content-Type") == string(types.ApplyPatchType)
	if applies {
		if body, err = bodyOf(r); err != nil {
			return err
		}
	}
	o.users.mu.Lock()
	defer o.users.mu.Unlock()
	o.users.owned[of] = true
	delete(o.users.deleted, of)
	if applies {
		o.users.applied[of] = applied{body, r.URL.Query().Get("fieldManager")}
	}
	return nil
}

func (o *owning) objectOf(info requestinfo.Info, name string) Object {
	return Object{o.server, schema.GroupResource{Group: info.Group, Resource: info.Resource}.String(), info.Namespace, name}
}

// wants reports whether an object is to be created again after another client has deleted it: a user owns the object,
// and no user has deleted it.
func (u *users) wants(of Object) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, owned := u.owned[of]
	return owned && !u.deleted[of]
}

// meddle applies fault f to the object f.Of. A missing object stays missing.
func (u *users) meddle(ctx context.Context, f Fault) error {
	server := u.servers[f.Of.Server]
	resource, err := find(server, f.Of.Resource)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		return err
	}
	defer u.turns.take()()
	objects := client.Resource(resource).Namespace(f.Of.Namespace)
	present, err := objects.Get(ctx, f.Of.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	if f.Kind == EditBefore {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"yes"}}}`, edited)
		_, err := objects.Patch(ctx, f.Of.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if present.GetDeletionTimestamp() != nil {
		return nil // already being deleted
	}
	if err := objects.Delete(ctx, f.Of.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	r := removal{f.Of, resource, strip(present)}
	if !u.wants(f.Of) || f.Kind == RemakeBefore && u.makeAgain(ctx, r) == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.removed = append(u.removed, r) // remake creates it later
	return nil
}

// makeAgain creates an object that was removed. It fails if the object exists.
func (u *users) makeAgain(ctx context.Context, r removal) error {
	client, err := dynamic.NewForConfig(u.servers[r.of.Server].Config())
	if err != nil {
		return err
	}
	objects := client.Resource(r.resource).Namespace(r.of.Namespace)
	u.mu.Lock()
	a, ok := u.applied[r.of]
	u.mu.Unlock()
	if !ok {
		_, err := objects.Create(ctx, r.object, metav1.CreateOptions{})
		return err
	}
	_, err = objects.Get(ctx, r.of.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		return apierrors.NewAlreadyExists(r.resource.GroupResource(), r.of.Name)
	case !apierrors.IsNotFound(err):
		return err
	}
	_, err = objects.Patch(ctx, r.of.Name, types.ApplyPatchType, a.body, metav1.PatchOptions{FieldManager: a.manager, Force: new(true)})
	return err
}

// strip returns o without the fields that a server sets, as a person would write it.
func strip(o *unstructured.Unstructured) *unstructured.Unstructured {
	anew := o.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences"} {
		unstructured.RemoveNestedField(anew.Object, "metadata", field)
	}
	delete(anew.Object, "status")
	return anew
}

// remake creates the objects that faults have deleted, unless a finalizer still keeps the deleted object. It reports
// whether there was any object to create.
func (u *users) remake(ctx context.Context) (bool, error) {
	u.mu.Lock()
	removed := u.removed
	u.removed = nil
	u.mu.Unlock()
	var errs []error
	for _, r := range removed {
		client, err := dynamic.NewForConfig(u.servers[r.of.Server].Config())
		if err != nil {
			return false, err
		}
		giveBack := u.turns.take()
		err = u.makeAgain(ctx, r)
		giveBack()
		switch {
		case apierrors.IsAlreadyExists(err):
			present, err := client.Resource(r.resource).Namespace(r.of.Namespace).Get(ctx, r.of.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && present.GetDeletionTimestamp() != nil {
				u.mu.Lock()
				u.removed = append(u.removed, r) // a finalizer still keeps it
				u.mu.Unlock()
			} else if err != nil {
				errs = append(errs, err)
			}
		case err != nil:
			errs = append(errs, fmt.Errorf("make %s %s again: %w", r.of.Resource, r.of.Name, err))
		}
	}
	return len(removed) > 0, errors.Join(errs...)
}
