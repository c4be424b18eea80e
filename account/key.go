// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// keyText is NAME or NAMESPACE/NAME, as a queue has it and people read it.
func keyText(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "/" + key.Name
}

// keyOf reverses keyText.
func keyOf(text string) types.NamespacedName {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Name: text}
}

// clientFor is the client of a kind in one API server.
func clientFor(api region.API, kind fanout.Kind, namespace string) dynamic.ResourceInterface {
	client := api.Dynamic().Resource(kind.Resource)
	if kind.Namespaced {
		return client.Namespace(namespace)
	}
	return client
}
