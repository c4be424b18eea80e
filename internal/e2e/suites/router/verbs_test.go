// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/internal/e2e/planetest"
)

// owner grants alice all rights in a namespace of one plane.
const owner = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: owner, namespace: %[1]s}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owner, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owner}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]
`

const (
	configMap  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {app: web}}, data: {color: %s}}"
	deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {replicas: 1, selector: {matchLabels: {app: web}},
		template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: example.com/web}]}}}}`
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

// TestVerbs runs the commands of kubectl against one region, and against all regions as one. There each object exists in
// the other region too, and its name says the region.
func TestVerbs(t *testing.T) {
	g := newGateway(t)
	for _, merged := range []bool{false, true} {
		t.Run(map[bool]string{false: "one region", true: "all regions"}[merged], func(t *testing.T) {
			namespace := planetest.Namespace(t, g.planes...)
			for _, p := range g.planes {
				formTeam(t, p, namespace)
				planetest.Apply(t, p, fmt.Sprintf(owner, namespace))
			}
			path, suffix := "/regions/eu-west-1.loodse", ""
			if merged {
				path, suffix = "/regions/*", "@eu-west-1.loodse"
				planetest.Apply(t, g.planes[1], strings.Replace(fmt.Sprintf(configMap, "settings", "other"), "labels:", "namespace: "+namespace+", labels:", 1))
			}
			v := verbs{kubectl: g.kubectl(t, path, "token-of-alice"), g: g, namespace: namespace, suffix: suffix, merged: merged}
			v.run(t)
		})
	}
}

type verbs struct {
	kubectl
	g                 *gateway
	namespace, suffix string
	merged            bool
}

func (v verbs) do(t *testing.T, args ...string) string {
	t.Helper()
	return v.must(t, "", append([]string{"--namespace=" + v.namespace}, args...)...)
}

func (v verbs) give(t *testing.T, manifest string, args ...string) string {
	t.Helper()
	return v.must(t, manifest, append(append([]string{"--namespace=" + v.namespace}, args...), "-f", "-")...)
}

// name returns the name of an object of the first region.
func (v verbs) name(plain string) string { return plain + v.suffix }

// color returns the present data of settings.
func (v verbs) color(t *testing.T) string {
	t.Helper()
	return v.do(t, "get", "configmap", v.name("settings"), "-o", "jsonpath={.data.color}")
}

func (v verbs) run(t *testing.T) {
	settings, web := v.name("settings"), v.name("web")
	t.Run("create", func(t *testing.T) {
		require.Contains(t, v.give(t, fmt.Sprintf(configMap, settings, "green"), "create"), "configmap/settings")
		require.Equal(t, "green", v.color(t))
		require.Contains(t, v.give(t, fmt.Sprintf(deployment, web), "create"), "deployment.apps/web")
	})
	t.Run("get", func(t *testing.T) {
		out := v.do(t, "get", "configmaps")
		require.Regexp(t, `NAME\s.*AGE`, out)
		require.Contains(t, out, settings)
		if v.merged {
			require.Regexp(t, `NAME\s+REGION\s+DATA\s+AGE`, out)
			require.Regexp(t, `settings@eu-west-1\.loodse\s+eu-west-1\.loodse\s+1\s`, out)
			require.Regexp(t, `settings@us-east-1\.loodse\s+us-east-1\.loodse\s+1\s`, out)
		}
		require.Contains(t, v.do(t, "get", "configmap", settings), settings)
		require.Contains(t, v.do(t, "get", "configmap", settings, "-o", "yaml"), "color: green")
		require.Contains(t, v.do(t, "get", "configmaps", "-o", "wide"), settings)
		require.Contains(t, v.do(t, "get", "configmaps", "-o", "name"), "configmap/"+settings)
		require.Contains(t, v.do(t, "get", "configmaps", "--show-labels"), "app=web")
		require.Contains(t, v.do(t, "get", "configmaps", "-L", "app"), "APP")
		require.Contains(t, v.do(t, "get", "configmaps", "-o", "custom-columns=N:.metadata.name"), settings)
		require.Contains(t, v.do(t, "get", "configmaps", "--sort-by=.metadata.name"), settings)
		require.Contains(t, v.do(t, "get", "configmaps", "-l", "app=web"), settings)
		require.NotContains(t, v.do(t, "get", "configmaps", "-l", "app=other"), settings)
		require.Contains(t, v.do(t, "get", "configmaps", "--field-selector", "metadata.name="+settings), settings)
		require.Equal(t, v.do(t, "get", "configmaps", "-o", "name"), v.do(t, "get", "configmaps", "-o", "name", "--chunk-size=1"))
		require.Contains(t, v.do(t, "get", "configmaps,deployments"), "deployment.apps/"+web)
		require.Contains(t, v.do(t, "get", "deployment", web), "0/1")
	})
	t.Run("get -w", func(t *testing.T) {
		lines, stop := v.start(t, "--namespace="+v.namespace, "get", "configmap", settings, "-w", "--output-watch-events")
		require.Contains(t, next(t, lines), "NAME")
		require.Contains(t, next(t, lines), settings)
		v.do(t, "label", "configmap", settings, "watched=yes")
		require.Regexp(t, `^MODIFIED\s+`+settings, next(t, lines))
		stop()
	})
	t.Run("describe", func(t *testing.T) {
		require.Contains(t, v.do(t, "describe", "configmap", settings), "green")
		planetest.Apply(t, v.g.planes[0], fmt.Sprintf("{apiVersion: v1, kind: Event, metadata: {name: seen, namespace: %[1]s}, involvedObject: {kind: ConfigMap, apiVersion: v1, name: settings, namespace: %[1]s}, reason: Seen, message: it was seen, type: Normal}", v.namespace))
		require.Contains(t, v.do(t, "get", "events", "--field-selector", "involvedObject.name="+settings), "it was seen")
	})
	t.Run("apply", func(t *testing.T) {
		v.give(t, fmt.Sprintf(configMap, settings, "red"), "apply", "--server-side", "--force-conflicts")
		require.Equal(t, "red", v.color(t))
		applied := v.name("applied")
		v.give(t, fmt.Sprintf(configMap, applied, "red"), "apply")
		v.give(t, fmt.Sprintf(configMap, applied, "blue"), "apply")
		require.Equal(t, "blue", v.do(t, "get", "configmap", applied, "-o", "jsonpath={.data.color}"))
	})
	t.Run("diff", func(t *testing.T) {
		out, err := v.kubectl.run(t, fmt.Sprintf(configMap, v.name("applied"), "black"), "--namespace="+v.namespace, "diff", "-f", "-")
		require.Error(t, err, "diff ends with 1 if there are differences")
		require.Contains(t, out, "+  color: black")
		require.Contains(t, out, "-  color: blue")
	})
	t.Run("edit", func(t *testing.T) {
		editor := filepath.Join(t.TempDir(), "editor")
		require.NoError(t, os.WriteFile(editor, []byte("#!/bin/sh\nsed -i s/red/pink/ \"$1\"\n"), 0o700)) //nolint:gosec // it is a program
		edit := v.kubectl
		edit.env = append(edit.env, "KUBE_EDITOR="+editor)
		edit.must(t, "", "--namespace="+v.namespace, "edit", "configmap", settings)
		require.Equal(t, "pink", v.color(t))
	})
	t.Run("patch and label", func(t *testing.T) {
		for kind, patch := range map[string]string{"merge": `{"data":{"color":"gold"}}`, "strategic": `{"data":{"color":"gray"}}`, "json": `[{"op":"replace","path":"/data/color","value":"navy"}]`} {
			v.do(t, "patch", "configmap", settings, "--type", kind, "-p", patch)
			require.Contains(t, patch, v.color(t))
		}
		v.do(t, "annotate", "configmap", settings, "note=yes")
		v.do(t, "label", "configmap", settings, "watched-")
		require.NotContains(t, v.do(t, "get", "configmap", settings, "--show-labels"), "watched")
	})
	t.Run("scale and rollout status", func(t *testing.T) {
		v.do(t, "scale", "deployment", web, "--replicas=2")
		require.Equal(t, "2", v.do(t, "get", "deployment", web, "-o", "jsonpath={.spec.replicas}"))
		status := `{"status":{"observedGeneration":100,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}`
		_, err := planetest.Dynamic(t, v.g.planes[0].Config()).Resource(deployments).Namespace(v.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		require.Contains(t, v.do(t, "rollout", "status", "deployment", web, "--timeout=60s"), "successfully rolled out")
		require.Contains(t, v.do(t, "get", "deployment", web), "2/2")
	})
	t.Run("wait", func(t *testing.T) {
		v.do(t, "wait", "configmap", settings, "--for=jsonpath={.data.color}", "--timeout=60s")
		gone := make(chan error, 1)
		v.give(t, fmt.Sprintf(configMap, v.name("short"), "red"), "create")
		go func() {
			_, err := v.kubectl.run(t, "", "--namespace="+v.namespace, "wait", "configmap", v.name("short"), "--for=delete", "--timeout=60s")
			gone <- err
		}()
		v.do(t, "delete", "configmap", v.name("short"))
		require.NoError(t, <-gone)
	})
	t.Run("explain and api-resources", func(t *testing.T) {
		require.Contains(t, v.do(t, "explain", "deployment.spec.replicas"), "Number of desired pods")
		require.Contains(t, v.do(t, "api-resources", "--api-group=apps"), "deployments")
	})
	t.Run("auth", func(t *testing.T) {
		require.Contains(t, v.do(t, "auth", "whoami"), "alice")
		require.Contains(t, v.do(t, "auth", "can-i", "delete", "deployment/"+web), "yes")
		require.Contains(t, v.do(t, "auth", "can-i", "--list"), "*.*")
		v.refused(t, "no", "", "auth", "can-i", "delete", "nodes")
	})
	t.Run("delete", func(t *testing.T) {
		v.do(t, "delete", "configmap", v.name("applied"))
		v.do(t, "delete", "deployment", web)
		planetest.Eventually(t, time.Minute, "the objects are gone", func(context.Context) error {
			if out := v.do(t, "get", "configmaps,deployments", "-o", "name"); strings.Contains(out, v.name("applied")) || strings.Contains(out, "deployment.apps/web") {
				return fmt.Errorf("they are there: %s", out)
			}
			return nil
		})
		require.Contains(t, v.do(t, "get", "configmaps", "-o", "name"), settings, "the other object is there")
		v.do(t, "delete", "configmaps", "-l", "app=web")
		require.NotContains(t, v.do(t, "get", "configmaps", "-o", "name"), "settings", "of all regions")
	})
	if v.merged {
		t.Run("several types", func(t *testing.T) {
			both := "/apis/across.atoll.dev/v1/namespaces/" + v.namespace + "/configmaps.v1,deployments.v1.apps"
			v.give(t, fmt.Sprintf(configMap, v.name("mixed"), "red"), "create")
			v.give(t, fmt.Sprintf(deployment, v.name("mixed")), "create")
			list := unstructured.UnstructuredList{}
			require.NoError(t, json.Unmarshal([]byte(v.do(t, "get", "--raw", both+"?fieldSelector=metadata.name%3Dmixed")), &list))
			var seen []string
			for i := range list.Items {
				seen = append(seen, list.Items[i].GetAPIVersion()+" "+list.Items[i].GetKind()+" "+list.Items[i].GetName())
			}
			require.Equal(t, []string{"v1 ConfigMap " + v.name("mixed"), "apps/v1 Deployment " + v.name("mixed")}, seen)
			lines, stop := v.start(t, "get", "--raw", both+"?watch=true&resourceVersion="+list.GetResourceVersion())
			v.do(t, "delete", "deployment", v.name("mixed"))
			line := next(t, lines)
			require.Contains(t, line, `"type":"DELETED"`)
			require.Contains(t, line, `"kind":"Deployment"`)
			stop()
		})
		t.Run("a name that two regions have", func(t *testing.T) {
			for _, region := range []string{"eu-west-1.loodse", "us-east-1.loodse"} {
				v.give(t, fmt.Sprintf(configMap, "twice@"+region, "red"), "create")
			}
			v.refused(t, "several regions have an object with this name: select one", "", "--namespace="+v.namespace, "label", "configmap", "twice", "a=b")
			v.refused(t, "it names no region", fmt.Sprintf(configMap, "nowhere", "red"), "--namespace="+v.namespace, "create", "-f", "-")
		})
	}
}
