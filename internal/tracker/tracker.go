// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"strings"
)

var prefixes = []string{
	"app.kubernetes.io/instance",
	"app.kubernetes.io/managed-by",
	"argocd.argoproj.io/",
	"config.k8s.io/",
	"config.kubernetes.io/",
	"fleet.cattle.io/",
	"helm.toolkit.fluxcd.io/",
	"kubectl.kubernetes.io/",
	"kustomize.toolkit.fluxcd.io/",
	"meta.helm.sh/",
	"objectset.rio.cattle.io/",
}

// Is reports whether key is a label or annotation by which a tool recognizes objects. It is safe
// for concurrent use.
func Is(key string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}
