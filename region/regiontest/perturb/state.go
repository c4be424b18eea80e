// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package perturb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// state is the content of all servers, reduced to the fields that must be equal in each run.
type state map[Object]map[string]any

// transient are resources that record events rather than state.
var transient = []string{"events", "events.events.k8s.io"}

// eachObject calls visit for all objects of a server, except those of transient resources.
func eachObject(ctx context.Context, s Server, visit func(schema.GroupVersionResource, *unstructured.Unstructured)) error {
	resources, err := resourcesOf(s)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(s.Config())
	if err != nil {
		return err
	}
	for _, r := range resources {
		list, err := client.Resource(r).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue // its type was just removed, or cannot be listed
		} else if err != nil {
			return fmt.Errorf("list %s: %w", r.GroupResource(), err)
		}
		for i := range list.Items {
			visit(r, &list.Items[i])
		}
	}
	return nil
}

// resourcesOf returns the resources of a server that can be listed, except transient ones, in one
// version each.
func resourcesOf(s Server) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(s.Config())
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover resources: %w", err)
	}
	var resources []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			gvr := gv.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && !slices.Contains(transient, gvr.GroupResource().String()) {
				resources = append(resources, gvr)
			}
		}
	}
	return resources, nil
}

// find returns the version in which a resource is served.
func find(s Server, resource string) (schema.GroupVersionResource, error) {
	resources, err := resourcesOf(s)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	for _, r := range resources {
		if r.GroupResource().String() == resource {
			return r, nil
		}
	}
	return schema.GroupVersionResource{}, fmt.Errorf("no resource %s is served", resource)
}

// readState reads the content of all servers and reduces it to the fields that must be equal in each
// run.
func readState(ctx context.Context, servers map[string]Server, differ []Field) (state, error) {
	found := state{}
	uids := map[string]string{}
	for name, s := range servers {
		err := eachObject(ctx, s, func(r schema.GroupVersionResource, o *unstructured.Unstructured) {
			of := Object{name, r.GroupResource().String(), o.GetNamespace(), o.GetName()}
			uids[string(o.GetUID())] = fmt.Sprintf("<uid of %s %s>", of.Resource, strings.Trim(of.Namespace+"/"+of.Name, "/"))
			found[of] = o.Object
		})
		if err != nil {
			return nil, fmt.Errorf("server %s: %w", name, err)
		}
	}
	for of, o := range found {
		found[of] = normal(of, o, uids, differ)
	}
	return found, nil
}

// ofItsOwn are the metadata fields that may differ between two runs.
var ofItsOwn = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}

// normal removes from an object the expected differences between runs.
func normal(of Object, o map[string]any, uids map[string]string, differ []Field) map[string]any {
	generation, _, _ := unstructured.NestedInt64(o, "metadata", "generation")
	for _, field := range ofItsOwn {
		unstructured.RemoveNestedField(o, "metadata", field)
	}
	if finalizers, ok, _ := unstructured.NestedStringSlice(o, "metadata", "finalizers"); ok {
		slices.Sort(finalizers) // a set, which servers store in the order of additions
		_ = unstructured.SetNestedStringSlice(o, finalizers, "metadata", "finalizers")
	}
	annotations, _, _ := unstructured.NestedMap(o, "metadata", "annotations")
	if delete(annotations, edited); len(annotations) == 0 {
		unstructured.RemoveNestedField(o, "metadata", "annotations")
	} else {
		o["metadata"].(map[string]any)["annotations"] = annotations
	}
	for _, f := range differ {
		if f.Resource == "" || f.Resource == of.Resource {
			unstructured.RemoveNestedField(o, keys(f.Path)...)
		}
	}
	return plain(o, generation, uids).(map[string]any)
}

// keys splits a path at dots outside of brackets.
func keys(path string) []string {
	var found []string
	for _, m := range pathKey.FindAllStringSubmatch(path, -1) {
		found = append(found, strings.Trim(m[0], ".[]"))
	}
	return found
}

var (
	pathKey  = regexp.MustCompile(`\[[^\]]+\]|[^.\[\]]+`)
	observed = regexp.MustCompile(`"observedGeneration":(\d+)`) // in an annotation
	instant  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// plain replaces times, UIDs and observed generations in v by text that is equal in each run, and
// sorts conditions. generation is the generation of the object that v is part of.
func plain(v any, generation int64, uids map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if n, ok := e.(int64); ok && k == "observedGeneration" {
				v[k] = fmt.Sprintf("%d behind", generation-n)
				continue
			}
			if list, ok := e.([]any); ok && k == "conditions" {
				slices.SortStableFunc(list, compareTypes)
			}
			v[k] = plain(e, generation, uids)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e, generation, uids)
		}
	case string:
		v = instant.ReplaceAllString(v, "<time>")
		v = observed.ReplaceAllStringFunc(v, func(field string) string {
			n, _ := strconv.ParseInt(observed.FindStringSubmatch(field)[1], 10, 64)
			return fmt.Sprintf(`"observedGeneration":"%d behind"`, generation-n)
		})
		for uid, name := range uids {
			if uid != "" && strings.Contains(v, uid) {
				v = strings.ReplaceAll(v, uid, name)
			}
		}
		return v
	}
	return v
}

// compareTypes sorts conditions by type. Conditions are a map by type, but a server stores them in
// the order of their addition.
func compareTypes(a, b any) int {
	typeOf := func(condition any) string {
		fields, _ := condition.(map[string]any)
		name, _ := fields["type"].(string)
		return name
	}
	return strings.Compare(typeOf(a), typeOf(b))
}

// equals returns an error with the differences from the expected state, or nil.
func (s state) equals(expected state) error {
	if d := s.diff(expected); d != "" {
		return errors.New("it ends in another state:\n" + d)
	}
	return nil
}

// diff returns the differences from the expected state, "" without any.
func (s state) diff(expected state) string {
	var lines []string
	all := maps.Clone(expected)
	maps.Copy(all, s)
	for _, of := range slices.SortedFunc(maps.Keys(all), func(a, b Object) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		name := fmt.Sprintf("%s %s at %s", of.Resource, strings.Trim(of.Namespace+"/"+of.Name, "/"), of.Server)
		got, there := s[of]
		want, wanted := expected[of]
		switch {
		case !there:
			lines = append(lines, name+" is missing")
		case !wanted:
			lines = append(lines, name+" is left over")
		default:
			if d := cmp.Diff(want, got); d != "" {
				lines = append(lines, name+" differs (- undisturbed, + disturbed):\n"+d)
			}
		}
	}
	return strings.Join(lines, "\n")
}
