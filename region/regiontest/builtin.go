// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// builtin returns the resources that every server has. Each letter in flags states a property that the type has
// in a real server: n it is namespaced, s it has the subresource status, g it counts generations, c PUT creates
// a missing object, u PUT needs no resourceVersion, d DELETE returns the object, a changes of annotations count as
// generations too.
func builtin() []*resource {
	scheme := newScheme()
	core, apps, batch := "/v1", "apps/v1", "batch/v1"
	rbac, coordination, extensions := "rbac.authorization.k8s.io/v1", "coordination.k8s.io/v1", "apiextensions.k8s.io/v1"
	var all []*resource
	add := func(gv, plural, kind, flags string, short ...string) *resource {
		group, version, _ := strings.Cut(gv, "/")
		r := &resource{
			group: group, version: version, storage: version, plural: plural, singular: strings.ToLower(kind),
			kind: kind, listKind: kind + "List", short: short, verbs: allVerbs,
			namespaced: strings.Contains(flags, "n"), status: strings.Contains(flags, "s"),
			generation: strings.Contains(flags, "g"), annotations: strings.Contains(flags, "a"), createOnUpdate: strings.Contains(flags, "c"),
			unconditional: strings.Contains(flags, "u"), returnsDeleted: strings.Contains(flags, "d"),
			columns: defaultColumns(),
		}
		r.rules = &typed{gvk: r.gvk(), scheme: scheme}
		all = append(all, r)
		return r
	}
	namespaces := add(core, "namespaces", "Namespace", "sud", "ns")
	namespaces.verbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	namespaces.fields = map[string]func(object) string{"status.phase": at("status", "phase")}
	namespaces.columns = []column{nameColumn(), {name: "Status", kind: "string", cell: cellOf(at("status", "phase"))}, ageColumn()}
	secrets := add(core, "secrets", "Secret", "nu")
	secrets.fields = map[string]func(object) string{"type": at("type")}
	add(core, "configmaps", "ConfigMap", "nu", "cm")
	add(core, "endpoints", "Endpoints", "ncu", "ep")
	add(core, "limitranges", "LimitRange", "nu", "limits")
	add(core, "nodes", "Node", "su", "no")
	add(core, "persistentvolumeclaims", "PersistentVolumeClaim", "nsud", "pvc")
	add(core, "persistentvolumes", "PersistentVolume", "sud", "pv")
	add(core, "resourcequotas", "ResourceQuota", "nsud", "quota")
	add(core, "services", "Service", "nscud", "svc").categories = []string{"all"}
	add(core, "serviceaccounts", "ServiceAccount", "nud", "sa")
	events := add(core, "events", "Event", "ncu", "ev")
	events.fields = map[string]func(object) string{
		"involvedObject.kind": at("involvedObject", "kind"), "involvedObject.namespace": at("involvedObject", "namespace"),
		"involvedObject.name": at("involvedObject", "name"), "involvedObject.uid": at("involvedObject", "uid"),
		"reason": at("reason"), "type": at("type"),
	}
	pods := add(core, "pods", "Pod", "nsgud", "po")
	pods.categories = []string{"all"}
	pods.fields = map[string]func(object) string{
		"spec.nodeName": at("spec", "nodeName"), "status.phase": at("status", "phase"),
		"spec.restartPolicy": at("spec", "restartPolicy"), "spec.serviceAccountName": at("spec", "serviceAccountName"),
	}
	add(apps, "deployments", "Deployment", "nsgua", "deploy").categories = []string{"all"}
	add(apps, "replicasets", "ReplicaSet", "nsgu", "rs").categories = []string{"all"}
	add(apps, "statefulsets", "StatefulSet", "nsgu", "sts").categories = []string{"all"}
	add(apps, "daemonsets", "DaemonSet", "nsgu", "ds").categories = []string{"all"}
	add(apps, "controllerrevisions", "ControllerRevision", "nu")
	add(batch, "jobs", "Job", "nsgu").categories = []string{"all"}
	add(batch, "cronjobs", "CronJob", "nsgu", "cj").categories = []string{"all"}
	add("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "nsu", "hpa").categories = []string{"all"}
	add("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", "ngu")
	add("networking.k8s.io/v1", "ingresses", "Ingress", "nsgu", "ing")
	add("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", "ngu", "netpol")
	add("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget", "nsg", "pdb")
	add(rbac, "roles", "Role", "ncu")
	add(rbac, "rolebindings", "RoleBinding", "ncu")
	add(rbac, "clusterroles", "ClusterRole", "cu")
	add(rbac, "clusterrolebindings", "ClusterRoleBinding", "cu")
	add(coordination, "leases", "Lease", "nc")
	crds := add(extensions, "customresourcedefinitions", "CustomResourceDefinition", "sgd", "crd", "crds")
	crds.categories = []string{"api-extensions"}
	return all
}

// newScheme returns a scheme with all built-in types of client-go and CustomResourceDefinitions.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}

// typed holds the objectRules of a built-in type.
type typed struct {
	gvk    schema.GroupVersionKind
	scheme *runtime.Scheme
}

func (t *typed) normalize(o object) (object, []string, error) {
	into, err := t.scheme.New(t.gvk)
	if err != nil {
		return nil, nil, err
	}
	var unknown []string
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o, into, true)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, e := range strict.Errors() {
			unknown = append(unknown, e.Error())
		}
	} else if err != nil {
		return nil, nil, fmt.Errorf("%s in version %q cannot be handled as a %s: %w", t.gvk.Kind, t.gvk.Version, t.gvk.Kind, err)
	}
	normal, err := runtime.DefaultUnstructuredConverter.ToUnstructured(into)
	if err != nil {
		return nil, nil, err
	}
	normal["apiVersion"], normal["kind"] = t.gvk.GroupVersion().String(), t.gvk.Kind
	setDefaults(t.gvk.Kind, normal)
	return normal, unknown, nil
}

func (t *typed) prepare(r *resource, o, old object) {
	if old == nil {
		prepareTyped(r, o)
	}
}

// at returns a func that returns the text at path in an object, or "" if the object has no text there.
func at(path ...string) func(object) string {
	return func(o object) string {
		var v any = o
		for _, name := range path {
			m, ok := v.(map[string]any)
			if !ok {
				return ""
			}
			v = m[name]
		}
		return text(v)
	}
}
