// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// NamespaceMap says which namespace downstream holds an upstream one, and back. The two methods must be inverse of each
// other, always give the same answer, and be safe for concurrent use.
type NamespaceMap interface {
	// Down returns the name of the namespace downstream. An error keeps what is in ns from being synced and is reported.
	Down(ns string) (string, error)
	// Up returns which namespace upstream is held in ns; false: none.
	Up(ns string) (string, bool)
}

// SameNamespaces maps each namespace to the one of the same name.
func SameNamespaces() NamespaceMap { return prefixed("") }

// PrefixNamespaces puts prefix before the name of each namespace. What becomes too long is reported, not cut.
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
