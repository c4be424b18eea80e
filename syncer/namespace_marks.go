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

// NamespaceOptions say what passes between a namespace upstream and the one downstream that holds it, if this syncer made that
// one: namespaces of others are used as they are. The zero value: namespaces are made when they are needed, and that is all.
// They exclude PermitNamespaces, with which namespaces are objects like others. Finish needs the right to list every
// namespaced type upstream: see UpstreamRights.
type NamespaceOptions struct {
	// Finish ends namespaces upstream that are being deleted, where no namespace controller does: it deletes in them what
	// is synced, and when nothing at all is left in one, of any type, it removes the finalizers and so the namespace. What
	// is not synced is left alone; the namespace stays until others have removed it, which is reported as ReasonNamespace.
	Finish bool
	// Delete deletes a namespace downstream when the one upstream is deleted, after all that is synced has gone from it. It
	// counts as a deletion, see DeleteCap. A namespace in which others have objects of the synced types stays, and is
	// reported as ReasonForeign; what controllers made there goes with it.
	Delete bool
	// Metadata names labels and annotations that go down: by their key, or by its beginning with "*" at the end, such as
	// "team.example.org/*". nil: none, because a label of a namespace can give rights to what is in it. Those of tools that
	// track what they applied, of Kubernetes' own and ours never do, but the levels of PodSecurity, which only become
	// stricter: a level goes down if it is above the one that is there, and stays when it is lowered or removed upstream.
	// Their versions do not go down. A key that another client downstream has set to another value stays as it is, and is
	// reported as ReasonForeign.
	Metadata []string
	// DefaultPodSecurity is the level that the downstream enforces in a namespace without the label: privileged, baseline or
	// restricted. Empty: not known, so that only restricted goes to such a namespace.
	DefaultPodSecurity string
}

// PodSecurity, as an entry of NamespaceOptions.Metadata, lets levels of Pod Security Admission go down.
const PodSecurity = "pod-security.kubernetes.io/*"

func (o NamespaceOptions) enabled() bool { return o.Finish || o.Delete || o.Metadata != nil }

// check returns an error for each entry that is wrong.
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

// names reports whether a key is one of Metadata.
func (o NamespaceOptions) names(key string) bool {
	return slices.ContainsFunc(o.Metadata, func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return key == pattern || open && strings.HasPrefix(key, start)
	})
}

// passing returns the labels or annotations of a namespace upstream that go down, without the levels of pod security.
func (o NamespaceOptions) passing(all map[string]string, label string) map[string]string {
	all = synced(all, label)
	maps.DeleteFunc(all, func(key, _ string) bool { return ofKubernetes(key) || !o.names(key) })
	return all
}

// ofKubernetes reports whether Kubernetes gives a label or annotation its meaning.
func ofKubernetes(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == "kubernetes.io" || domain == "k8s.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")
}

// podSecurityLevels are ordered from what allows most.
var podSecurityLevels = map[string]int{"privileged": 1, "baseline": 2, "restricted": 3}

// podSecurity returns the labels of pod security that are to be downstream: up and down are the labels of the two
// namespaces, and ours reports whether this syncer has set one. A label that it has not set is left out unless it becomes
// stricter.
func (o NamespaceOptions) podSecurity(up, down map[string]string, ours func(key string) bool) map[string]string {
	wanted := map[string]string{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		key := "pod-security.kubernetes.io/" + mode
		present, labelled := down[key]
		least := podSecurityLevels[present]
		switch {
		case !labelled && o.DefaultPodSecurity != "":
			least = podSecurityLevels[o.DefaultPodSecurity]
		case least == 0: // what is not known may be anything but the strictest
			least = podSecurityLevels["baseline"]
		}
		switch level := up[key]; {
		case o.names(key) && podSecurityLevels[level] > least:
			wanted[key] = level
		case labelled && ours(key):
			wanted[key] = present
		}
	}
	return wanted
}
