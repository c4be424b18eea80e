// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regions_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

var (
	peers           = schema.GroupVersionResource{Group: "master.kubecarrier.io", Version: "v1alpha1", Resource: "peers"}
	kubeCarriers    = schema.GroupVersionResource{Group: "operator.kubecarrier.io", Version: "v1alpha1", Resource: "kubecarriers"}
	accounts        = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
	regionClaims    = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "regionclaims"}
	serviceClusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	leases          = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// client is an administrator's client of one plane.
type client struct {
	name string
	dynamic.Interface
}

// expectation returns nil if an object is as expected, otherwise an error that describes the
// difference.
type expectation func(obj *unstructured.Unstructured) error

// get reads an object, and fails the test if the object is missing.
func (c *client) get(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := c.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err, c.name)
	return obj
}

// await waits until an object meets all expectations, and returns it.
func (c *client) await(t *testing.T, what string, resource schema.GroupVersionResource, namespace, name string, wanted ...expectation) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	var lacks error // the difference at the latest read
	planetest.Eventually(t, soon, what, func(ctx context.Context) error {
		obj, err := c.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return errors.Join(err, lacks)
		}
		for _, is := range wanted {
			if err := is(obj); err != nil {
				lacks = fmt.Errorf("%w; its status is %v", err, obj.Object["status"])
				return lacks
			}
		}
		found = obj
		return nil
	})
	return found
}

// remove deletes an object and waits until the object is gone.
func (c *client) remove(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	err := c.Resource(resource).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%s: %v", c.name, err)
	planetest.Eventually(t, soon, resource.Resource+" "+name+" is gone", func(ctx context.Context) error {
		obj, err := c.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it is there: %v", obj)
	})
}

// uids returns the UIDs of all objects of some resources, by resource, namespace and name.
func (c *client) uids(t *testing.T, resources ...schema.GroupVersionResource) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for _, resource := range resources {
		list, err := c.Resource(resource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, obj := range list.Items {
			uids[resource.Resource+" "+obj.GetNamespace()+"/"+obj.GetName()] = string(obj.GetUID())
		}
	}
	return uids
}

// has expects a field of the status to have a value.
func has(value any, path ...string) expectation {
	return func(obj *unstructured.Unstructured) error {
		found, _, err := unstructured.NestedFieldNoCopy(obj.Object, append([]string{"status"}, path...)...)
		if err != nil || !reflect.DeepEqual(found, value) {
			return fmt.Errorf("%v is %v, want %v", path, found, value)
		}
		return nil
	}
}

// hasCondition expects a condition with the status and the reason. An empty reason matches any
// reason.
func hasCondition(kind, status, reason string) expectation {
	return func(obj *unstructured.Unstructured) error {
		conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, each := range conditions {
			c, _ := each.(map[string]any)
			if c["type"] == kind && c["status"] == status && (reason == "" || c["reason"] == reason) {
				return nil
			}
		}
		return fmt.Errorf("no condition %s is %s because of %s", kind, status, reason)
	}
}

// isObserved expects a status of the current generation, with conditions.
func isObserved(obj *unstructured.Unstructured) error {
	observed, _, err := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	if err != nil {
		return err
	}
	if observed != obj.GetGeneration() || observed == 0 {
		return fmt.Errorf("observedGeneration is %d, generation %d", observed, obj.GetGeneration())
	}
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err == nil && len(conditions) == 0 {
		err = errors.New("there are no conditions")
	}
	return err
}

func phaseOf(obj *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase")
	return phase
}
