// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/syncer/internal/synctarget"
)

// reservedNamespaces are prefixes of namespaces that belong to a cluster itself: those of Kubernetes, and those of
// installed syncers, whose ServiceAccount and Secret have the rights of the syncer.
var reservedNamespaces = []string{"kube-", synctarget.InstallationPrefix}

// The types of Secrets that are credentials of a cluster.
const (
	serviceAccountToken = "kubernetes.io/service-account-token"
	bootstrapToken      = "bootstrap.kubernetes.io/token"
	// tokenOf is the annotation of Secrets that hold the credentials of a ServiceAccount, whatever their type.
	tokenOf = "kubernetes.io/service-account.name"
)

func secretType(obj *unstructured.Unstructured) string {
	t, _, _ := unstructured.NestedString(obj.Object, "type")
	return t
}

// refuses returns why an object is not synced, in either direction; "" if it is synced. key is the upstream key of the
// object, and place its downstream key. obj is the object on the side where it was born; nil if only its keys are
// known.
func (r *syncedType) refuses(key, place types.NamespacedName, obj *unstructured.Unstructured) (Reason, string) {
	if r.kind.Refused != "" {
		return ReasonNotPermitted, r.kind.Refused
	}
	if ns := reserved(key.Namespace, place.Namespace); ns != "" {
		return ReasonNotPermitted, "namespace " + ns + " belongs to a cluster itself"
	}
	if ns := reserved(key.Name, place.Name); ns != "" && r.kind.GVR.GroupResource() == namespaces.GroupResource() {
		return ReasonNotPermitted, "namespace " + ns + " belongs to a cluster itself"
	}
	if obj == nil {
		return "", ""
	}
	if why := unsyncable(r.kind.GroupKind(), obj); why != "" {
		return ReasonNotSyncable, why
	}
	if why := isCredential(r.kind.GroupKind(), obj); why != "" {
		return ReasonNotPermitted, why
	}
	if r.syncer.opts.Refuse == nil {
		return "", ""
	}
	if why := r.syncer.opts.Refuse(r.kind.GVR.GroupResource(), obj); why != "" {
		return ReasonNotPermitted, why
	}
	return "", ""
}

// reserved returns the first of the namespaces that belongs to a cluster itself; "" if none does.
func reserved(namespaces ...string) string {
	for _, ns := range namespaces {
		if slices.ContainsFunc(reservedNamespaces, func(prefix string) bool { return strings.HasPrefix(ns, prefix) }) {
			return ns
		}
	}
	return ""
}

// isCredential returns why an object is a credential of a cluster; "" if it is not.
func isCredential(kind schema.GroupKind, obj *unstructured.Unstructured) string {
	if kind != (schema.GroupKind{Kind: "Secret"}) {
		return ""
	}
	_, ofAccount := obj.GetAnnotations()[tokenOf]
	switch {
	case secretType(obj) == bootstrapToken:
		return "a Secret of type " + bootstrapToken + " lets machines join a cluster"
	case ofAccount:
		return "the annotation " + tokenOf + " makes a Secret the credential of a ServiceAccount"
	}
	return ""
}
