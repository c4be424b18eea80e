// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/cmd/atoll-manager/manager"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/splitter"
	"github.com/atoll-dev/atoll/splitter/v1alpha1"
	"github.com/atoll-dev/atoll/syncer/join"
)

// rightsOf returns the least roles of the manager: in a peer, or in the central plane, which is a peer of its own too (the
// Peer "local").
func rightsOf(c *config.Configuration, types []v1alpha1.WorkloadTypeSpec, central bool) (cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role) {
	have := map[string]bool{}
	for _, loop := range rights.LoopNames() {
		if loop == "catalog" && !central {
			continue // the catalogue is published in the central plane only
		}
		places := []rights.Place{{}}
		if central {
			places = append(places, rights.Place{Central: true, Namespace: c.Central.Namespace})
		}
		for _, place := range places {
			if loop == "catalog" && !place.Central {
				continue
			}
			roles, inside, _ := rights.Loop(loop, place)
			for _, role := range roles {
				if !have[role.Name] {
					have[role.Name] = true
					cluster = append(cluster, role)
				}
			}
			namespaced = append(namespaced, inside...)
		}
	}
	if central && c.Clusters != nil {
		everywhere, inside := join.ApproverRights()
		cluster = append(cluster, &rbacv1.ClusterRole{TypeMeta: typeOf("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: "atoll-join-approver"}, Rules: everywhere})
		namespaced = append(namespaced, &rbacv1.Role{
			TypeMeta: typeOf("Role"), ObjectMeta: metav1.ObjectMeta{Name: "atoll-join-approver", Namespace: c.Clusters.TokenNamespace}, Rules: inside,
		})
	}
	if central && c.Workloads != nil {
		cluster = append(cluster, rightsOfWorkloads(c.Workloads, types)...)
	}
	if central && c.ClusterDaemonSets != nil {
		cluster = append(cluster, rights.ClusterDaemonSets())
	}
	return cluster, namespaced
}

// rightsOfWorkloads returns the roles for the workloads of the configuration and its files. The types of WorkloadTypes in
// the plane are not known here.
func rightsOfWorkloads(c *config.Workloads, types []v1alpha1.WorkloadTypeSpec) []*rbacv1.ClusterRole {
	var divided []schema.GroupResource
	for _, name := range c.Types {
		divided = append(divided, schema.ParseGroupResource(name))
	}
	for _, spec := range types {
		if spec.Division != v1alpha1.DivideNone {
			divided = append(divided, schema.GroupResource{Group: spec.Resource.Group, Resource: spec.Resource.Resource})
		}
	}
	placed := rights.Placement(divided...)
	for _, spec := range types {
		if spec.Division == v1alpha1.DivideNone && spec.PodSelector == "" { // policies list its objects
			placed.Rules = append(placed.Rules, rbacv1.PolicyRule{APIGroups: []string{spec.Resource.Group}, Resources: []string{spec.Resource.Resource}, Verbs: []string{"list", "watch"}})
		}
	}
	for _, gr := range dependents(types) {
		placed.Rules = append(placed.Rules, rbacv1.PolicyRule{APIGroups: []string{gr.Group}, Resources: []string{gr.Resource}, Verbs: []string{"list", "patch", "watch"}})
	}
	roles := []*rbacv1.ClusterRole{placed, rights.Split(append(divided, splitter.DisruptionBudgets().Resource().GroupResource(), splitter.Autoscalers().Resource().GroupResource())...)}
	if *c.FollowTypes {
		roles = append(roles, rights.Declarations())
	}
	return roles
}

// dependents returns the types that are placed with workloads because a declaration refers to them or has a podSelector.
func dependents(types []v1alpha1.WorkloadTypeSpec) (all []schema.GroupResource) {
	add := func(gr schema.GroupResource) {
		if !slices.Contains(all, gr) {
			all = append(all, gr)
		}
	}
	for _, spec := range types {
		if spec.PodSelector != "" {
			add(schema.GroupResource{Group: spec.Resource.Group, Resource: spec.Resource.Resource})
		}
		for _, r := range spec.References {
			if r.Group != "" {
				add(schema.GroupResource{Group: r.Group, Resource: string(r.Resource)})
			}
		}
	}
	return all
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// printRights prints the roles for "plane" or "peer".
func printRights(out io.Writer, c *config.Configuration, where string) error {
	if where != "plane" && where != "peer" {
		return fmt.Errorf("%q is not known; accepted: plane or peer", where)
	}
	types, err := manager.ReadTypes(c.Workloads)
	if err != nil {
		return err
	}
	cluster, namespaced := rightsOf(c, types, where == "plane")
	text, err := rights.YAML(cluster, namespaced)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}
