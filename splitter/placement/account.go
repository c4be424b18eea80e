// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// pullSecrets returns the names of the Secrets with which the pods of a ServiceAccount pull images.
func pullSecrets(account *unstructured.Unstructured) (names []string) {
	for _, entry := range objectsIn(account.Object, "imagePullSecrets") {
		if name, _ := entry["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// setAccount records the Secrets of a ServiceAccount, or that it is gone if obj is nil. It returns the Secrets that the
// ServiceAccount refers to or referred to before.
func (x *index) setAccount(key types.NamespacedName, obj *unstructured.Unstructured) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	named := x.pulls[key]
	delete(x.pulls, key)
	if obj == nil {
		return named
	}
	now := pullSecrets(obj)
	if len(now) > 0 {
		x.pulls[key] = now
	}
	return slices.Concat(named, now)
}

// pullSecretsOf returns the names of the Secrets of the ServiceAccounts of a workload.
func (x *index) pullSecretsOf(namespace string, w workload) (names []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for ref := range w.refs {
		if ref.resource == serviceAccounts {
			names = append(names, x.pulls[types.NamespacedName{Namespace: namespace, Name: ref.name}]...)
		}
	}
	return names
}

// pulledBy returns the clusters of the workloads whose ServiceAccount refers to a Secret. x.mu must be held.
func (x *index) pulledBy(secret types.NamespacedName) (clusters []string) {
	for key, names := range x.pulls {
		if key.Namespace != secret.Namespace || !slices.Contains(names, secret.Name) {
			continue
		}
		for _, w := range x.namespaces[key.Namespace] {
			if w.refs[reference{serviceAccounts, key.Name}] {
				clusters = append(clusters, w.clusters...)
			}
		}
	}
	return clusters
}
