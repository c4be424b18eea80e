// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NamespaceMap maps upstream namespaces to downstream ones, and back. The two methods must be the inverse of each
// other, always return the same result for a name, and be safe for concurrent use.
type NamespaceMap interface {
	// Down returns the name of the downstream namespace of ns. On an error, objects in ns are not synced, and the error
	// is reported.
	Down(ns string) (string, error)
	// Up returns the name of the upstream namespace whose downstream namespace is ns; false if there is no such
	// namespace.
	Up(ns string) (string, bool)
}

// SameNamespaces maps each namespace to the one of the same name.
func SameNamespaces() NamespaceMap { return prefixed("") }

// PrefixNamespaces puts prefix before the name of each namespace. A name that becomes too long is reported, not cut.
func PrefixNamespaces(prefix string) NamespaceMap { return prefixed(prefix) }

type prefixed string

func (p prefixed) Down(ns string) (string, error) {
	name := string(p) + ns
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("namespace %s would be %s downstream: %s", ns, name, strings.Join(problems, "; "))
	}
	return name, nil
}

func (p prefixed) Up(ns string) (string, bool) {
	name, ok := strings.CutPrefix(ns, string(p))
	return name, ok && name != ""
}
