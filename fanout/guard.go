// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout/internal/protocol"
)

// guardAnnotation on a guard is the shortened digest of the content that a coordinator filled in
// when it wrote the guard. API servers add defaults, and webhooks add fields, so the content alone
// does not show whether a guard carries payload.
const guardAnnotation = "fanout.atoll.dev/guard"

// guardContent returns the content of a guard of key, which Guard fills in, and its digest.
// Both depend on the key alone, so they hold no payload.
func (k Kind) guardContent(key types.NamespacedName) (content, string, error) {
	obj := k.object(key, nil)
	if k.Guard != nil {
		if err := k.Guard(obj); err != nil {
			return nil, "", fmt.Errorf("guard of %s %s: %w", k.Kind, keyString(key), err)
		}
	}
	c := k.content(obj)
	token, err := c.token()
	return c, token, err
}

// mark shortens a digest for guardAnnotation.
func mark(token string) string { return token[:min(len(token), 16)] }

// surplus returns token if the guard obj carries payload, and "" otherwise. token is the token of
// obj's content.
func (k Kind) surplus(obj *unstructured.Unstructured, token string) (string, error) {
	_, want, err := k.guardContent(objectKey(obj))
	if err != nil {
		return "", err
	}
	annotations := obj.GetAnnotations()
	_, applied := annotations[lastApplied] // kubectl's annotation repeats the payload
	if annotations[guardAnnotation] == mark(want) || token == want && !applied {
		return "", nil
	}
	return token, nil
}

// bornGuard returns the guard that a create sends.
func (k Kind) bornGuard(key types.NamespacedName, o protocol.Object) (*unstructured.Unstructured, error) {
	obj := k.object(key, nil)
	if err := k.guard(obj); err != nil {
		return nil, err
	}
	return obj, k.Claim.write(obj, state(o, "", time.Time{}))
}

// guard replaces the content of obj by that of a guard, and keeps obj's identity, status and
// claim.
func (k Kind) guard(obj *unstructured.Unstructured) error {
	c, token, err := k.guardContent(objectKey(obj))
	if err != nil {
		return err
	}
	annotations := obj.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return key != k.Claim.annotation && !strings.HasPrefix(key, ours) })
	obj.SetAnnotations(annotations)
	k.fill(obj, c)
	annotations = obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[guardAnnotation] = mark(token)
	obj.SetAnnotations(annotations)
	return nil
}
