// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package region

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Key names a region: a name within a provider's namespace. It is comparable and usable as a map key.
type Key struct {
	// Provider is a namespace name, hence without dots.
	Provider string
	// Name is an object name. It may hold dots.
	Name string
}

// String returns name.provider ("eu-west-1.loodse"), the form used in API groups of one region. The last dot separates
// name and provider. The zero Key is the empty string.
func (k Key) String() string {
	if k == (Key{}) {
		return ""
	}
	return k.Name + "." + k.Provider
}

// Validate returns an error that names the half of k which is not a valid Kubernetes name.
func (k Key) Validate() error {
	if msgs := validation.IsDNS1123Subdomain(k.Name); len(msgs) > 0 {
		return fmt.Errorf("region %q: name %q: %s", k, k.Name, strings.Join(msgs, "; "))
	}
	if msgs := validation.IsDNS1123Label(k.Provider); len(msgs) > 0 {
		return fmt.Errorf("region %q: provider %q: %s", k, k.Provider, strings.Join(msgs, "; "))
	}
	return nil
}

// ParseKey reverses String. The error names the half that is not a valid Kubernetes name.
func ParseKey(s string) (Key, error) {
	dot := strings.LastIndexByte(s, '.')
	if dot < 0 {
		return Key{}, fmt.Errorf("region %q: want NAME.PROVIDER, such as eu-west-1.loodse", s)
	}
	k := Key{Provider: s[dot+1:], Name: s[:dot]}
	if err := k.Validate(); err != nil {
		return Key{}, err
	}
	return k, nil
}

// Compare orders by provider, then name: negative if k comes before other, zero if they are equal.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Provider, other.Provider), cmp.Compare(k.Name, other.Name))
}
