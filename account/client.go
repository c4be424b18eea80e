// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"k8s.io/client-go/dynamic"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
)

// clientFor returns the client of a kind in one API server.
func clientFor(api region.API, kind fanout.Kind, namespace string) dynamic.ResourceInterface {
	client := api.Dynamic().Resource(kind.Resource)
	if kind.Namespaced {
		return client.Namespace(namespace)
	}
	return client
}
