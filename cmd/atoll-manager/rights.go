// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/cmd/atoll-manager/config"
	"github.com/atoll-dev/atoll/internal/rights"
	"github.com/atoll-dev/atoll/syncer/join"
)

// rightsOf returns the least roles of the manager: in a peer, or in the central plane, which is a peer of its own too (the
// Peer "local").
func rightsOf(c *config.Configuration, central bool) (cluster []*rbacv1.ClusterRole, namespaced []*rbacv1.Role) {
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
	return cluster, namespaced
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// printRights prints the roles for "plane" or "peer".
func printRights(out io.Writer, c *config.Configuration, where string) error {
	if where != "plane" && where != "peer" {
		return fmt.Errorf("%q is not known; accepted: plane or peer", where)
	}
	cluster, namespaced := rightsOf(c, where == "plane")
	text, err := rights.YAML(cluster, namespaced)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}
