// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/syncer"
)

// syncing are the flags of --sync.
type syncing struct {
	parts, types      []string
	downstream, pull  bool
	target, namespace string
}

func (f syncing) given() bool {
	return f.downstream || f.pull || f.target != "" || f.namespace != "" || len(f.types) > 0
}

func (s *session) printSync(name string, f syncing) error {
	of := rights.Syncing{Downstream: f.downstream, Target: f.target, Namespace: f.namespace, Mode: syncer.Push}
	if f.pull {
		of.Mode = syncer.Pull
	}
	for _, name := range f.types {
		gr := schema.ParseGroupResource(name)
		if gr.Resource == "" || strings.Contains(name, "*") {
			return badInput("write --types deployments.apps,configmaps", "--types %q does not name a type", name)
		}
		of.Types = append(of.Types, gr)
	}
	var cluster []*rbacv1.ClusterRole
	var roles []*rbacv1.Role
	for _, part := range slices.Compact(slices.Sorted(slices.Values(f.parts))) {
		c, r, ok := rights.Sync(part, of)
		if !ok {
			return badInput("the parts are "+strings.Join(rights.SyncParts(), ", "), "there is no part %q", part)
		}
		cluster, roles = append(cluster, c...), append(roles, r...)
	}
	return s.printAll(name, cluster, roles)
}
