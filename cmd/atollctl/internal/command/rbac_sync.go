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
	"github.com/atoll-dev/atoll/syncer/targets"
)

// syncing holds the flags of --sync.
type syncing struct {
	parts, types, permit, upsync     []string
	downstream, pull, deleteUpstream bool
	unscheduled                      bool
	target, namespace                string
}

func (f syncing) given() bool {
	return f.downstream || f.pull || f.deleteUpstream || f.unscheduled || f.target != "" || f.namespace != "" || len(f.types)+len(f.permit)+len(f.upsync) > 0
}

func (s *session) printSync(name string, f syncing) error {
	of := rights.Syncing{Downstream: f.downstream, DeleteUpstream: f.deleteUpstream, Unscheduled: f.unscheduled, Target: f.target, Namespace: f.namespace, Mode: targets.Push}
	if f.pull {
		of.Mode = targets.Pull
	}
	var err error
	if of.Types, err = parseTypes("--types", f.types); err != nil {
		return err
	}
	if of.Upsync, err = parseTypes("--upsync", f.upsync); err != nil {
		return err
	}
	for _, name := range f.permit {
		p, err := syncer.ParsePower(name)
		if err != nil {
			return badInput("write --permit RBAC,StorageClasses", "--permit: %s", err)
		}
		of.Permit = append(of.Permit, p)
	}
	if err := syncer.CheckTypes(of.Permit, of.Types...); err != nil && slices.ContainsFunc(f.parts, func(part string) bool { return part == "syncer" || part == "targets" }) {
		return badInput("leave it out, or add --permit", "--types: %s", err)
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

func parseTypes(flag string, names []string) ([]schema.GroupResource, error) {
	var types []schema.GroupResource
	for _, name := range names {
		gr := schema.ParseGroupResource(name)
		if gr.Resource == "" || strings.Contains(name, "*") {
			return nil, badInput("write "+flag+" deployments.apps,configmaps", "%s %q does not name a type", flag, name)
		}
		types = append(types, gr)
	}
	return types, nil
}
