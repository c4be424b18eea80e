// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package ctltest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources of the objects that suites add and remove, and of the PeerSets, which list the
// members.
var (
	PeerSets        = schema.GroupVersionResource{Group: "fanout.atoll.dev", Version: "v1alpha1", Resource: "peersets"}
	ServiceClusters = schema.GroupVersionResource{Group: "kubecarrier.io", Version: "v1alpha1", Resource: "serviceclusters"}
	Accounts        = schema.GroupVersionResource{Group: "catalog.kubecarrier.io", Version: "v1alpha1", Resource: "accounts"}
)

// Object is the object that one plane holds under a name.
type Object struct {
	Plane     string
	Name      string
	UID       string
	Role      string // Primary, Secondary, or empty
	Stage     string
	Target    string
	Operation string
	Of        string // of a secondary: the UID of its primary
	Raw       *unstructured.Unstructured
}

func (o Object) String() string {
	return fmt.Sprintf("%s in %s: %s %s of %s, UID %s, target %s", o.Name, o.Plane, o.Stage, o.Role, o.Operation, o.UID, o.Target)
}

// Owner reports whether o owns its name: it is a committed primary.
func (o Object) Owner() bool {
	return o.Role == "Primary" && o.Stage != "Reserved"
}

// RequireOwner returns the one committed owner of a name. objects are the objects under the name,
// at most one of each plane. The test fails unless there are as many objects as planes, the owner
// is Configured, and all other objects are guards of the owner.
func RequireOwner(t *testing.T, name string, objects []Object, planes int) Object {
	t.Helper()
	require.Len(t, objects, planes, "%s is not in every plane: %v", name, objects)
	var owner Object
	for _, o := range objects {
		if o.Owner() {
			require.Empty(t, owner.UID, "two owners: %v", objects)
			owner = o
		}
	}
	require.Equal(t, "Configured", owner.Stage, "%v", objects)
	for _, o := range objects {
		require.True(t, o == owner || o.Role == "Secondary" && o.Of == owner.UID, "%v", objects)
	}
	return owner
}

// Field returns a string field of the object, such as spec.kubeconfigSecret.name.
func (o Object) Field(path ...string) string {
	text, _, _ := unstructured.NestedString(o.Raw.Object, path...)
	return text
}

func objectOf(plane string, raw *unstructured.Unstructured) Object {
	o := Object{Plane: plane, Name: raw.GetName(), UID: string(raw.GetUID()), Raw: raw}
	o.Stage = o.Field("spec", "fanout", "stage")
	o.Role = o.Field("spec", "fanout", "claim", "role")
	o.Target = o.Field("spec", "fanout", "claim", "target")
	o.Operation = o.Field("spec", "fanout", "claim", "operation")
	o.Of = o.Field("spec", "fanout", "claim", "primary", "uid")
	return o
}

// Objects lists the objects of a resource in one plane, by name, with a consistent read.
func (r *Ring) Objects(ctx context.Context, plane string, resource schema.GroupVersionResource, namespace string) (map[string]Object, error) {
	list, err := r.clients[plane].Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plane, err)
	}
	objects := map[string]Object{}
	for i := range list.Items {
		o := objectOf(plane, &list.Items[i])
		objects[o.Name] = o
	}
	return objects, nil
}
