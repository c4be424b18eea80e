// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// checkKind returns an error if the body o does not have the type of the request. If a built-in
// object has no kind, checkKind sets its kind and apiVersion. The kind of a custom object is checked
// by validate.
func (r *resource) checkKind(o object) error {
	u := unstructured.Unstructured{Object: o}
	switch version := u.GetAPIVersion(); {
	case u.GetKind() == "":
		if r.custom() {
			return apierrors.NewBadRequest("Object 'Kind' is missing in '" + fmt.Sprint(o) + "'")
		}
		o["kind"], o["apiVersion"] = r.kind, r.gv().String()
	case version != r.gv().String():
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", version, r.gv()))
	case u.GetKind() != r.kind && !r.custom():
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: the kind in the data does not match", u.GetKind(), r.version, r.kind))
	}
	return nil
}

func (r *resource) custom() bool {
	_, ok := r.rules.(*custom)
	return ok
}

// checkPlace sets the namespace of o to the namespace of the request. It returns an error if o has
// another namespace. It removes the namespace of a cluster-scoped object.
func (c *call) checkPlace(o object) error {
	u := unstructured.Unstructured{Object: o}
	if !c.resource.namespaced {
		delete(metadataOf(o), "namespace")
		return nil
	}
	if ns := u.GetNamespace(); ns != "" && ns != c.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	metadataOf(o)["namespace"] = c.Namespace
	return nil
}

func (c *call) checkName(o object) error {
	name := text(metadataOf(o)["name"])
	if name == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.Name))
	}
	if name != c.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.Name))
	}
	return nil
}

const suffixLetters = "bcdfghjklmnpqrstvwxz2456789"

// generateName returns base, cut to 58 characters, with a random suffix of 5 characters.
func generateName(base string) string {
	if len(base) > 58 {
		base = base[:58]
	}
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = suffixLetters[rand.IntN(len(suffixLetters))] //nolint:gosec // a name, not a secret
	}
	return base + string(suffix)
}

// fillSystemFields sets the metadata that only the server sets at a creation, and removes the
// metadata that a new object cannot have.
func fillSystemFields(m map[string]any) {
	delete(m, "deletionTimestamp")
	delete(m, "deletionGracePeriodSeconds")
	delete(m, "selfLink")
	m["uid"] = string(uuid.NewUUID())
	m["creationTimestamp"] = now()
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

// terminating reports whether o is being deleted.
func terminating(o object) bool {
	m, _ := o["metadata"].(map[string]any)
	return m["deletionTimestamp"] != nil
}

func finalizers(o object) []any {
	m, _ := o["metadata"].(map[string]any)
	f, _ := m["finalizers"].([]any)
	return f
}

// withoutMetadata returns a shallow copy of o without its metadata and, if alsoStatus is true,
// without its status.
func withoutMetadata(o object, alsoStatus bool) object {
	rest := make(object, len(o))
	for k, v := range o {
		if k != "metadata" && (k != "status" || !alsoStatus) {
			rest[k] = v
		}
	}
	return rest
}
