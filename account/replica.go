// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// OriginAnnotation is the annotation of each object in a peer that a Replicator has made for an
// object of a central plane that is no peer. Its value is the UID of the central object. The
// annotation is part of the content, so it distinguishes the object from an object of another
// central object, and from an object that was added without a central object.
const OriginAnnotation = "atoll.dev/origin"

// replica is the part of a peer's object that a Replicator keeps in memory.
type replica struct {
	UID         types.UID
	Created     time.Time
	Stage       fanoutv1alpha1.Stage // empty without a claim
	Home        bool                 // whether it is the home
	Revision    int64
	Digest      string // of the revision
	Actual      string // of the present content, if the kind detects edits
	Bare        string // of the present content without OriginAnnotation
	Origin      types.UID
	Terminating bool
	Ready       bool
	NotReady    string // why the object is not ready, if its status reports it
	Orphaned    bool   // its status has the condition Orphaned
	Bad         string // why its claim or content cannot be read
}

func (c *replica) committed() bool {
	return c.Stage == fanoutv1alpha1.StageActive || c.Stage == fanoutv1alpha1.StageRemoving
}

func (c *replica) edited() bool { return c.Home && c.Actual != "" && c.Actual != c.Digest }

// replicaOf reads a peer's object.
func replicaOf(kind fanout.Kind, obj *unstructured.Unstructured) replica {
	c := replica{
		UID:         obj.GetUID(),
		Created:     obj.GetCreationTimestamp().UTC(),
		Origin:      types.UID(obj.GetAnnotations()[OriginAnnotation]),
		Terminating: obj.GetDeletionTimestamp() != nil,
		Orphaned:    isOrphaned(obj),
	}
	if c.Terminating {
		// While a deletion only requests a removal, the object is in effect and does not count as
		// terminating.
		_, requested := kind.Hold(obj)
		c.Terminating = !requested
	}
	state, err := kind.State(obj)
	if err == nil && state != nil && state.Claim != nil {
		c.Stage, c.Home = state.Stage, isHome(state)
		if state.Revision != nil {
			c.Revision, c.Digest = state.Revision.Number, state.Revision.Digest
		}
		if kind.SeesEdits() && c.Stage == fanoutv1alpha1.StageActive {
			c.Actual, err = kind.Digest(obj)
		}
	}
	if err == nil {
		c.Bare, err = bare(kind, obj)
	}
	if err != nil {
		c.Bad = brief(err.Error())
	}
	c.Ready = kind.Ready == nil || kind.Ready(obj)
	if !c.Ready {
		c.NotReady = whyNot(obj)
	}
	return c
}

// bare returns the digest of obj without OriginAnnotation.
func bare(kind fanout.Kind, obj *unstructured.Unstructured) (string, error) {
	if _, ok := obj.GetAnnotations()[OriginAnnotation]; !ok {
		return kind.Digest(obj)
	}
	// A shallow copy: only the annotations change.
	other := &unstructured.Unstructured{Object: maps.Clone(obj.Object)}
	metadata, _ := obj.Object["metadata"].(map[string]any)
	other.Object["metadata"] = maps.Clone(metadata)
	annotations := obj.GetAnnotations()
	delete(annotations, OriginAnnotation)
	other.SetAnnotations(annotations)
	return kind.Digest(other)
}

// whyNot returns the type, status, reason and message of the first condition that explains why obj
// is not ready; empty if no condition does.
func whyNot(obj *unstructured.Unstructured) string {
	for _, c := range statusIn(obj).Conditions {
		if c.Status != metav1.ConditionTrue && (c.Type == ConditionNamespaceReady || c.Type == ConditionRolesReady || c.Type == ConditionReady) {
			return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// pack returns a func that reduces obj to its identity and the result of replicaOf. The reduced
// object must not be encoded or copied.
func pack(kind fanout.Kind) func(*unstructured.Unstructured) {
	return func(obj *unstructured.Unstructured) {
		unstructured.RemoveNestedField(obj.Object, "metadata", "managedFields")
		c := replicaOf(kind, obj)
		metadata := identity(obj)
		if namespace := obj.GetNamespace(); namespace != "" {
			metadata["namespace"] = namespace
		}
		obj.Object = map[string]any{"metadata": metadata, "replica": &c}
	}
}

// identity returns the metadata that a cached object needs.
func identity(obj *unstructured.Unstructured) map[string]any {
	return map[string]any{"name": obj.GetName(), "resourceVersion": obj.GetResourceVersion(), "uid": string(obj.GetUID())}
}

// unpack reverses pack. Its result must not be modified.
func unpack(obj *unstructured.Unstructured) *replica {
	c, _ := obj.Object["replica"].(*replica)
	return c
}
