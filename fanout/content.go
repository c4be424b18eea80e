// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// content is an object without its identity, its status and the protocol's state. Labels and
// annotations are under "metadata".
type content map[string]any

// UnmarshalJSON decodes whole numbers as integers, as API objects have them. So a content has the
// same token (hash) after the log has stored and returned it.
func (c *content) UnmarshalJSON(data []byte) error {
	return utiljson.Unmarshal(data, (*map[string]any)(c))
}

const (
	// ours is the prefix of the annotations that this package writes.
	ours = "fanout.atoll.dev/"
	// lastApplied is the annotation in which kubectl stores its own last write.
	lastApplied = "kubectl.kubernetes.io/last-applied-configuration"
)

// notContent lists the prefixes of the annotations that do not belong to the content.
var notContent = []string{ours, lastApplied}

func (k Kind) content(obj *unstructured.Unstructured) content {
	bare := obj.DeepCopy()
	k.Claim.remove(bare)
	c := content{}
	for field, value := range bare.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		case "spec":
			if spec, ok := value.(map[string]any); !ok || len(spec) > 0 {
				c[field] = value
			}
		default:
			c[field] = value
		}
	}
	metadata := map[string]any{}
	if labels := bare.GetLabels(); len(labels) > 0 {
		metadata["labels"] = anyMap(labels)
	}
	annotations := maps.Clone(bare.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		for _, prefix := range notContent {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
		return false
	})
	if len(annotations) > 0 {
		metadata["annotations"] = anyMap(annotations)
	}
	if len(metadata) > 0 {
		c["metadata"] = metadata
	}
	return c
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = value
	}
	return out
}

// token returns the hash of the content: equal contents have equal tokens.
func (c content) token() (string, error) {
	if c == nil {
		c = content{}
	}
	return hash(c)
}

func hash(parts ...any) (string, error) {
	h := sha256.New()
	for _, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("content is not JSON: %w", err)
		}
		h.Write(text)
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// digest identifies a request. For a kind that exists once the digest covers the target and the key
// of the request (its idempotency key, else its operation ID), so two requests with equal content
// are different requests. For a kind that exists everywhere two requests with equal content are the
// same request.
func (k Kind) digest(obj *unstructured.Unstructured, target, key string) (string, error) {
	var payload any = k.content(obj)
	if k.Payload != nil {
		fields, err := k.Payload(obj.DeepCopy())
		if err != nil {
			return "", fmt.Errorf("payload of %s: %w", k.Kind, err)
		}
		payload = fields
	}
	if k.Mode == Everywhere {
		return hash(payload)
	}
	return hash(payload, target, key)
}

// object returns an object of the kind with content c.
func (k Kind) object(key types.NamespacedName, c content) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(k.Resource.GroupVersion().WithKind(k.Kind))
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	k.fill(obj, c)
	return obj
}

// fill replaces the content of obj by c, and keeps obj's identity, status and claim.
func (k Kind) fill(obj *unstructured.Unstructured, c content) {
	state, stateErr := k.Claim.read(obj)
	for field := range obj.Object {
		switch field {
		case "apiVersion", "kind", "metadata", "status":
		default:
			delete(obj.Object, field)
		}
	}
	kept := map[string]string{}
	for key, value := range obj.GetAnnotations() {
		for _, prefix := range notContent {
			if strings.HasPrefix(key, prefix) {
				kept[key] = value
			}
		}
	}
	for field, value := range runtime.DeepCopyJSON(c) {
		if field != "metadata" {
			obj.Object[field] = value
		}
	}
	labels, _, _ := unstructured.NestedStringMap(c, "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(c, "metadata", "annotations")
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, kept)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	if stateErr == nil && state != nil {
		// The write cannot fail, because the state was read from this object.
		_ = k.Claim.write(obj, state)
	}
}
