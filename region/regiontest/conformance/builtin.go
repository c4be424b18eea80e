// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func builtins() []testCase {
	return []testCase{
		{"secret", "stringData becomes data; type is immutable; with immutable, all data is", func(e *env) {
			s := e.in(secrets)
			made, err := s.Create(e.Ctx, &unstructured.Unstructured{Object: parse(`{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}, data: {b: Yg==}}`)}, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("data", map[string]any{"k": "dg==", "b": "Yg=="}, made.Object["data"])
			e.fact("stringData", nil, made.Object["stringData"])
			e.fact("type", "Opaque", made.Object["type"])
			_, err = s.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"type":"other"}`), metav1.PatchOptions{})
			e.fact("type changed", `422 Invalid: Secret "a" is invalid: type: Invalid value: "other": field is immutable`, e.errorText(err))
			_, err = s.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"immutable":true}`), metav1.PatchOptions{})
			require.NoError(e, err)
			_, err = s.Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"eA=="}}`), metav1.PatchOptions{})
			e.fact("immutable", "422 Invalid: Secret \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set", e.errorText(err))
			_, err = s.Create(e.Ctx, &unstructured.Unstructured{Object: parse(`{apiVersion: v1, kind: Secret, metadata: {name: b}, data: {"bad key": Yg==}}`)}, metav1.CreateOptions{})
			e.fact("bad key", `422 Invalid: Secret "b" is invalid: data[bad key]: Invalid value: "bad key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`, e.errorText(err))
			_, err = s.Create(e.Ctx, &unstructured.Unstructured{Object: parse(`{apiVersion: v1, kind: Secret, metadata: {name: b}, data: {k: "***"}}`)}, metav1.CreateOptions{})
			e.fact("not base64", "400 BadRequest", codeAndReason(err))
		}},
		{"deployment", "a Deployment gets its most visible defaults", func(e *env) {
			made, err := e.in(deployments).Create(e.Ctx, deployment("a"), metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("spec", parse(`
replicas: 1
revisionHistoryLimit: 10
progressDeadlineSeconds: 600
selector: {matchLabels: {app: x}}
strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 25%, maxSurge: 25%}}
template:
  metadata: {labels: {app: x}}
  spec:
    restartPolicy: Always
    dnsPolicy: ClusterFirst
    schedulerName: default-scheduler
    securityContext: {}
    terminationGracePeriodSeconds: 30
    containers:
    - {name: main, image: "example.org/app:1", imagePullPolicy: IfNotPresent, resources: {}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
`), jsonNumbers(made.Object["spec"]))
			bad := deployment("b")
			require.NoError(e, unstructured.SetNestedField(bad.Object, "other", "spec", "template", "metadata", "labels", "app"))
			_, err = e.in(deployments).Create(e.Ctx, bad, metav1.CreateOptions{})
			e.fact("selector", "422 Invalid: Deployment.apps \"b\" is invalid: spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`", e.errorText(err))
			_, err = e.in(deployments).Patch(e.Ctx, "a", types.MergePatchType, []byte(`{"spec":{"selector":{"matchLabels":{"app":"y"}},"template":{"metadata":{"labels":{"app":"y"}}}}}`), metav1.PatchOptions{})
			e.fact("selector is immutable", "422 Invalid", codeAndReason(err))
		}},
		{"workload-defaults", "other workloads get their defaults", func(e *env) {
			template := `template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: "example.org/app"}]}}`
			for kind, entry := range map[string]struct {
				resource, apiVersion, spec, want string
				of                               []string
			}{
				"StatefulSet": {"statefulsets", "apps/v1", `{serviceName: x, selector: {matchLabels: {app: x}}, ` + template + `}`,
					`{replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: OrderedReady, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}`,
					[]string{"replicas", "revisionHistoryLimit", "podManagementPolicy", "updateStrategy", "persistentVolumeClaimRetentionPolicy"}},
				"DaemonSet": {"daemonsets", "apps/v1", `{selector: {matchLabels: {app: x}}, ` + template + `}`,
					`{revisionHistoryLimit: 10, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1, maxSurge: 0}}}`,
					[]string{"revisionHistoryLimit", "updateStrategy"}},
				"CronJob": {"cronjobs", "batch/v1", `{schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.org/app"}]}}}}}`,
					`{concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3, failedJobsHistoryLimit: 1}`,
					[]string{"concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}},
				"Job": {"jobs", "batch/v1", `{template: {spec: {restartPolicy: Never, containers: [{name: main, image: "example.org/app"}]}}}`,
					`{completions: 1, parallelism: 1, backoffLimit: 6, completionMode: NonIndexed, suspend: false, podReplacementPolicy: TerminatingOrFailed}`,
					[]string{"completions", "parallelism", "backoffLimit", "completionMode", "suspend", "podReplacementPolicy"}},
			} {
				group, version := "apps", "v1"
				if entry.apiVersion == "batch/v1" {
					group = "batch"
				}
				o := object(entry.apiVersion, kind, "a")
				o.Object["spec"] = parse(entry.spec)
				made, err := e.in(schemaOf(group, version, entry.resource)).Create(e.Ctx, o, metav1.CreateOptions{})
				require.NoError(e, err)
				got := map[string]any{}
				for _, name := range entry.of {
					got[name] = field(made, "spec", name)
				}
				e.fact(kind, parse(entry.want), jsonNumbers(got))
				e.fact(kind+" generation", int64(1), made.GetGeneration())
			}
		}},
		{"job-selector", "the server sets a Job's selector and labels", func(e *env) {
			o := object("batch/v1", "Job", "a")
			o.Object["spec"] = parse(`{template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}`)
			made, err := e.in(schemaOf("batch", "v1", "jobs")).Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			uid := string(made.GetUID())
			e.fact("selector", map[string]any{"batch.kubernetes.io/controller-uid": uid}, field(made, "spec", "selector", "matchLabels"))
			e.fact("template labels", map[string]any{"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a", "controller-uid": uid, "job-name": "a"}, field(made, "spec", "template", "metadata", "labels"))
		}},
		{"service", "a Service gets defaults, and addresses only in a real cluster", func(e *env) {
			o := object("v1", "Service", "a")
			o.Object["spec"] = parse(`{selector: {app: x}, ports: [{port: 80}]}`)
			made, err := e.in(services).Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("ports", parse(`{ports: [{port: 80, protocol: TCP, targetPort: 80}]}`)["ports"], jsonNumbers(field(made, "spec", "ports")))
			e.fact("type", "ClusterIP", field(made, "spec", "type"))
			e.fact("sessionAffinity", "None", field(made, "spec", "sessionAffinity"))
			e.fact("internalTrafficPolicy", "Cluster", field(made, "spec", "internalTrafficPolicy"))
			e.fact("has a cluster address", true, field(made, "spec", "clusterIP") != nil)
			o.SetName("1a")
			_, err = e.in(services).Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("a name may begin with a digit", "OK", codeAndReason(err))
			o.SetName("a.b")
			_, err = e.in(services).Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("a name may not hold dots", "422 Invalid", codeAndReason(err))
			reply := e.do("DELETE", "/api/v1/namespaces/"+e.Namespace+"/services/a", nil)
			e.fact("deletion answers with", "Service", reply.Body["kind"])
		}},
		{"roles", "names of RBAC objects may hold colons; bindings get an API group", func(e *env) {
			o := object("rbac.authorization.k8s.io/v1", "Role", "system:a")
			o.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
			_, err := e.in(roles).Create(e.Ctx, o, metav1.CreateOptions{})
			e.fact("colon", "OK", e.errorText(err))
			b := object("rbac.authorization.k8s.io/v1", "RoleBinding", "b")
			b.Object["roleRef"] = map[string]any{"kind": "Role", "name": "system:a"}
			b.Object["subjects"] = []any{map[string]any{"kind": "User", "name": "alice"}, map[string]any{"kind": "ServiceAccount", "name": "sa", "namespace": "default"}}
			made, err := e.in(schemaOf("rbac.authorization.k8s.io", "v1", "rolebindings")).Create(e.Ctx, b, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("roleRef", map[string]any{"kind": "Role", "name": "system:a", "apiGroup": "rbac.authorization.k8s.io"}, made.Object["roleRef"])
			e.fact("subjects", []any{
				map[string]any{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"},
				map[string]any{"kind": "ServiceAccount", "name": "sa", "namespace": "default"},
			}, made.Object["subjects"])
		}},
		{"pod", "a new Pod is Pending", func(e *env) {
			sa, err := e.in(schemaOf("", "v1", "serviceaccounts")).Create(e.Ctx, object("v1", "ServiceAccount", "default"), metav1.CreateOptions{})
			if codeAndReason(err) != "409 AlreadyExists" {
				require.NoError(e, err)
				require.Equal(e, "default", sa.GetName())
			}
			o := object("v1", "Pod", "a")
			o.Object["spec"] = parse(`{automountServiceAccountToken: false, containers: [{name: main, image: "example.org/app:1"}]}`)
			made, err := e.in(pods).Create(e.Ctx, o, metav1.CreateOptions{})
			require.NoError(e, err)
			e.fact("phase", "Pending", field(made, "status", "phase"))
			e.fact("qosClass", "BestEffort", field(made, "status", "qosClass"))
			e.fact("restartPolicy", "Always", field(made, "spec", "restartPolicy"))
			e.fact("generation", int64(1), made.GetGeneration())
		}},
	}
}

// jsonNumbers converts the integers in v to float64, as YAML decodes them.
func jsonNumbers(v any) any {
	switch t := v.(type) {
	case int64:
		return float64(t)
	case map[string]any:
		other := map[string]any{}
		for k, e := range t {
			other[k] = jsonNumbers(e)
		}
		return other
	case []any:
		other := make([]any, len(t))
		for i, e := range t {
			other[i] = jsonNumbers(e)
		}
		return other
	default:
		return v
	}
}
