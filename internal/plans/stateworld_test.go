// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/atoll-dev/atoll/region/regiontest/perturb"
)

// world is the state that strokes write, and the objects that the loops must keep. It is not safe
// for concurrent use.
type world struct {
	*rand.Rand

	servers map[string]perturb.Server
	clients map[string]dynamic.Interface
	kinds   map[string]int // number of strokes that had an effect, by kind
	kept    map[ref]kept   // objects that no loop may change or delete
	scaled  bool           // loops may change the replicas of x and y
}

// ref is the place of an object in a server.
type ref struct {
	server string
	gvr    schema.GroupVersionResource
	types.NamespacedName
}

// kept is the required content of an object in the end state.
type kept struct {
	uid     types.UID
	content map[string]any
	labels  map[string]string
}

func newWorld(r *rand.Rand) *world {
	return &world{Rand: r, clients: map[string]dynamic.Interface{}, kinds: map[string]int{}, kept: map[ref]kept{}}
}

var errNoEffect = errors.New("nothing that the stroke fits")

// reach sets the servers of a run.
func (w *world) reach(servers map[string]perturb.Server) error {
	w.servers = servers
	for name, s := range servers {
		c, err := dynamic.NewForConfig(s.Config())
		if err != nil {
			return err
		}
		w.clients[name] = c
	}
	return nil
}

func (w *world) access(server string) *rest.Config { return w.servers[server].Config() }

// strike runs a stroke. A stroke that a server rejects has no effect.
func (w *world) strike(s stroke) error {
	switch err := s.do(w); {
	case err == nil:
		w.kinds[s.kind]++
		return nil
	case errors.Is(err, errNoEffect), apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsInvalid(err):
		return nil
	default:
		return fmt.Errorf("%s: %w", s.kind, err)
	}
}

// run runs loops for ten minutes, in which they come to rest, and ends them.
func (w *world) run(loops []perturb.Loop) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, l := range loops {
		running.Go(func() { _ = l.Run(ctx, w.access) })
	}
	time.Sleep(10 * time.Minute)
	cancel()
	running.Wait()
}

// one returns a random element of its arguments.
func one[T any](w *world, of ...T) T { return of[w.IntN(len(of))] }

func (w *world) client(at ref) dynamic.ResourceInterface {
	c := w.clients[at.server].Resource(at.gvr)
	if at.Namespace == "" {
		return c
	}
	return c.Namespace(at.Namespace)
}

func (w *world) get(at ref) (*unstructured.Unstructured, error) {
	return w.client(at).Get(context.Background(), at.Name, metav1.GetOptions{})
}

// apply applies an object as a manager, with force.
func (w *world) apply(at ref, manager string, obj *unstructured.Unstructured, subresources ...string) (*unstructured.Unstructured, error) {
	delete(w.kept, at)
	obj = obj.DeepCopy()
	obj.SetNamespace(at.Namespace)
	obj.SetName(at.Name)
	return w.client(at).Apply(context.Background(), at.Name, obj, metav1.ApplyOptions{FieldManager: manager, Force: true}, subresources...)
}

// create creates an object. It fails if the object exists.
func (w *world) create(at ref, manager string, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	obj = obj.DeepCopy()
	obj.SetNamespace(at.Namespace)
	obj.SetName(at.Name)
	return w.client(at).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: manager})
}

// merge patches an existing object with a JSON merge patch.
func (w *world) merge(at ref, manager string, patch map[string]any, subresources ...string) (*unstructured.Unstructured, error) {
	delete(w.kept, at)
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return w.client(at).Patch(context.Background(), at.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager}, subresources...)
}

func (w *world) delete(at ref) error {
	delete(w.kept, at)
	return w.client(at).Delete(context.Background(), at.Name, metav1.DeleteOptions{})
}

// remove deletes an object and its finalizers.
func (w *world) remove(at ref) error {
	if err := w.delete(at); err != nil {
		return err
	}
	_, err := w.merge(at, "somebody", map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// keep records that no loop may delete the object at a place, or change its content or the given
// labels. The record lasts until a stroke applies, patches or deletes the object.
func (w *world) keep(at ref, obj *unstructured.Unstructured, labels ...string) {
	if obj.GetDeletionTimestamp() != nil {
		return
	}
	k := kept{uid: obj.GetUID(), content: w.contentOf(at, obj), labels: map[string]string{}}
	for _, label := range labels {
		k.labels[label] = obj.GetLabels()[label]
	}
	w.kept[at] = k
}

// contentOf returns the fields of an object without metadata, status and spec.fanout.
func contentOf(obj *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for field, v := range obj.DeepCopy().Object {
		if field != "metadata" && field != "status" {
			content[field] = v
		}
	}
	unstructured.RemoveNestedField(content, "spec", "fanout")
	return content
}

// contentOf returns the content of an object that no loop may change.
func (w *world) contentOf(at ref, obj *unstructured.Unstructured) map[string]any {
	content := contentOf(obj)
	if w.scaled && at.gvr == deployments && (at.Name == "x" || at.Name == "y") {
		unstructured.RemoveNestedField(content, "spec", "replicas")
	}
	return content
}

// untouched returns an error that lists the kept objects that a loop has changed or deleted.
func (w *world) untouched() error {
	var errs []error
	for at, k := range w.kept {
		obj, err := w.get(at)
		switch {
		case apierrors.IsNotFound(err):
			err = fmt.Errorf("%s is gone, and no loop may delete it", at)
		case err != nil:
		case obj.GetUID() != k.uid:
			err = fmt.Errorf("%s was replaced, and no loop may do that", at)
		case !reflect.DeepEqual(w.contentOf(at, obj), k.content):
			err = fmt.Errorf("%s was changed, and no loop may do that: from %v to %v", at, k.content, contentOf(obj))
		default:
			for label, v := range k.labels {
				if obj.GetLabels()[label] != v {
					err = fmt.Errorf("%s had the label %s=%s, and no loop may change it", at, label, v)
				}
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (r ref) String() string {
	return fmt.Sprintf("%s %s at %s", r.gvr.GroupResource(), strings.Trim(r.Namespace+"/"+r.Name, "/"), r.server)
}

// list returns all objects of a resource, by namespace and name.
func (w *world) list(ctx context.Context, server string, gvr schema.GroupVersionResource) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	list, err := w.clients[server].Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[types.NamespacedName]*unstructured.Unstructured{}
	for i := range list.Items {
		o := &list.Items[i]
		all[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
	}
	return all, nil
}
