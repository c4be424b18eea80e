// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/loop"
)

// role distinguishes the reconciles of objects with the same key. One upstream object can have two roles: it is the
// origin of a downstream object, and it was made for an object that was born downstream.
type role string

const (
	// asOrigin: the object is the origin of a downstream object.
	asOrigin role = "origin"
	// asStray: the object is downstream, in a namespace that no upstream namespace maps to.
	asStray role = "stray"
	// asBorn: the object was made for one that was born downstream.
	asBorn role = "born"
)

// ref identifies the subject of one reconcile and of one record.
type ref struct {
	// NamespacedName is the upstream key; with asStray the downstream key.
	types.NamespacedName
	role role
}

func originRef(key types.NamespacedName) ref  { return ref{key, asOrigin} }
func strayRef(place types.NamespacedName) ref { return ref{place, asStray} }
func bornRef(key types.NamespacedName) ref    { return ref{key, asBorn} }

// queueKey returns the key of r in the queue, which all types share. resource is the name of the type.
func (r ref) queueKey(resource string) string {
	return strings.Join([]string{resource, string(r.role), loop.KeyText(r.NamespacedName)}, "|")
}

// parseQueueKey is the inverse of queueKey. The name of an object may contain the separator.
func parseQueueKey(key string) (resource string, r ref) {
	resource, rest, _ := strings.Cut(key, "|")
	of, text, _ := strings.Cut(rest, "|")
	return resource, ref{loop.ParseKey(text), role(of)}
}
