// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package applications_test

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// exception is a kind of object, or a field, that is not the same in the cluster as upstream, and the reason.
type exception struct {
	kind, path, why string
}

const (
	byTool       = "a mark by which a tool recognizes its objects: a tool in the cluster would delete the object"
	byController = "a controller of the cluster writes it"
	byServer     = "each API server assigns it"
	ofCluster    = "each cluster has its own"
)

// exceptions are the known ones. A path with a dot or a slash at its end stands for all fields below it. Without a kind, an
// exception is for all kinds. For objects that stay upstream, kind is the kind of the object or the type of the Secret.
var exceptions = []exception{
	{"Pod", "the object", "controllers of the cluster create Pods: a syncer takes them only if its option Types names them"},
	{"kubernetes.io/service-account-token", "the object", "the token is valid in its own cluster only"},

	{"", "metadata.labels.app.kubernetes.io/instance", byTool},
	{"", "metadata.labels.app.kubernetes.io/managed-by", byTool},
	{"", "metadata.annotations.meta.helm.sh/", byTool},
	{"", "metadata.annotations.kustomize.toolkit.fluxcd.io/", byTool},
	{"", "metadata.annotations.config.kubernetes.io/", byTool},
	{"Secret", "metadata.finalizers", "the controller that removes a finalizer runs on one side only"},
	{"PersistentVolumeClaim", "metadata.finalizers", byController},
	{"PersistentVolume", "metadata.finalizers", byController},

	{"Service", "spec.clusterIP", byServer},
	{"Service", "spec.clusterIPs[*]", byServer},
	{"Service", "spec.ports[*].nodePort", byServer},
	{"Service", "spec.healthCheckNodePort", byServer},
	{"ServiceAccount", "secrets", "the tokens of a ServiceAccount belong to its cluster"},
	{"PersistentVolumeClaim", "spec.volumeName", "each cluster binds a volume of its own"},
	{"PersistentVolumeClaim", "metadata.annotations.pv.kubernetes.io/", byController},
	{"PersistentVolumeClaim", "metadata.annotations.volume.beta.kubernetes.io/storage-provisioner", byController},
	{"PersistentVolumeClaim", "metadata.annotations.volume.kubernetes.io/storage-provisioner", byController},
	{"PersistentVolume", "metadata.annotations.pv.kubernetes.io/", byController},
	{"PersistentVolume", "spec.claimRef.", byController},
	{"Job", "spec.selector.matchLabels.", ofCluster},
	{"Job", "spec.template.metadata.labels.", ofCluster},
	{"Deployment", "metadata.annotations.deployment.kubernetes.io/revision", byController},
	{"Deployment", "spec.replicas", "a HorizontalPodAutoscaler of the cluster sets it"},
	{"ClusterRole", "rules", "a controller of the cluster computes the rules of an aggregated ClusterRole"},
}

// knownDifferences returns the rows of the table of exceptions.
func knownDifferences() []string {
	var rows []string
	for _, e := range exceptions {
		kind, path := cmp.Or(e.kind, "all"), e.path
		if strings.HasSuffix(path, ".") || strings.HasSuffix(path, "/") {
			path += "…"
		}
		rows = append(rows, fmt.Sprintf("| %s | `%s` | %s |", kind, path, e.why))
	}
	return rows
}

// why returns the reason of an exception; "" if none is known.
func why(kind, path string) string {
	for _, e := range exceptions {
		prefix := strings.HasSuffix(e.path, ".") || strings.HasSuffix(e.path, "/")
		if (e.kind == "" || e.kind == kind) && (e.path == path || prefix && strings.HasPrefix(path, e.path)) {
			return e.why
		}
	}
	return ""
}

// staysUp returns why an object does not go down; "" if it does.
func staysUp(obj *unstructured.Unstructured) string {
	if secret, _, _ := unstructured.NestedString(obj.Object, "type"); secret != "" && obj.GetKind() == "Secret" {
		return why(secret, "the object")
	}
	return why(obj.GetKind(), "the object")
}
