// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NamespaceOptions configure the sync of namespaces themselves: their labels, annotations and deletion. A downstream
// namespace that another client created is used as it is. The zero value: namespaces are only created when objects need
// them. NamespaceOptions exclude PermitNamespaces, with which namespaces are synced like other objects. Finish needs the
// right to list every namespaced type upstream: see UpstreamRights.
type NamespaceOptions struct {
	// Finish ends upstream namespaces that are being deleted, for an upstream without a namespace controller. It
	// deletes the synced objects in such a namespace. When no object of any type is left in the namespace, it removes
	// the finalizer of the namespace controller and the syncer's own, which ends the namespace. Finish leaves objects that are
	// not synced alone: the namespace stays until others have removed them, which is reported as ReasonNamespace.
	Finish bool
	// Delete deletes a downstream namespace when its upstream namespace is deleted, after all synced objects in it are
	// gone. It counts as a deletion, see DeleteCap. A namespace in which other clients have objects of the synced types
	// stays, and is reported as ReasonForeign. Objects that controllers made there are deleted with it.
	Delete bool
	// Metadata lists the labels and annotations that go down, each by its key, or by the beginning of keys with "*" at
	// the end, such as "team.example.org/*". nil: none, because a label of a namespace can give rights to the objects
	// in it. Keys of Kubernetes, of this project, and of tools that track the objects they applied never go down. If
	// another client has set another value downstream, that value stays, and is reported as ReasonForeign.
	//
	// The levels of Pod Security Admission are the exception among the keys of Kubernetes: see PodSecurity. The syncer
	// only makes a level stricter: it sends an upstream level to the downstream if that level is stricter than the one
	// there. If a level is lowered or removed upstream, the downstream keeps its level. The versions of the levels do
	// not go down.
	Metadata []string
	// DefaultPodSecurity is the level that the downstream enforces in a namespace without a label of Pod Security
	// Admission: privileged, baseline or restricted. Empty: unknown, so that only restricted goes down to such a
	// namespace.
	DefaultPodSecurity string
}

// PodSecurity, as an entry of NamespaceOptions.Metadata, selects the levels of Pod Security Admission.
const PodSecurity = "pod-security.kubernetes.io/*"

func (o NamespaceOptions) enabled() bool { return o.Finish || o.Delete || o.Metadata != nil }

// check returns an error for each invalid entry.
func (o NamespaceOptions) check() error {
	var wrong []error
	for i, pattern := range o.Metadata {
		if at := strings.IndexByte(pattern, '*'); pattern == "" || at >= 0 && at < len(pattern)-1 {
			wrong = append(wrong, fmt.Errorf("options: NamespaceSync.Metadata[%d] %q: want a key, or the beginning of one with * at the end", i, pattern))
		}
	}
	if _, ok := podSecurityLevels[o.DefaultPodSecurity]; !ok && o.DefaultPodSecurity != "" {
		wrong = append(wrong, fmt.Errorf("options: NamespaceSync.DefaultPodSecurity %q: want privileged, baseline or restricted", o.DefaultPodSecurity))
	}
	return errors.Join(wrong...)
}

// selectsKey reports whether an entry of Metadata selects the key of a label or annotation.
func (o NamespaceOptions) selectsKey(key string) bool {
	return slices.ContainsFunc(o.Metadata, func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return key == pattern || open && strings.HasPrefix(key, start)
	})
}

// passing returns the labels or annotations of an upstream namespace that go down, without the levels of pod
// security.
func (o NamespaceOptions) passing(all map[string]string, label string) map[string]string {
	all = synced(all, label)
	maps.DeleteFunc(all, func(key, _ string) bool { return ofKubernetes(key) || !o.selectsKey(key) })
	return all
}

// ofKubernetes reports whether a key of a label or annotation is in a domain of Kubernetes.
func ofKubernetes(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubernetes.io" || domain == "k8s.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
}

// podSecurityLevels gives each level its rank. A level with a higher rank allows less.
var podSecurityLevels = map[string]int{"privileged": 1, "baseline": 2, "restricted": 3}

// podSecurity returns the pod security labels that the syncer applies to a downstream namespace. up and down are the
// labels of the two namespaces. ours reports whether this syncer has set the label with the given key downstream. If
// another client has set a label downstream, podSecurity leaves the label out unless it becomes stricter.
func (o NamespaceOptions) podSecurity(up, down map[string]string, ours func(key string) bool) map[string]string {
	wanted := map[string]string{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		key := "pod-security.kubernetes.io/" + mode
		present, labelled := down[key]
		least := podSecurityLevels[present]
		switch {
		case !labelled && o.DefaultPodSecurity != "":
			least = podSecurityLevels[o.DefaultPodSecurity]
		case least == 0: // the level is unknown: only the strictest level is certainly not weaker
			least = podSecurityLevels["baseline"]
		}
		switch level := up[key]; {
		case o.selectsKey(key) && podSecurityLevels[level] > least:
			wanted[key] = level
		case labelled && ours(key):
			wanted[key] = present
		}
	}
	return wanted
}
