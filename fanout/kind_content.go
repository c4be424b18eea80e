// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout/v1alpha1"
)

// Content returns the fields of obj in which all copies of an object that exists
// everywhere agree: what Payload returns, or else all but status, claim and
// metadata other than labels and annotations. It is pure and does not modify obj;
// the error is Payload's.
func (k Kind) Content(obj *unstructured.Unstructured) (map[string]any, error) {
	if obj == nil {
		return nil, errObjectNil
	}
	if k.Payload == nil {
		return k.content(obj), nil
	}
	fields, err := k.Payload(obj.DeepCopy())
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", k.Kind, err)
	}
	return fields, nil
}

// Digest identifies the Content of obj, as a kind that exists Everywhere has it in
// its revisions. It is pure and does not modify obj.
func (k Kind) Digest(obj *unstructured.Unstructured) (string, error) {
	fields, err := k.Content(obj)
	if err != nil {
		return "", err
	}
	return hash(content(fields))
}

// State returns the protocol's part of obj, nil if it has none. The error says
// that what stands in its place cannot be read, which is not the same as nothing.
func (k Kind) State(obj *unstructured.Unstructured) (*v1alpha1.Fanout, error) {
	if obj == nil {
		return nil, errObjectNil
	}
	return k.Claim.read(obj)
}

// SeesEdits says whether a copy that was changed without a revision is told from
// one that a server filled in by itself: where the claim is in the spec, or where
// Payload says what counts.
func (k Kind) SeesEdits() bool { return k.Claim.annotation == "" || k.Payload != nil }
